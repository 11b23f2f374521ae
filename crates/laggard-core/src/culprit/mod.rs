//! Attribution of a lag to causes.
//!
//! Input is a [`Pair`]: observations of one call of each side. Output is a [`Judgement`]: named
//! causes, each with the share of the lag that it explains. The lag is split by place, and each
//! place by kind of work into slices. If the call path itself is the cause, the place is one slice.
//! All other slices are judged: a judge is a function from a slice to a [`Verdict`]. The first
//! judge in [`JUDGES`] that finds a slice guilty takes it, so more specific judges come first.
//! Slices that no judge takes are not explained. Every slice has at most one cause, so shares add
//! up to 1.

mod blas;
mod build;
mod complexity;
mod copies;
mod interpreter;
mod kernel;
mod look;
mod operations;
mod parallel;
mod partition;
mod paths;
mod python;
mod role;
mod same_code;
mod seen;
mod simd;
mod spots;
mod system;
#[cfg(test)]
mod tests;

use crate::divergence::{Point, PointSource, are_equally_often};
pub use crate::model::counts::Simulated;
pub use build::ModuleBuild;
pub use look::{add_counts, add_work, called, loading, of_run, settle, times};
pub(crate) use partition::shared_name;
pub use partition::{CallPair, Part, Slice, TimeRow, calls_that_differ, partition, time_rows};
use paths::Region;
pub use role::{Place, Role, is_idle_loop, role};
pub use seen::{Called, Io, Pair, Seen, Work};
pub use spots::{Spot, fault_spots, wait_spots};

/// A cause of a lag. [`Kind::word`] returns the id used in JSON and in the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Scalar code where A runs vector code.
    ScalarLoop,
    /// Narrower vectors than A's.
    NarrowSimd,
    /// A BLAS kernel for an older CPU.
    OldKernel,
    /// A slower function of a library that contains a faster one.
    SlowPath,
    /// A calls a library where B runs its own code.
    LibraryNotUsed,
    /// A different library for the same task.
    OtherLibrary,
    /// The same source, compiled with weaker options.
    Build,
    /// A time that grows faster with the size of the input.
    Complexity,
    /// More instructions for the same result.
    MoreInstructions,
    /// More calls of the same functions.
    MoreCalls,
    /// Other functions than A calls at the same place.
    OtherPath,
    /// The same place takes longer for a reason that no judge finds.
    Slower,
    /// Overhead of calls between Python and native code.
    CallOverhead,
    /// An operation of Python's built-in types and modules.
    Builtin,
    /// Python's evaluation loop and object handling.
    Interpreter,
    /// Copies that A does not make.
    Copy,
    /// Type conversions.
    Conversion,
    /// The same work on data in a less favourable memory order.
    Layout,
    /// Memory allocation and freeing.
    Allocation,
    /// Requests to the operating system.
    SystemCalls,
    /// First access to new memory pages.
    PageFaults,
    /// Accesses that miss all caches.
    MemoryBound,
    /// Cache misses.
    CacheMisses,
    /// Mispredicted branches.
    BranchMisses,
    /// Arithmetic on denormal floats, which is slow.
    Denormals,
    /// Instructions with high latency, such as divisions.
    SlowInstruction,
    /// Fewer busy threads than A.
    NotParallel,
    /// More threads than the work can use.
    TooParallel,
    /// Locks, sleep and I/O.
    Waiting,
    /// One-time work inside the timed code, such as imports.
    StartUp,
    /// The same device kernel takes longer.
    SameKernelSlower,
    /// A different device kernel for the same operation.
    OtherKernel,
    /// Several kernels where A runs fewer, fused kernels.
    Unfused,
    /// The device waits for the host to launch work.
    LaunchBound,
    /// Communication not overlapped by compute.
    ExposedCommunication,
    /// Copies not overlapped by compute.
    ExposedCopy,
    /// The device is idle for a reason other than launches.
    Idle,
}

