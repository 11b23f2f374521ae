//! JSON of a benchmark: timings and comparisons. `laggard-formats` reads the timings back.

use super::BenchReport;
use super::scan::{GrowthShape, growth_shapes};
use super::tables::of_case;
use super::words::{kind, notice};
use crate::shape::pretty_columns;
use laggard_core::compare::notice::notices;
use laggard_core::compare::timings::{CaseComparison, Verdict};
use laggard_core::model::timings::{Batch, Series};
use laggard_core::stats::ratio::{Interval, TakenFrom};
use laggard_core::stats::summary::Summary;
use serde::Serialize;

#[derive(Serialize)]
struct Shape<'a> {
    /// Name and version of the schema.
    schema: &'static str,
    command: &'a [String],
    /// Name and version of the tool that measured.
    tool: &'a str,
    started_unix: f64,
    facts: Vec<Pair<'a>>,
    /// The first is the reference.
    sides: Vec<Side<'a>>,
    cases: Vec<CaseShape<'a>>,
    /// How times grow with a parameter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    growth: Vec<GrowthShape<'a>>,
    /// Cases without measurements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unmeasured: Vec<UnmeasuredShape<'a>>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
pub(crate) struct Pair<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct Side<'a> {
    name: &'a str,
    /// The statement or command.
    runs: &'a str,
    facts: Vec<Pair<'a>>,
}

#[derive(Serialize)]
struct CaseShape<'a> {
    name: &'a str,
    parameters: Vec<Pair<'a>>,
    /// In the order of sides.
    series: Vec<SeriesShape<'a>>,
    /// Comparisons of every side with the first; recomputed when the file is read.
    comparisons: Vec<Comparison<'a>>,
}

#[derive(Serialize)]
struct UnmeasuredShape<'a> {
    case: &'a str,
    /// `skipped` (not supported by a side) or `failed`.
    outcome: &'static str,
    why: &'a str,
}

#[derive(Serialize)]
struct Comparison<'a> {
    /// The reference.
    a: &'a str,
    b: &'a str,
    /// Number of rounds that both sides have.
    n: u64,
    /// `slower`, `faster`, `same` (no detectable difference) or `unknown` (too few rounds).
    verdict: &'static str,
    /// Time per call of B divided by time per call of A.
    ratio: Option<Range>,
    /// Time per call of B minus time per call of A.
    gap_ns: Option<Range>,
    cpu_ratio: Option<Range>,
    /// p-value of the ratio, consistent with its confidence interval.
    p: f64,
    /// p-value corrected for multiple comparisons; decides the verdict.
    adjusted_p: f64,
    /// Mann-Whitney U test of wall times, which assumes independent rounds.
    mann_whitney_p: Option<f64>,
    cliffs_delta: Option<f64>,
    /// `medians`: ratio of medians. `rounds`: median of the ratios by round.
    taken_from: &'static str,
}

/// An anomaly of a series.
#[derive(Serialize)]
struct NoticeShape {
    /// `outliers`, `drift`, `two-heaps`, `noisy`, `preempted` or `off-cpu`.
    kind: &'static str,
    text: String,
}

/// A value with its 95 % confidence interval.
#[derive(Serialize)]
pub(crate) struct Range {
    middle: f64,
    low: f64,
    high: f64,
}

impl From<Interval> for Range {
    fn from(of: Interval) -> Range {
        Range { middle: of.middle, low: of.low, high: of.high }
    }
}

/// The id of a verdict.
pub(crate) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Slower => "slower",
        Verdict::Faster => "faster",
        Verdict::NoDetectableDifference { .. } => "same",
        Verdict::TooFew => "unknown",
    }
}

#[derive(Serialize)]
struct SeriesShape<'a> {
    side: &'a str,
    /// Statement or command, if it differs by case.
    #[serde(skip_serializing_if = "str::is_empty")]
    runs: &'a str,
    /// Facts about the side in this case only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    facts: Vec<Pair<'a>>,
    /// Wall time per call.
    wall_ns: Spread,
    /// CPU time per call of all threads; null if not measured.
    cpu_ns: Option<Spread>,
    /// Page faults per call; null if none were counted.
    page_faults: Option<f64>,
    /// Null if unknown, as is `threads`.
    peak_memory_bytes: Option<u64>,
    threads: Option<u32>,
    counters: Vec<Counter<'a>>,
    notices: Vec<NoticeShape>,
    batches: Columns,
    warm_up: Columns,
}

#[derive(Serialize)]
struct Counter<'a> {
    name: &'a str,
    per_call: f64,
    source: &'a str,
}

/// Distribution of values over batches.
#[derive(Serialize)]
struct Spread {
    n: u64,
    min: f64,
    p25: f64,
    median: f64,
    p75: f64,
    max: f64,
    mean: f64,
    /// Median absolute deviation.
    mad: f64,
}

