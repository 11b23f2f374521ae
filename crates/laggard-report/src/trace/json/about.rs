//! Facts about the trace and its totals.

use laggard_core::trace::summary;
use serde::Serialize;

/// Facts about the trace.
#[derive(Serialize)]
pub(super) struct About<'a> {
    /// Distinct devices.
    gpus: Vec<Gpu<'a>>,
    /// Rank within the distributed job.
    rank: Option<i64>,
    /// Number of ranks in the job.
    world_size: Option<i64>,
    /// Communication backend.
    backend: Option<&'a str>,
    /// Base of all times, in nanoseconds since the epoch; 0 if times are absolute.
    base_time_ns: i64,
    /// Whether input shapes were recorded.
    shapes: bool,
    /// Whether Python stacks were recorded.
    stacks: bool,
    /// Other top-level properties of the file.
    properties: Vec<Property<'a>>,
}

/// Devices with the same name.
#[derive(Serialize)]
struct Gpu<'a> {
    /// Empty if unknown.
    name: &'a str,
    count: u64,
}

/// A top-level property of the file.
#[derive(Serialize)]
struct Property<'a> {
    name: &'a str,
    value: &'a str,
}

impl<'a> From<&'a summary::About> for About<'a> {
    fn from(about: &'a summary::About) -> About<'a> {
        About {
            gpus: about.gpus.iter().map(|(name, count)| Gpu { name, count: *count }).collect(),
            rank: about.rank,
            world_size: about.world_size,
            backend: about.backend.as_deref(),
            base_time_ns: about.base_time_ns,
            shapes: about.shapes,
            stacks: about.stacks,
            properties: about
                .properties
                .iter()
                .map(|(name, value)| Property { name, value })
                .collect(),
        }
    }
}

/// Counts and times. Times are sums of durations and can exceed the span.
#[derive(Serialize)]
pub(super) struct Totals {
    /// Elements of the event array.
    events: Count,
    /// Size of the uncompressed text.
    bytes: u64,
    /// From the earliest start to the latest end of all events.
    span_ns: i64,
    /// Earliest start, relative to the base time.
    start_ns: i64,
    kernels: CountTime,
    copies: CountTime,
    fills: CountTime,
    /// Other device operations.
    device: CountTime,
    /// Runtime and driver calls.
    runtime: CountTime,
    /// Operators; the time of nested ones is counted again.
    ops: CountTime,
    /// Python functions; the time of nested ones is counted again.
    python: CountTime,
    annotations: Count,
    /// Flow event endpoints.
    flows: Count,
    /// Instant events.
    instants: Count,
    /// Counter events.
    counters: Count,
    /// Duration events of other categories.
    others: Count,
}

#[derive(Serialize)]
struct Count {
    count: u64,
}

/// A count and a total time.
#[derive(Serialize)]
pub(super) struct CountTime {
    count: u64,
    /// Sum of durations.
    time_ns: i64,
}

impl From<summary::CountTime> for CountTime {
    fn from(total: summary::CountTime) -> CountTime {
        CountTime { count: total.count, time_ns: total.time_ns }
    }
}

impl From<&summary::Totals> for Totals {
    fn from(totals: &summary::Totals) -> Totals {
        let count = |count: u64| Count { count };
        Totals {
            events: count(totals.events),
            bytes: totals.bytes,
            span_ns: totals.span_ns,
            start_ns: totals.start_ns,
            kernels: totals.kernels.into(),
            copies: totals.copies.into(),
            fills: totals.fills.into(),
            device: totals.device.into(),
            runtime: totals.runtime.into(),
            ops: totals.ops.into(),
            python: totals.python.into(),
            annotations: count(totals.annotations),
            flows: count(totals.flows),
            instants: count(totals.instants),
            counters: count(totals.counters),
            others: count(totals.others),
        }
    }
}

/// Events of one phase letter and category.
#[derive(Serialize)]
pub(super) struct Category<'a> {
    /// Phase letter.
    phase: &'a str,
    category: &'a str,
    /// Events kept.
    count: u64,
}

impl<'a> From<&'a summary::Category> for Category<'a> {
    fn from(kind: &'a summary::Category) -> Category<'a> {
        Category { phase: &kind.phase, category: &kind.category, count: kind.count }
    }
}

/// Events lost or repaired for one reason.
#[derive(Serialize)]
pub(super) struct Loss<'a> {
    /// Identifier of the reason.
    reason: &'a str,
    /// Description for users.
    explanation: &'a str,
    count: u64,
    /// Byte offset of the first one in the uncompressed text.
    first_offset: u64,
}

impl<'a> From<&'a summary::Loss> for Loss<'a> {
    fn from(loss: &'a summary::Loss) -> Loss<'a> {
        Loss {
            reason: &loss.reason,
            explanation: &loss.explanation,
            count: loss.count,
            first_offset: loss.first_offset,
        }
    }
}

/// Peak memory.
#[derive(Serialize)]
pub(super) struct PeakMemory {
    /// Allocated by tensors.
    allocated_bytes: i64,
    /// Reserved by the allocator.
    reserved_bytes: i64,
    /// Number of memory events.
    n: u64,
}

impl From<&summary::PeakMemory> for PeakMemory {
    fn from(peak: &summary::PeakMemory) -> PeakMemory {
        PeakMemory { allocated_bytes: peak.allocated, reserved_bytes: peak.reserved, n: peak.n }
    }
}
