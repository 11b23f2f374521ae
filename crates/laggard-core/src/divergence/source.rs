//! Source at a divergence point: the lines where the paths part, and how the function differs.
//!
//! The caller reads the files and gives their text; this module selects and compares lines.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Source of a function on both sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointSource {
    /// The line where the paths part, for A and B; `None` if the side does not run the function.
    pub sides: [Option<SideSource>; 2],
    /// Changed lines with one line of context; empty if the function is the same on both sides.
    pub diff: Vec<DiffLine>,
}

/// Source of a function on one side.
#[derive(Clone, Debug, PartialEq)]
pub struct SideSource {
    /// Path of the file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// Its text, or why it is not available.
    pub text: Result<String, SourceLoss>,
}

/// Why source text is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceLoss {
    /// The file does not exist or cannot be read.
    Unreadable,
    /// The file is newer than the measurement.
    Changed,
    /// The file is too large.
    TooLarge,
    /// The file has no such line.
    NoSuchLine,
    /// Source text was not requested.
    NotRequested,
}

impl SourceLoss {
    /// The reason in reports.
    pub fn label(self) -> &'static str {
        match self {
            SourceLoss::Unreadable => "source file not readable",
            SourceLoss::Changed => "source file changed since the measurement",
            SourceLoss::TooLarge => "source file too large",
            SourceLoss::NoSuchLine => "source file has no such line",
            SourceLoss::NotRequested => "source text omitted",
        }
    }
}

/// A line of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// Its number in A and in B; a line with both numbers is unchanged.
    pub lines: [Option<u32>; 2],
    /// Its text.
    pub text: String,
}

/// Numbered lines of a function.
type Lines<'a> = Vec<(u32, &'a str)>;

/// Lines of a function without its docstring: `first` to `last`, or, if `first` is 0, the indented
/// block around `line`.
pub fn function_lines(text: &str, [first, last]: [u32; 2], line: u32) -> Lines<'_> {
    /// Longer functions are cut.
    const MOST_LINES: usize = 2000;
    let all: Lines<'_> = (1..).zip(text.lines()).collect();
    let range = if first > 0 { Some((first, last.max(first))) } else { enclosing(&all, line) };
    let Some((first, last)) = range else { return vec![] };
    let is_inside = |&&(number, _): &&(u32, &str)| (first..=last).contains(&number);
    let mut lines: Lines<'_> = all.iter().filter(is_inside).take(MOST_LINES).copied().collect();
    if let Some(docstring) = docstring(&lines) {
        lines.drain(docstring);
    }
    lines
}

