//! Results of a trace comparison.

use crate::culprit::Judgement;
use crate::stats::ratio::Interval;
use crate::trace::By;
use crate::trace::summary::Summary;

/// The comparison of two sides, each one trace or the ranks of a job. A is the reference.
/// Differences are B minus A and ratios are B over A, both per step. A step (`lap` in field names)
/// is the unit of work that a trace repeats.
#[derive(Clone, Debug, Default)]
pub struct TraceComparison {
    /// A and B.
    pub sides: [Side; 2],
    /// Device time per step, busy and idle.
    pub whole: Finding,
    /// Device time of every measured step of A and B, in nanoseconds.
    pub laps_ns: [Vec<f64>; 2],
    /// Device time per step by activity and cause of idle time. The differences add up to that of
    /// the whole, except that medians over steps are not exactly additive.
    pub time: Vec<Finding>,
    /// Device time by class, phase, operator with shape, kernel and the requested key.
    pub tables: Vec<Table>,
    /// Metrics of the host per step.
    pub host: Vec<HostFinding>,
    /// Layers of the model.
    pub layers: Layers,
    /// Aligned kernel sequences.
    pub aligned: Vec<Segment>,
    /// Kernel sequences that one side fuses into fewer kernels.
    pub fusions: Vec<Fusion>,
    /// Launches and device time by kernel type.
    pub types: Vec<TypeCount>,
    /// The culprits of the lag, if there is one.
    pub judgement: Judgement,
    /// Warnings and notes, each with a hint.
    pub warnings: Vec<Warning>,
    /// Ranks of both sides; empty if both sides are single traces.
    pub ranks: Vec<RankPair>,
}

/// One side.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Label given by the user.
    pub label: String,
    /// Its traces.
    pub traces: Vec<TraceFacts>,
    /// The unit of work.
    pub marker: Marker,
    /// Measured steps by kind: the phase of a serving iteration, or empty.
    pub kinds: Vec<(String, u64)>,
    /// Measured steps of all traces.
    pub laps: u64,
    /// Excluded slow steps at the start.
    pub warm_up: u64,
    /// Excluded steps that were recorded only in part.
    pub partial: u64,
    /// Count and time of device operations outside steps.
    pub outside: (u64, i64),
    /// Sum over devices of the time from the first start to the last end of their operations.
    pub span_ns: i64,
    /// Architecture of the model.
    pub architecture: Architecture,
}

/// One trace.
#[derive(Clone, Debug, Default)]
pub struct TraceFacts {
    /// The file.
    pub path: String,
    /// Its summary.
    pub summary: Summary,
}

/// The unit of work that a trace repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marker {
    /// `ProfilerStep#12`.
    Step,
    /// An iteration of a serving engine.
    Iteration,
    /// A call of the outermost module, or an annotation named forward.
    Forward,
    /// A graph replay.
    Replay,
    /// A repeating kernel sequence.
    Cycle,
    /// The whole trace, if no unit of work was found.
    #[default]
    Whole,
}

impl Marker {
    /// Its name in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Marker::Step => "step",
            Marker::Iteration => "iteration",
            Marker::Forward => "forward pass",
            Marker::Replay => "graph replay",
            Marker::Cycle => "cycle",
            Marker::Whole => "whole trace",
        }
    }
}

/// Architecture of a model, inferred from its kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Architecture {
    /// Attention kernels.
    Transformer,
    /// State-space kernels.
    StateSpace,
    /// Attention and state-space kernels.
    Hybrid,
    /// Neither kind of kernel.
    #[default]
    Unknown,
}

impl Architecture {
    /// Its name in JSON and reports.
    pub fn word(self) -> &'static str {
        match self {
            Architecture::Transformer => "transformer",
            Architecture::StateSpace => "state-space",
            Architecture::Hybrid => "hybrid",
            Architecture::Unknown => "unknown",
        }
    }
}

/// One row of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// Name of the row.
    pub name: String,
    /// Class of a kernel, operator or line; empty otherwise.
    pub class: String,
    /// Time and count of A and B.
    pub sides: [Spent; 2],
    /// Difference per step; its middle is `sides[1].lap_ns - sides[0].lap_ns`.
    pub gap_ns: Gap,
    /// Time of B over time of A; `None` if either is zero.
    pub ratio: Option<f64>,
    /// Confidence interval of the ratio, if there are enough samples.
    pub ratio_range: Option<Interval>,
    /// Signed share of the overall difference; positive if it has the same sign.
    pub share: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// Source of the confidence interval.
    pub spread: Spread,
    /// p-value of the difference, corrected over the rows of its table.
    pub p: f64,
    /// Kernels of A and B, most time first; empty if the row is a kernel.
    pub kernels: [Vec<KernelUse>; 2],
    /// The CPU operator that launched most of the time in A and B; empty if unknown.
    pub ops: [String; 2],
    /// The Python line that launched most of the time in A and B; empty if unknown.
    pub lines: [String; 2],
    /// Arithmetic rate.
    pub rate: [Option<Rate>; 2],
    /// Grid and block of most launches, if the row is a kernel.
    pub geometry: [String; 2],
}

