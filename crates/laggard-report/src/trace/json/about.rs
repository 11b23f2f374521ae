//! What the trace is, and how much there is in all.

use laggard_core::trace::summary;
use serde::Serialize;

/// What the trace is.
#[derive(Serialize)]
pub(super) struct About<'a> {
    /// Distinct devices.
    gpus: Vec<Gpu<'a>>,
    /// Rank in a distributed job.
    rank: Option<i64>,
    /// Ranks in the job.
    world_size: Option<i64>,
    /// Communication backend.
    backend: Option<&'a str>,
    /// Nanoseconds since the epoch that times are relative to; 0 when they are absolute.
    base_time_ns: i64,
    /// Whether operators have shapes.
    shapes: bool,
    /// Whether there are Python frames.
    stacks: bool,
    /// Other top-level values of the file.
    properties: Vec<Property<'a>>,
}

/// Devices of one name.
#[derive(Serialize)]
struct Gpu<'a> {
    /// Empty where unknown.
    name: &'a str,
    /// How many.
    count: u64,
}

/// A top-level value of the file.
#[derive(Serialize)]
struct Property<'a> {
    /// Its key.
    name: &'a str,
    /// Its value as text.
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

/// Counts and times. Times are sums of durations, so they may exceed the span.
#[derive(Serialize)]
pub(super) struct Totals {
    /// Elements of the event array.
    events: Count,
    /// Size of the uncompressed text.
    bytes: u64,
    /// From the first to the last moment of any span.
    span_ns: i64,
    /// The first moment, relative to the base time.
    start_ns: i64,
    /// Kernels.
    kernels: CountTime,
    /// Copies.
    copies: CountTime,
    /// Fills.
    fills: CountTime,
    /// Other work on devices.
    device: CountTime,
    /// Runtime and driver calls.
    runtime: CountTime,
    /// Operators; nested ones count again.
    ops: CountTime,
    /// Python functions; nested ones count again.
    python: CountTime,
    /// Annotations.
    annotations: Count,
    /// Ends of flow arrows.
    flows: Count,
    /// Moments.
    instants: Count,
    /// Counter values.
    counters: Count,
    /// Spans of other categories.
    others: Count,
}

/// A count.
#[derive(Serialize)]
struct Count {
    /// How many.
    count: u64,
}

/// A count and the time it took.
#[derive(Serialize)]
pub(super) struct CountTime {
    /// How many.
    count: u64,
    /// Sum of their durations.
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

/// Events of one kind.
#[derive(Serialize)]
pub(super) struct Category<'a> {
    /// Phase letter.
    phase: &'a str,
    /// Category.
    category: &'a str,
    /// How many were kept.
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
    /// Word for the reason.
    reason: &'a str,
    /// What happened and what was done.
    explanation: &'a str,
    /// How many.
    count: u64,
    /// Where the first one stands in the uncompressed text.
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

/// Memory at its peak.
#[derive(Serialize)]
pub(super) struct PeakMemory {
    /// In use by tensors.
    allocated_bytes: i64,
    /// Held by the allocator.
    reserved_bytes: i64,
    /// Events that say so.
    n: u64,
}

impl From<&summary::PeakMemory> for PeakMemory {
    fn from(peak: &summary::PeakMemory) -> PeakMemory {
        PeakMemory { allocated_bytes: peak.allocated, reserved_bytes: peak.reserved, n: peak.n }
    }
}
