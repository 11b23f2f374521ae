//! Summary of a trace, stored in its index. The default report needs no other data.

use super::breakdown::{By, breakdown};
use super::phase::Phases;
use super::{devices, steps, throughput};
use crate::classify::{ClassId, Rules};
use crate::model::NONE;
use crate::model::timeline::{Activity, Spans, Timeline};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::thread;

/// Maximum rows per breakdown in the summary; the total includes the others.
pub const ROWS_KEPT: usize = 200;

/// Number of bytes of a name that are used to classify it.
const LONGEST_TO_CLASSIFY: usize = 8 << 10;

/// The data of the default report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Facts about the trace.
    pub about: About,
    /// Counts and times of all tables.
    pub totals: Totals,
    /// Events by phase letter and category.
    pub categories: Vec<Category>,
    /// Lost and repaired events by reason.
    pub losses: Vec<Loss>,
    /// Counts of linked device operations.
    pub links: Links,
    /// Busy and idle time of every device.
    pub devices: Vec<Device>,
    /// By kernel class, kernel, phase, CPU operator and Python line, in this order.
    pub breakdowns: Vec<Breakdown>,
    /// Launch latencies.
    pub launches: Launches,
    /// Copies and fills by kind.
    pub copies: Vec<Copies>,
    /// Arithmetic by operator and shape: the [`ROWS_KEPT`] rows with the most time.
    pub work: Vec<Work>,
    /// Number of rows of `work` before truncation.
    pub work_distinct: u64,
    /// Collectives.
    pub collectives: Vec<Collectives>,
    /// Training steps or serving iterations.
    pub steps: Option<Steps>,
    /// Share of device time in unclassified kernels.
    pub unclassified_share: f64,
    /// Peak memory of the device that used most, from allocator events.
    pub peak_memory: Option<PeakMemory>,
}

/// Facts about the trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Distinct device names with their counts.
    pub gpus: Vec<(String, u64)>,
    /// Rank within the distributed job.
    pub rank: Option<i64>,
    /// Number of ranks in the job.
    pub world_size: Option<i64>,
    /// Communication backend.
    pub backend: Option<String>,
    /// Base of all times, in nanoseconds since the epoch; 0 if times are absolute.
    pub base_time_ns: i64,
    /// Other top-level properties.
    pub properties: Vec<(String, String)>,
    /// Whether input shapes were recorded.
    pub shapes: bool,
    /// Whether Python stacks were recorded.
    pub stacks: bool,
}

/// A count and a total time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CountTime {
    /// The count.
    pub count: u64,
    /// Sum of durations.
    pub time_ns: i64,
}

/// Counts and times of all tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Objects in the event array.
    pub events: u64,
    /// Size of the uncompressed text.
    pub bytes: u64,
    /// From the earliest start to the latest end of all events.
    pub span_ns: i64,
    /// Earliest start.
    pub start_ns: i64,
    /// Kernels.
    pub kernels: CountTime,
    /// Copies.
    pub copies: CountTime,
    /// Fills.
    pub fills: CountTime,
    /// Other device operations.
    pub device: CountTime,
    /// Runtime and driver calls.
    pub runtime: CountTime,
    /// Operators; the time of nested ones is counted again.
    pub ops: CountTime,
    /// Python functions; the time of nested ones is counted again.
    pub python: CountTime,
    /// Annotations.
    pub annotations: u64,
    /// Flow event endpoints.
    pub flows: u64,
    /// Instant events.
    pub instants: u64,
    /// Counter events.
    pub counters: u64,
    /// Duration events of other categories.
    pub others: u64,
}

/// Events of one phase letter and category.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Category {
    /// Phase letter.
    pub phase: String,
    /// Category.
    pub category: String,
    /// Number of events kept.
    pub count: u64,
}

/// Events lost or repaired for one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Identifier of the reason.
    pub reason: String,
    /// Description for users.
    pub explanation: String,
    /// Number of events.
    pub count: u64,
    /// Byte offset of the first one in the uncompressed text.
    pub first_offset: u64,
}

