//! Counters as JSON.

use super::CountersReport;
use crate::shape::pretty_columns;
use laggard_core::counters::{Derived, Figure, derive, rates, totals};
use laggard_core::model::counters::Counter;
use serde::Serialize;

#[derive(Serialize)]
struct Shape<'a> {
    /// Name and version of the schema.
    schema: &'static str,
    tool: &'a str,
    command: &'a str,
    /// Date as written by the tool.
    started: &'a str,
    /// Number of runs that values are means of; null if unknown.
    runs: Option<u64>,
    elapsed_s: Option<f64>,
    elapsed_spread: Option<f64>,
    user_s: Option<f64>,
    system_s: Option<f64>,
    /// Sums over all CPUs, threads and intervals.
    totals: Vec<Total<'a>>,
    derived: Vec<FigureShape>,
    /// Counters as in the file.
    counters: Vec<CounterShape<'a>>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Total<'a> {
    #[serde(flatten)]
    counter: CounterShape<'a>,
    /// Null for times and for events that were not counted.
    per_second: Option<f64>,
    /// Whether seconds are CPU time; otherwise wall time.
    per_cpu_second: Option<bool>,
}

#[derive(Serialize)]
struct CounterShape<'a> {
    event: &'a str,
    modifiers: &'a str,
    /// Core type; empty if unknown or several.
    core: &'a str,
    /// CPU, thread or cgroup; empty for all.
    of: &'a str,
    /// End of the interval; null for the whole run.
    until_s: Option<f64>,
    /// Null unless `state` is `counted`.
    value: Option<f64>,
    unit: &'a str,
    /// `counted`, `not counted` or `not supported`.
    state: &'static str,
    run_ns: Option<u64>,
    /// Share of time in which it was counted.
    counted: Option<f64>,
    /// Standard error of the mean over runs, as a share of the value.
    spread: Option<f64>,
    /// Metrics derived by the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metrics: Vec<MetricShape<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<CounterShape<'a>>,
}

#[derive(Serialize)]
struct MetricShape<'a> {
    value: Option<f64>,
    text: &'a str,
}

/// A derived metric.
#[derive(Serialize)]
pub(crate) struct FigureShape {
    name: &'static str,
    /// `ratio`, `share` or `per second`.
    figure: &'static str,
    value: Option<f64>,
    spread: Option<f64>,
    /// Whether all its events were counted all the time.
    is_whole: bool,
    /// Missing events.
    missing: Vec<String>,
}

impl From<&Derived> for FigureShape {
    fn from(of: &Derived) -> FigureShape {
        FigureShape {
            name: of.name,
            figure: word_of(of.figure),
            value: of.value,
            spread: of.spread,
            is_whole: of.is_whole,
            missing: of.missing.clone(),
        }
    }
}

/// The id of a kind of metric.
pub(crate) fn word_of(figure: Figure) -> &'static str {
    match figure {
        Figure::Ratio => "ratio",
        Figure::Share => "share",
        Figure::PerSecond => "per second",
    }
}

/// JSON of schema `laggard.counters/1`.
pub fn json(report: &CountersReport) -> String {
    let counters = report.counters;
    let totals = totals(counters);
    let rates = rates(counters, &totals);
    pretty_columns(&Shape {
        schema: "laggard.counters/1",
        tool: &counters.tool,
        command: &counters.command,
        started: &counters.started,
        runs: counters.runs,
        elapsed_s: counters.elapsed.map(|of| of.value),
        elapsed_spread: counters.elapsed.and_then(|of| of.spread),
        user_s: counters.user_s,
        system_s: counters.system_s,
        totals: totals
            .iter()
            .zip(&rates)
            .map(|(row, rate)| Total {
                counter: shape(row),
                per_second: rate.map(|rate| rate.per_second),
                per_cpu_second: rate.map(|rate| rate.of_cpu),
            })
            .collect(),
        derived: derive(counters, &totals).iter().map(Into::into).collect(),
        counters: counters.rows.iter().map(shape).collect(),
        warnings: &counters.warnings,
    })
}

fn shape(row: &Counter) -> CounterShape<'_> {
    CounterShape {
        event: &row.name,
        modifiers: &row.modifiers,
        core: &row.pmu,
        of: &row.of,
        until_s: row.time_ns.map(|ns| ns as f64 / 1e9),
        value: row.value(),
        unit: &row.unit,
        state: row.reading.word(),
        run_ns: row.run_ns,
        counted: row.counted,
        spread: row.spread,
        metrics: row
            .metrics
            .iter()
            .map(|of| MetricShape { value: of.value, text: &of.text })
            .collect(),
        parts: row.parts.iter().map(shape).collect(),
    }
}
