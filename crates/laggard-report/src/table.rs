//! A table as terminal text, Markdown, HTML or CSV.
//!
//! Cells contain raw text; rendering escapes it.

use crate::escape;
use crate::names::Names;
use crate::number::NO_VALUE;

/// Text width if the terminal width is unknown.
const DEFAULT_WIDTH: usize = 100;
/// Minimum width of a text column.
const NARROWEST: usize = 12;
/// Maximum width of a name in HTML.
const WIDTH_OF_NAMES: usize = 90;
/// Optional columns are dropped before text columns get narrower than this.
const READABLE: usize = 24;
const BETWEEN: &str = "  ";
/// Separates the names of a cell, such as fused kernels.
pub(crate) const BETWEEN_NAMES: &str = " + ";

/// Capabilities of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether to use ANSI styles.
    pub color: bool,
    /// Width of the terminal in columns; 100 if unknown.
    pub width: Option<usize>,
}

impl Style {
    pub(crate) fn columns(&self) -> usize {
        self.width.unwrap_or(DEFAULT_WIDTH)
    }

    pub(crate) fn heading(&self, text: &str) -> String {
        self.paint("1;4", text)
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn minor(&self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.color && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Alignment of the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Left, for text.
    Left,
    /// Right, for intervals.
    Right,
    /// At the decimal point, for numbers; right if the output format cannot do that.
    Point,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Column title.
    pub header: String,
    /// Unit of all cells; empty if they have none.
    pub unit: String,
    /// Alignment of the cells.
    pub align: Align,
    /// Whether the column is dropped if the terminal is too narrow.
    pub may_go: bool,
    /// Whether the cells are names of functions or kernels, which are shortened by meaning.
    pub has_names: bool,
    /// Whether optional columns are dropped before this text column is narrowed.
    pub is_first: bool,
}

impl Column {
    /// A text column. Text columns are narrowed if the table is too wide.
    pub fn text(header: &str) -> Column {
        Column {
            header: header.to_owned(),
            unit: String::new(),
            align: Align::Left,
            may_go: false,
            has_names: false,
            is_first: false,
        }
    }

    /// A text column of names of functions or kernels. Long names are shortened by meaning, and
    /// different names stay different.
    pub fn names(header: &str) -> Column {
        Column { has_names: true, ..Column::text(header) }
    }

    /// A column of numbers with one unit.
    pub fn number(header: &str, unit: &str) -> Column {
        Column {
            header: header.to_owned(),
            unit: unit.to_owned(),
            align: Align::Point,
            may_go: false,
            has_names: false,
            is_first: false,
        }
    }

    /// A column of intervals with one unit.
    pub fn range(header: &str, unit: &str) -> Column {
        Column { align: Align::Right, ..Column::number(header, unit) }
    }

    /// Makes the column more important than optional ones, which are dropped before it is narrowed.
    pub fn first(self) -> Column {
        Column { is_first: true, ..self }
    }

    /// Makes the column optional: dropped from text if the table is too wide, rightmost first.
    pub fn may_go(self) -> Column {
        Column { may_go: true, ..self }
    }
}

/// A table. An empty cell is a missing value; columns without values are hidden.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl Into<Vec<Column>>) -> Table {
        Table { columns: columns.into(), rows: vec![] }
    }

    /// Adds a row. Missing cells are empty; excess cells are dropped.
    pub fn push(&mut self, row: impl Into<Vec<String>>) {
        let mut row = row.into();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The names of functions and kernels in the cells.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let columns = self.columns.iter().enumerate().filter(|(_, column)| column.has_names);
        columns
            .flat_map(|(i, _)| self.rows.iter().map(move |row| split_indent(&row[i]).1))
            .flat_map(|cell| cell.split(BETWEEN_NAMES))
    }

    /// Aligned text, indented by `indent` spaces, with units below the column titles. Different names
    /// of `names` look different.
    pub(crate) fn text(&self, style: &Style, indent: usize, names: &Names) -> String {
        let available = style.columns().saturating_sub(indent);
        let columns = fitting(self.shown(str::to_owned), available);
        let widths = widths(&columns, available);
        let blocks: Vec<Vec<String>> = columns
            .iter()
            .zip(&widths)
            .map(|((column, cells), &width)| block(column, cells, width, names))
            .collect();
        let mut text = String::new();
        let lines = blocks.first().map_or(0, Vec::len);
        for i in 0..lines {
            let cells: Vec<&str> = blocks.iter().map(|block| block[i].as_str()).collect();
            let line = cells.join(BETWEEN);
            let line = line.trim_end();
            if i == 1 && line.is_empty() {
                continue;
            }
            text.push_str(&" ".repeat(indent));
            text.push_str(&match i {
                0 => style.bold(line),
                1 => style.minor(line),
                _ => line.to_owned(),
            });
            text.push('\n');
        }
        text
    }

