//! What a comparison of traces finds, as reports show it.

use crate::culprit::Judgement;
use crate::stats::ratio::Interval;
use crate::trace::By;
use crate::trace::summary::Summary;

/// Two sides, each one trace or the ranks of a job. A is the reference; gaps are B minus A and
/// ratios B over A, of one lap.
#[derive(Clone, Debug, Default)]
pub struct TraceComparison {
    /// A and B.
    pub sides: [Side; 2],
    /// Time on the device of one lap: what runs, alone or in parallel, and what waits.
    pub whole: Finding,
    /// The same of every lap that counts, on A and B, in nanoseconds.
    pub laps_ns: [Vec<f64>; 2],
    /// The same time cut by what the device does; the gaps add up to that of the whole, but for
    /// what the medians of laps leave over.
    pub time: Vec<Finding>,
    /// Device time by class, phase, operator with shape, kernel, and what else was asked for.
    pub tables: Vec<Table>,
    /// What the host does for one lap.
    pub host: Vec<HostFinding>,
    /// Layers of the model.
    pub layers: Layers,
    /// Kernels in their order, aligned.
    pub aligned: Vec<Segment>,
    /// Sequences of one side that are one kernel, or fewer, on the other.
    pub fusions: Vec<Fusion>,
    /// Device time by coarse type, for the question who launches less.
    pub types: Vec<TypeCount>,
    /// Whether there is a lag to explain, and by what.
    pub judgement: Judgement,
    /// What a reader must know, each with a hint.
    pub warnings: Vec<Warning>,
    /// Ranks that both sides have; empty when a side is a single trace.
    pub ranks: Vec<RankPair>,
}

/// One side.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// What people call it.
    pub label: String,
    /// Its traces.
    pub traces: Vec<TraceFacts>,
    /// What laps are marked by.
    pub marker: Marker,
    /// Laps that count, by kind: the phase of a serving iteration, or empty.
    pub kinds: Vec<(String, u64)>,
    /// Laps that count, of all traces.
    pub laps: u64,
    /// Laps at the start that took longer and do not count.
    pub warm_up: u64,
    /// Laps that are there only in part and do not count.
    pub partial: u64,
    /// Device work outside of laps: pieces and time.
    pub outside: (u64, i64),
    /// Time of devices in all, from the first to the last work.
    pub span_ns: i64,
    /// What kind of model it is.
    pub architecture: Architecture,
}

/// One trace.
#[derive(Clone, Debug, Default)]
pub struct TraceFacts {
    /// The file.
    pub path: String,
    /// What the report says of it.
    pub summary: Summary,
}

/// What one unit of work is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marker {
    /// `ProfilerStep#12`.
    Step,
    /// An iteration of a serving engine.
    Iteration,
    /// A call of the outermost module, or a range that is called forward.
    Forward,
    /// A replay of a recorded graph.
    Replay,
    /// A sequence of kernels that repeats.
    Cycle,
    /// Nothing: the whole trace.
    #[default]
    Whole,
}

impl Marker {
    /// Its word in JSON.
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

/// What kind of model a trace shows, by the kernels it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Architecture {
    /// Attention.
    Transformer,
    /// State-space scans.
    StateSpace,
    /// Both.
    Hybrid,
    /// Neither.
    #[default]
    Unknown,
}

impl Architecture {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Architecture::Transformer => "transformer",
            Architecture::StateSpace => "state-space",
            Architecture::Hybrid => "hybrid",
            Architecture::Unknown => "unknown",
        }
    }
}

