//! JSON of a trace comparison, schema `laggard.compare-trace/1`.
//!
//! Times are in nanoseconds and shares from 0 to 1; names are unchanged from the traces. Unknown
//! and non-finite values are null. The requested number of rows limits each table in `findings`;
//! other lists are complete. A step (`lap` in keys) is the unit of work that a trace repeats.

use super::order::side_word;
use super::words::verdict;
use super::{CompareTrace, Shown};
use crate::culprits::{self, how_to_get};
use crate::rows::kept;
use crate::shape;
use laggard_core::compare::trace::found::{
    self, Finding, HostUnit, Spread, TraceComparison, TraceFacts,
};
use laggard_core::stats::ratio::Interval;
use laggard_core::trace::By;
use serde::Serialize;

pub(super) fn json(report: &CompareTrace) -> String {
    let comparison = report.comparison;
    let tables = || {
        let is_asked = |by: By| match report.shown {
            Shown::Table(asked) => asked == by,
            _ => true,
        };
        comparison.tables.iter().filter(move |table| is_asked(table.by))
    };
    let findings = tables().flat_map(|table| {
        kept(&table.rows, report.top)
            .iter()
            .map(|row| Tabled { by: table.by.word(), row: row.into() })
    });
    let judgement = &comparison.judgement;
    shape::pretty(&Shape {
        schema: "laggard.compare-trace/1",
        verdict: verdict(report),
        a: (&comparison.sides[0]).into(),
        b: (&comparison.sides[1]).into(),
        phase: Some(report.phase).filter(|phase| !phase.is_empty()),
        whole: (&comparison.whole).into(),
        time: comparison.time.iter().map(Into::into).collect(),
        distinct_findings: tables().map(|table| table.rows.len() as u64).sum(),
        findings: findings.collect(),
        host: comparison.host.iter().map(Into::into).collect(),
        layers: layers(comparison),
        aligned: comparison.aligned.iter().map(Into::into).collect(),
        fusions: comparison.fusions.iter().map(Into::into).collect(),
        types: comparison.types.iter().map(Into::into).collect(),
        culprits: judgement.culprits.iter().map(Into::into).collect(),
        not_explained: Some(judgement.not_explained).filter(|_| report.lags()),
        saved_ns: judgement.saved_ns,
        missing: judgement.missing.iter().map(|missing| how_to_get(*missing)).collect(),
        warnings: comparison.warnings.iter().map(Into::into).collect(),
        ranks: comparison.ranks.iter().map(Into::into).collect(),
    })
}

#[derive(Serialize)]
struct Shape<'a> {
    /// Schema name and version.
    schema: &'static str,
    /// The first line of the text report.
    verdict: String,
    /// The reference.
    a: Side<'a>,
    b: Side<'a>,
    /// The selected phase; null for all phases.
    phase: Option<&'a str>,
    /// Device time per step.
    whole: Row<'a>,
    /// Device time per step by activity and cause of idle time.
    time: Vec<Row<'a>>,
    /// Number of rows of all tables before truncation.
    distinct_findings: u64,
    /// Rows of all tables, or of the selected table; by table, the largest difference first.
    findings: Vec<Tabled<'a>>,
    /// Metrics of the host per step.
    host: Vec<Host<'a>>,
    layers: Layers<'a>,
    /// Aligned kernels, in order.
    aligned: Vec<Segment<'a>>,
    /// Kernel sequences that one side fuses.
    fusions: Vec<Fusion<'a>>,
    /// Launches by kernel type.
    types: Vec<TypeCount<'a>>,
    /// Same shape as in `laggard.why/1`; empty without a lag.
    culprits: Vec<culprits::Shape<'a>>,
    /// Share of the lag that no culprit explains; null without a lag.
    not_explained: Option<f64>,
    /// Time per step that B saves elsewhere.
    saved_ns: f64,
    /// How to collect evidence that is missing.
    missing: Vec<&'static str>,
    warnings: Vec<Warning<'a>>,
    /// Ranks of both sides; empty if both sides are single traces.
    ranks: Vec<Rank<'a>>,
}

/// Values of A and B.
#[derive(Serialize)]
struct Both<T> {
    a: T,
    b: T,
}

impl<T> From<[T; 2]> for Both<T> {
    fn from([a, b]: [T; 2]) -> Both<T> {
        Both { a, b }
    }
}

fn texts(of: &[String; 2]) -> Both<&str> {
    of.each_ref().map(String::as_str).into()
}