/// The lines of a function's docstring: a text in triple quotes after the line that ends with `:`.
fn docstring(lines: &[(u32, &str)]) -> Option<std::ops::Range<usize>> {
    let definition = lines.iter().position(|line| line.1.trim_end().ends_with(':'))?;
    let start = definition + 1;
    let text = lines.get(start)?.1.trim_start().trim_start_matches(['r', 'R', 'u', 'U']);
    let quote = [r#"""""#, "'''"].into_iter().find(|quote| text.starts_with(quote))?;
    if text[quote.len()..].contains(quote) {
        return Some(start..start + 1);
    }
    let length = lines[start + 1..].iter().position(|line| line.1.contains(quote))?;
    Some(start..start + length + 2)
}

/// First and last line of the Python function around a line.
fn enclosing(all: &[(u32, &str)], line: u32) -> Option<(u32, u32)> {
    let at = all.iter().position(|&(number, _)| number == line)?;
    let indent = |text: &str| text.len() - text.trim_start().len();
    let is_blank = |text: &str| text.trim().is_empty();
    let mut own = indent(all[at].1);
    let is_start = |text: &str| {
        let text = text.trim_start();
        text.starts_with("def ") || text.starts_with("async def ")
    };
    let is_around = |row: &usize| {
        let text = all[*row].1;
        let is_outer = *row == at || indent(text) < own;
        if !is_blank(text) {
            own = own.min(indent(text));
        }
        is_start(text) && is_outer
    };
    let start = (0..=at).rev().find(is_around)?;
    let outer = indent(all[start].1);
    let is_below = |&&(_, text): &&(u32, &str)| is_blank(text) || indent(text) > outer;
    let below = all[start + 1..].iter().take_while(is_below);
    let last = below
        .filter(|(_, text)| !is_blank(text))
        .last()
        .map_or(start, |found| found.0 as usize - 1);
    Some((all[start].0, all[last].0))
}

/// Changed lines of a function with one line of context.
pub fn diff(a: &[(u32, &str)], b: &[(u32, &str)]) -> Vec<DiffLine> {
    const CONTEXT: usize = 1;
    let texts =
        |lines: &[(u32, &str)]| lines.iter().map(|line| line.1.to_owned()).collect::<Vec<_>>();
    let ops = capture_diff_slices(Algorithm::Myers, &texts(a), &texts(b));
    let removed = |range: std::ops::Range<usize>| {
        a[range]
            .iter()
            .map(|&(number, text)| DiffLine { lines: [Some(number), None], text: text.into() })
    };
    let added = |range: std::ops::Range<usize>| {
        b[range]
            .iter()
            .map(|&(number, text)| DiffLine { lines: [None, Some(number)], text: text.into() })
    };
    let mut lines = vec![];
    let count = ops.len();
    for (number, op) in ops.into_iter().enumerate() {
        match op {
            DiffOp::Equal { old_index, new_index, len } => {
                // Context after the change above and before the change below.
                let head = if number > 0 { CONTEXT.min(len) } else { 0 };
                let tail = if number + 1 < count { CONTEXT.min(len - head) } else { 0 };
                for at in (0..head).chain(len - tail..len) {
                    let (of_a, of_b) = (a[old_index + at], b[new_index + at]);
                    let lines_of = [Some(of_a.0), Some(of_b.0)];
                    lines.push(DiffLine { lines: lines_of, text: of_b.1.into() });
                }
            }
            DiffOp::Delete { old_index, old_len, .. } => {
                lines.extend(removed(old_index..old_index + old_len));
            }
            DiffOp::Insert { new_index, new_len, .. } => {
                lines.extend(added(new_index..new_index + new_len));
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                lines.extend(removed(old_index..old_index + old_len));
                lines.extend(added(new_index..new_index + new_len));
            }
        }
    }
    if lines.iter().all(|line| line.lines.iter().all(Option::is_some)) { vec![] } else { lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_by_indentation_around_its_line() {
        let text = "import os\n\ndef f(x):\n    for i in x:\n\n        g(i)\n    return x\n\ndef h():\n    pass\n";
        let numbers = |line| {
            function_lines(text, [0; 2], line).iter().map(|found| found.0).collect::<Vec<_>>()
        };
        assert_eq!(numbers(6), [3, 4, 5, 6, 7]);
        assert_eq!(numbers(10), [9, 10]);
        let nested = "def f():\n    def g():\n        pass\n    if x:\n        y()\n";
        assert_eq!(function_lines(nested, [0; 2], 5).len(), 5);
        assert!(numbers(1).is_empty());
        assert!(numbers(99).is_empty());
        assert_eq!(function_lines(text, [9, 10], 0).len(), 2);
        assert_eq!(function_lines(text, [9, 1], 0), [(9, "def h():")]);
    }

    #[test]
    fn docstrings_are_left_out() {
        let numbers =
            |text| function_lines(text, [1, 99], 0).iter().map(|x| x.0).collect::<Vec<_>>();
        assert_eq!(
            numbers("def f(\n    x,\n):\n    r\"\"\"Adds.\n\n    Slowly.\n    \"\"\"\n    g()"),
            [1, 2, 3, 8]
        );
        assert_eq!(numbers("def f():\n    '''Adds.'''\n    g()"), [1, 3]);
        assert_eq!(numbers("def f():\n    \"\"\"Adds."), [1, 2]);
    }

    #[test]
    fn only_changed_lines_and_their_neighbours_are_listed() {
        let a = [(10, "def f():"), (11, "    a()"), (12, "    b()"), (13, "    c()")];
        let b = [(20, "def f():"), (21, "    a()"), (22, "    x()"), (23, "    c()")];
        let found = diff(&a, &b);
        let shown: Vec<(Option<u32>, Option<u32>, &str)> =
            found.iter().map(|line| (line.lines[0], line.lines[1], line.text.as_str())).collect();
        assert_eq!(
            shown,
            [
                (Some(11), Some(21), "    a()"),
                (Some(12), None, "    b()"),
                (None, Some(22), "    x()"),
                (Some(13), Some(23), "    c()"),
            ]
        );
        assert_eq!(diff(&a, &a), []);
    }
}