    /// A GitHub Flavored Markdown table.
    pub fn markdown(&self) -> String {
        let columns = self.shown(escape::markdown);
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let header = |column: &Column| match (&*escape::markdown(&column.header), &*column.unit) {
            (header, "") => header.to_owned(),
            ("", unit) => unit.to_owned(),
            (header, unit) => format!("{header} ({unit})"),
        };
        let rule = |column: &Column| if column.align == Align::Left { ":--" } else { "--:" };
        let mut text = line(columns.iter().map(|(column, _)| header(column)).collect());
        text += &line(columns.iter().map(|(column, _)| rule(column).to_owned()).collect());
        for row in 0..self.rows.len() {
            text += &line(columns.iter().map(|(_, cells)| cells[row].clone()).collect());
        }
        text
    }

    /// An HTML table. Numeric cells have a `data-v` attribute for sorting. Long names are shortened, with
    /// the full name as a tooltip.
    pub(crate) fn html(&self, names: &Names) -> String {
        let columns = self.shown(str::to_owned);
        let name = |cell: &str| {
            let (text, full) =
                (escape::xml(&fit_name(cell, WIDTH_OF_NAMES, names)), escape::xml(cell));
            if text == full { text } else { format!("<span title=\"{full}\">{text}</span>") }
        };
        let class = |column: &Column| match column.align {
            Align::Left => "",
            Align::Right | Align::Point => " class=\"n\"",
        };
        let head = columns.iter().map(|(column, _)| {
            let unit = match column.unit.as_str() {
                "" => String::new(),
                unit => format!(" <small>{}</small>", escape::xml(unit)),
            };
            format!("<th{}>{}{unit}</th>", class(column), escape::xml(&column.header))
        });
        let mut text = format!(
            "<table class=\"rows\">\n<thead><tr>{}</tr></thead>\n<tbody>\n",
            head.collect::<String>()
        );
        for row in 0..self.rows.len() {
            let cells = columns.iter().map(|(column, cells)| {
                let value = match column.align {
                    Align::Point => value(&cells[row]),
                    Align::Left | Align::Right => None,
                };
                let value = value.map_or_else(String::new, |value| format!(" data-v=\"{value}\""));
                let cell =
                    if column.has_names { name(&cells[row]) } else { escape::xml(&cells[row]) };
                format!("<td{}{value}>{cell}</td>", class(column))
            });
            text += &format!("<tr>{}</tr>\n", cells.collect::<String>());
        }
        text + "</tbody>\n</table>\n"
    }

    /// CSV (RFC 4180) with a header row. Contains all columns and no units.
    pub fn csv(&self) -> String {
        let headers = self.columns.iter().map(|column| escape::csv(&column.header)).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| escape::csv(cell)).collect());
        let line = |cells: Vec<String>| cells.join(",") + "\r\n";
        std::iter::once(headers).chain(rows).map(line).collect()
    }

    /// Columns with at least one value, with their cells.
    fn shown(&self, escape: fn(&str) -> String) -> Vec<Filled<'_>> {
        let with_value = |i: &usize| self.rows.iter().any(|row| !row[*i].is_empty());
        let cell = |text: &String| if text.is_empty() { NO_VALUE.to_owned() } else { escape(text) };
        (0..self.columns.len())
            .filter(with_value)
            .map(|i| (&self.columns[i], self.rows.iter().map(|row| cell(&row[i])).collect()))
            .collect()
    }
}

/// Numeric value of a cell, in the unit of its column.
fn value(cell: &str) -> Option<f64> {
    let digits: String = cell.chars().filter(|c| !matches!(c, ',' | '<')).collect();
    digits.trim().parse().ok().filter(|value: &f64| value.is_finite())
}

/// A column with its cells.
type Filled<'a> = (&'a Column, Vec<String>);

/// Drops optional columns until the table fits.
fn fitting(mut columns: Vec<Filled>, available: usize) -> Vec<Filled> {
    let least = |filled: &Filled| match (filled.0.align, natural(filled, available)) {
        (Align::Left, width) if !filled.0.is_first => width.min(READABLE),
        (_, width) => width,
    };
    while columns.iter().map(least).sum::<usize>() + gaps(&columns) > available {
        let Some(last) = columns.iter().rposition(|(column, _)| column.may_go) else { break };
        columns.remove(last);
    }
    columns
}

/// Total width of the space between columns.
fn gaps(columns: &[Filled]) -> usize {
    BETWEEN.len() * columns.len().saturating_sub(1)
}

