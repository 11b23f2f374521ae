//! Comparison of two benchmark files with the same cases: changes in the ratio between the sides.
//!
//! If the files have no common reference side, times are compared instead of ratios. The files are
//! called *before* and *after* because A and B are the sides in each file.

mod json;
#[cfg(test)]
mod tests;

pub use json::json;

use crate::bench::csv::{chance, number_or_none, three};
use crate::bench::json::word;
use crate::bench::words::{self, Labels, change, difference, plus_minus};
use crate::document::Document;
use crate::number::{Quantity, count, moment, percent, plural};
use crate::rows::{kept, more};
use crate::table::{Column, Style, Table};
use laggard_core::compare::gate::{Gate, trips};
use laggard_core::compare::runs::{Change, Compared, Place, RunsComparison};
use laggard_core::compare::timings::{CaseComparison, Verdict};
use laggard_core::model::timings::{Case, Timings};
use laggard_core::stats::ratio::Interval;
use laggard_core::stats::summary::Summary;

/// Input of the report.
#[derive(Clone, Copy, Debug)]
pub struct CompareBench<'a> {
    /// The reference file.
    pub before: Given<'a>,
    /// The file compared with the reference.
    pub after: Given<'a>,
    /// The changes.
    pub comparison: &'a RunsComparison,
    /// Maximum slowdown of a case, if there is a gate: 0.05 is 5 %.
    pub limit: Option<f64>,
    /// Maximum number of rows in a table; `None` for all.
    pub top: Option<usize>,
}

/// One of the two files.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Path as given by the user.
    pub path: &'a str,
    /// The timings.
    pub timings: &'a Timings,
    /// Comparisons between the sides of this file.
    pub comparisons: &'a [CaseComparison],
}

impl<'a> Given<'a> {
    /// The ratio to the first side, in this file.
    fn ratio(&self, of: Place) -> Option<Interval> {
        let is_it = |found: &&CaseComparison| found.case == of.case && found.side == of.side;
        self.comparisons.iter().find(is_it)?.wall
    }

    fn summary(&self, of: Place) -> Summary {
        let series = self.timings.cases.get(of.case).and_then(|case| case.series.get(of.side));
        series.map(|series| Summary::of(&series.wall())).unwrap_or_default()
    }

    fn side(&self, of: Place) -> &'a str {
        self.timings.sides.get(of.side).map_or("", |side| side.name.as_str())
    }

    /// The distinct cases of places.
    fn cases(&self, places: &[Place]) -> Vec<&'a Case> {
        let mut numbers: Vec<usize> = places.iter().map(|place| place.case).collect();
        numbers.dedup();
        numbers.into_iter().filter_map(|case| self.timings.cases.get(case)).collect()
    }
}

impl<'a> CompareBench<'a> {
    fn case(&self, change: &Change) -> Option<&'a Case> {
        self.after.timings.cases.get(change.after.case)
    }

    /// Whether times are compared because there is no common reference side.
    fn is_by_time(&self) -> bool {
        self.comparison.changes.iter().any(|change| change.compared == Compared::Times)
    }

    fn is_too_much(&self, change: &Change) -> bool {
        self.limit.is_some_and(|limit| trips(change, limit))
    }

    /// Labels of cases that exceed the limit.
    fn too_much(&self) -> Vec<String> {
        let labels = Labels::of(&self.after.timings.cases);
        let too_much = self.comparison.changes.iter().filter(|change| self.is_too_much(change));
        too_much.filter_map(|change| self.case(change)).map(|case| labels.of_case(case)).collect()
    }
}

/// The comparison as terminal text.
pub fn text(report: &CompareBench, style: &Style) -> String {
    document(report).text(style)
}

/// The comparison as Markdown.
pub fn markdown(report: &CompareBench) -> String {
    document(report).markdown()
}

/// The comparison as HTML sections.
pub fn html(report: &CompareBench) -> String {
    document(report).html()
}

/// The result of a gate in one line.
pub fn gate_line(gate: &Gate, now: &Timings) -> String {
    let labels = Labels::of(&now.cases);
    let tripped: Vec<String> = gate
        .tripped()
        .filter_map(|change| now.cases.get(change.after.case))
        .map(|case| labels.of_case(case))
        .collect();
    verdict_of_gate(gate.limit, &tripped, gate.comparison.changes.len())
}