/// One thing on both sides.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// What.
    pub name: String,
    /// Its class, for kernels, operators and lines; empty otherwise.
    pub class: String,
    /// What A and B spend on it.
    pub sides: [Spent; 2],
    /// What B spends more on it in one lap; its middle is `sides[1].lap_ns - sides[0].lap_ns`.
    pub gap_ns: Gap,
    /// Time of B over time of A; none where either is nothing.
    pub ratio: Option<f64>,
    /// The range of the ratio, where there are samples enough.
    pub ratio_range: Option<Interval>,
    /// The share of the whole gap, signed: above 0 it pulls the same way as the whole.
    pub share: f64,
    /// What to make of it.
    pub verdict: Verdict,
    /// Where its interval comes from.
    pub spread: Spread,
    /// How likely so large a gap is by chance, corrected over the rows of its table.
    pub p: f64,
    /// The kernels behind it, of A and B, the longest first; empty for kernels themselves.
    pub kernels: [Vec<KernelUse>; 2],
    /// The CPU operator that launched most of it, on A and B; empty where not known.
    pub ops: [String; 2],
    /// The Python line that launched most of it.
    pub lines: [String; 2],
    /// Arithmetic achieved.
    pub rate: [Option<Rate>; 2],
    /// Grid and block of most launches, where it is a kernel.
    pub geometry: [String; 2],
}

/// A gap with its range, where there are samples enough.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gap {
    /// The gap.
    pub middle: f64,
    /// Its range.
    pub range: Option<(f64, f64)>,
}

/// What one side spends on something.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Pieces of device work in all, in and outside of laps.
    pub count: u64,
    /// Their time in all.
    pub total_ns: i64,
    /// Pieces of one lap, in the mean.
    pub lap_count: f64,
    /// Time of one lap: the median over laps, or the mean where some laps have it and fewer
    /// than three in four.
    pub lap_ns: f64,
    /// Time of one piece in the mean, of those in laps.
    pub mean_ns: f64,
    /// Laps, or within one lap repeated pieces, that the interval comes from.
    pub n: u64,
}

/// What to make of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Verdict {
    /// B takes longer.
    Slower,
    /// B takes less time.
    Faster,
    /// Nothing can be told apart from noise; the largest difference left open is this share of A.
    NoDetectableDifference(f64),
    /// One value a side.
    #[default]
    SingleSample,
    /// B does not do it.
    OnlyInA,
    /// A does not do it.
    OnlyInB,
}

impl Verdict {
    /// Its word.
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

/// Where an interval comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// From laps.
    Laps,
    /// From what repeats within one lap: another run may differ by more.
    WithinOneLap,
    /// There is none.
    #[default]
    None,
}

impl Spread {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Spread::Laps => "laps",
            Spread::WithinOneLap => "within one step",
            Spread::None => "none",
        }
    }
}

/// A kernel behind a finding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelUse {
    /// Its name.
    pub name: String,
    /// How often, in all.
    pub count: u64,
    /// Time in all.
    pub total_ns: i64,
}

/// Arithmetic of operators whose shapes were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Floating-point operations a second.
    pub flops_per_s: f64,
    /// Share of the device's peak for these types, where it is known.
    pub peak_share: Option<f64>,
    /// Operators counted.
    pub n: u64,
}

/// Device time by something.
#[derive(Clone, Debug)]
pub struct Table {
    /// By what.
    pub by: By,
    /// By gap, the largest first; those of one side too.
    pub rows: Vec<Finding>,
}

/// What the host does for one lap.
#[derive(Clone, Debug, Default)]
pub struct HostFinding {
    /// What.
    pub name: String,
    /// In what unit the values are.
    pub unit: HostUnit,
    /// Of A and B; none where a trace does not say.
    pub values: [Option<f64>; 2],
    /// How many were measured.
    pub n: [u64; 2],
    /// B over A, with its range, where laps or calls are enough.
    pub ratio: Option<f64>,
    /// The range of the ratio.
    pub ratio_range: Option<Interval>,
    /// What to make of it.
    pub verdict: Verdict,
}

/// A unit of what the host does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostUnit {
    /// Nanoseconds.
    #[default]
    Nanos,
    /// A plain number.
    Count,
    /// A share of 1.
    Share,
}

/// Layers of both sides.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// How they were found, on A and B.
    pub found_by: [LayersBy; 2],
    /// How many there are on A and B.
    pub counts: [u64; 2],
    /// Pairs in the order of the model, and layers of one side.
    pub rows: Vec<LayerRow>,
}