/// Width of a column without shortening.
fn natural((column, cells): &Filled, available: usize) -> usize {
    let padded = aligned(column, cells);
    let shown = |cell: &String| match column.align {
        Align::Left => escape::columns(&escape::fit(cell, available)),
        _ => escape::columns(&escape::visible(cell)),
    };
    let widest = padded.iter().map(shown).max().unwrap_or(0);
    let header = escape::columns(&column.header).max(escape::columns(&column.unit));
    let limit = if column.align == Align::Left { available } else { usize::MAX };
    widest.min(limit).max(header)
}

/// Width of each column, with text columns narrowed until the table fits.
fn widths(columns: &[Filled], available: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|filled| natural(filled, available)).collect();
    let gaps = gaps(columns);
    while widths.iter().sum::<usize>() + gaps > available {
        let flexible = columns.iter().enumerate().filter(|(i, (column, _))| {
            column.align == Align::Left && widths[*i] > NARROWEST.max(column.header.len())
        });
        let Some((widest, _)) = flexible.max_by_key(|(i, _)| widths[*i]) else { break };
        widths[widest] -= 1;
    }
    widths
}

/// Title, unit and cells of a column, escaped and padded to the same width.
fn block(column: &Column, cells: &[String], width: usize, names: &Names) -> Vec<String> {
    let head = [column.header.clone(), column.unit.clone()];
    let cells = aligned(column, cells);
    let cells = cells.iter().map(|cell| match column.has_names {
        true => fit_name(cell, width, names),
        false => fit_file(cell, width),
    });
    head.iter()
        .map(|cell| escape::fit(cell, width))
        .chain(cells)
        .map(|cell| {
            let space = " ".repeat(width.saturating_sub(escape::columns(&cell)));
            if column.align == Align::Left { cell + &space } else { space + &cell }
        })
        .collect()
}

/// Shortens a cell. A name of a Python extension module loses the tag of its Python first, which is the
/// same for all of them: `_struct.so` for `_struct.cpython-313-x86_64-linux-gnu.so`.
fn fit_file(cell: &str, width: usize) -> String {
    let tag = [".cpython-", ".abi3", ".pypy"].iter().find_map(|tag| cell.find(tag));
    match tag.zip(cell.strip_suffix(".so")) {
        Some((tag, stem)) if escape::columns(cell) > width && tag < stem.len() => {
            escape::fit(&format!("{}.so", &cell[..tag]), width)
        }
        _ => escape::fit(cell, width),
    }
}

/// Shortens a name. The indentation of a tree is kept if at least [`NARROWEST`] columns remain.
fn fit_name(cell: &str, width: usize, names: &Names) -> String {
    let (indent, name) = split_indent(cell);
    let room = width.saturating_sub(NARROWEST).min(escape::columns(indent));
    let indent: String = indent.chars().take(room).collect();
    indent + &fit_names(name, width - room, names)
}

/// Shortens each name of a cell to an equal share of the width.
fn fit_names(cell: &str, width: usize, names: &Names) -> String {
    if escape::columns(cell) <= width {
        return escape::visible(cell);
    }
    let all: Vec<&str> = cell.split(BETWEEN_NAMES).collect();
    let room = (width + BETWEEN_NAMES.len()) / all.len();
    match room.checked_sub(BETWEEN_NAMES.len()) {
        Some(share) if share >= NARROWEST || all.len() == 1 => {
            let short: Vec<String> = all.iter().map(|name| names.short(name, share)).collect();
            short.join(BETWEEN_NAMES)
        }
        _ => {
            let more = format!("{BETWEEN_NAMES}{} more", all.len() - 1);
            names.short(all[0], width.saturating_sub(more.len())) + &more
        }
    }
}

/// Splits the indentation of a tree from a name.
fn split_indent(cell: &str) -> (&str, &str) {
    cell.split_at(cell.len() - cell.trim_start_matches(['·', ' ']).len())
}