fn verdict_of_gate(limit: f64, tripped: &[String], of: usize) -> String {
    let limit = percent(limit);
    if tripped.is_empty() {
        let cases = plural(of as u64, "case");
        return format!("no case became slower by more than {limit} % ({cases} compared)");
    }
    let names: Vec<&str> =
        tripped.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let names = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    let tripped = tripped.len();
    format!(
        "{tripped} of {} became slower by more than {limit} %{names}",
        plural(of as u64, "case")
    )
}

fn document(report: &CompareBench) -> Document {
    let mut document = Document::default();
    document.lead(lead(report));
    document.heading("Changes");
    changes(report, &mut document);
    only("Cases only in before", &report.before, &report.comparison.only_before, &mut document);
    only("Cases only in after", &report.after, &report.comparison.only_after, &mut document);
    document.heading("Files");
    let about = |given: &Given| {
        let parts = [
            given.path.to_owned(),
            given.timings.tool.clone(),
            moment(given.timings.started_unix),
            plural(given.timings.cases.len() as u64, "case"),
        ];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    };
    document.facts([("before", about(&report.before)), ("after", about(&report.after))]);
    if report.is_by_time() {
        document.minor(
            "times are compared directly, because the files have no common reference side; this is \
             valid only for the same machine in the same state",
        );
    }
    let of = report.comparison.changes.len();
    if let Some(limit) = report.limit.filter(|_| of > 0) {
        document
            .notice(format!("--fail-above: {}", verdict_of_gate(limit, &report.too_much(), of)));
    }
    for (name, given) in [("before", &report.before), ("after", &report.after)] {
        for warning in given.timings.warning_texts() {
            document.notice(format!("warning: {name}: {warning}"));
        }
    }
    document
}

/// The main result in one line.
fn lead(report: &CompareBench) -> String {
    let all = &report.comparison.changes[..];
    let sides = &report.after.timings.sides;
    let first = sides.first().map_or("", |side| side.name.as_str());
    let relative =
        if report.is_by_time() { String::new() } else { format!(" relative to {first}") };
    if let [found] = all {
        let n = plural(found.n as u64, "round");
        let who = if report.is_by_time() { "calls" } else { report.after.side(found.after) };
        return match (found.verdict, found.change) {
            (Verdict::Slower | Verdict::Faster, Some(of)) => {
                let (size, word, range) = difference(of);
                format!("{who} became {size} {word}{relative} (95 % CI {range}, n = {n})")
            }
            (Verdict::NoDetectableDifference { within }, _) => {
                format!("no detectable change ({}, n = {n})", plus_minus(within))
            }
            _ => format!("the files cannot be compared: too few rounds ({})", found.n),
        };
    }
    if all.is_empty() {
        return "the files have no case in common".to_owned();
    }
    let count = |of: &str| all.iter().filter(|found| word(found.verdict) == of).count();
    let parts: Vec<String> = [
        ("slower", format!("slower{relative}")),
        ("faster", format!("faster{relative}")),
        ("same", "with no detectable change".to_owned()),
        ("unknown", "with too few rounds".to_owned()),
    ]
    .into_iter()
    .map(|(verdict, words)| (count(verdict), words))
    .filter(|(n, _)| *n > 0)
    .map(|(n, words)| format!("{n} {words}"))
    .collect();
    format!("{}: {}", plural(all.len() as u64, "case"), parts.join(", "))
}