/// How layers were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LayersBy {
    /// By calls of this `nn.Module` class.
    Modules(String),
    /// By a sequence of kernels that repeats within a lap.
    Cycle,
    /// By attention or state-space kernels.
    Markers(String),
    /// Not at all.
    #[default]
    Nothing,
}

impl LayersBy {
    /// In words.
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
    /// Its number on A and B, from 0; none where a side has no such layer.
    pub numbers: [Option<u32>; 2],
    /// Time, gap and verdict; the name is that of the module, or `layer 7`.
    pub finding: Finding,
}

/// A stretch of kernels on both sides, aligned by what they do.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// Where: `layer` (a typical one), `outside of layers`, or `lap`.
    pub place: String,
    /// How often the stretch occurs in one lap of A and B.
    pub repeats: [f64; 2],
    /// How many of all occurrences have this very sequence, on A and B.
    pub typical: [(u64, u64); 2],
    /// In order.
    pub pairs: Vec<KernelPair>,
}

/// Kernels that stand for each other.
#[derive(Clone, Debug, Default)]
pub struct KernelPair {
    /// How they relate.
    pub relation: Relation,
    /// Class of the operation.
    pub class: String,
    /// Which projection of a transformer a product is; empty where not known.
    pub projection: String,
    /// Kernels of A and B, in order; one each unless merged or split.
    pub kernels: [Vec<String>; 2],
    /// Their time in the mean, of one occurrence.
    pub mean_ns: [f64; 2],
    /// Occurrences averaged.
    pub n: [u64; 2],
}

/// How kernels of two sides relate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Relation {
    /// The same kernel.
    #[default]
    Same,
    /// Another kernel for the same operation.
    Other,
    /// Several of A are one of B, or fewer.
    Merged,
    /// One of A is several of B, or more.
    Split,
    /// Only A runs it.
    OnlyInA,
    /// Only B runs it.
    OnlyInB,
}

impl Relation {
    /// Its word.
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

/// A sequence of one side that is one kernel, or fewer, on the other.
#[derive(Clone, Debug, Default)]
pub struct Fusion {
    /// The side that launches fewer: 0 is A.
    pub fused_by: usize,
    /// Kernels of the side that fuses.
    pub fused: Vec<String>,
    /// Kernels of the other, in order.
    pub unfused: Vec<String>,
    /// Classes of the kernels that are fused, and of those that are not, in order.
    pub classes: [Vec<String>; 2],
    /// How often in one lap of the side that does not fuse.
    pub lap_count: f64,
    /// How often it was seen.
    pub seen: u64,
    /// Time of one occurrence: fused and not.
    pub mean_ns: [f64; 2],
    /// Time that fusing saves in one lap; negative when it costs.
    pub saved_ns: f64,
    /// How sure that these stand for each other, from 0 to 1.
    pub confidence: f64,
    /// Why, in a sentence.
    pub evidence: String,
}

/// Kernels of one coarse type.
#[derive(Clone, Debug, Default)]
pub struct TypeCount {
    /// The type.
    pub name: String,
    /// Launches in one lap of A and B.
    pub lap_count: [f64; 2],
    /// Time of one lap.
    pub lap_ns: [f64; 2],
}

/// What a reader must know.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// A word for it, as JSON has it.
    pub code: &'static str,
    /// Whether numbers may mislead (`warning`), or it is only good to know (`info`).
    pub severity: &'static str,
    /// The side it is about; none for both.
    pub side: Option<usize>,
    /// What, without the side.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// One rank on both sides.
#[derive(Clone, Debug, Default)]
pub struct RankPair {
    /// The rank; the place in the order of files where traces do not say.
    pub rank: i64,
    /// The files of A and B; empty where a side lacks the rank.
    pub paths: [String; 2],
    /// Time of one lap.
    pub whole: Finding,
    /// The part of the time with the largest gap, and that gap.
    pub largest: Option<(String, f64)>,
}
