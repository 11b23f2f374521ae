//! Report of a comparison of call traces. A is the reference; differences are B minus A, ratios B / A.

#[cfg(test)]
mod tests;

use crate::calls::columns::per_call;
use crate::calls::json::TallyShape;
use crate::calls::tables::{only as only_library, short};
use crate::document::Document;
use crate::escape;
use crate::number::{Quantity, count, duration, instructions, plural, significant};
use crate::profile::about::{LONGEST_COMMAND, command};
use crate::profile::json::About;
use crate::rows::{kept, more};
use crate::shape;
use crate::table::{Column, Style, Table};
use laggard_core::calls::{self, Comparison, Finding, Measure, Tally};
use laggard_core::model::profile;
use serde::Serialize;

/// Input of the report.
#[derive(Clone, Copy, Debug)]
pub struct CompareCalls<'a> {
    /// The reference side.
    pub a: Given<'a>,
    /// The compared side.
    pub b: Given<'a>,
    /// The comparison.
    pub comparison: &'a Comparison,
    /// Maximum number of rows in a table; `None` for all.
    pub top: Option<usize>,
}

/// One side.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Path as given by the user.
    pub path: &'a str,
    /// The traced program.
    pub about: &'a profile::About,
    /// Parts of the file that could not be read, one sentence each.
    pub losses: &'a [String],
}

/// The comparison as terminal text.
pub fn text(report: &CompareCalls, style: &Style) -> String {
    document(report).text(style)
}

/// The comparison as Markdown.
pub fn markdown(report: &CompareCalls) -> String {
    document(report).markdown()
}

/// The comparison as HTML sections.
pub fn html(report: &CompareCalls) -> String {
    document(report).html()
}

fn document(report: &CompareCalls) -> Document {
    let mut document = Document::default();
    let comparison = report.comparison;
    document.heading("Calls in A and B");
    let side = |given: &Given, side: &calls::Side| {
        let calls = format!(
            "{}: {}, {} to {}",
            given.path,
            escape::fit(&command(&given.about.command), LONGEST_COMMAND),
            plural(side.whole.count, "call"),
            plural(side.functions as u64, "function"),
        );
        match (side.measure, side.whole.amount(Measure::Instructions)) {
            (Some(Measure::Instructions), Some(n)) => format!("{calls}, {}", instructions(n)),
            (Some(Measure::Instructions | Measure::Calls), _) => calls,
            _ => format!("{calls}, {}", time(side.whole.self_ns)),
        }
    };
    document.facts([
        ("A", side(&report.a, &comparison.a)),
        ("B", side(&report.b, &comparison.b)),
        ("difference", verdict(comparison)),
        ("compared", mixed(comparison)),
    ]);
    findings(report, &mut document);
    only("Only called by A", report, &mut document, |row| row.b.is_none(), |row| row.a.as_ref());
    only("Only called by B", report, &mut document, |row| row.a.is_none(), |row| row.b.as_ref());
    moved(report, &mut document);
    document.blank();
    let gap = match comparison.measure {
        Measure::Time => "total time, B minus A",
        Measure::Instructions => "self instructions, B minus A",
        Measure::Calls => "calls, B minus A",
    };
    document.minor(format!(
        "diff.: {gap}; ratio: B / A; one call trace per side, no confidence intervals: trace again \
         to check that differences repeat"
    ));
    for (name, given) in [("A", &report.a), ("B", &report.b)] {
        for loss in given.losses {
            document.notice(format!("warning: {name}: {loss}"));
        }
    }
    document
}

/// The overall difference in words.
fn verdict(comparison: &Comparison) -> String {
    let gap = comparison.gap();
    if gap == 0 {
        return "no difference".to_owned();
    }
    let times = |what: &str| {
        let ratio = comparison.ratio();
        ratio.map_or_else(String::new, |ratio| format!(", {}x {what} of A", significant(ratio)))
    };
    let size = u64::try_from(gap.unsigned_abs()).unwrap_or(u64::MAX);
    let more = if gap > 0 { "more" } else { "fewer" };
    match comparison.measure {
        Measure::Time => {
            let word = if gap > 0 { "slower" } else { "faster" };
            format!("B is {} {word} in traced calls{}", time(size), times("the time"))
        }
        Measure::Instructions => {
            format!("B runs {} {more}{}", instructions(size), times("the instructions"))
        }
        Measure::Calls => {
            format!("B makes {} {more}{}", plural(size, "call"), times("the calls"))
        }
    }
}

