//! Tables of the report: breakdowns, stacks, throughput and steps.

use super::about::CountTime;
use crate::number::share;
use crate::rows::kept;
use crate::shape::Spread;
use laggard_core::trace::summary;
use serde::Serialize;

/// Device time by one key.
#[derive(Serialize)]
pub(super) struct Breakdown<'a> {
    /// Number of rows before truncation.
    distinct: u64,
    /// Sum over all rows.
    total: CountTime,
    /// Rows with the most time.
    rows: Vec<Group<'a>>,
}

/// One row of a breakdown.
#[derive(Serialize)]
struct Group<'a> {
    name: &'a str,
    /// Class of the kernel in a breakdown by kernel, else class of the first operation.
    class: &'a str,
    /// Device operations.
    count: u64,
    /// Sum of durations.
    time_ns: i64,
    /// Share of the breakdown's total time.
    share: f64,
    min_ns: i64,
    median_ns: i64,
    max_ns: i64,
}

impl<'a> Breakdown<'a> {
    pub(super) fn new(breakdown: &'a summary::Breakdown, top: Option<usize>) -> Breakdown<'a> {
        let group = |group: &'a summary::Group| Group {
            name: &group.name,
            class: &group.class,
            count: group.count,
            time_ns: group.time_ns,
            share: share(group.time_ns as f64, breakdown.total.time_ns as f64),
            min_ns: group.min_ns,
            median_ns: group.median_ns,
            max_ns: group.max_ns,
        };
        Breakdown {
            distinct: breakdown.distinct,
            total: breakdown.total.into(),
            rows: kept(&breakdown.rows, top).iter().map(group).collect(),
        }
    }
}

/// Device time of one operator with one Python stack.
#[derive(Serialize)]
pub(super) struct Stack<'a> {
    /// Operator.
    what: &'a str,
    /// Device operations.
    count: u64,
    /// Sum of durations.
    time_ns: i64,
    /// Python frames, outermost first.
    frames: &'a [String],
}

impl<'a> From<&'a laggard_core::trace::Stack> for Stack<'a> {
    fn from(row: &'a laggard_core::trace::Stack) -> Stack<'a> {
        Stack { what: &row.op, count: row.count, time_ns: row.time_ns, frames: &row.frames }
    }
}

/// Copies or fills of one kind.
#[derive(Serialize)]
pub(super) struct Copies<'a> {
    /// Name in the trace.
    kind: &'a str,
    count: u64,
    /// Bytes moved, if recorded.
    bytes: i64,
    time_ns: i64,
    /// Bandwidth per operation, if sizes were recorded.
    bandwidth_bytes_per_s: Spread,
}

impl<'a> From<&'a summary::Copies> for Copies<'a> {
    fn from(copies: &'a summary::Copies) -> Copies<'a> {
        Copies {
            kind: &copies.kind,
            count: copies.count,
            bytes: copies.bytes,
            time_ns: copies.time_ns,
            bandwidth_bytes_per_s: (&copies.bandwidth).into(),
        }
    }
}

/// Arithmetic of one operator with one shape.
#[derive(Serialize)]
pub(super) struct Work<'a> {
    /// `gemm`, `convolution` or `attention`.
    kind: &'a str,
    op: &'a str,
    shape: &'a str,
    /// Element type.
    dtype: &'a str,
    /// Calls.
    count: u64,
    /// Device time.
    time_ns: i64,
    /// Total floating-point operations.
    flops: f64,
    flops_per_s: f64,
    /// Share of the device's peak rate; null if the peak is unknown.
    peak_share: Option<f64>,
}

impl<'a> From<&'a summary::Work> for Work<'a> {
    fn from(work: &'a summary::Work) -> Work<'a> {
        Work {
            kind: &work.kind,
            op: &work.op,
            shape: &work.shape,
            dtype: &work.dtype,
            count: work.count,
            time_ns: work.time_ns,
            flops: work.flops,
            flops_per_s: work.flops_per_s,
            peak_share: work.peak_share,
        }
    }
}

/// Collectives with the same operation, type and group size.
#[derive(Serialize)]
pub(super) struct Collectives<'a> {
    operation: &'a str,
    /// Element type.
    dtype: &'a str,
    /// Ranks in the process group.
    ranks: u64,
    count: u64,
    /// Total of the larger of input and output size.
    bytes: i64,
    /// Device time.
    time_ns: i64,
    /// Bus bandwidth per collective.
    bus_bandwidth_bytes_per_s: Spread,
}

impl<'a> From<&'a summary::Collectives> for Collectives<'a> {
    fn from(row: &'a summary::Collectives) -> Collectives<'a> {
        Collectives {
            operation: &row.operation,
            dtype: &row.dtype,
            ranks: row.ranks,
            count: row.count,
            bytes: row.bytes,
            time_ns: row.time_ns,
            bus_bandwidth_bytes_per_s: (&row.bus_bandwidth).into(),
        }
    }
}

/// Training steps or serving iterations.
#[derive(Serialize)]
pub(super) struct Steps<'a> {
    /// `ProfilerStep` or `iteration`.
    marker: &'a str,
    /// Duration on the host.
    duration_ns: Spread,
    /// Device time launched per step.
    gpu_ns: Spread,
    /// The first steps, by start time.
    rows: Vec<Step<'a>>,
}

/// One step.
#[derive(Serialize)]
struct Step<'a> {
    /// Name of its marker.
    name: &'a str,
    /// Start, relative to the start of the trace.
    start_ns: i64,
    /// Duration on the host.
    duration_ns: i64,
    /// Device time launched in the step.
    gpu_ns: i64,
    /// Device operations launched in the step.
    gpu_count: u64,
}

impl<'a> Steps<'a> {
    pub(super) fn new(steps: &'a summary::Steps, top: Option<usize>) -> Steps<'a> {
        let step = |step: &'a summary::Step| Step {
            name: &step.name,
            start_ns: step.start_ns,
            duration_ns: step.duration_ns,
            gpu_ns: step.gpu_ns,
            gpu_count: step.gpu_count,
        };
        Steps {
            marker: &steps.marker,
            duration_ns: (&steps.duration_ns).into(),
            gpu_ns: (&steps.gpu_ns).into(),
            rows: kept(&steps.rows, top).iter().map(step).collect(),
        }
    }
}