/// Pads numeric cells on the right to align their decimal points.
fn aligned(column: &Column, cells: &[String]) -> Vec<String> {
    if column.align != Align::Point {
        return cells.to_vec();
    }
    let after_point = |cell: &String| cell.len() - cell.find('.').unwrap_or(cell.len());
    let most = cells.iter().map(after_point).max().unwrap_or(0);
    cells.iter().map(|cell| format!("{cell}{}", " ".repeat(most - after_point(cell)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    fn sample() -> Table {
        let mut table = Table::new([
            Column::names("name"),
            Column::number("time", "ms"),
            Column::text("never known"),
            Column::range("min…max", "µs"),
        ]);
        let row = |cells: [&str; 4]| cells.map(str::to_owned);
        table.push(row(["gemm\n\u{1b}[2J|x", "1,230", "", "1.00…2.00"]));
        table.push(row(["void very_long<float, 4>(int)", "45.6", "", ""]));
        table.push(row(["say \"hi\", 核", "0.123", "", "10.5…99.0"]));
        table
    }

    fn text(table: &Table, width: Option<usize>, indent: usize) -> String {
        table.text(&Style { color: false, width }, indent, &Names::new(table.names()))
    }

    #[test]
    fn text_is_aligned_and_fits_the_width() {
        assert_snapshot!(text(&sample(), Some(44), 2), @r#"
        name                       time    min…max
                                     ms         µs
        gemm\n\u{1b}[2J|x     1,230      1.00…2.00
        very_long<f32, 4>        45.6            -
        say "hi", 核              0.123  10.5…99.0
        "#);
    }

    #[test]
    fn optional_columns_are_dropped_before_names_become_unreadable() {
        let mut table = Table::new([
            Column::number("time", "ms"),
            Column::number("±", "ms").may_go(),
            Column::range("count", "n, n").may_go(),
            Column::names("name"),
        ]);
        let name = "a_kernel_with_a_long_name_indeed";
        table.push(["1.00", "0.100", "320, 320", name].map(str::to_owned));
        let at = |width| text(&table, Some(width), 0);
        assert_snapshot!([60, 46, 36].map(at).join("\n"), @r"
        time      ±     count  name
          ms     ms      n, n
        1.00  0.100  320, 320  a_kernel_with_a_long_name_indeed

        time      ±  name
          ms     ms
        1.00  0.100  a_kernel_with_a_long_name_indeed

        time  name
          ms
        1.00  a_kernel_with_a_long_name_ind…
        ");
    }

    #[test]
    fn optional_columns_are_dropped_before_an_important_one_is_narrowed() {
        let mut table =
            Table::new([Column::text("arguments").first(), Column::text("library").may_go()]);
        table.push(["dgemm_(transa N, transb T, m 400)", "libopenblas"].map(str::to_owned));
        assert!(text(&table, Some(48), 0).contains("m 400)  libopenblas"));
        assert!(text(&table, Some(40), 0).ends_with("dgemm_(transa N, transb T, m 400)\n"));
    }

    #[test]
    fn color_changes_only_the_style() {
        let style = Style { color: true, width: None };
        let plain = text(&sample(), None, 0);
        let coloured = sample().text(&style, 0, &Names::default());
        assert_eq!(
            coloured.replace("\u{1b}[1m", "").replace("\u{1b}[2m", "").replace("\u{1b}[0m", ""),
            plain
        );
        assert!(coloured.starts_with("\u{1b}[1mname"));
    }

    #[test]
    fn long_names_in_html_have_the_full_name_as_a_tooltip() {
        let mut table = Table::new([Column::names("kernel")]);
        let long = format!("void f<{}>(int)", ["float"; 30].join(", "));
        table.push([long.clone()]);
        table.push(["short<4>".to_owned()]);
        let html = table.html(&Names::new(table.names()));
        let full = escape::xml(&long);
        assert!(html.contains(&format!("<td><span title=\"{full}\">f f32</span></td>")), "{html}");
        assert!(html.contains("<td>short&lt;4&gt;</td>"));
    }

    #[test]
    fn markdown_has_escaped_cells() {
        assert_snapshot!(sample().markdown(), @r#"
        | name | time (ms) | min…max (µs) |
        | :-- | --: | --: |
        | gemm\\n\\u{1b}\[2J\|x | 1,230 | 1.00…2.00 |
        | void very_long\<float, 4\>(int) | 45.6 | - |
        | say "hi", 核 | 0.123 | 10.5…99.0 |
        "#);
    }

    #[test]
    fn csv_contains_names_unchanged() {
        assert_eq!(
            sample().csv(),
            "name,time,never known,min…max\r\n\"gemm\n\u{1b}[2J|x\",\"1,230\",,1.00…2.00\r\n\
             \"void very_long<float, 4>(int)\",45.6,,\r\n\"say \"\"hi\"\", 核\",0.123,,10.5…99.0\r\n"
        );
    }

    #[test]
    fn names_of_extension_modules_lose_their_tag_first() {
        let check = |cell: &str, width: usize, expected: &str| {
            assert_eq!(fit_file(cell, width), expected, "{cell} at {width}");
        };
        let module = "_struct.cpython-313-x86_64-linux-gnu.so";
        check(module, 80, module);
        check(module, 20, "_struct.so");
        check("_rust.abi3.so", 10, "_rust.so");
        check("libscipy_openblas64_-32a4b2a6.so", 20, "libscipy_o…a4b2a6.so");
        check(".cpython-.so", 4, ".so");
    }
}
