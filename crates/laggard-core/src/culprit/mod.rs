//! Why B lags: the lag is cut into slices once, and judges bid for each.
//!
//! You give a [`Pair`], what was seen of one call of either side; you get a [`Judgement`]: named
//! causes with the share of the lag that each explains. The cut is [`partition`]'s; a judge is a
//! function from a slice to a [`Verdict`]. The first judge in the order of [`JUDGES`] that finds a
//! slice guilty takes it, so the more specific ones come first; what nobody takes is not explained.
//! Shares add up by construction.

mod blas;
mod copies;
mod interpreter;
mod kernel;
mod look;
mod parallel;
mod partition;
mod role;
mod same_code;
mod seen;
mod simd;
#[cfg(test)]
mod tests;

pub use crate::model::counts::Simulated;
pub use look::{add_counts, add_work, called, loading, of_run, settle, times};
pub(crate) use partition::shared_name;
pub use partition::{CallPair, Part, Slice, calls_that_differ, partition};
pub use role::{Place, Role, role};
pub use seen::{Called, Pair, Seen, Work};

/// A cause of a lag. The words are those of JSON and of the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// One element at a time where A works on several.
    ScalarLoop,
    /// Shorter vectors than A's.
    NarrowSimd,
    /// A kernel for an older processor.
    OldKernel,
    /// A slower function of a library that has a faster one for this.
    SlowPath,
    /// A has a library do it, B does it itself.
    LibraryNotUsed,
    /// Another library of the same role.
    OtherLibrary,
    /// More instructions for the same result.
    MoreInstructions,
    /// More calls of the same functions.
    MoreCalls,
    /// Crossing the border between Python and native code.
    CallOverhead,
    /// Python's evaluation loop and its objects.
    Interpreter,
    /// Bytes moved that A does not move.
    Copy,
    /// Values turned into another type.
    Conversion,
    /// The same work on data that lies in another order.
    Layout,
    /// Memory asked for and given back.
    Allocation,
    /// Memory touched for the first time.
    PageFaults,
    /// Data that has to come from memory.
    MemoryBound,
    /// Data that does not stay in a cache.
    CacheMisses,
    /// Jumps that the processor cannot foresee.
    BranchMisses,
    /// Floats too small for the processor's fast path.
    Denormals,
    /// Instructions that take long by themselves.
    SlowInstruction,
    /// Fewer threads at work.
    NotParallel,
    /// More threads than the work is worth.
    TooParallel,
    /// Locks, sleep, input and output.
    Waiting,
    /// Work that is done once, inside what is timed.
    StartUp,
    /// The same kernel of a device takes longer.
    SameKernelSlower,
    /// Another kernel of a device for the same operation.
    OtherKernel,
    /// Several kernels where A runs fewer that do the same.
    Unfused,
    /// The device waits for the host to launch.
    LaunchBound,
    /// Communication that no computation hides.
    ExposedCommunication,
    /// Copies that nothing hides.
    ExposedCopy,
    /// The device does nothing, though it need not wait for a launch.
    Idle,
}

impl Kind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::ScalarLoop => "scalar-loop",
            Kind::NarrowSimd => "narrow-simd",
            Kind::OldKernel => "old-kernel",
            Kind::SlowPath => "slow-path",
            Kind::LibraryNotUsed => "library-not-used",
            Kind::OtherLibrary => "other-library",
            Kind::MoreInstructions => "more-instructions",
            Kind::MoreCalls => "more-calls",
            Kind::CallOverhead => "call-overhead",
            Kind::Interpreter => "interpreter",
            Kind::Copy => "copy",
            Kind::Conversion => "conversion",
            Kind::Layout => "layout",
            Kind::Allocation => "allocation",
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

/// A number that speaks for a culprit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// What was measured.
    pub what: String,
    /// Of A.
    pub a: f64,
    /// Of B.
    pub b: f64,
    /// The unit of both.
    pub unit: Unit,
    /// How many samples, calls or rounds it comes from.
    pub n: u64,
    /// Whether it was measured, or follows from what was.
    pub is_inferred: bool,
}

/// The unit of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanos,
    /// Bytes.
    Bytes,
    /// A share of 1.
    Share,
    /// Bits.
    Bits,
    /// A plain number.
    Count,
}

/// What a judge has to say of a slice.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// This is the cause.
    Guilty(Finding),
    /// It is not.
    Innocent,
    /// It may be: this is not known.
    Unknown(Missing),
}

