//! JSON of the comparison of two benchmark files.

use super::{CompareBench, Given, lead};
use crate::bench::json::{Pair, Range, pairs, word};
use crate::bench::words;
use crate::shape::pretty_columns;
use laggard_core::compare::runs::{Change, Place};
use serde::Serialize;

#[derive(Serialize)]
struct Shape<'a> {
    /// Name and version of the schema.
    schema: &'static str,
    /// The main result in one line.
    verdict: String,
    /// The reference.
    before: File<'a>,
    after: File<'a>,
    /// What is compared: the `ratio` to the reference side, or the `time` if there is none.
    by: &'static str,
    /// Maximum slowdown of a case; null without a gate, as is `tripped`.
    limit: Option<f64>,
    tripped: Option<bool>,
    changes: Vec<Row<'a>>,
    /// Labels of cases.
    only_before: Vec<String>,
    only_after: Vec<String>,
}

#[derive(Serialize)]
struct File<'a> {
    file: &'a str,
    tool: &'a str,
    started_unix: f64,
    cases: u64,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    parameters: Vec<Pair<'a>>,
    /// The compared side.
    side: &'a str,
    /// `slower`, `faster`, `same` (no detectable change) or `unknown` (too few rounds).
    verdict: &'static str,
    /// Whether the slowdown exceeds the limit.
    too_slow: Option<bool>,
    median_before_ns: f64,
    median_after_ns: f64,
    rounds_before: u64,
    rounds_after: u64,
    ratio_before: Option<Range>,
    ratio_after: Option<Range>,
    /// Value after divided by value before.
    change: Option<Range>,
    p: f64,
    /// p-value corrected for multiple comparisons; decides the verdict.
    adjusted_p: f64,
}

/// JSON of schema `laggard.compare-bench/1`.
pub fn json(report: &CompareBench) -> String {
    let only = |given: &Given, places: &[Place]| {
        given.cases(places).into_iter().map(words::label).collect()
    };
    let comparison = report.comparison;
    let changes = &comparison.changes;
    pretty_columns(&Shape {
        schema: "laggard.compare-bench/1",
        verdict: lead(report),
        before: file(&report.before),
        after: file(&report.after),
        by: if report.is_by_time() { "time" } else { "ratio" },
        limit: report.limit,
        tripped: report.limit.map(|_| changes.iter().any(|found| report.is_too_much(found))),
        changes: changes.iter().filter_map(|found| row(report, found)).collect(),
        only_before: only(&report.before, &comparison.only_before),
        only_after: only(&report.after, &comparison.only_after),
    })
}

fn file<'a>(given: &Given<'a>) -> File<'a> {
    File {
        file: given.path,
        tool: &given.timings.tool,
        started_unix: given.timings.started_unix,
        cases: given.timings.cases.len() as u64,
        warnings: given.timings.warning_texts(),
    }
}

fn row<'a>(report: &CompareBench<'a>, found: &Change) -> Option<Row<'a>> {
    let CompareBench { before, after, .. } = report;
    let case = report.case(found)?;
    let (then, now) = (before.summary(found.before), after.summary(found.after));
    Some(Row {
        name: &case.name,
        parameters: pairs(&case.parameters),
        side: after.side(found.after),
        verdict: word(found.verdict),
        too_slow: report.limit.map(|_| report.is_too_much(found)),
        median_before_ns: then.median,
        median_after_ns: now.median,
        rounds_before: then.n as u64,
        rounds_after: now.n as u64,
        ratio_before: before.ratio(found.before).map(Into::into),
        ratio_after: after.ratio(found.after).map(Into::into),
        change: found.change.map(Into::into),
        p: found.p,
        adjusted_p: found.adjusted_p,
    })
}