/// Counts of linked device operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// Device operations.
    pub rows: u64,
    /// Linked to a runtime call by correlation id.
    pub launched: u64,
    /// Linked to an operator, by the launch or by the external id.
    pub with_op: u64,
    /// Linked to a Python function around the launch.
    pub with_python: u64,
    /// Graph replays.
    pub graph_launches: u64,
    /// Device operations of graph replays.
    pub graph_rows: u64,
    /// Most device operations of one graph replay.
    pub largest_graph: u64,
}

/// Busy and idle time of one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Device number in the trace.
    pub device: String,
    /// Its name; empty if unknown.
    pub name: String,
    /// From the first start to the last end of its operations.
    pub span_ns: i64,
    /// Time with at least one operation running.
    pub busy_ns: i64,
    /// Time without any operation running.
    pub idle_ns: i64,
    /// Time with kernels other than communication running.
    pub compute_ns: i64,
    /// Time with communication running.
    pub communication_ns: i64,
    /// Communication time not overlapped by compute.
    pub exposed_communication_ns: i64,
    /// Time with copies or fills running.
    pub copy_ns: i64,
    /// Copy and fill time not overlapped by kernels.
    pub exposed_copy_ns: i64,
    /// Idle time by cause.
    pub idle: Idle,
    /// Streams, busiest first.
    pub streams: Vec<Stream>,
}

/// Idle time by cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// Number of idle gaps.
    pub gaps: u64,
    /// The next operation was launched after the device went idle.
    pub host_bound_ns: i64,
    /// The next operation was launched after the device went idle, because the host waited for the
    /// device.
    pub synchronisation_ns: i64,
    /// The next operation was launched before the device went idle, or is unlinked.
    pub other_ns: i64,
}

/// Operations of one stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Stream number in the trace.
    pub stream: String,
    /// Number of device operations.
    pub count: u64,
    /// Time with at least one operation running.
    pub busy_ns: i64,
}

/// Device time by one key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// The key.
    pub by: By,
    /// Rows with the most time.
    pub rows: Vec<Group>,
    /// Number of rows before truncation.
    pub distinct: u64,
    /// Sum over all rows.
    pub total: CountTime,
}

/// One row of a breakdown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Name of the row.
    pub name: String,
    /// Class of its first operation; in a breakdown by class or kernel, the class of all.
    pub class: String,
    /// Number of device operations.
    pub count: u64,
    /// Sum of durations.
    pub time_ns: i64,
    /// Shortest duration.
    pub min_ns: i64,
    /// Median duration.
    pub median_ns: i64,
    /// Longest duration.
    pub max_ns: i64,
}

/// Launch latencies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Launches {
    /// From the start of the launch call to the start of the operation, one value per launch.
    pub latency_ns: Spread,
    /// Latency of launches to an idle stream.
    pub idle_latency_ns: Spread,
    /// Duration of launch calls on the host.
    pub call_ns: Spread,
    /// Launches to a busy stream.
    pub queued: u64,
    /// Mean number of operations launched but not started, over the span.
    pub mean_queue: f64,
}

/// Distribution of a set of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Number of values.
    pub n: u64,
    /// Minimum.
    pub min: i64,
    /// 25th percentile.
    pub p25: i64,
    /// Median.
    pub median: i64,
    /// 75th percentile.
    pub p75: i64,
    /// 95th percentile.
    pub p95: i64,
    /// Maximum.
    pub max: i64,
}

impl Spread {
    /// The distribution of these values. Reorders them.
    pub fn of(values: &mut [i64]) -> Spread {
        let n = values.len();
        if n == 0 {
            return Spread::default();
        }
        let mut at = |share: f64| {
            let i = ((n - 1) as f64 * share).round() as usize;
            *values.select_nth_unstable(i).1
        };
        Spread {
            n: n as u64,
            min: at(0.0),
            p25: at(0.25),
            median: at(0.5),
            p75: at(0.75),
            p95: at(0.95),
            max: at(1.0),
        }
    }
}

