//! What a trace says, small enough to be kept in its index: the default report needs nothing else.

use super::breakdown::{By, breakdown};
use super::phase::Phases;
use super::{devices, steps, throughput};
use crate::classify::{ClassId, Rules};
use crate::model::NONE;
use crate::model::timeline::{Activity, Spans, Timeline};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::thread;

/// Rows of a breakdown that the summary keeps; what is beyond is summed up.
pub const ROWS_KEPT: usize = 200;

/// What is behind this in a name does not matter to its class.
const LONGEST_TO_CLASSIFY: usize = 8 << 10;

/// Everything the default report shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// What the trace is.
    pub about: About,
    /// Counts and times of the tables.
    pub totals: Totals,
    /// Events by phase letter and category.
    pub categories: Vec<Category>,
    /// What was lost or repaired, by reason.
    pub losses: Vec<Loss>,
    /// How much device work was traced to its launch.
    pub links: Links,
    /// Busy and idle time of every device.
    pub devices: Vec<Device>,
    /// By operation class, kernel, phase, CPU operator and Python line, in this order.
    pub breakdowns: Vec<Breakdown>,
    /// From the host's call to the device's start.
    pub launches: Launches,
    /// Copies and fills by kind.
    pub copies: Vec<Copies>,
    /// Arithmetic achieved, by operator and shape; the [`ROWS_KEPT`] with the most time.
    pub work: Vec<Work>,
    /// How many rows of arithmetic there are in all.
    pub work_distinct: u64,
    /// Collective operations.
    pub collectives: Vec<Collectives>,
    /// Steps, or iterations of a serving loop.
    pub steps: Option<Steps>,
    /// Share of device time whose kernels no rule caught.
    pub unclassified_share: f64,
    /// Memory at its peak on the device that used most, by the allocator's events.
    pub peak_memory: Option<PeakMemory>,
}

/// What the trace is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Distinct device names with how many there are.
    pub gpus: Vec<(String, u64)>,
    /// Rank in a distributed job.
    pub rank: Option<i64>,
    /// Ranks in the job.
    pub world_size: Option<i64>,
    /// Communication backend.
    pub backend: Option<String>,
    /// Nanoseconds since the epoch that times are relative to; 0 when they are absolute.
    pub base_time_ns: i64,
    /// Other top-level values.
    pub properties: Vec<(String, String)>,
    /// Whether operators have shapes.
    pub shapes: bool,
    /// Whether there are Python frames.
    pub stacks: bool,
}

/// A count and the time it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CountTime {
    /// How many.
    pub count: u64,
    /// Sum of their durations.
    pub time_ns: i64,
}

/// Counts and times of the tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Objects in the event array.
    pub events: u64,
    /// Size of the uncompressed text.
    pub bytes: u64,
    /// From the first to the last moment of any span.
    pub span_ns: i64,
    /// The first moment.
    pub start_ns: i64,
    /// Kernels.
    pub kernels: CountTime,
    /// Copies.
    pub copies: CountTime,
    /// Fills.
    pub fills: CountTime,
    /// Other work on devices.
    pub device: CountTime,
    /// Runtime and driver calls.
    pub runtime: CountTime,
    /// Operators; nested ones count again.
    pub ops: CountTime,
    /// Python functions; nested ones count again.
    pub python: CountTime,
    /// Annotations.
    pub annotations: u64,
    /// Flow arrows' ends.
    pub flows: u64,
    /// Moments.
    pub instants: u64,
    /// Counter values.
    pub counters: u64,
    /// Spans of other categories.
    pub others: u64,
}

/// Events of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Category {
    /// Phase letter.
    pub phase: String,
    /// Category.
    pub category: String,
    /// How many were kept.
    pub count: u64,
}

/// Events lost or repaired for one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Word for the reason.
    pub reason: String,
    /// What happened and what was done.
    pub explanation: String,
    /// How many.
    pub count: u64,
    /// Where the first one stands in the uncompressed text.
    pub first_offset: u64,
}

/// How much device work was traced to its launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// Rows of device work.
    pub rows: u64,
    /// With a runtime call by correlation.
    pub launched: u64,
    /// With an operator around the launch, or by its external id.
    pub with_op: u64,
    /// With a Python function around the launch.
    pub with_python: u64,
    /// Launches of a recorded graph.
    pub graph_launches: u64,
    /// Device work of those.
    pub graph_rows: u64,
    /// The most device work of one of them.
    pub largest_graph: u64,
}

/// Busy and idle time of one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Device as the trace numbers it.
    pub device: String,
    /// Its name, when known.
    pub name: String,
    /// From its first to its last work.
    pub span_ns: i64,
    /// Something ran.
    pub busy_ns: i64,
    /// Nothing ran.
    pub idle_ns: i64,
    /// Kernels other than communication ran.
    pub compute_ns: i64,
    /// Communication ran.
    pub communication_ns: i64,
    /// Communication ran and no compute.
    pub exposed_communication_ns: i64,
    /// Copies or fills ran.
    pub copy_ns: i64,
    /// Copies or fills ran and nothing else.
    pub exposed_copy_ns: i64,
    /// Why nothing ran.
    pub idle: Idle,
    /// Its streams, busiest first.
    pub streams: Vec<Stream>,
}

/// Idle time by cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// Gaps between work.
    pub gaps: u64,
    /// The next work was launched after the device had run dry.
    pub host_bound_ns: i64,
    /// The same, and the host had been waiting for the device.
    pub synchronisation_ns: i64,
    /// The next work was launched before, or its launch is not known.
    pub other_ns: i64,
}

