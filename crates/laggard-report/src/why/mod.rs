//! Report of `laggard why`: whether B lags, and why.
//!
//! Input is timings of two sides, observations of them and the judgement. The report starts with the
//! verdict, followed by the culprits with their facts and by what both sides spend their time on.

mod json;
mod page;
#[cfg(test)]
mod tests;

pub use json::json;
pub use page::{Beyond, html, page};

use crate::bench::{difference, grows_as, is_inconclusive, sentence_of};
use crate::culprits::{self, how_to_get};
use crate::document::Document;
use crate::escape;
use crate::number::{Quantity, plural, significant};
use crate::table::{Column, Style, Table};
use laggard_core::compare::timings::{CaseComparison, Verdict};
use laggard_core::culprit::{Judgement, Pair, Part, TimeRow, calls_that_differ, time_rows};
use laggard_core::model::timings::Timings;
use laggard_core::stats::ratio::Interval;

/// Input of the report.
#[derive(Clone, Copy)]
pub struct WhyReport<'a> {
    /// Timings of both sides.
    pub timings: &'a Timings,
    /// B compared with A.
    pub lag: Lag,
    /// Whether A is the second of the given sides, because the first one is slower.
    pub is_exchanged: bool,
    /// Observations of both sides, if there is a lag to explain.
    pub pair: Option<Pair<'a>>,
    /// Culprits of the lag.
    pub judgement: Option<&'a Judgement>,
    /// Notices about missing evidence.
    pub notes: &'a [String],
}

impl WhyReport<'_> {
    /// The name of a side.
    fn name(&self, side: usize) -> &str {
        self.timings.sides.get(side).map_or("?", |side| &side.name)
    }
}

/// How much slower B is than A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lag {
    /// From a benchmark that interleaves both sides.
    Measured {
        /// Wall time of B divided by wall time of A.
        ratio: Option<Interval>,
        /// Conclusion from the ratio.
        verdict: Verdict,
        /// Number of rounds.
        n: usize,
    },
    /// From one recording of each side: time of B divided by time of A.
    Recorded(f64),
}

impl Lag {
    /// The lag of a compared case.
    pub fn of(found: &CaseComparison) -> Lag {
        Lag::Measured { ratio: found.wall, verdict: found.verdict, n: found.n }
    }

    /// Whether B is slower.
    pub fn is_there(&self) -> bool {
        match self {
            Lag::Measured { verdict, .. } => *verdict == Verdict::Slower,
            Lag::Recorded(ratio) => *ratio > 1.0,
        }
    }

    /// Whether B is faster.
    pub fn is_reversed(&self) -> bool {
        match self {
            Lag::Measured { verdict, .. } => *verdict == Verdict::Faster,
            Lag::Recorded(ratio) => *ratio < 1.0,
        }
    }

    /// The ratio with its confidence interval; `None` for recordings.
    fn ratio(&self) -> Option<Interval> {
        match *self {
            Lag::Measured { ratio, .. } => ratio,
            Lag::Recorded(_) => None,
        }
    }

    /// Number of rounds, or 1 for recordings.
    fn n(&self) -> usize {
        match *self {
            Lag::Measured { n, .. } => n,
            Lag::Recorded(_) => 1,
        }
    }
}

/// Maximum number of rows in tables of functions.
const MOST_FUNCTIONS: usize = 12;

/// The report as terminal text.
pub fn text(report: &WhyReport, style: &Style) -> String {
    document(report).text(style)
}

/// The report as Markdown.
pub fn markdown(report: &WhyReport) -> String {
    document(report).markdown()
}

/// The slices of the lag as CSV.
pub fn csv(report: &WhyReport) -> String {
    let mut text = "what,of,a_ns,b_ns,gap_ns\n".to_owned();
    for row in report.pair.iter().flat_map(|pair| largest(pair, 0.0)) {
        let (what, of) = named(&row);
        let [what, of] = [what, of].map(|field| escape::csv(&field));
        text += &format!("{what},{of},{},{},{}\n", row.ns[0], row.ns[1], row.gap_ns());
    }
    text
}

/// Builds a document and renders it as HTML.
fn document_of(fill: impl FnOnce(&mut Document)) -> String {
    let mut document = Document::default();
    fill(&mut document);
    document.html()
}