#[derive(Serialize)]
struct Side<'a> {
    label: &'a str,
    traces: Vec<Trace<'a>>,
    /// `step`, `iteration`, `forward pass`, `graph replay`, `cycle`, `whole trace`.
    marker: &'static str,
    /// Measured steps.
    laps: u64,
    /// Measured steps by kind, if steps have kinds.
    kinds: Vec<LapKind<'a>>,
    /// Excluded steps at the start.
    warm_up: u64,
    /// Excluded steps that were recorded only in part.
    partial: u64,
    /// Device operations outside steps.
    outside: CountTime,
    /// From the first start to the last end of device operations.
    span_ns: i64,
    /// `transformer`, `state-space`, `hybrid`, `unknown`.
    architecture: &'static str,
}

#[derive(Serialize)]
struct LapKind<'a> {
    kind: &'a str,
    laps: u64,
}

#[derive(Serialize)]
struct CountTime {
    count: u64,
    time_ns: i64,
}

/// An excerpt of `about` and `totals` of `laggard.report.trace/1`.
#[derive(Serialize)]
struct Trace<'a> {
    file: &'a str,
    gpus: Vec<Gpu<'a>>,
    rank: Option<i64>,
    world_size: Option<i64>,
    totals: Totals,
}

#[derive(Serialize)]
struct Gpu<'a> {
    /// Empty if unknown.
    name: &'a str,
    count: u64,
}

#[derive(Serialize)]
struct Totals {
    kernels: CountTime,
    span_ns: i64,
}

impl<'a> From<&'a found::Side> for Side<'a> {
    fn from(side: &'a found::Side) -> Side<'a> {
        let (count, time_ns) = side.outside;
        let kind = |(kind, laps): &'a (String, u64)| LapKind { kind, laps: *laps };
        Side {
            label: &side.label,
            traces: side.traces.iter().map(Into::into).collect(),
            marker: side.marker.word(),
            laps: side.laps,
            kinds: side.kinds.iter().map(kind).collect(),
            warm_up: side.warm_up,
            partial: side.partial,
            outside: CountTime { count, time_ns },
            span_ns: side.span_ns,
            architecture: side.architecture.word(),
        }
    }
}

impl<'a> From<&'a TraceFacts> for Trace<'a> {
    fn from(trace: &'a TraceFacts) -> Trace<'a> {
        let (about, totals) = (&trace.summary.about, &trace.summary.totals);
        let kernels = totals.kernels;
        Trace {
            file: &trace.path,
            gpus: about.gpus.iter().map(|(name, count)| Gpu { name, count: *count }).collect(),
            rank: about.rank,
            world_size: about.world_size,
            totals: Totals {
                kernels: CountTime { count: kernels.count, time_ns: kernels.time_ns },
                span_ns: totals.span_ns,
            },
        }
    }
}

/// A row of a table.
#[derive(Serialize)]
struct Tabled<'a> {
    /// The key of the table: `class`, `phase`, `shape`, `kernel`, …
    by: &'static str,
    #[serde(flatten)]
    row: Row<'a>,
}

/// One row with both sides.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    /// Empty if it has none.
    class: &'a str,
    a: Spent,
    b: Spent,
    /// Difference per step, B minus A.
    gap_ns: f64,
    /// 95 % CI of the difference; null if there are too few samples.
    gap_range: Option<[f64; 2]>,
    /// B over A per step; null if either is zero.
    ratio: Option<f64>,
    ratio_range: Option<Range>,
    /// Difference of the total times, B minus A.
    total_gap_ns: i64,
    /// Signed share of the whole difference.
    share: f64,
    /// `slower`, `faster`, `no detectable difference`, `single sample`, `only in A`, `only in B`.
    verdict: &'static str,
    /// The largest difference that is not excluded, as a share of A; null if a difference was
    /// detected.
    within: Option<f64>,
    /// Source of the confidence intervals: `laps`, `within one step`, `none`.
    spread: &'static str,
    /// p-value of the difference, corrected over the table; null without a confidence interval.
    p: Option<f64>,
    /// Kernels of the row, most time first.
    kernels: Both<Vec<KernelUse<'a>>>,
    /// The CPU operator that launched most of the time; empty if unknown.
    ops: Both<&'a str>,
    /// The Python line that launched most of the time; empty if unknown.
    lines: Both<&'a str>,
    flops_per_s: Both<Option<f64>>,
    /// Share of the device's peak rate.
    peak_share: Both<Option<f64>>,
    /// Grid and block of most launches of a kernel.
    geometry: Both<&'a str>,
}