fn changes(report: &CompareBench, document: &mut Document) {
    let all = &report.comparison.changes;
    if all.is_empty() {
        document.line("no common cases");
        return;
    }
    let CompareBench { before, after, .. } = report;
    let labels = Labels::of(&after.timings.cases);
    let by_time = report.is_by_time();
    // The side column is needed only if several sides are compared.
    let has_sides = after.timings.sides.len() > if by_time { 1 } else { 2 };
    let medians = all.iter().flat_map(|of| [before.summary(of.before), after.summary(of.after)]);
    let unit = Quantity::Time.unit(medians.map(|of| of.median));
    let column = |title| Column::number(title, if by_time { unit.name } else { "ratio" });
    let mut table = Table::new([
        Column::text("case"),
        Column::text("side"),
        column("before"),
        column("after"),
        Column::number("change", "%"),
        Column::range("95 % CI", "%"),
        Column::range("rounds", "n, n"),
        Column::text("verdict"),
    ]);
    for found in kept(all, report.top) {
        let (then, now) = (before.summary(found.before), after.summary(found.after));
        let value = |ratio: Option<Interval>, ns: f64| match by_time {
            true => unit.number(ns),
            false => ratio.map_or_else(String::new, |ratio| words::ratio(ratio.middle)),
        };
        let range = |of: Interval| format!("{} to {}", change(of.low), change(of.high));
        let verdict = match found.verdict {
            Verdict::Slower if report.is_too_much(found) => "slower, above the limit".to_owned(),
            Verdict::Slower => "slower".to_owned(),
            Verdict::Faster => "faster".to_owned(),
            Verdict::NoDetectableDifference { .. } => "no detectable change".to_owned(),
            Verdict::TooFew => "too few rounds".to_owned(),
        };
        table.push([
            report.case(found).map(|case| labels.of_case(case)).unwrap_or_default(),
            if has_sides { after.side(found.after).to_owned() } else { String::new() },
            value(before.ratio(found.before), then.median),
            value(after.ratio(found.after), now.median),
            found.change.map_or_else(String::new, |of| change(of.middle)),
            found.change.map_or_else(String::new, range),
            format!("{}, {}", count(then.n as u64), count(now.n as u64)),
            verdict,
        ]);
    }
    document.table(table);
    more(all, report.top, document);
    if !labels.shared().is_empty() {
        document.minor(format!("all cases: {}", labels.shared()));
    }
    if !by_time {
        let first = after.timings.sides.first().map_or("", |side| side.name.as_str());
        document.minor(format!(
            "ratio: time per call relative to {first} in the same file; change: relative \
             change of this ratio"
        ));
    }
}

fn only(title: &str, given: &Given, places: &[Place], document: &mut Document) {
    let cases = given.cases(places);
    if cases.is_empty() {
        return;
    }
    document.heading(title);
    for case in cases {
        let label = words::label(case);
        document.line(if label.is_empty() { "(unnamed case)" } else { &label });
    }
}

const COLUMNS: [&str; 21] = [
    "case",
    "parameters",
    "side",
    "only_in",
    "verdict",
    "too_slow",
    "median_before_ns",
    "median_after_ns",
    "rounds_before",
    "rounds_after",
    "ratio_before",
    "ratio_before_low",
    "ratio_before_high",
    "ratio_after",
    "ratio_after_low",
    "ratio_after_high",
    "change",
    "change_low",
    "change_high",
    "p",
    "adjusted_p",
];

/// All changes as CSV, including rows for cases that only one file has.
pub fn csv(report: &CompareBench) -> String {
    let named = |case: &Case| {
        let parameters: Vec<String> =
            case.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        vec![case.name.clone(), parameters.join(" ")]
    };
    let CompareBench { before, after, .. } = report;
    let mut table = Table::new(COLUMNS.map(Column::text));
    for found in &report.comparison.changes {
        let Some(case) = report.case(found) else { continue };
        let (then, now) = (before.summary(found.before), after.summary(found.after));
        let mut row = named(case);
        row.extend([
            after.side(found.after).to_owned(),
            String::new(),
            word(found.verdict).to_owned(),
            report.limit.map_or_else(String::new, |_| report.is_too_much(found).to_string()),
            number_or_none(Some(then.median)),
            number_or_none(Some(now.median)),
            then.n.to_string(),
            now.n.to_string(),
        ]);
        row.extend(three(before.ratio(found.before)));
        row.extend(three(after.ratio(found.after)));
        row.extend(three(found.change));
        row.extend([found.p, found.adjusted_p].map(chance));
        table.push(row);
    }
    let only = [
        ("before", before, &report.comparison.only_before),
        ("after", after, &report.comparison.only_after),
    ];
    for (word, given, places) in only {
        for case in given.cases(places) {
            let mut row = named(case);
            row.extend([String::new(), word.to_owned()]);
            table.push(row);
        }
    }
    table.csv()
}