fn document(report: &WhyReport) -> Document {
    let mut document = Document::default();
    // First, because the sides may compute different things.
    for difference in report.timings.differences() {
        document.notice(format!("warning: {difference}"));
    }
    document.lead(verdict(report));
    for line in headlines(report) {
        document.line(line);
    }
    if let Some(judgement) = report.judgement {
        culprits::section(judgement, "call", &mut document);
    }
    if let Some(pair) = &report.pair {
        functions(report, pair, &mut document);
        calls(report, pair, &mut document);
        paths(report, pair, &mut document);
    }
    for remark in remarks(report) {
        document.notice(remark);
    }
    document
}

/// Lines below the verdict.
fn headlines(report: &WhyReport) -> Vec<String> {
    let exchanged = || {
        let [a, b] = &report.timings.sides[..] else { return None };
        let sides = format!("{} is `{}`, {} is `{}`", a.name, a.runs, b.name, b.runs);
        Some(format!("the first side is slower, so the sides are exchanged: {sides}"))
    };
    let exchanged = report.is_exchanged.then(exchanged).flatten();
    exchanged.into_iter().chain(letters(report)).chain(growth(report)).collect()
}

/// What the letters of the causes stand for, if the sides have names.
fn letters(report: &WhyReport) -> Option<String> {
    let names = [report.name(0), report.name(1)];
    let is_needed = report.judgement.is_some() && names != ["A", "B"];
    is_needed.then(|| format!("in the sections below, A is {} and B is {}", names[0], names[1]))
}

/// How both sides grow with a parameter, and the value to which the verdict applies.
fn growth(report: &WhyReport) -> Option<String> {
    let pair = report.pair.as_ref()?;
    let name = |side| report.name(side);
    let (a, b) = (pair.a.growth.as_ref()?, pair.b.growth.as_ref()?);
    let largest = b.points.last()?.0;
    let [a, b] = [grows_as(name(0), a), grows_as(name(1), b)];
    let parameter = &pair.b.growth.as_ref()?.parameter;
    Some(format!("{b}; {a}; the verdict and its causes apply to {parameter} = {largest}"))
}

/// Notices about missing evidence, notes and warnings.
fn remarks(report: &WhyReport) -> impl Iterator<Item = String> {
    let missing = report.judgement.map_or(&[][..], |judgement| &judgement.missing);
    let notes = report.notes.iter().cloned().chain(report.timings.notices());
    missing.iter().map(|missing| how_to_get(*missing).to_owned()).chain(notes)
}

/// Functions whose difference is at least the share `least` of B's wall time, by decreasing difference.
fn largest(pair: &Pair, least: f64) -> Vec<TimeRow> {
    let mut rows = time_rows(pair);
    rows.sort_by(|x, y| y.gap_ns().abs().total_cmp(&x.gap_ns().abs()));
    rows.retain(|row| row.gap_ns().abs() >= least * pair.b.wall_ns);
    rows
}

/// `B lags A: 1.58x slower per call (95 % CI 1.55 to 1.61, n = 400 rounds)`, or a sentence that starts
/// with `no lag detected`.
pub(crate) fn verdict(report: &WhyReport) -> String {
    let [a, b] = [report.name(0), report.name(1)];
    match report.lag {
        Lag::Measured { ratio: Some(ratio), verdict: Verdict::Slower, n } => {
            let (size, word, range) = difference(ratio);
            let n = plural(n as u64, "round");
            format!("{b} lags {a}: {size} {word} per call (95 % CI {range}, n = {n})")
        }
        Lag::Measured { ratio, verdict, n } => {
            let what = if is_inconclusive(verdict) { "inconclusive" } else { "no lag detected" };
            format!("{what}: {}", sentence_of([a, b], verdict, ratio, n))
        }
        Lag::Recorded(ratio) => {
            let no = if ratio > 1.0 { "" } else { "no lag detected: " };
            let size = significant(ratio);
            format!(
                "{no}{b} takes {size}x as long as {a} (one recording per side, no confidence \
                 interval)"
            )
        }
    }
}