/// Reason why only the number of calls is compared; empty otherwise.
fn mixed(comparison: &Comparison) -> String {
    let words = |measure: Option<Measure>| match measure {
        Some(Measure::Time) => "times",
        Some(Measure::Instructions) => "instructions",
        _ => "only counts",
    };
    if !comparison.is_mixed() {
        return String::new();
    }
    let (a, b) = (words(comparison.a.measure), words(comparison.b.measure));
    format!("number of calls only, because A has {a} and B has {b}")
}

fn findings(report: &CompareCalls, document: &mut Document) {
    document.heading("Functions by difference");
    let both: Vec<&Finding> =
        report.comparison.rows.iter().filter(|row| row.a.is_some() && row.b.is_some()).collect();
    let rows = kept(&both, report.top);
    if rows.is_empty() {
        document.line("no function is called on both sides");
        return;
    }
    let by = report.comparison.measure;
    let single = if by == Measure::Time { "median" } else { "per call" };
    let mut table = Table::new([
        Column::range("diff.", ""),
        Column::number("ratio", ""),
        Column::range("A", ""),
        Column::range("B", ""),
        Column::number("calls A", "n"),
        Column::number("calls B", "n"),
        Column::range(&format!("{single} A"), ""),
        Column::range(&format!("{single} B"), ""),
        Column::number("ratio", ""),
        Column::text("library"),
        Column::names("function"),
    ]);
    let library = only_library(rows.iter().map(|row| row.library.as_str()));
    let mut has_equal = false;
    for row in rows {
        let (Some(a), Some(b)) = (&row.a, &row.b) else { continue };
        let number = |ratio: Option<f64>| ratio.map_or_else(String::new, significant);
        let is_equal = by == Measure::Time && row.medians_differ() == Some(false);
        has_equal |= is_equal;
        let single_ratio = match by {
            Measure::Time => row.median_ratio(),
            Measure::Instructions => row.per_call_ratio(),
            Measure::Calls => None,
        };
        table.push([
            signed(row.gap(by), by),
            number(row.ratio(by)),
            amount(a, by),
            amount(b, by),
            count(a.count),
            count(b.count),
            of_one(a, by),
            of_one(b, by),
            if is_equal { "=".to_owned() } else { number(single_ratio) },
            if library.is_some() { String::new() } else { short(&row.library) },
            row.function.clone(),
        ]);
    }
    document.table(table);
    more(&both, report.top, document);
    if let Some(library) = library {
        document.minor(format!("all in {library}"));
    }
    if has_equal {
        document.minor("=: no difference, the medians are in the same or adjacent buckets");
    }
}

fn only(
    title: &str,
    report: &CompareCalls,
    document: &mut Document,
    is_one: impl Fn(&Finding) -> bool,
    tally: impl Fn(&Finding) -> Option<&Tally>,
) {
    let all: Vec<&Finding> = report.comparison.rows.iter().filter(|row| is_one(row)).collect();
    if all.is_empty() {
        return;
    }
    document.heading(title);
    let by = report.comparison.measure;
    let rows = kept(&all, report.top);
    let found = || rows.iter().filter_map(|row| Some((row, tally(row)?)));
    let mut table = Table::new([
        Column::range("diff.", ""),
        Column::number("calls", "n"),
        Column::range(if by == Measure::Time { "median" } else { "per call" }, ""),
        Column::text("library"),
        Column::names("function"),
    ]);
    for (row, tally) in found() {
        table.push([
            signed(row.gap(by), by),
            count(tally.count),
            of_one(tally, by),
            short(&row.library),
            row.function.clone(),
        ]);
    }
    document.table(table);
    more(&all, report.top, document);
}

fn moved(report: &CompareCalls, document: &mut Document) {
    let all = &report.comparison.moved;
    if all.is_empty() {
        return;
    }
    document.heading("Same function in different libraries");
    let mut table = Table::new([Column::names("function"), Column::text("A"), Column::text("B")]);
    for row in kept(all, report.top) {
        table.push([row.function.clone(), row.a.join(", "), row.b.join(", ")]);
    }
    document.table(table);
    more(all, report.top, document);
}

