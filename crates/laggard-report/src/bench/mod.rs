//! Benchmark report: the verdict of every case, followed by the times of each side.
//!
//! Input is timings and the comparisons of [`laggard_core::compare::timings`]. The JSON is the
//! benchmark file that `laggard-formats` reads.

mod brief;
pub(crate) mod csv;
pub(crate) mod json;
mod plot;
mod scan;
mod tables;
#[cfg(test)]
mod tests;
pub(crate) mod words;

pub use brief::brief;
pub use csv::csv;
pub use json::json;
pub(crate) use words::{difference, is_inconclusive, sentence_of};
pub use words::{grows_as, label};

use crate::document::Document;
use crate::escape;
use crate::number::plural;
use crate::profile::about::{LONGEST_COMMAND, command};
use crate::rows::more;
use crate::table::Style;
use laggard_core::compare::notice::{Notice, notices as noticed};
use laggard_core::compare::timings::CaseComparison;
use laggard_core::model::timings::{Batch, Series, Timings};
use laggard_core::stats::summary::Summary;

/// Input of the report.
#[derive(Clone, Copy, Debug)]
pub struct BenchReport<'a> {
    /// The timings.
    pub timings: &'a Timings,
    /// Comparisons of every side with the first, in every case.
    pub comparisons: &'a [CaseComparison],
    /// Maximum number of cases in a table; `None` for all.
    pub top: Option<usize>,
}

/// The report as terminal text.
pub fn text(report: &BenchReport, style: &Style) -> String {
    document(report).text(style)
}

/// The report as Markdown.
pub fn markdown(report: &BenchReport) -> String {
    document(report).markdown()
}

/// The report as HTML sections.
pub fn html(report: &BenchReport) -> String {
    document(report).html()
}

fn document(report: &BenchReport) -> Document {
    let mut document = Document::default();
    let timings = report.timings;
    // First, because the sides may compute different things.
    for difference in timings.differences() {
        document.notice(format!("warning: {difference}"));
    }
    document.lead(lead(report));
    if timings.cases.len() > 1 && !report.comparisons.is_empty() {
        tables::cases(report, &mut document);
    } else if report.comparisons.len() > 1 {
        for found in report.comparisons {
            document.line(words::sentence(timings, found));
        }
    }
    scan::plots(timings, &mut document);
    tables::measured(report, &mut document);
    unmeasured(report, &mut document);
    notices(report, &mut document);
    sides(timings, &mut document);
    about(timings, &mut document);
    for warning in timings.notices() {
        document.notice(format!("warning: {warning}"));
    }
    document
}

/// The main result in one line.
fn lead(report: &BenchReport) -> String {
    let timings = report.timings;
    match (report.comparisons, &timings.cases[..]) {
        (_, []) => "nothing was measured".to_owned(),
        ([found], [_]) => words::sentence(timings, found),
        ([], [case]) => tables::alone(case),
        ([], cases) => format!("{}, one side", plural(cases.len() as u64, "case")),
        (all, [_]) => {
            let side = |found: &CaseComparison| {
                format!("{} {}", name(timings, found.side), words::short(found))
            };
            let sides: Vec<String> = all.iter().map(side).collect();
            format!("compared with {}: {}", name(timings, 0), sides.join(", "))
        }
        (all, _) => summed_up(timings, all),
    }
}

fn name(timings: &Timings, side: usize) -> &str {
    timings.sides.get(side).map_or("?", |side| side.name.as_str())
}

/// `B compared with A (3 cases): slower in 1, faster in 1, no detectable difference in 1`.
fn summed_up(timings: &Timings, all: &[CaseComparison]) -> String {
    let who = if timings.sides.len() == 2 { name(timings, 1) } else { "other sides" };
    let what = if timings.sides.len() == 2 { "case" } else { "comparison" };
    let count = |word: &str| all.iter().filter(|found| json::word(found.verdict) == word).count();
    let parts: Vec<String> = [
        ("slower", "slower"),
        ("faster", "faster"),
        ("same", "no detectable difference"),
        ("unknown", "too few rounds"),
    ]
    .into_iter()
    .map(|(verdict, words)| (count(verdict), words))
    .filter(|(n, _)| *n > 0)
    .map(|(n, words)| format!("{words} in {n}"))
    .collect();
    let cases = plural(all.len() as u64, what);
    format!("{who} compared with {} ({cases}): {}", name(timings, 0), parts.join(", "))
}

/// Cases without measurements, with the reason.
fn unmeasured(report: &BenchReport, document: &mut Document) {
    let all: Vec<String> = report
        .timings
        .unmeasured
        .iter()
        .map(|of| {
            let outcome = if of.is_skipped { "skipped" } else { "failed" };
            format!("{}  {outcome}: {}", of.case, of.why)
        })
        .collect();
    if !all.is_empty() {
        document.heading("Not measured");
        for line in crate::rows::kept(&all, report.top) {
            document.line(line);
        }
        more(&all, report.top, document);
    }
}

fn notices(report: &BenchReport, document: &mut Document) {
    let all = noticed_in(report.timings, |_| true);
    if !all.is_empty() {
        document.heading("Quality");
        for notice in crate::rows::kept(&all, report.top.map(|top| 2 * top)) {
            document.line(notice);
        }
        more(&all, report.top.map(|top| 2 * top), document);
    }
}

/// The selected notices about all series, as sentences.
fn noticed_in(timings: &Timings, is_selected: impl Fn(&Notice) -> bool) -> Vec<String> {
    let labels = words::Labels::of(&timings.cases);
    let mut all: Vec<String> = vec![];
    for case in &timings.cases {
        let label = labels.of_case(case);
        for (side, series) in timings.sides.iter().zip(&case.series) {
            let of = match label.as_str() {
                "" => side.name.clone(),
                label => format!("{label}, {}", side.name),
            };
            let selected = noticed(series).into_iter().filter(&is_selected);
            all.extend(selected.map(|notice| words::notice(&of, notice)));
        }
    }
    all
}

fn sides(timings: &Timings, document: &mut Document) {
    document.heading("Sides");
    for side in &timings.sides {
        let facts: Vec<String> =
            side.facts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let runs = escape::fit(&side.runs, LONGEST_COMMAND);
        document.stack(format!("{}  {runs}", side.name).trim_end().to_owned(), &facts);
    }
}

fn about(timings: &Timings, document: &mut Document) {
    document.heading("Measurement");
    document.facts([
        ("tool", timings.tool.clone()),
        ("date", crate::number::moment(timings.started_unix)),
        ("command", escape::fit(&command(&timings.command), LONGEST_COMMAND)),
        ("machine", facts(&timings.facts)),
    ]);
}

fn facts(facts: &[(String, String)]) -> String {
    let fact = |(name, value): &(String, String)| format!("{name}: {value}");
    facts.iter().map(fact).collect::<Vec<_>>().join("; ")
}

/// CPU time per call; `None` if not measured.
fn cpu(series: &Series) -> Option<Summary> {
    let cpu = series.cpu();
    cpu.iter().any(|&ns| ns > 0.0).then(|| Summary::of(&cpu))
}

/// Mean page faults per call over all batches; `None` if none were counted.
fn faults(series: &Series) -> Option<f64> {
    let sum = |of: fn(&Batch) -> u64| -> f64 {
        series.batches.iter().map(|batch| of(batch) as f64).sum()
    };
    let faults = sum(|batch| batch.minor_faults) + sum(|batch| batch.major_faults);
    (faults > 0.0).then(|| faults / sum(|batch| batch.calls).max(1.0))
}