impl Kind {
    /// The id of the cause.
    pub fn word(self) -> &'static str {
        match self {
            Kind::ScalarLoop => "scalar-loop",
            Kind::NarrowSimd => "narrow-simd",
            Kind::OldKernel => "old-kernel",
            Kind::SlowPath => "slow-path",
            Kind::LibraryNotUsed => "library-not-used",
            Kind::OtherLibrary => "other-library",
            Kind::Build => "build",
            Kind::Complexity => "complexity",
            Kind::MoreInstructions => "more-instructions",
            Kind::MoreCalls => "more-calls",
            Kind::OtherPath => "other-path",
            Kind::Slower => "slower",
            Kind::CallOverhead => "call-overhead",
            Kind::Builtin => "builtin",
            Kind::Interpreter => "interpreter",
            Kind::Copy => "copy",
            Kind::Conversion => "conversion",
            Kind::Layout => "layout",
            Kind::Allocation => "allocation",
            Kind::SystemCalls => "system-calls",
            Kind::PageFaults => "page-faults",
            Kind::MemoryBound => "memory-bound",
            Kind::CacheMisses => "cache-misses",
            Kind::BranchMisses => "branch-misses",
            Kind::Denormals => "denormals",
            Kind::SlowInstruction => "slow-instruction",
            Kind::NotParallel => "not-parallel",
            Kind::TooParallel => "too-parallel",
            Kind::Waiting => "waiting",
            Kind::StartUp => "start-up",
            Kind::SameKernelSlower => "same-kernel-slower",
            Kind::OtherKernel => "other-kernel",
            Kind::Unfused => "unfused",
            Kind::LaunchBound => "launch-bound",
            Kind::ExposedCommunication => "exposed-communication",
            Kind::ExposedCopy => "exposed-copy",
            Kind::Idle => "idle",
        }
    }
}

/// A measurement that supports a culprit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Name of the measurement.
    pub what: String,
    /// Value of A.
    pub a: f64,
    /// Value of B.
    pub b: f64,
    /// Unit of both values.
    pub unit: Unit,
    /// Number of samples, calls or rounds behind the values.
    pub n: u64,
    /// Whether it was derived from other measurements instead of measured.
    pub is_inferred: bool,
}

/// The unit of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanos,
    /// Bytes.
    Bytes,
    /// A fraction between 0 and 1.
    Share,
    /// Bits.
    Bits,
    /// A number without a unit.
    Count,
}

/// Decision of a judge about a slice.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// This is the cause.
    Guilty(Finding),
    /// This is not the cause.
    Innocent,
    /// Undecided because of missing evidence.
    Unknown(Missing),
}

/// A cause that a judge found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its kind.
    pub kind: Kind,
    /// Evidence for it.
    pub facts: Vec<Fact>,
    /// Location in B's code; empty if it has none.
    pub at: String,
    /// How to fix it.
    pub advice: String,
}

impl Finding {
    /// A finding without facts.
    pub(crate) fn new(kind: Kind, at: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { kind, facts: vec![], at: at.into(), advice: advice.into() }
    }

    /// Adds a measurement of both sides.
    pub(crate) fn fact(mut self, what: &str, [a, b]: [f64; 2], unit: Unit, n: u64) -> Finding {
        let what = what.to_owned();
        self.facts.push(Fact { what, a, b, unit, n, is_inferred: false });
        self
    }

    /// Marks the last fact as inferred.
    pub(crate) fn inferred(mut self) -> Finding {
        if let Some(last) = self.facts.last_mut() {
            last.is_inferred = true;
        }
        self
    }

    fn guilty(self) -> Verdict {
        Verdict::Guilty(self)
    }
}

/// Evidence that a judge needs and does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Missing {
    /// Disassembly of hot functions: their files could not be read.
    Disassembly,
    /// Instruction, cache-miss and branch-miss counts, measured or simulated.
    Counts,
    /// A trace of system calls.
    SystemCalls,
}

/// Decides whether one specific cause explains a slice of the lag.
type Judge = fn(&Slice<'_>, &Pair<'_>) -> Verdict;