#[derive(Serialize)]
struct Spent {
    /// Device operations inside and outside steps.
    count: u64,
    /// Time of all device operations.
    total_ns: i64,
    /// Device operations per step.
    lap_count: f64,
    /// Time per step.
    lap_ns: f64,
    /// Time per device operation.
    mean_ns: f64,
    /// Sample size of the confidence intervals: steps, or operations within one step.
    n: u64,
}

#[derive(Serialize)]
struct Range {
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct KernelUse<'a> {
    name: &'a str,
    count: u64,
    total_ns: i64,
}

impl From<Interval> for Range {
    fn from(interval: Interval) -> Range {
        Range { low: interval.low, high: interval.high }
    }
}

impl From<&found::Spent> for Spent {
    fn from(spent: &found::Spent) -> Spent {
        let found::Spent { count, total_ns, lap_count, lap_ns, mean_ns, n } = *spent;
        Spent { count, total_ns, lap_count, lap_ns, mean_ns, n }
    }
}

impl<'a> From<&'a Finding> for Row<'a> {
    fn from(row: &'a Finding) -> Row<'a> {
        let [a, b] = &row.sides;
        let kernels = |uses: &'a Vec<found::KernelUse>| -> Vec<KernelUse<'a>> {
            let one = |used: &'a found::KernelUse| KernelUse {
                name: &used.name,
                count: used.count,
                total_ns: used.total_ns,
            };
            uses.iter().map(one).collect()
        };
        Row {
            name: &row.name,
            class: &row.class,
            a: a.into(),
            b: b.into(),
            gap_ns: row.gap_ns.middle,
            gap_range: row.gap_ns.range.map(|(low, high)| [low, high]),
            ratio: row.ratio,
            ratio_range: row.ratio_range.map(Into::into),
            total_gap_ns: b.total_ns.saturating_sub(a.total_ns),
            share: row.share,
            verdict: row.verdict.word(),
            within: within(row.verdict),
            spread: row.spread.word(),
            p: (row.spread != Spread::None).then_some(row.p),
            kernels: row.kernels.each_ref().map(kernels).into(),
            ops: texts(&row.ops),
            lines: texts(&row.lines),
            flops_per_s: row.rate.map(|rate| rate.map(|rate| rate.flops_per_s)).into(),
            peak_share: row.rate.map(|rate| rate.and_then(|rate| rate.peak_share)).into(),
            geometry: texts(&row.geometry),
        }
    }
}

fn within(verdict: found::Verdict) -> Option<f64> {
    match verdict {
        found::Verdict::NoDetectableDifference(within) => Some(within),
        _ => None,
    }
}

#[derive(Serialize)]
struct Host<'a> {
    name: &'a str,
    /// `ns`, `count` or `share`.
    unit: &'static str,
    /// Null if the trace lacks the data.
    a: Option<f64>,
    b: Option<f64>,
    n: Both<u64>,
    ratio: Option<f64>,
    ratio_range: Option<Range>,
    verdict: &'static str,
    within: Option<f64>,
}

impl<'a> From<&'a found::HostFinding> for Host<'a> {
    fn from(row: &'a found::HostFinding) -> Host<'a> {
        Host {
            name: &row.name,
            unit: match row.unit {
                HostUnit::Nanos => "ns",
                HostUnit::Count => "count",
                HostUnit::Share => "share",
            },
            a: row.values[0],
            b: row.values[1],
            n: row.n.into(),
            ratio: row.ratio,
            ratio_range: row.ratio_range.map(Into::into),
            verdict: row.verdict.word(),
            within: within(row.verdict),
        }
    }
}

#[derive(Serialize)]
struct Layers<'a> {
    /// How layers were found.
    found_by: Both<String>,
    counts: Both<u64>,
    /// In model order.
    rows: Vec<Layer<'a>>,
}

#[derive(Serialize)]
struct Layer<'a> {
    /// Number from 0; null if a side lacks the layer.
    number: Both<Option<u32>>,
    #[serde(flatten)]
    row: Row<'a>,
}

fn layers(comparison: &TraceComparison) -> Layers<'_> {
    let layers = &comparison.layers;
    Layers {
        found_by: layers.found_by.each_ref().map(found::LayersBy::words).into(),
        counts: layers.counts.into(),
        rows: layers
            .rows
            .iter()
            .map(|row| Layer { number: row.numbers.into(), row: (&row.finding).into() })
            .collect(),
    }
}

/// A sequence of kernels.
#[derive(Serialize)]
struct Segment<'a> {
    /// `layer`, `outside of layers` or `lap`.
    place: &'a str,
    /// Occurrences per step.
    repeats: Both<f64>,
    /// Occurrences with exactly this sequence.
    typical: Both<Typical>,
    pairs: Vec<Pair<'a>>,
}

