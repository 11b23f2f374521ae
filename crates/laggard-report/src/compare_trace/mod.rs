//! Traces of two sides: which lags, why, and on which operations. A is the reference; gaps are B
//! minus A and ratios B over A, of one lap: a step, an iteration, a replay.

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

/// What a comparison of traces is shown from.
#[derive(Clone, Copy, Debug)]
pub struct CompareTrace<'a> {
    /// What they differ in.
    pub comparison: &'a TraceComparison,
    /// What to show of it.
    pub shown: Shown,
    /// Rows a table shows; None is all.
    pub top: Option<usize>,
    /// The phase that device work is narrowed to; empty when it is not.
    pub phase: &'a str,
}

/// What to show of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// Everything.
    #[default]
    Whole,
    /// Layers of the model.
    Layers,
    /// What one side does with fewer kernels.
    Fusion,
    /// What is behind each class: kernels, operators, Python lines.
    Stacks,
    /// Device time by one thing.
    Table(By),
}

impl<'a> CompareTrace<'a> {
    /// The rows of a table.
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

/// The comparison for a terminal.
pub fn text(report: &CompareTrace, style: &Style) -> String {
    document(report).text(style)
}

/// The same sections in Markdown.
pub fn markdown(report: &CompareTrace) -> String {
    document(report).markdown()
}

/// The same as sections of a page.
pub fn html(report: &CompareTrace) -> String {
    let section = |fill: fn(&CompareTrace, &mut Document)| {
        let mut document = Document::default();
        fill(report, &mut document);
        document.html()
    };
    let is_explained = report.shown == Shown::Whole && report.lags();
    let why = match is_explained {
        true => {
            let lap = Lap::common(report.comparison).with_article();
            culprits::html(&report.comparison.judgement, &lap)
        }
        false => section(why),
    };
    section(head) + &why + &section(parts)
}

/// JSON of the schema `laggard.compare-trace/1`.
pub fn json(report: &CompareTrace) -> String {
    json::json(report)
}

/// One table as CSV: the one asked for, layers, fusions, or else operations by class.
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

/// The verdict, and what was compared.
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

/// The culprits of a lag.
fn why(report: &CompareTrace, document: &mut Document) {
    if report.shown != Shown::Whole {
        return;
    }
    let comparison = report.comparison;
    if report.lags() {
        let lap = Lap::common(comparison).with_article();
        culprits::section(&comparison.judgement, &lap, document);
        return;
    }
    document.heading("Why");
    document.line(match comparison.whole.verdict {
        Verdict::Faster => "nothing to explain: B does not lag",
        Verdict::NoDetectableDifference(_) => "nothing to explain: no lag is detectable",
        _ => "nothing to explain: no lag was found",
    });
}

/// Tables, what they mean, and what a reader must know.
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
