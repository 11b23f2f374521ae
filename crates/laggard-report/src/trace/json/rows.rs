//! Tables of the report: breakdowns, stacks, throughput, steps.

use super::about::CountTime;
use crate::number::share;
use crate::rows::kept;
use crate::shape::Spread;
use laggard_core::trace::summary;
use serde::Serialize;

/// Device time by something.
#[derive(Serialize)]
pub(super) struct Breakdown<'a> {
    /// Rows there are in all.
    distinct: u64,
    /// Sum over all of them.
    total: CountTime,
    /// The largest, by time.
    rows: Vec<Group<'a>>,
}

/// One row of a breakdown.
#[derive(Serialize)]
struct Group<'a> {
    /// What.
    name: &'a str,
    /// Class of the kernels, in a breakdown by kernel; of the first of them, in others.
    class: &'a str,
    /// Pieces of device work.
    count: u64,
    /// Their time.
    time_ns: i64,
    /// Of the breakdown's total time.
    share: f64,
    /// The shortest.
    min_ns: i64,
    /// The one in the middle.
    median_ns: i64,
    /// The longest.
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

/// Device time of one operator under one Python stack.
#[derive(Serialize)]
pub(super) struct Stack<'a> {
    /// The operator.
    what: &'a str,
    /// Pieces of device work.
    count: u64,
    /// Their time.
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
    /// Name as the trace has it.
    kind: &'a str,
    /// How many.
    count: u64,
    /// Bytes moved, where recorded.
    bytes: i64,
    /// Time.
    time_ns: i64,
    /// Of each, where recorded.
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

/// Arithmetic of one operator at one shape.
#[derive(Serialize)]
pub(super) struct Work<'a> {
    /// Gemm, convolution or attention.
    kind: &'a str,
    /// Operator.
    op: &'a str,
    /// Shape.
    shape: &'a str,
    /// Element type.
    dtype: &'a str,
    /// Calls.
    count: u64,
    /// Device time.
    time_ns: i64,
    /// Floating-point operations in all.
    flops: f64,
    /// Operations a second over that time.
    flops_per_s: f64,
    /// Share of the device's peak; null where that is not known.
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

/// Collective operations of one kind.
#[derive(Serialize)]
pub(super) struct Collectives<'a> {
    /// Operation.
    operation: &'a str,
    /// Element type.
    dtype: &'a str,
    /// Size of the group.
    ranks: u64,
    /// How many.
    count: u64,
    /// Bytes of the larger side in all.
    bytes: i64,
    /// Device time.
    time_ns: i64,
    /// Of each.
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

/// Steps, or iterations of a serving loop.
#[derive(Serialize)]
pub(super) struct Steps<'a> {
    /// What marks them.
    marker: &'a str,
    /// Duration on the host.
    duration_ns: Spread,
    /// Time of the device work launched in each.
    gpu_ns: Spread,
    /// The first ones, in order of time.
    rows: Vec<Step<'a>>,
}

/// One step.
#[derive(Serialize)]
struct Step<'a> {
    /// Its mark.
    name: &'a str,
    /// Start, relative to the trace's first moment.
    start_ns: i64,
    /// Duration on the host.
    duration_ns: i64,
    /// Time of the device work launched in it.
    gpu_ns: i64,
    /// Pieces of that work.
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