/// A difference with its confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gap {
    /// The difference.
    pub middle: f64,
    /// Its 95 % confidence interval, if there are enough samples.
    pub range: Option<(f64, f64)>,
}

/// Count and time of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Device operations inside and outside steps.
    pub count: u64,
    /// Their total time.
    pub total_ns: i64,
    /// Mean number of device operations per step.
    pub lap_count: f64,
    /// Time per step: the median over steps, or the mean if only some steps, fewer than three in
    /// four, have such operations.
    pub lap_ns: f64,
    /// Mean time per device operation within steps.
    pub mean_ns: f64,
    /// Sample size of the confidence interval: steps, or operations repeated within one step.
    pub n: u64,
}

/// Verdict of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Verdict {
    /// B takes longer.
    Slower,
    /// B takes less time.
    Faster,
    /// No significant difference. Holds the largest difference not excluded, as a share of A.
    NoDetectableDifference(f64),
    /// One value per side.
    #[default]
    SingleSample,
    /// B lacks the row.
    OnlyInA,
    /// A lacks the row.
    OnlyInB,
}

impl Verdict {
    /// Its name in JSON and reports.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            Verdict::NoDetectableDifference(_) => "no detectable difference",
            Verdict::SingleSample => "single sample",
            Verdict::OnlyInA => "only in A",
            Verdict::OnlyInB => "only in B",
        }
    }
}

/// Source of a confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// Variation between steps.
    Laps,
    /// Variation between operations repeated within one step. Run-to-run variation may be larger.
    WithinOneLap,
    /// No confidence interval.
    #[default]
    None,
}

impl Spread {
    /// Its name in JSON and reports.
    pub fn word(self) -> &'static str {
        match self {
            Spread::Laps => "laps",
            Spread::WithinOneLap => "within one step",
            Spread::None => "none",
        }
    }
}

/// A kernel of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelUse {
    /// Its name.
    pub name: String,
    /// Total launches.
    pub count: u64,
    /// Total time.
    pub total_ns: i64,
}

/// Arithmetic rate of operators with recorded shapes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Floating-point operations per second.
    pub flops_per_s: f64,
    /// Share of the device's peak rate for these types, if known.
    pub peak_share: Option<f64>,
    /// Number of operators.
    pub n: u64,
}

/// Device time by one key.
#[derive(Clone, Debug)]
pub struct Table {
    /// The key.
    pub by: By,
    /// Rows of either side, largest difference first.
    pub rows: Vec<Finding>,
}

/// One metric of the host, per step.
#[derive(Clone, Debug, Default)]
pub struct HostFinding {
    /// Name of the metric.
    pub name: String,
    /// Unit of the values.
    pub unit: HostUnit,
    /// Values of A and B; `None` if a trace lacks the data.
    pub values: [Option<f64>; 2],
    /// Sample sizes.
    pub n: [u64; 2],
    /// B over A; `None` if either is zero.
    pub ratio: Option<f64>,
    /// Confidence interval of the ratio, if there are enough samples.
    pub ratio_range: Option<Interval>,
    /// The verdict.
    pub verdict: Verdict,
}

/// Unit of a host metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostUnit {
    /// Nanoseconds.
    #[default]
    Nanos,
    /// A plain number.
    Count,
    /// A share from 0 to 1.
    Share,
}

/// The label that reports show for a row of [`TraceComparison::time`] or [`TraceComparison::host`].
/// JSON has the name itself.
pub fn row_label(name: &str) -> &str {
    match name {
        "communication that nothing hides" => "exposed communication",
        "copies that nothing hides" => "exposed copies",
        "idle, for the host's launch" => "idle, host-bound",
        "idle, after the host waited" => "idle, synchronization",
        "idle otherwise" => "idle, other",
        "on the host" => "host time",
        "in launch calls" => "time in launch calls",
        "a launch call, median" => "launch call, median",
        "from call to start on an idle stream, median" => "launch to start, idle stream, median",
        "launches that queue behind other work" => "queued launches",
        name => name,
    }
}

/// Layers of both sides.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// How the layers of A and B were found.
    pub found_by: [LayersBy; 2],
    /// Number of layers of A and B.
    pub counts: [u64; 2],
    /// Pairs of layers and layers of one side, in model order.
    pub rows: Vec<LayerRow>,
}