/// Copies or fills of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Copies {
    /// Name in the trace.
    pub kind: String,
    /// Number of operations.
    pub count: u64,
    /// Bytes moved, if recorded.
    pub bytes: i64,
    /// Sum of durations.
    pub time_ns: i64,
    /// Bytes per second of each operation, if recorded.
    pub bandwidth: Spread,
}

/// Arithmetic of one operator with one shape.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// `gemm`, `convolution` or `attention`.
    pub kind: String,
    /// Operator.
    pub op: String,
    /// Shape.
    pub shape: String,
    /// Element type.
    pub dtype: String,
    /// Number of calls.
    pub count: u64,
    /// Device time.
    pub time_ns: i64,
    /// Total floating-point operations.
    pub flops: f64,
    /// Floating-point operations per second of device time.
    pub flops_per_s: f64,
    /// Share of the device's peak rate, if known.
    pub peak_share: Option<f64>,
}

/// Collectives with the same operation, type and group size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Collectives {
    /// Operation.
    pub operation: String,
    /// Element type.
    pub dtype: String,
    /// Ranks in the process group.
    pub ranks: u64,
    /// Number of collectives.
    pub count: u64,
    /// Total of the larger of input and output size.
    pub bytes: i64,
    /// Device time.
    pub time_ns: i64,
    /// Bus bandwidth per collective, in bytes per second.
    pub bus_bandwidth: Spread,
}

/// Training steps or serving iterations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steps {
    /// `ProfilerStep` or `iteration`.
    pub marker: String,
    /// Duration on the host.
    pub duration_ns: Spread,
    /// Device time launched per step.
    pub gpu_ns: Spread,
    /// The first [`ROWS_KEPT`] steps, sorted by start.
    pub rows: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Name of its marker.
    pub name: String,
    /// Start, relative to the start of the trace.
    pub start_ns: i64,
    /// Duration on the host.
    pub duration_ns: i64,
    /// Device time launched in the step.
    pub gpu_ns: i64,
    /// Device operations launched in the step.
    pub gpu_count: u64,
}

/// Peak memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeakMemory {
    /// Bytes allocated by tensors.
    pub allocated: i64,
    /// Bytes reserved by the allocator.
    pub reserved: i64,
    /// Number of memory events.
    pub n: u64,
}

/// A classified timeline, optionally restricted to a phase.
pub struct Analysis<'a> {
    /// The tables.
    pub timeline: &'a Timeline,
    /// Classification rules.
    pub rules: &'a Rules,
    /// Phase definitions.
    pub phases: &'a Phases,
    /// Selected rows of the device table.
    pub rows: Vec<u32>,
    /// The selected phase.
    phase: Option<u8>,
    /// Class by name id.
    classes: Vec<ClassId>,
    /// Activity by event kind.
    activities: Vec<Activity>,
}

impl<'a> Analysis<'a> {
    /// Classifies all device operations; `phase` selects the operations of one phase.
    pub fn new(
        timeline: &'a Timeline,
        rules: &'a Rules,
        phases: &'a Phases,
        phase: Option<u8>,
    ) -> Analysis<'a> {
        let gpu = &timeline.gpu;
        let activities: Vec<Activity> =
            timeline.kinds.iter().map(|kind| kind.activity().unwrap_or(Activity::Device)).collect();
        let mut classes = vec![ClassId(u16::MAX); timeline.strings.len()];
        for (&name, &kind) in gpu.spans.name.iter().zip(gpu.spans.kind.iter()) {
            let Some(class) = classes.get_mut(name as usize) else { continue };
            if *class == ClassId(u16::MAX) {
                let text = timeline.strings.get(name);
                let head = &text[..text.floor_char_boundary(LONGEST_TO_CLASSIFY)];
                *class = rules.classify(head, activities[kind as usize]);
            }
        }
        let mut analysis =
            Analysis { timeline, rules, phases, rows: vec![], phase, classes, activities };
        analysis.rows = (0..gpu.spans.len() as u32).filter(|&row| analysis.keeps(row)).collect();
        analysis
    }

    /// Whether a row of the device table belongs to the selected phase.
    pub fn keeps(&self, row: u32) -> bool {
        self.phase.is_none_or(|phase| self.timeline.gpu.phase.get(row as usize) == Some(&phase))
    }

    /// The class of a row of the device table.
    pub fn class(&self, row: u32) -> ClassId {
        let name = self.timeline.gpu.spans.name[row as usize];
        self.classes.get(name as usize).copied().unwrap_or(self.rules.other())
    }

    /// The activity of a row of the device table.
    pub fn activity(&self, row: u32) -> Activity {
        self.activities[self.timeline.gpu.spans.kind[row as usize] as usize]
    }
}