/// Median time per call, or mean self instructions per call.
fn of_one(tally: &Tally, by: Measure) -> String {
    let shown = match by {
        Measure::Time => tally.median().map(|median| time(median.ns)),
        Measure::Instructions => tally
            .amount(by)
            .filter(|_| tally.count > 0)
            .map(|n| per_call(n as f64 / tally.count as f64)),
        Measure::Calls => None,
    };
    shown.unwrap_or_default()
}

/// Amount of a function; empty if calls are compared.
fn amount(tally: &Tally, by: Measure) -> String {
    let number = tally.amount(by).filter(|_| by != Measure::Calls);
    number.map_or_else(String::new, |number| show(number.into(), by))
}

fn signed(gap: i128, by: Measure) -> String {
    format!("{}{}", if gap > 0 { "+" } else { "" }, show(gap, by))
}

fn show(number: i128, by: Measure) -> String {
    match by {
        Measure::Time => duration(clamp(number)),
        Measure::Instructions if number.unsigned_abs() >= 1000 => {
            Quantity::Instructions.show(number as f64)
        }
        Measure::Instructions | Measure::Calls => {
            let size = u64::try_from(number.unsigned_abs()).unwrap_or(u64::MAX);
            format!("{}{}", if number < 0 { "-" } else { "" }, count(size))
        }
    }
}

fn time(ns: u64) -> String {
    duration(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// All functions as CSV.
pub fn csv(report: &CompareCalls) -> String {
    let columns = [
        "function",
        "library",
        "only_in",
        "gap_ns",
        "ratio",
        "calls_a",
        "calls_b",
        "total_a_ns",
        "total_b_ns",
        "self_a_ns",
        "self_b_ns",
        "median_a_ns",
        "median_b_ns",
        "median_ratio",
        "gap_instructions",
        "instructions_a",
        "instructions_b",
        "own_instructions_a",
        "own_instructions_b",
    ];
    let by = report.comparison.measure;
    // Empty unless measured on both sides.
    let gap = |row: &Finding, of: Measure| match by == of {
        true => row.gap(by).to_string(),
        false => String::new(),
    };
    let mut table = Table::new(columns.map(Column::text));
    for row in kept(&report.comparison.rows, report.top) {
        let of = |side: &Option<Tally>, of: fn(&Tally) -> Option<u64>| {
            side.as_ref().and_then(of).map_or_else(String::new, |n| n.to_string())
        };
        let number = |n: Option<f64>| n.map_or_else(String::new, |n| format!("{n:.6}"));
        let mut line = vec![
            row.function.clone(),
            row.library.clone(),
            only_in(row).unwrap_or_default().to_owned(),
            gap(row, Measure::Time),
            number(row.ratio(by)),
        ];
        let timed = |side: &calls::Side| side.measure == Some(Measure::Time);
        let is_timed = [timed(&report.comparison.a), timed(&report.comparison.b)];
        let mut pair = |column: fn(&Tally) -> Option<u64>, is_known: [bool; 2]| {
            for (side, is_known) in [&row.a, &row.b].into_iter().zip(is_known) {
                line.push(if is_known { of(side, column) } else { String::new() });
            }
        };
        pair(|tally| Some(tally.count), [true; 2]);
        pair(|tally| Some(tally.total_ns), is_timed);
        pair(|tally| Some(tally.self_ns), is_timed);
        pair(|tally| Some(tally.median()?.ns), is_timed);
        line.extend([number(row.median_ratio()), gap(row, Measure::Instructions)]);
        for column in [|tally: &Tally| tally.instructions, |tally: &Tally| tally.own_instructions] {
            line.extend([of(&row.a, column), of(&row.b, column)]);
        }
        table.push(line);
    }
    table.csv()
}

fn only_in(row: &Finding) -> Option<&'static str> {
    match (&row.a, &row.b) {
        (Some(_), None) => Some("A"),
        (None, Some(_)) => Some("B"),
        _ => None,
    }
}

/// JSON of schema `laggard.compare-calls/1`. Times are in nanoseconds. Ratios and order are by `measure`;
/// differences of other measures are null.
pub fn json(report: &CompareCalls) -> String {
    let comparison = report.comparison;
    let side = |given: &Given<'_>, side: &calls::Side| Side {
        file: given.path.to_owned(),
        functions: side.functions as u64,
        measure: side.measure.map(Measure::word),
        whole: shape(&side.whole, side),
    };
    let by = comparison.measure;
    let gap = |gap: i128, of: Measure| (by == of).then(|| clamp(gap));
    let row = |row: &Finding| Row {
        function: row.function.clone(),
        library: row.library.clone(),
        only_in: only_in(row),
        gap_ns: gap(row.gap(by), Measure::Time),
        gap_instructions: gap(row.gap(by), Measure::Instructions),
        ratio: row.ratio(by),
        count_ratio: row.count_ratio(),
        median_ratio: row.median_ratio(),
        medians_differ: row.medians_differ(),
        a: row.a.as_ref().map(|tally| shape(tally, &comparison.a)),
        b: row.b.as_ref().map(|tally| shape(tally, &comparison.b)),
    };
    shape::pretty(&Shape {
        schema: "laggard.compare-calls/1",
        a: side(&report.a, &comparison.a),
        b: side(&report.b, &comparison.b),
        about_a: report.a.about.into(),
        about_b: report.b.about.into(),
        losses_a: report.a.losses,
        losses_b: report.b.losses,
        measure: by.word(),
        gap_ns: gap(comparison.gap(), Measure::Time),
        gap_instructions: gap(comparison.gap(), Measure::Instructions),
        gap_calls: gap(comparison.gap(), Measure::Calls),
        ratio: comparison.ratio(),
        distinct: comparison.rows.len() as u64,
        rows: kept(&comparison.rows, report.top).iter().map(row).collect(),
        same_name_other_library: comparison
            .moved
            .iter()
            .map(|moved| Moved { function: &moved.function, a: &moved.a, b: &moved.b })
            .collect(),
    })
}