/// All judges, the most specific first.
const JUDGES: [Judge; 17] = [
    interpreter::judge_start_up,
    parallel::judge_too_parallel,
    parallel::judge_idle_loops,
    parallel::judge_not_parallel,
    parallel::judge_waiting,
    copies::judge_moving,
    system::judge_system_calls,
    copies::judge_page_faults,
    interpreter::judge_call_overhead,
    interpreter::judge_interpreter,
    blas::judge_old_kernel,
    blas::judge_other_library,
    blas::judge_library_not_used,
    kernel::judge_slow_path,
    simd::judge_scalar_loop,
    simd::judge_narrow_simd,
    kernel::judge_slow_instruction,
];

/// A named cause and the part of the lag that it explains.
#[derive(Clone, Debug, PartialEq)]
pub struct Culprit {
    /// The cause with its evidence.
    pub finding: Finding,
    /// Share of the lag that it explains.
    pub explains: f64,
    /// The same in nanoseconds per call.
    pub gap_ns: f64,
    /// Where the call paths of the sides diverge, if known.
    pub point: Option<Box<Point>>,
    /// Share of B's time at this place by kind of work, by decreasing share.
    pub work: Vec<(String, f64)>,
    /// Source at the place. The caller of [`judge`] adds it, because this crate reads no files.
    pub source: Option<PointSource>,
}

impl Culprit {
    /// A culprit without a place.
    pub fn new(finding: Finding, explains: f64, gap_ns: f64) -> Culprit {
        Culprit { finding, explains, gap_ns, point: None, work: vec![], source: None }
    }
}

/// Result of [`judge`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Causes, by decreasing share of the lag.
    pub culprits: Vec<Culprit>,
    /// Share of the lag without a named cause.
    pub not_explained: f64,
    /// Evidence that was missing for a larger slice without a cause.
    pub missing: Vec<Missing>,
    /// The places where B is faster, the largest difference first. They are not included in the shares.
    pub faster: Vec<Point>,
    /// Time that B saves in other slices, in nanoseconds per call. The lag would be larger by this.
    pub saved_ns: f64,
}

/// Slices below this share of the lag are too small to be judged on their own.
pub(crate) const SMALLEST_SHARE: f64 = 0.02;

/// Missing evidence is reported for slices of at least this share of the lag.
const SHARE_WORTH_ASKING: f64 = 0.05;

/// The causes of a slice, each with its share of the slice. Adds evidence that the judges lack to
/// `missing`.
fn causes(slice: &Slice<'_>, pair: &Pair<'_>, missing: &mut Vec<Missing>) -> Vec<(Finding, f64)> {
    let whole = JUDGES.iter().find_map(|judge| match judge(slice, pair) {
        Verdict::Guilty(finding) => Some(finding),
        Verdict::Unknown(what) => {
            missing.push(what);
            None
        }
        Verdict::Innocent => None,
    });
    if let Some(finding) = whole {
        return vec![(finding, 1.0)];
    }
    same_code::judge_same_code(slice, pair).unwrap_or_else(|what| {
        missing.push(what);
        vec![]
    })
}

/// Whether the evidence for a finding suffices: a fact that is not zero, and enough samples or an exact
/// count.
fn is_supported(finding: &Finding, slice: &Slice<'_>) -> bool {
    /// Minimum number of samples.
    const ENOUGH: u64 = 20;
    let differs = |fact: &&Fact| fact.a != 0.0 || fact.b != 0.0;
    let is_sampled = matches!(slice.part, Part::Functions(_));
    // Samples of A do not show what B spends its time on.
    let samples = slice.b.iter().map(|work| work.samples).sum::<u64>();
    let is_exact = |fact: &&Fact| fact.unit == Unit::Count && fact.a != fact.b && !fact.is_inferred;
    finding.facts.iter().any(|fact| differs(&fact))
        && (!is_sampled || samples >= ENOUGH || finding.facts.iter().any(|fact| is_exact(&fact)))
}

