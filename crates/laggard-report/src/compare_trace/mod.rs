//! The report of a trace comparison: whether B is slower than A, why, and in which operations.
//!
//! A is the reference. Differences are B minus A and ratios are B over A, both per step. A step is
//! the unit of work that a trace repeats: a profiler step, an iteration or a graph replay.

mod csv;
mod json;
mod order;
mod tables;
#[cfg(test)]
mod tests;
mod words;

use crate::culprits::{self, how_to_get};
use crate::document::Document;
use crate::table::Style;
use laggard_core::compare::trace::found::{Finding, TraceComparison, Verdict};
use laggard_core::trace::By;
use words::Lap;

/// Input of the report.
#[derive(Clone, Copy, Debug)]
pub struct CompareTrace<'a> {
    /// The comparison.
    pub comparison: &'a TraceComparison,
    /// The sections to show.
    pub shown: Shown,
    /// Maximum rows per table; `None` shows all.
    pub top: Option<usize>,
    /// The selected phase; empty for all phases.
    pub phase: &'a str,
}

/// The sections to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// Everything.
    #[default]
    Whole,
    /// Layers of the model.
    Layers,
    /// Kernel sequences that one side fuses.
    Fusion,
    /// Kernels, operators and Python lines of each class.
    Stacks,
    /// Device time by one key.
    Table(By),
}

impl<'a> CompareTrace<'a> {
    /// The rows of the table by `by`.
    fn rows(&self, by: By) -> &'a [Finding] {
        let table = self.comparison.tables.iter().find(|table| table.by == by);
        table.map_or(&[][..], |table| &table.rows)
    }

    /// Whether there is a lag to explain.
    fn lags(&self) -> bool {
        let TraceComparison { whole, judgement, .. } = self.comparison;
        whole.verdict == Verdict::Slower
            || !judgement.culprits.is_empty()
            || judgement.not_explained > 0.0
    }
}

/// Formats the report as text for a terminal.
pub fn text(report: &CompareTrace, style: &Style) -> String {
    document(report).text(style)
}

/// Formats the report as Markdown.
pub fn markdown(report: &CompareTrace) -> String {
    document(report).markdown()
}

/// Formats the report as sections of an HTML page.
pub fn html(report: &CompareTrace) -> String {
    let section = |fill: fn(&CompareTrace, &mut Document)| {
        let mut document = Document::default();
        fill(report, &mut document);
        document.html()
    };
    let is_explained = report.shown == Shown::Whole && report.lags();
    let why = match is_explained {
        true => {
            let lap = Lap::common(report.comparison).one;
            culprits::html(&report.comparison.judgement, lap)
        }
        false => section(why),
    };
    section(head) + &why + &section(parts)
}

/// Formats the report as JSON, schema `laggard.compare-trace/1`.
pub fn json(report: &CompareTrace) -> String {
    json::json(report)
}

/// Formats one table as CSV: the selected table, layers or fusions, else operations by class.
pub fn csv(report: &CompareTrace) -> String {
    csv::csv(report)
}

fn document(report: &CompareTrace) -> Document {
    let mut document = Document::default();
    head(report, &mut document);
    why(report, &mut document);
    parts(report, &mut document);
    document
}

/// Adds the verdict and the sides.
fn head(report: &CompareTrace, document: &mut Document) {
    let comparison = report.comparison;
    document.lead(words::verdict(report));
    if let Some(amounts) = words::amounts(comparison) {
        document.line(amounts);
    }
    document.blank();
    document.facts([
        ("A", words::side(&comparison.sides[0])),
        ("B", words::side(&comparison.sides[1])),
        ("phase", report.phase.to_owned()),
    ]);
}

/// Adds the culprits of the lag.
fn why(report: &CompareTrace, document: &mut Document) {
    if report.shown != Shown::Whole {
        return;
    }
    let comparison = report.comparison;
    if report.lags() {
        let lap = Lap::common(comparison).one;
        culprits::section(&comparison.judgement, lap, document);
        return;
    }
    document.heading("Why");
    document.line(match comparison.whole.verdict {
        Verdict::Faster => "nothing to explain: B is not slower",
        Verdict::NoDetectableDifference(_) => "nothing to explain: no detectable difference",
        _ => "nothing to explain: no lag found",
    });
}

/// Adds the tables, their legend and the warnings.
fn parts(report: &CompareTrace, document: &mut Document) {
    match report.shown {
        Shown::Whole => {
            tables::time(report, document);
            tables::all(report, document);
            tables::host(report, document);
            order::layers(report, document);
            order::aligned(report, document);
            order::fusions(report, document);
            tables::ranks(report, document);
        }
        Shown::Layers => order::layers(report, document),
        Shown::Fusion => {
            order::fusions(report, document);
            order::types(report, document);
        }
        Shown::Stacks => tables::stacks(report, document),
        Shown::Table(By::Kernel) => tables::kernels(report, document),
        Shown::Table(by) => tables::table(report, by, document),
    }
    if report.comparison.whole.ratio.is_some() {
        document.blank();
        document.minor(words::legend(report.comparison));
    }
    for missing in &report.comparison.judgement.missing {
        document.notice(format!("note: {}", how_to_get(*missing)));
    }
    for warning in &report.comparison.warnings {
        let word = if warning.severity == "warning" { "warning" } else { "note" };
        let side = warning.side.and_then(|side| ["A: ", "B: "].get(side)).unwrap_or(&"");
        document.notice(format!("{word}: {side}{}", warning.message));
        if !warning.hint.is_empty() {
            document.line(format!("hint: {}", warning.hint));
        }
    }
}
