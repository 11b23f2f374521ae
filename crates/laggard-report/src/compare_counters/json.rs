//! JSON of a comparison of counters.

use super::{CompareCounters, Given, lead};
use crate::bench::json::Range;
use crate::counters::FigureShape;
use crate::shape::pretty_columns;
use laggard_core::model::counters::Counter;
use serde::Serialize;

#[derive(Serialize)]
struct Shape<'a> {
    /// Name and version of the schema.
    schema: &'static str,
    /// The main result in one line.
    verdict: String,
    /// The reference side.
    a: File<'a>,
    b: File<'a>,
    counters: Vec<Row<Side>>,
    derived: Vec<Row<FigureShape>>,
}

#[derive(Serialize)]
struct File<'a> {
    file: &'a str,
    command: &'a str,
    started: &'a str,
    runs: Option<u64>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Row<T> {
    name: String,
    unit: String,
    /// Null if the side does not have it.
    a: Option<T>,
    b: Option<T>,
    /// B divided by A.
    ratio: Option<f64>,
    /// 95 % confidence interval of the ratio; null without standard errors.
    interval: Option<Range>,
    /// B minus A.
    gap: Option<f64>,
    /// `more`, `less`, `same` (no detectable difference), `single-sample` or `not-comparable`.
    verdict: &'static str,
}

#[derive(Serialize)]
struct Side {
    value: Option<f64>,
    /// `counted`, `not counted` or `not supported`.
    state: &'static str,
    /// Share of time in which it was counted.
    counted: Option<f64>,
    spread: Option<f64>,
}

impl From<&Counter> for Side {
    fn from(row: &Counter) -> Side {
        let state = row.reading.word();
        Side { value: row.value(), state, counted: row.counted, spread: row.spread }
    }
}

/// JSON of schema `laggard.compare-counters/1`.
pub fn json(report: &CompareCounters) -> String {
    let counters = report.comparison.counters.iter().filter_map(|row| {
        let either = row.a.as_ref().or(row.b.as_ref())?;
        Some(Row {
            name: either.label(),
            unit: either.unit.clone(),
            a: row.a.as_ref().map(Into::into),
            b: row.b.as_ref().map(Into::into),
            ratio: row.ratio,
            interval: row.interval.map(Into::into),
            gap: row.gap,
            verdict: row.verdict.word(),
        })
    });
    let derived = report.comparison.derived.iter().filter_map(|row| {
        let either = row.a.as_ref().or(row.b.as_ref())?;
        Some(Row {
            name: either.name.to_owned(),
            unit: crate::counters::word_of(either.figure).to_owned(),
            a: row.a.as_ref().map(Into::into),
            b: row.b.as_ref().map(Into::into),
            ratio: row.ratio,
            interval: row.interval.map(Into::into),
            gap: row.gap,
            verdict: row.verdict.word(),
        })
    });
    pretty_columns(&Shape {
        schema: "laggard.compare-counters/1",
        verdict: lead(report),
        a: file(&report.a),
        b: file(&report.b),
        counters: counters.collect(),
        derived: derived.collect(),
    })
}

fn file<'a>(given: &Given<'a>) -> File<'a> {
    File {
        file: given.path,
        command: &given.counters.command,
        started: &given.counters.started,
        runs: given.counters.runs,
        warnings: &given.counters.warnings,
    }
}