/// Summarizes a linked timeline.
pub fn summarise(analysis: &Analysis) -> Summary {
    let timeline = analysis.timeline;
    let by = |by: By| breakdown(analysis, by, Some(ROWS_KEPT));
    // Breakdowns take about as long as everything else, so they run in a thread.
    let (breakdowns, mut summary) = thread::scope(|scope| {
        let tables = [By::Class, By::Kernel, By::Phase, By::Op, By::Python];
        let breakdowns = scope.spawn(move || tables.map(by).to_vec());
        let summary = Summary {
            about: about(timeline, analysis.rules),
            totals: totals(analysis),
            categories: categories(timeline),
            losses: losses(timeline),
            links: links(analysis),
            devices: devices::devices(analysis),
            launches: devices::launches(analysis),
            copies: throughput::copies(analysis),
            work: throughput::work(analysis),
            collectives: throughput::collectives(analysis),
            steps: steps::steps(analysis),
            peak_memory: peak_memory(timeline),
            ..Summary::default()
        };
        (breakdowns.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), summary)
    });
    let other = &analysis.rules.class(analysis.rules.other()).name;
    if let Some(classes) =
        breakdowns.iter().find(|table| table.by == By::Class && table.total.time_ns > 0)
    {
        let unclassified = classes.rows.iter().find(|row| row.name == *other);
        summary.unclassified_share =
            unclassified.map_or(0, |row| row.time_ns) as f64 / classes.total.time_ns as f64;
    }
    summary.breakdowns = breakdowns;
    summary.work_distinct = summary.work.len() as u64;
    summary.work.truncate(ROWS_KEPT);
    if let Some(steps) = &mut summary.steps {
        steps.rows.truncate(ROWS_KEPT);
    }
    summary
}

/// Distinct device names with their counts. Devices without a name are identified by their size.
pub fn gpus(timeline: &Timeline, rules: &Rules) -> Vec<(String, u64)> {
    let mut gpus: Vec<(String, u64)> = vec![];
    for device in &timeline.about.devices {
        let peak =
            || rules.device(&device.name, device.sms, device.memory).map(|peak| peak.name.clone());
        let name =
            if device.name.is_empty() { peak().unwrap_or_default() } else { device.name.clone() };
        match gpus.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => gpus.push((name, 1)),
        }
    }
    gpus
}

fn about(timeline: &Timeline, rules: &Rules) -> About {
    let about = &timeline.about;
    About {
        gpus: gpus(timeline, rules),
        rank: about.rank,
        world_size: about.world_size,
        backend: about.backend.clone(),
        base_time_ns: about.base_time_ns,
        properties: about.properties.clone(),
        shapes: timeline.ops.dims.iter().any(|&dims| dims != NONE),
        stacks: !timeline.python.spans.is_empty(),
    }
}

fn totals(analysis: &Analysis) -> Totals {
    let timeline = analysis.timeline;
    let all = |spans: &Spans| CountTime {
        count: spans.len() as u64,
        time_ns: sum(spans.dur.iter().copied()),
    };
    let gpu = |activity: Activity| {
        let rows = analysis.rows.iter().filter(|&&row| analysis.activity(row) == activity);
        let time = sum(rows.clone().map(|&row| timeline.gpu.spans.dur[row as usize]));
        CountTime { count: rows.count() as u64, time_ns: time }
    };
    let (start, end) = timeline.extent().unwrap_or((0, 0));
    Totals {
        events: timeline.events,
        bytes: timeline.bytes,
        span_ns: end.saturating_sub(start),
        start_ns: start,
        kernels: gpu(Activity::Kernel),
        copies: gpu(Activity::Copy),
        fills: gpu(Activity::Fill),
        device: gpu(Activity::Device),
        runtime: all(&timeline.runtime.spans),
        ops: all(&timeline.ops.spans),
        python: all(&timeline.python.spans),
        annotations: timeline.annotations.spans.len() as u64,
        flows: timeline.flows.spans.len() as u64,
        instants: timeline.instants.spans.len() as u64,
        counters: timeline.counters.spans.len() as u64,
        others: timeline.others.spans.len() as u64,
    }
}