/// Work of one stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Stream as the trace numbers it.
    pub stream: String,
    /// Pieces of work.
    pub count: u64,
    /// Something ran on it.
    pub busy_ns: i64,
}

/// Device time by something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// By what.
    pub by: By,
    /// The largest rows, by time.
    pub rows: Vec<Group>,
    /// How many rows there are in all.
    pub distinct: u64,
    /// Sum over all rows.
    pub total: CountTime,
}

/// One row of a breakdown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What.
    pub name: String,
    /// Class of its first piece of work; that of all of them, in a breakdown by class or kernel.
    pub class: String,
    /// Pieces of device work.
    pub count: u64,
    /// Their time.
    pub time_ns: i64,
    /// The shortest.
    pub min_ns: i64,
    /// The one in the middle.
    pub median_ns: i64,
    /// The longest.
    pub max_ns: i64,
}

/// From the host's call to the device's start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Launches {
    /// From the start of the call to the start of the work, one a launch.
    pub latency_ns: Spread,
    /// The same for launches onto a stream that had run dry.
    pub idle_latency_ns: Spread,
    /// Time the host spent in launch calls.
    pub call_ns: Spread,
    /// Launches onto a stream that was still busy.
    pub queued: u64,
    /// Work launched but not started, on average over the span.
    pub mean_queue: f64,
}

/// The spread of a set of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many.
    pub n: u64,
    /// The smallest.
    pub min: i64,
    /// A quarter is below.
    pub p25: i64,
    /// The one in the middle.
    pub median: i64,
    /// A quarter is above.
    pub p75: i64,
    /// 5 % are above.
    pub p95: i64,
    /// The largest.
    pub max: i64,
}

impl Spread {
    /// The spread of these values, whose order is lost.
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
    /// Name as the trace has it.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// Bytes moved, where recorded.
    pub bytes: i64,
    /// Time.
    pub time_ns: i64,
    /// Bytes a second of each, where recorded.
    pub bandwidth: Spread,
}

/// Arithmetic of one operator at one shape.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Gemm, convolution or attention.
    pub kind: String,
    /// Operator.
    pub op: String,
    /// Shape.
    pub shape: String,
    /// Element type.
    pub dtype: String,
    /// Calls.
    pub count: u64,
    /// Device time.
    pub time_ns: i64,
    /// Floating-point operations in all.
    pub flops: f64,
    /// Operations a second over that time.
    pub flops_per_s: f64,
    /// Share of the device's peak, where it is known.
    pub peak_share: Option<f64>,
}

/// Collective operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Collectives {
    /// Operation.
    pub operation: String,
    /// Element type.
    pub dtype: String,
    /// Size of the group.
    pub ranks: u64,
    /// How many.
    pub count: u64,
    /// Bytes of the larger side in all.
    pub bytes: i64,
    /// Device time.
    pub time_ns: i64,
    /// Bus bandwidth of each, bytes a second.
    pub bus_bandwidth: Spread,
}

/// Steps, or iterations of a serving loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steps {
    /// What marks them.
    pub marker: String,
    /// Duration on the host.
    pub duration_ns: Spread,
    /// Time of the device work launched in each.
    pub gpu_ns: Spread,
    /// Each step, in order of time; the first [`ROWS_KEPT`].
    pub rows: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its mark.
    pub name: String,
    /// Start, relative to the trace's first moment.
    pub start_ns: i64,
    /// Duration on the host.
    pub duration_ns: i64,
    /// Time of the device work launched in it.
    pub gpu_ns: i64,
    /// Pieces of that work.
    pub gpu_count: u64,
}

/// Memory at its peak.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeakMemory {
    /// In use by tensors, bytes.
    pub allocated: i64,
    /// Held by the allocator, bytes.
    pub reserved: i64,
    /// Events that say so.
    pub n: u64,
}

/// A timeline with the rules applied to it, and perhaps narrowed to a phase.
pub struct Analysis<'a> {
    /// The tables.
    pub timeline: &'a Timeline,
    /// The rules.
    pub rules: &'a Rules,
    /// The phases' names.
    pub phases: &'a Phases,
    /// Rows of the device table that count.
    pub rows: Vec<u32>,
    /// The phase it is narrowed to.
    phase: Option<u8>,
    /// By name.
    classes: Vec<ClassId>,
    /// By kind.
    activities: Vec<Activity>,
}

impl<'a> Analysis<'a> {
    /// Classifies all device work; `phase` keeps only the work of that phase.
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

    /// Whether a row of the device table is of the phase that the analysis is narrowed to.
    pub fn keeps(&self, row: u32) -> bool {
        self.phase.is_none_or(|phase| self.timeline.gpu.phase.get(row as usize) == Some(&phase))
    }

    /// The class of a row of the device table.
    pub fn class(&self, row: u32) -> ClassId {
        let name = self.timeline.gpu.spans.name[row as usize];
        self.classes.get(name as usize).copied().unwrap_or(self.rules.other())
    }

    /// What the device did in a row of the device table.
    pub fn activity(&self, row: u32) -> Activity {
        self.activities[self.timeline.gpu.spans.kind[row as usize] as usize]
    }
}

/// The summary of a linked timeline.
pub fn summarise(analysis: &Analysis) -> Summary {
    let timeline = analysis.timeline;
    let by = |by: By| breakdown(analysis, by, Some(ROWS_KEPT));
    // Breakdowns take about as long as all the rest.
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

/// Distinct names of the machine's devices with how many there are; by their size where the trace
/// leaves the name open.
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

/// A sum of durations: negative ones count as nothing, and it cannot overflow.
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

/// Memory at its peak on the device that used most, else on the host.
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