/// How layers were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LayersBy {
    /// By calls of this `nn.Module` class.
    Modules(String),
    /// By a kernel sequence that repeats within a step.
    Cycle,
    /// By attention or state-space kernels.
    Markers(String),
    /// No layers found.
    #[default]
    Nothing,
}

impl LayersBy {
    /// Description for reports and JSON.
    pub fn words(&self) -> String {
        match self {
            LayersBy::Modules(class) => format!("calls of nn.Module {class}"),
            LayersBy::Cycle => "a sequence of kernels that repeats".to_owned(),
            LayersBy::Markers(what) => format!("{what} kernels"),
            LayersBy::Nothing => "nothing".to_owned(),
        }
    }
}

/// One layer on both sides.
#[derive(Clone, Debug, Default)]
pub struct LayerRow {
    /// Its number in A and B, from 0; `None` if a side lacks the layer.
    pub numbers: [Option<u32>; 2],
    /// Time, difference and verdict; the name is the module's name or `layer 7`.
    pub finding: Finding,
}

/// A kernel sequence of both sides, aligned by operation.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// `layer` (a typical one), `outside of layers` or `lap`.
    pub place: String,
    /// Occurrences per step of A and B.
    pub repeats: [f64; 2],
    /// Occurrences with exactly this sequence, and all occurrences, for A and B.
    pub typical: [(u64, u64); 2],
    /// Pairs in sequence order.
    pub pairs: Vec<KernelPair>,
}

/// Kernels of A and B that perform the same operation.
#[derive(Clone, Debug, Default)]
pub struct KernelPair {
    /// How they relate.
    pub relation: Relation,
    /// Class of the operation.
    pub class: String,
    /// Projection of a transformer that a matrix product computes; empty if unknown.
    pub projection: String,
    /// Kernels of A and B, in order; one each unless merged or split.
    pub kernels: [Vec<String>; 2],
    /// Mean time per occurrence.
    pub mean_ns: [f64; 2],
    /// Number of occurrences averaged.
    pub n: [u64; 2],
}

/// Relation between the kernels of two sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Relation {
    /// The same kernel.
    #[default]
    Same,
    /// A different kernel for the same operation.
    Other,
    /// B runs fewer kernels than A.
    Merged,
    /// B runs more kernels than A.
    Split,
    /// Only A runs it.
    OnlyInA,
    /// Only B runs it.
    OnlyInB,
}

impl Relation {
    /// Its name in JSON and reports.
    pub fn word(self) -> &'static str {
        match self {
            Relation::Same => "same kernel",
            Relation::Other => "other kernel",
            Relation::Merged => "merged",
            Relation::Split => "split",
            Relation::OnlyInA => "only in A",
            Relation::OnlyInB => "only in B",
        }
    }
}

/// A kernel sequence that one side fuses into fewer kernels.
#[derive(Clone, Debug, Default)]
pub struct Fusion {
    /// The side that runs the fused kernels; 0 is A.
    pub fused_by: usize,
    /// Fused kernels.
    pub fused: Vec<String>,
    /// Unfused kernels of the other side, in order.
    pub unfused: Vec<String>,
    /// Classes of the fused and of the unfused kernels, in order.
    pub classes: [Vec<String>; 2],
    /// Occurrences per step of the side that does not fuse.
    pub lap_count: f64,
    /// Occurrences in the trace.
    pub seen: u64,
    /// Mean time per occurrence, fused and unfused.
    pub mean_ns: [f64; 2],
    /// Time that fusing saves per step; negative if it costs time.
    pub saved_ns: f64,
    /// Confidence that the sequences perform the same operation, from 0 to 1.
    pub confidence: f64,
    /// The reason, in one sentence.
    pub evidence: String,
}

/// Kernels of one type.
#[derive(Clone, Debug, Default)]
pub struct TypeCount {
    /// The type: the group of a kernel class.
    pub name: String,
    /// Launches per step of A and B.
    pub lap_count: [f64; 2],
    /// Time per step of A and B.
    pub lap_ns: [f64; 2],
}

/// A warning or note about a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// Identifier in JSON.
    pub code: &'static str,
    /// `warning` if results may mislead, else `info`.
    pub severity: &'static str,
    /// The affected side; `None` for both.
    pub side: Option<usize>,
    /// The message, without the side.
    pub message: String,
    /// How to resolve it.
    pub hint: String,
}

/// One rank on both sides.
#[derive(Clone, Debug, Default)]
pub struct RankPair {
    /// The rank; the index of the file if traces have no rank.
    pub rank: i64,
    /// The files of A and B; empty if a side lacks the rank.
    pub paths: [String; 2],
    /// Device time per step.
    pub whole: Finding,
    /// The row of [`TraceComparison::time`] with the largest difference, and that difference.
    pub largest: Option<(String, f64)>,
}