/// Saturating sum of durations; negative ones count as zero.
pub(super) fn sum(durations: impl Iterator<Item = i64>) -> i64 {
    durations.fold(0i64, |sum, dur| sum.saturating_add(dur.max(0)))
}

fn categories(timeline: &Timeline) -> Vec<Category> {
    let mut counts = vec![0u64; timeline.kinds.len()];
    for spans in timeline.all_spans() {
        for &kind in spans.kind.iter() {
            counts[kind as usize] += 1;
        }
    }
    let rows = timeline.kinds.iter().zip(counts).filter(|(_, count)| *count > 0);
    let mut rows: Vec<Category> = rows
        .map(|(kind, count)| Category {
            phase: kind.phase.clone(),
            category: kind.category.clone(),
            count,
        })
        .collect();
    rows.sort_by(|a, b| {
        b.count.cmp(&a.count).then_with(|| (&a.category, &a.phase).cmp(&(&b.category, &b.phase)))
    });
    rows
}

fn losses(timeline: &Timeline) -> Vec<Loss> {
    let loss = |loss: &crate::model::timeline::Loss| Loss {
        reason: loss.reason.key().to_owned(),
        explanation: loss.reason.explain().to_owned(),
        count: loss.count,
        first_offset: loss.first_offset,
    };
    timeline.losses.iter().map(loss).collect()
}

fn links(analysis: &Analysis) -> Links {
    let gpu = &analysis.timeline.gpu;
    let mut links = Links { rows: analysis.rows.len() as u64, ..Links::default() };
    let mut of_launch = vec![0u32; analysis.timeline.runtime.spans.len()];
    for &row in &analysis.rows {
        let row = row as usize;
        if let Some(count) = of_launch.get_mut(gpu.launch[row] as usize) {
            *count += 1;
            links.launched += 1;
        }
        links.with_op += u64::from(gpu.op[row] != NONE);
        links.with_python += u64::from(gpu.python[row] != NONE);
    }
    let calls = &analysis.timeline.runtime.spans;
    let is_graph =
        |launch: usize| analysis.timeline.strings.get(calls.name[launch]).contains("Graph");
    for (_, count) in
        of_launch.into_iter().enumerate().filter(|&(launch, count)| count > 0 && is_graph(launch))
    {
        links.graph_launches += 1;
        links.graph_rows += u64::from(count);
        links.largest_graph = links.largest_graph.max(u64::from(count));
    }
    links
}

/// Peak memory of the device that used most, else of the host.
fn peak_memory(timeline: &Timeline) -> Option<PeakMemory> {
    const HOST: u32 = 0;
    let instants = &timeline.instants;
    let number = |code: u32| timeline.ids.number(code).unwrap_or(0);
    let mut devices: FxHashMap<(u32, u32), PeakMemory> = FxHashMap::default();
    for row in (0..instants.spans.len()).filter(|&row| instants.total_allocated[row] != NONE) {
        let peak = devices.entry((instants.device_type[row], instants.device[row])).or_default();
        peak.allocated = peak.allocated.max(number(instants.total_allocated[row]));
        peak.reserved = peak.reserved.max(number(instants.total_reserved[row]));
        peak.n += 1;
    }
    let most = |((kind, _), peak): &((u32, u32), PeakMemory)| {
        (*kind != HOST, peak.allocated, peak.reserved)
    };
    devices.into_iter().max_by_key(most).map(|(_, peak)| peak)
}