#[derive(Serialize)]
struct Typical {
    same: u64,
    of: u64,
}

#[derive(Serialize)]
struct Pair<'a> {
    /// `same kernel`, `other kernel`, `merged`, `split`, `only in A`, `only in B`.
    relation: &'static str,
    class: &'a str,
    /// Projection of a transformer; empty if unknown.
    projection: &'a str,
    kernels: Both<&'a [String]>,
    /// Mean time per occurrence.
    mean_ns: Both<f64>,
    n: Both<u64>,
}

impl<'a> From<&'a found::Segment> for Segment<'a> {
    fn from(segment: &'a found::Segment) -> Segment<'a> {
        let pair = |pair: &'a found::KernelPair| Pair {
            relation: pair.relation.word(),
            class: &pair.class,
            projection: &pair.projection,
            kernels: pair.kernels.each_ref().map(Vec::as_slice).into(),
            mean_ns: pair.mean_ns.into(),
            n: pair.n.into(),
        };
        Segment {
            place: &segment.place,
            repeats: segment.repeats.into(),
            typical: segment.typical.map(|(same, of)| Typical { same, of }).into(),
            pairs: segment.pairs.iter().map(pair).collect(),
        }
    }
}

#[derive(Serialize)]
struct Fusion<'a> {
    /// The side that runs the fused kernels: `A` or `B`.
    fused_by: &'static str,
    fused: &'a [String],
    unfused: &'a [String],
    classes: Fused<&'a [String]>,
    /// Occurrences per step of the side that does not fuse.
    lap_count: f64,
    /// Occurrences in the trace.
    seen: u64,
    /// Mean time per occurrence.
    mean_ns: Fused<f64>,
    /// Time saved per step; negative if fusing costs time.
    saved_ns: f64,
    confidence: f64,
    evidence: &'a str,
}

#[derive(Serialize)]
struct Fused<T> {
    fused: T,
    unfused: T,
}

impl<'a> From<&'a found::Fusion> for Fusion<'a> {
    fn from(row: &'a found::Fusion) -> Fusion<'a> {
        let [fused, unfused] = &row.classes;
        Fusion {
            fused_by: side_word(row),
            fused: &row.fused,
            unfused: &row.unfused,
            classes: Fused { fused, unfused },
            lap_count: row.lap_count,
            seen: row.seen,
            mean_ns: Fused { fused: row.mean_ns[0], unfused: row.mean_ns[1] },
            saved_ns: row.saved_ns,
            confidence: row.confidence,
            evidence: &row.evidence,
        }
    }
}

#[derive(Serialize)]
struct TypeCount<'a> {
    name: &'a str,
    lap_count: Both<f64>,
    lap_ns: Both<f64>,
}

impl<'a> From<&'a found::TypeCount> for TypeCount<'a> {
    fn from(row: &'a found::TypeCount) -> TypeCount<'a> {
        TypeCount { name: &row.name, lap_count: row.lap_count.into(), lap_ns: row.lap_ns.into() }
    }
}

#[derive(Serialize)]
struct Warning<'a> {
    code: &'static str,
    /// `warning` or `info`.
    severity: &'static str,
    /// `A` or `B`; null for both.
    side: Option<&'static str>,
    message: &'a str,
    hint: &'a str,
}

impl<'a> From<&'a found::Warning> for Warning<'a> {
    fn from(warning: &'a found::Warning) -> Warning<'a> {
        Warning {
            code: warning.code,
            severity: warning.severity,
            side: warning.side.and_then(|side| ["A", "B"].get(side).copied()),
            message: &warning.message,
            hint: &warning.hint,
        }
    }
}

#[derive(Serialize)]
struct Rank<'a> {
    rank: i64,
    /// Empty if a side lacks the rank.
    files: Both<&'a str>,
    whole: Row<'a>,
    /// The row of `time` with the largest difference.
    largest: Option<Largest<'a>>,
}

#[derive(Serialize)]
struct Largest<'a> {
    name: &'a str,
    gap_ns: f64,
}

impl<'a> From<&'a found::RankPair> for Rank<'a> {
    fn from(row: &'a found::RankPair) -> Rank<'a> {
        Rank {
            rank: row.rank,
            files: texts(&row.paths),
            whole: (&row.whole).into(),
            largest: row.largest.as_ref().map(|(name, gap_ns)| Largest { name, gap_ns: *gap_ns }),
        }
    }
}