/// A cause that a judge found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its kind.
    pub kind: Kind,
    /// What speaks for it.
    pub facts: Vec<Fact>,
    /// Where in the code of B; empty when it is nowhere in particular.
    pub at: String,
    /// What to do about it.
    pub advice: String,
}

impl Finding {
    /// A finding without facts yet.
    pub(crate) fn new(kind: Kind, at: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { kind, facts: vec![], at: at.into(), advice: advice.into() }
    }

    /// With a number of both sides.
    pub(crate) fn fact(mut self, what: &str, [a, b]: [f64; 2], unit: Unit, n: u64) -> Finding {
        let what = what.to_owned();
        self.facts.push(Fact { what, a, b, unit, n, is_inferred: false });
        self
    }

    /// The last fact follows from others.
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

/// What a judge would need to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Missing {
    /// Instructions of hot functions: their files could not be read.
    Disassembly,
    /// Instructions, misses of caches and of branches, counted or simulated.
    Counts,
    /// System calls.
    SystemCalls,
}

/// A judge: whether a slice of the lag has one cause.
type Judge = fn(&Slice<'_>, &Pair<'_>) -> Verdict;

/// All judges, the most specific first.
const JUDGES: [Judge; 17] = [
    interpreter::judge_start_up,
    parallel::judge_too_parallel,
    parallel::judge_not_parallel,
    parallel::judge_waiting,
    copies::judge_moving,
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
    same_code::judge_more_work,
    same_code::judge_slower_code,
];

/// A named cause, and what it explains.
#[derive(Clone, Debug, PartialEq)]
pub struct Culprit {
    /// What it is.
    pub finding: Finding,
    /// The share of the lag that it explains.
    pub explains: f64,
    /// The same in nanoseconds of a call.
    pub gap_ns: f64,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Causes, the one that explains the most first.
    pub culprits: Vec<Culprit>,
    /// The share of the lag that nobody explained.
    pub not_explained: f64,
    /// What would have helped.
    pub missing: Vec<Missing>,
    /// What B saves elsewhere, in nanoseconds of a call: the lag would be larger by this.
    pub saved_ns: f64,
}

/// Below this share of the lag a slice is too small to name a cause for, alone.
pub(crate) const SMALLEST_SHARE: f64 = 0.02;

/// From this share of the lag on it is worth saying what would explain a slice.
const SHARE_WORTH_ASKING: f64 = 0.05;

/// Names the causes of a lag that was found to be there.
pub fn judge(pair: &Pair<'_>) -> Judgement {
    let slices = partition(pair);
    let lost: f64 = slices.iter().map(|slice| slice.gap_ns().max(0.0)).sum();
    let mut judgement = Judgement {
        saved_ns: slices.iter().map(|slice| (-slice.gap_ns()).max(0.0)).sum(),
        ..Judgement::default()
    };
    if lost <= 0.0 {
        return judgement;
    }
    for slice in &partition::joined(slices, lost * SMALLEST_SHARE) {
        let gap_ns = slice.gap_ns();
        let explains = gap_ns / lost;
        if explains < SMALLEST_SHARE {
            continue;
        }
        let verdicts = JUDGES.iter().map(|judge| judge(slice, pair));
        let mut missing = vec![];
        let guilty = verdicts.into_iter().find_map(|verdict| match verdict {
            Verdict::Guilty(finding) => Some(finding),
            Verdict::Unknown(what) => {
                missing.push(what);
                None
            }
            Verdict::Innocent => None,
        });
        match guilty {
            Some(finding) => judgement.add(Culprit { finding, explains, gap_ns }),
            None if explains >= SHARE_WORTH_ASKING => judgement.missing.extend(missing),
            None => {}
        }
    }
    judgement.missing.sort();
    judgement.missing.dedup();
    judgement.culprits.sort_by(|a, b| b.explains.total_cmp(&a.explains));
    let explained: f64 = judgement.culprits.iter().map(|culprit| culprit.explains).sum();
    judgement.not_explained = (1.0 - explained).max(0.0);
    judgement
}

impl Judgement {
    /// Slices with one cause are one culprit; the larger one speaks for it.
    fn add(&mut self, new: Culprit) {
        let same = |old: &&mut Culprit| old.finding.kind == new.finding.kind;
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