/// Time per call of both sides by slice, by decreasing difference.
fn functions(report: &WhyReport, pair: &Pair, document: &mut Document) {
    let rows = largest(pair, 0.005);
    let left = rows.len().saturating_sub(MOST_FUNCTIONS);
    document.heading("Time per call");
    let shown = || rows.iter().take(MOST_FUNCTIONS);
    let unit = Quantity::Time.unit(shown().flat_map(|row| row.ns));
    let mut table = Table::new([
        Column::names("function"),
        Column::text("library"),
        Column::number(report.name(0), unit.name),
        Column::number(report.name(1), unit.name),
        Column::number("difference", unit.name),
    ]);
    for row in shown() {
        let (what, of) = labelled(row);
        let number = |ns: f64| if ns == 0.0 { String::new() } else { unit.number(ns) };
        let sign = if row.gap_ns() > 0.0 { "+" } else { "-" };
        let gap = format!("{sign}{}", unit.number(row.gap_ns().abs()));
        table.push([what, of, number(row.ns[0]), number(row.ns[1]), gap]);
    }
    document.table(table);
    if left > 0 {
        document.minor(format!("({} not shown)", plural(left as u64, "smaller difference")));
    }
}

/// Functions that one side calls much more often than the other.
fn calls(report: &WhyReport, pair: &Pair, document: &mut Document) {
    let calls = calls_that_differ(pair).unwrap_or_default();
    if calls.is_empty() {
        return;
    }
    document.heading("Library calls that differ");
    let shown = || calls.iter().take(MOST_FUNCTIONS);
    let unit = Quantity::Time.unit(shown().flat_map(|call| call.ns));
    let mut table = Table::new([
        Column::names("function"),
        Column::text("library"),
        Column::number(report.name(0), "calls"),
        Column::number(report.name(1), "calls"),
        Column::number(&format!("time {}", report.name(0)), unit.name),
        Column::number(&format!("time {}", report.name(1)), unit.name),
    ]);
    for call in shown() {
        let count = call.count.map(|n| if n == 0.0 { String::new() } else { significant(n) });
        let time = call.ns.map(|ns| if ns == 0.0 { String::new() } else { unit.number(ns) });
        let [(a, b), (time_a, time_b)] = [count, time].map(|[a, b]| (a, b));
        table.push([call.name.to_owned(), call.library.to_owned(), a, b, time_a, time_b]);
    }
    document.table(table);
    let left = calls.len().saturating_sub(MOST_FUNCTIONS);
    if left > 0 {
        document.minor(format!("({} not shown)", plural(left as u64, "more function")));
    }
    document
        .minor("per call of the side; times include callees; traced in a separate run".to_owned());
}

/// Name and library of a row, as in text.
fn labelled(row: &TimeRow) -> (String, String) {
    let label = match row.part {
        Part::Functions(_) => return named(row),
        Part::Kernel => "(OS kernel)",
        Part::Waiting => "(waiting)",
        Part::Parallelism => "(lower parallelism)",
    };
    (label.to_owned(), String::new())
}

/// Name and library of a row, as in JSON and CSV. Names of variants are separated by ` / `.
pub(crate) fn named(row: &TimeRow) -> (String, String) {
    let words = match row.part {
        Part::Kernel => "the kernel",
        Part::Waiting => "waiting",
        Part::Parallelism => "working less parallel",
        Part::Functions(_) => {
            let [(a, of_a), (b, of_b)] = &row.functions;
            let joined = |a: &str, b: &str| match (a, b) {
                (a, "") => a.to_owned(),
                ("", b) => b.to_owned(),
                (a, b) if a == b => a.to_owned(),
                (a, b) => format!("{a} / {b}"),
            };
            return (joined(a, b), joined(of_a, of_b));
        }
    };
    (words.to_owned(), String::new())
}

/// Hottest call path of both sides.
fn paths(report: &WhyReport, pair: &Pair, document: &mut Document) {
    let sides = report.timings.sides.iter().zip([pair.a, pair.b]);
    let sides: Vec<_> = sides.filter(|(_, seen)| !seen.path.is_empty()).collect();
    if sides.is_empty() {
        return;
    }
    document.heading("Hottest call path");
    for (side, seen) in sides {
        document.stack(format!("{}: {}", side.name, side.runs), &seen.path);
    }
}
