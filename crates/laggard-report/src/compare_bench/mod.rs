//! Two benches of the same cases: how the ratio of the sides changed from the first to the second.
//!
//! Without a reference side in both there is no ratio, and the times themselves are compared. Files
//! are called *before* and *after* here, since A and B are the sides in each.

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

/// What a comparison of benches is shown from.
#[derive(Clone, Copy, Debug)]
pub struct CompareBench<'a> {
    /// The reference.
    pub before: Given<'a>,
    /// The one asked about.
    pub after: Given<'a>,
    /// How it changed.
    pub comparison: &'a RunsComparison,
    /// How much slower a case may become, where there is a gate: 0.05 is 5 %.
    pub limit: Option<f64>,
    /// Rows a table shows; None is all.
    pub top: Option<usize>,
}

/// One of the two.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The file, as the user named it.
    pub path: &'a str,
    /// The evidence.
    pub timings: &'a Timings,
    /// What was found in it: its own sides against each other.
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

    /// The cases of places, each once.
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

    /// Whether times are compared, where there is no common reference.
    fn is_by_time(&self) -> bool {
        self.comparison.changes.iter().any(|change| change.compared == Compared::Times)
    }

    fn is_too_much(&self, change: &Change) -> bool {
        self.limit.is_some_and(|limit| trips(change, limit))
    }

    /// Cases that trip the gate, by their labels.
    fn too_much(&self) -> Vec<String> {
        let labels = Labels::of(&self.after.timings.cases);
        let too_much = self.comparison.changes.iter().filter(|change| self.is_too_much(change));
        too_much.filter_map(|change| self.case(change)).map(|case| labels.of_case(case)).collect()
    }
}

/// The comparison for a terminal.
pub fn text(report: &CompareBench, style: &Style) -> String {
    document(report).text(style)
}

/// The same sections in Markdown.
pub fn markdown(report: &CompareBench) -> String {
    document(report).markdown()
}

/// The same as sections of a page.
pub fn html(report: &CompareBench) -> String {
    document(report).html()
}

/// What a gate says about a run, in one line.
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
        return format!("no case of {of} got slower by more than {limit} %");
    }
    let names: Vec<&str> =
        tripped.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let names = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    let cases = plural(tripped.len() as u64, "case");
    format!("{cases} of {of} got slower by more than {limit} %{names}")
}

fn document(report: &CompareBench) -> Document {
    let mut document = Document::default();
    document.lead(lead(report));
    document.heading("Changes");
    changes(report, &mut document);
    only("Only before", &report.before, &report.comparison.only_before, &mut document);
    only("Only after", &report.after, &report.comparison.only_after, &mut document);
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
            "times are compared as they are, since the files have no reference side in common: \
             trust them only of the same machine in the same state",
        );
    }
    let of = report.comparison.changes.len();
    if let Some(limit) = report.limit.filter(|_| of > 0) {
        document.notice(format!("gate: {}", verdict_of_gate(limit, &report.too_much(), of)));
    }
    for (name, given) in [("before", &report.before), ("after", &report.after)] {
        for warning in &given.timings.warnings {
            document.notice(format!("warning: {name}: {warning}"));
        }
    }
    document
}

/// The one line that counts.
fn lead(report: &CompareBench) -> String {
    let all = &report.comparison.changes[..];
    let sides = &report.after.timings.sides;
    let first = sides.first().map_or("", |side| side.name.as_str());
    let against = if report.is_by_time() { String::new() } else { format!(" against {first}") };
    if let [found] = all {
        let n = plural(found.n as u64, "round");
        let who = if report.is_by_time() { "a call" } else { report.after.side(found.after) };
        return match (found.verdict, found.change) {
            (Verdict::Slower | Verdict::Faster, Some(of)) => {
                let (size, word, range) = difference(of);
                format!("{who} got {size} {word}{against} (95 % {range}, n = {n})")
            }
            (Verdict::NoDetectableDifference { within }, _) => {
                format!("no change is detectable ({}, n = {n})", plus_minus(within))
            }
            _ => format!("the files cannot be compared: too few rounds ({})", found.n),
        };
    }
    if all.is_empty() {
        return "the files have no case in common".to_owned();
    }
    let count = |of: &str| all.iter().filter(|found| word(found.verdict) == of).count();
    let parts: Vec<String> = [
        ("slower", format!("got slower{against}")),
        ("faster", format!("got faster{against}")),
        ("same", "without a detectable change".to_owned()),
        ("unknown", "with too few rounds to tell".to_owned()),
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
        document.line("no case is in both files");
        return;
    }
    let CompareBench { before, after, .. } = report;
    let labels = Labels::of(&after.timings.cases);
    let by_time = report.is_by_time();
    // A side goes without saying where there is only one to tell about.
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
        Column::range("95 %", "%"),
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
            Verdict::NoDetectableDifference { .. } => "no change detectable".to_owned(),
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
        document.minor(format!("all with {}", labels.shared()));
    }
    if !by_time {
        let first = after.timings.sides.first().map_or("", |side| side.name.as_str());
        document.minor(format!(
            "ratio: time of a call over {first}'s, in the same file; change: of that ratio"
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
        document.line(if label.is_empty() { "the case without a name" } else { &label });
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

/// All changes as CSV; cases that only one file has are rows too.
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