/// Batches by column; columns that contain only 0 are omitted.
#[derive(Serialize)]
struct Columns {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    round: Vec<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    place: Vec<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    start_ns: Vec<u64>,
    calls: Vec<u64>,
    wall_ns: Vec<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    user_ns: Vec<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    system_ns: Vec<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    minor_faults: Vec<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    major_faults: Vec<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    waits: Vec<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    preemptions: Vec<u64>,
    queued_ns: Vec<u64>,
}

#[allow(clippy::ptr_arg)] // signature required by serde
fn is_zero(column: &Vec<u64>) -> bool {
    column.iter().all(|&value| value == 0)
}

/// JSON of schema `laggard.bench/1`.
pub fn json(report: &BenchReport) -> String {
    let timings = report.timings;
    pretty_columns(&Shape {
        schema: "laggard.bench/1",
        command: &timings.command,
        tool: &timings.tool,
        started_unix: timings.started_unix,
        facts: pairs(&timings.facts),
        sides: timings
            .sides
            .iter()
            .map(|side| Side { name: &side.name, runs: &side.runs, facts: pairs(&side.facts) })
            .collect(),
        cases: (0..timings.cases.len()).map(|case| shape(report, case)).collect(),
        growth: growth_shapes(timings),
        unmeasured: timings
            .unmeasured
            .iter()
            .map(|of| UnmeasuredShape {
                case: &of.case,
                outcome: if of.is_skipped { "skipped" } else { "failed" },
                why: &of.why,
            })
            .collect(),
        warnings: timings.warning_texts(),
    })
}

fn shape<'a>(report: &BenchReport<'a>, at: usize) -> CaseShape<'a> {
    let timings = report.timings;
    let case = &timings.cases[at];
    let name = |side: usize| timings.sides.get(side).map_or("", |side| side.name.as_str());
    let comparison = |found: &'a CaseComparison| Comparison {
        a: name(0),
        b: name(found.side),
        n: found.n as u64,
        verdict: word(found.verdict),
        ratio: found.wall.map(Into::into),
        gap_ns: found.gap_ns.map(Into::into),
        cpu_ratio: found.cpu.map(Into::into),
        p: found.p,
        adjusted_p: found.adjusted_p,
        mann_whitney_p: found.ranks.map(|of| of.p),
        cliffs_delta: found.ranks.map(|of| of.delta.0),
        taken_from: match found.from {
            TakenFrom::Medians => "medians",
            TakenFrom::Rounds => "rounds",
        },
    };
    CaseShape {
        name: &case.name,
        parameters: pairs(&case.parameters),
        series: case.series.iter().enumerate().map(|(at, of)| series(name(at), of)).collect(),
        comparisons: of_case(report, at).map(comparison).collect(),
    }
}

fn series<'a>(side: &'a str, series: &'a Series) -> SeriesShape<'a> {
    let cpu = super::cpu(series);
    SeriesShape {
        side,
        runs: &series.runs,
        facts: pairs(&series.facts),
        wall_ns: (&Summary::of(&series.wall())).into(),
        cpu_ns: cpu.as_ref().map(Into::into),
        page_faults: super::faults(series),
        peak_memory_bytes: Some(series.peak_memory).filter(|&bytes| bytes > 0),
        threads: Some(series.threads).filter(|&threads| threads > 0),
        counters: series
            .counters
            .iter()
            .map(|of| Counter { name: &of.name, per_call: of.per_call, source: &of.source })
            .collect(),
        notices: notices(series)
            .into_iter()
            .map(|of| NoticeShape { kind: kind(of), text: notice(side, of) })
            .collect(),
        batches: columns(&series.batches),
        warm_up: columns(&series.warm_up),
    }
}

impl From<&Summary> for Spread {
    fn from(of: &Summary) -> Spread {
        Spread {
            n: of.n as u64,
            min: of.min,
            p25: of.p25,
            median: of.median,
            p75: of.p75,
            max: of.max,
            mean: of.mean,
            mad: of.mad,
        }
    }
}

fn columns(batches: &[Batch]) -> Columns {
    let column = |of: fn(&Batch) -> u64| batches.iter().map(of).collect();
    Columns {
        round: column(|batch| batch.round.into()),
        place: column(|batch| batch.place.into()),
        start_ns: column(|batch| batch.start_ns),
        calls: column(|batch| batch.calls),
        wall_ns: column(|batch| batch.wall_ns),
        user_ns: column(|batch| batch.user_ns),
        system_ns: column(|batch| batch.system_ns),
        minor_faults: column(|batch| batch.minor_faults),
        major_faults: column(|batch| batch.major_faults),
        waits: column(|batch| batch.waits),
        preemptions: column(|batch| batch.preemptions),
        queued_ns: column(|batch| batch.queued_ns),
    }
}

pub(crate) fn pairs(pairs: &[(String, String)]) -> Vec<Pair<'_>> {
    pairs.iter().map(|(name, value)| Pair { name, value }).collect()
}