/// Names the causes of a detected lag. The lag is cut by place first, then each place by kind.
pub fn judge(pair: &Pair<'_>) -> Judgement {
    let parallelism = pair.a.parallelism();
    let regions = paths::regions(pair);
    let mut judgement = Judgement::default();
    let mut lost = 0.0;
    // Slices with the region that they belong to.
    let mut all: Vec<(Slice<'_>, Option<&Region>)> = vec![];
    for region in &regions {
        let slices = region.slices(parallelism);
        all.extend(slices.into_iter().map(|slice| (slice, Some(region))));
        judgement.faster.extend(region.faster().cloned());
    }
    all.extend(partition::beyond_functions(pair).map(|slice| (slice, None)));
    for (slice, _) in &all {
        lost += slice.gap_ns().max(0.0);
        judgement.saved_ns += (-slice.gap_ns()).max(0.0);
    }
    // Numbers in damaged files may be so large that their sum is not finite.
    let is_lag = lost > 0.0 && lost.is_finite();
    if !is_lag {
        return judgement;
    }
    let small_ns = lost * SMALLEST_SHARE;
    for chunk in all.chunk_by(|x, y| x.1.map(Region::number) == y.1.map(Region::number)) {
        let region = chunk[0].1;
        let slices = chunk.iter().map(|(slice, _)| slice.clone()).collect();
        judgement.judge_region(&partition::joined(slices, small_ns), region, pair, lost);
    }
    judgement.place_rest(&regions);
    judgement.join_system_calls();
    judgement.join_locks(pair);
    judgement.missing.sort();
    judgement.missing.dedup();
    judgement.culprits.sort_by(|a, b| b.explains.total_cmp(&a.explains));
    judgement.add_complexity(pair, lost);
    let explained: f64 = judgement.culprits.iter().map(|culprit| culprit.explains).sum();
    judgement.not_explained = (1.0 - explained).max(0.0);
    judgement
}

impl Judgement {
    /// Places the culprits that no function belongs to: kernel time and waiting, unless they were
    /// sampled, are caused where B loses most of its time.
    fn place_rest(&mut self, regions: &[Region]) {
        use Kind::{PageFaults, SystemCalls, Waiting};
        let main = Region::main(regions);
        for culprit in self.culprits.iter_mut().filter(|culprit| culprit.point.is_none()) {
            let kind = culprit.finding.kind;
            let is_caused_there = matches!(kind, PageFaults | SystemCalls | Waiting);
            let is_sampled = culprit.finding.at.contains(", in ");
            if let Some(main) = main.filter(|_| is_caused_there && !is_sampled) {
                *culprit = main.place(culprit.clone());
            }
            if culprit.finding.at.is_empty() {
                culprit.finding.at = "the whole call".into();
            }
        }
    }

    /// Merges the culprits `more-calls` and `system-calls` if the numbers of additional calls are equal:
    /// each call makes one system call.
    fn join_system_calls(&mut self) {
        let position =
            |kind: Kind| self.culprits.iter().position(|culprit| culprit.finding.kind == kind);
        let (Some(system), Some(calls)) = (position(Kind::SystemCalls), position(Kind::MoreCalls))
        else {
            return;
        };
        let [added, called] = [system, calls].map(|at| {
            let count = &self.culprits[at].finding.facts[0];
            count.b - count.a
        });
        if !are_equally_often(added, called) {
            return;
        }
        let calls = self.culprits[calls].clone();
        let system = &mut self.culprits[system];
        if let Some(point) = calls.point.as_ref().filter(|_| system.point.is_none()) {
            system.finding.at = format!("{}, in {}", system.finding.at, point.python_label());
        }
        (system.point, system.work) = (calls.point.clone(), calls.work.clone());
        system.explains += calls.explains;
        system.gap_ns += calls.gap_ns;
        system.finding.facts.extend(calls.finding.facts.clone());
        self.culprits.retain(|culprit| *culprit != calls);
    }

    /// Adds uncontended locks to the system calls that they surround: Python releases and acquires its
    /// lock around each of them.
    fn join_locks(&mut self, pair: &Pair<'_>) {
        /// Lock operations of one release and one acquisition.
        const MOST_LOCKS: f64 = 6.0;
        let position =
            |kind: Kind| self.culprits.iter().position(|culprit| culprit.finding.kind == kind);
        let (Some(_), Some(locks)) = (position(Kind::SystemCalls), position(Kind::Waiting)) else {
            return;
        };
        let added = |is: &dyn Fn(&Called) -> bool| {
            let count = |side: &Seen| {
                let calls = side.calls.iter().flatten().filter(|call| is(call));
                calls.map(|call| call.count).sum::<f64>()
            };
            count(pair.b) - count(pair.a)
        };
        let calls = added(&system::is_system_call);
        let locked = added(&|call| call.name == "pthread_mutex_lock");
        let is_around =
            parallel::is_uncontended(pair) && locked >= calls && locked <= MOST_LOCKS * calls;
        if is_around && calls > 0.0 {
            let locks = self.culprits.remove(locks);
            let system = self.culprits.iter_mut().find(|one| one.finding.kind == Kind::SystemCalls);
            if let Some(system) = system {
                system.explains += locks.explains;
                system.gap_ns += locks.gap_ns;
                system.finding.facts.extend(locks.finding.facts);
            }
        }
    }

    /// Adds the causes of the slices of a region, or of those without a region.
    fn judge_region(
        &mut self,
        slices: &[Slice<'_>],
        region: Option<&Region>,
        pair: &Pair<'_>,
        lost: f64,
    ) {
        let own = region.map(Region::pair);
        let judged = own.as_ref().unwrap_or(pair);
        let (mut whole, mut open, mut missing) = (0.0, 0.0, vec![]);
        let mut found: Vec<Culprit> = vec![];
        for slice in slices {
            let gap_ns = slice.gap_ns();
            let explains = gap_ns / lost;
            whole += gap_ns.max(0.0);
            if explains.is_nan() || explains < SMALLEST_SHARE {
                continue;
            }
            let mut unknown = vec![];
            let mut of_slice = match region.and_then(Region::path_finding) {
                Some(path) => vec![(path, 1.0)],
                None => causes(slice, judged, &mut unknown),
            };
            of_slice.retain(|(finding, _)| is_supported(finding, slice));
            let rest = 1.0 - of_slice.iter().map(|(_, share)| share).sum::<f64>();
            open += gap_ns * rest;
            if explains * rest >= SHARE_WORTH_ASKING {
                missing.append(&mut unknown);
            }
            found.extend(
                of_slice.into_iter().map(|(finding, share)| {
                    Culprit::new(finding, explains * share, gap_ns * share)
                }),
            );
        }
        let Some(region) = region else {
            self.missing.extend(missing);
            found.into_iter().for_each(|culprit| self.add(culprit));
            return;
        };
        match region.changed_path() {
            // The changed code says more than the kind of its work.
            Some(finding) if region.is_path(&found, whole) && whole >= SMALLEST_SHARE * lost => {
                found = vec![Culprit::new(finding, whole / lost, whole)];
            }
            _ => {
                self.missing.extend(missing);
                let is_large = open >= SHARE_WORTH_ASKING * lost;
                let slower = is_large.then(|| region.slower(open)).flatten();
                found.extend(slower.map(|finding| Culprit::new(finding, open / lost, open)));
            }
        }
        found.into_iter().for_each(|culprit| self.add(region.place(culprit)));
    }

    /// Merges slices with the same cause at the same place; the larger slice provides the finding.
    fn add(&mut self, new: Culprit) {
        let same = |old: &&mut Culprit| {
            let is_same_place = match (&old.point, &new.point) {
                (Some(old), Some(new)) => old.place == new.place,
                _ => true,
            };
            old.finding.kind == new.finding.kind && is_same_place
        };
        let Some(old) = self.culprits.iter_mut().find(same) else {
            self.culprits.push(new);
            return;
        };
        let (explains, gap_ns) = (old.explains + new.explains, old.gap_ns + new.gap_ns);
        if new.explains > old.explains {
            *old = new;
        }
        (old.explains, old.gap_ns) = (explains, gap_ns);
    }
}