/// A side without calls counts as timed, with zero time.
fn shape(tally: &Tally, side: &calls::Side) -> TallyShape {
    TallyShape::new(tally, &side.whole, side.measure.unwrap_or(Measure::Time))
}

fn clamp(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(if ns > 0 { i64::MAX } else { i64::MIN })
}

#[derive(Serialize)]
struct Shape<'a> {
    /// Name and version of the schema.
    schema: &'static str,
    /// The reference side.
    a: Side,
    b: Side,
    about_a: About<'a>,
    about_b: About<'a>,
    losses_a: &'a [String],
    losses_b: &'a [String],
    /// What is compared: `time`, `instructions` or `calls`; `calls` if the sides have different
    /// measures.
    measure: &'static str,
    /// Self time, B minus A.
    gap_ns: Option<i64>,
    /// Self instructions, B minus A.
    gap_instructions: Option<i64>,
    /// Calls, B minus A; null unless calls are compared.
    gap_calls: Option<i64>,
    /// B divided by A.
    ratio: Option<f64>,
    /// Total number of functions.
    distinct: u64,
    /// By decreasing difference.
    rows: Vec<Row>,
    same_name_other_library: Vec<Moved<'a>>,
}

#[derive(Serialize)]
struct Side {
    file: String,
    functions: u64,
    /// What was measured; null without calls.
    measure: Option<&'static str>,
    whole: TallyShape,
}

#[derive(Serialize)]
struct Row {
    function: String,
    library: String,
    /// `A` or `B`; null if both call it.
    only_in: Option<&'static str>,
    /// Total time, B minus A.
    gap_ns: Option<i64>,
    /// Self instructions, B minus A.
    gap_instructions: Option<i64>,
    ratio: Option<f64>,
    count_ratio: Option<f64>,
    median_ratio: Option<f64>,
    /// False if the medians are in the same or adjacent buckets.
    medians_differ: Option<bool>,
    a: Option<TallyShape>,
    b: Option<TallyShape>,
}

#[derive(Serialize)]
struct Moved<'a> {
    function: &'a str,
    /// Libraries that contain it only in A.
    a: &'a [String],
    b: &'a [String],
}
