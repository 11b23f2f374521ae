//! Judges for equal work that takes longer: `more-instructions`, `more-calls`, `branch-misses`,
//! `cache-misses`, `memory-bound`, `layout` and `denormals`.

use super::Simulated;
use super::{Finding, Kind, Missing, Pair, Slice, Unit, Work};
use crate::model::code::{Mark, Mix};

/// Causes of work that takes longer, each with its share of the slice: the part that the ratio of the
/// instructions explains, and the part in which an instruction takes longer.
pub(super) fn judge_same_code(
    slice: &Slice<'_>,
    pair: &Pair<'_>,
) -> Result<Vec<(Finding, f64)>, Missing> {
    if !slice.is_work() {
        return Ok(vec![]);
    }
    let counted = Counted::of(slice, pair).ok_or(Missing::Counts)?;
    let more = counted.share_of_instructions();
    let mut found = vec![];
    if more > 0.0 {
        found.push((more_work(slice, pair, &counted), more));
    }
    if more < 1.0 {
        let slower = slower_code(slice, pair, &counted, slice.gap_ns() * (1.0 - more));
        found.extend(slower.map(|finding| (finding, 1.0 - more)));
    }
    Ok(found)
}

/// Counts and times of the same functions of both sides.
struct Counted {
    counts: [Simulated; 2],
    ns: [f64; 2],
}

impl Counted {
    /// Of the slice's functions. If the counts of most of them are unknown on a side, or if A runs none
    /// of them, all functions of the side do the work.
    fn of(slice: &Slice<'_>, pair: &Pair<'_>) -> Option<Counted> {
        let sum = |work: &[&Work]| {
            let (mut sum, mut counted_ns) = (Simulated::default(), 0.0);
            for (work, counted) in work.iter().filter_map(|work| Some((work, work.counted?))) {
                sum.add(&counted);
                counted_ns += work.ns;
            }
            let whole_ns: f64 = work.iter().map(|work| work.ns).sum();
            (counted_ns > whole_ns / 2.0).then_some((sum, counted_ns))
        };
        let whole = |side: &super::Seen| {
            let of_functions = sum(&side.work.iter().collect::<Vec<_>>());
            of_functions.or_else(|| Some((side.counted?, side.user_ns)))
        };
        let (a, b) = match (sum(&slice.a), sum(&slice.b)) {
            (Some(a), Some(b)) => (a, b),
            (None, Some(b)) => (whole(pair.a)?, b),
            _ => (whole(pair.a)?, whole(pair.b)?),
        };
        Some(Counted { counts: [a.0, b.0], ns: [a.1, b.1] })
    }

    /// The share of the slowdown that the ratio of the instructions explains. Ratios multiply, so their
    /// logarithms are compared: both sides of a slowdown of 9 with 3 times the instructions get half.
    fn share_of_instructions(&self) -> f64 {
        /// Smaller differences in the number of instructions are ignored.
        const MORE: f64 = 1.1;
        /// A cause with a smaller share is ignored.
        const SHARE_THAT_MATTERS: f64 = 0.1;
        let [a, b] = self.counts.map(|counts| counts.instructions);
        let more = b / a.max(1.0);
        let slower = self.ns[1] / self.ns[0].max(1e-9);
        if a <= 0.0 || more < MORE || slower <= 1.0 {
            return 0.0;
        }
        match more.ln() / slower.ln() {
            share if share < SHARE_THAT_MATTERS => 0.0,
            share if share > 1.0 - SHARE_THAT_MATTERS => 1.0,
            share => share,
        }
    }
}

/// B executes more instructions, or calls the same functions more often.
fn more_work(slice: &Slice<'_>, pair: &Pair<'_>, counted: &Counted) -> Finding {
    let calls = calls_of(slice, pair).filter(|[a, b]| *b > a * 1.5);
    let at = slice.worst().map(Work::at).unwrap_or_default();
    let finding =
        match calls {
            Some(calls) => {
                Finding::new(Kind::MoreCalls, at, "call the function once and keep the result")
                    .fact("calls", calls, Unit::Count, 1)
            }
            None => Finding::new(
                Kind::MoreInstructions,
                at,
                "look for repeated work, or for work that A's algorithm avoids",
            ),
        };
    let instructions = counted.counts.map(|counts| counts.instructions);
    finding.fact("instructions", instructions, Unit::Count, pair.b.samples())
}

/// An instruction takes longer in B, for `gap_ns` in total.
fn slower_code(
    slice: &Slice<'_>,
    pair: &Pair<'_>,
    counted: &Counted,
    gap_ns: f64,
) -> Option<Finding> {
    /// Costs of a mispredicted branch, a first-level cache miss and a last-level cache miss:
    /// conservative values for CPUs of the last ten years.
    const BRANCH_MISS_NS: f64 = 4.0;
    const CACHE_MISS_NS: f64 = 2.0;
    const MEMORY_NS: f64 = 20.0;
    /// Maximum relative difference in instruction counts for which the code counts as the same.
    const SAME: f64 = 0.02;
    /// Minimum share of the time that the misses account for.
    const SHARE_THAT_MATTERS: f64 = 0.25;
    let [a, b] = counted.counts;
    // Caches and branches of slow calls are not simulated.
    if a.accesses <= 0.0 || b.accesses <= 0.0 {
        return None;
    }
    let at = slice.worst().map(Work::at).unwrap_or_default();
    let enough = gap_ns * SHARE_THAT_MATTERS;
    let branches = (b.branch_misses - a.branch_misses) * BRANCH_MISS_NS;
    let misses = [a.cache_misses, b.cache_misses];
    let memory = (b.memory_accesses - a.memory_accesses) * MEMORY_NS;
    let cache = (misses[1] - misses[0]) * CACHE_MISS_NS + memory;
    if branches >= enough && branches >= cache {
        let finding = Finding::new(
            Kind::BranchMisses,
            at,
            "sort or group the data, or make the code branchless (select, mask, min and max)",
        )
        .fact("mispredicted branches", [a.branch_misses, b.branch_misses], Unit::Count, 1);
        return Some(finding);
    }
    if memory >= enough && memory > cache / 2.0 {
        let finding = Finding::new(
            Kind::MemoryBound,
            at,
            "reduce memory traffic: smaller types, fewer passes, in-place results",
        )
        .fact("last-level cache misses", [a.memory_accesses, b.memory_accesses], Unit::Count, 1)
        .fact("loads and stores", [a.accesses, b.accesses], Unit::Count, 1);
        return Some(finding);
    }
    if cache >= enough {
        let rates = [a, b].map(|side| side.cache_misses / side.accesses.max(1.0));
        let is_same_code = slice.best().map(|work| &work.name)
            == slice.worst().map(|work| &work.name)
            && (b.instructions / a.instructions.max(1.0) - 1.0).abs() < SAME;
        return Some(layout_or_cache(slice, at, misses, rates, is_same_code));
    }
    let same_work = (b.instructions / a.instructions.max(1.0) - 1.0).abs() < 0.1;
    if same_work && pair.b.faults - pair.a.faults >= 1.0 {
        let finding = Finding::new(
            Kind::PageFaults,
            at,
            "reuse memory instead of touching new pages, which are not in any cache",
        )
        .fact("page faults", [pair.a.faults, pair.b.faults], Unit::Count, pair.b.rounds)
        .fact("instructions", [a.instructions, b.instructions], Unit::Count, 1)
        .fact(
            "time for these instructions",
            [slice.a_ns, slice.b_ns],
            Unit::Nanos,
            pair.b.samples(),
        )
        .inferred();
        return Some(finding);
    }
    if same_work && floats(&slice.b) > 0.05 && slice.b_ns > slice.a_ns * 1.3 {
        let finding = Finding::new(
            Kind::Denormals,
            at,
            "flush denormals to zero (FTZ and DAZ), or scale the data to magnitudes above 1e-38 \
             (float32) or 1e-308 (float64)",
        )
        .fact("instructions", [a.instructions, b.instructions], Unit::Count, 1)
        .fact(
            "time for these instructions",
            [slice.a_ns, slice.b_ns],
            Unit::Nanos,
            pair.b.samples(),
        )
        .inferred();
        return Some(finding);
    }
    None
}

/// Distinguishes `layout` and `cache-misses`. Strided access misses on nearly every access; access
/// to evicted data misses occasionally. If the same code has a different miss rate, the data layout
/// differs.
fn layout_or_cache(
    slice: &Slice<'_>,
    at: String,
    misses: [f64; 2],
    rates: [f64; 2],
    is_same_code: bool,
) -> Finding {
    /// Minimum miss rate of strided access.
    const EVERY_FEW: f64 = 0.2;
    let samples = slice.b.iter().map(|work| work.samples).sum();
    let finding = if is_same_code && rates[1] > EVERY_FEW && rates[1] > rates[0] * 2.0 {
        Finding::new(
            Kind::Layout,
            at,
            "access memory in order: swap the loops, or make one contiguous copy",
        )
    } else {
        Finding::new(Kind::CacheMisses, at, "process the data in blocks that fit into the cache")
    };
    finding.fact("L1 data cache misses", misses, Unit::Count, samples).fact(
        "L1 data cache miss rate",
        rates,
        Unit::Share,
        samples,
    )
}

/// Number of calls to the slice's hottest function on each side.
fn calls_of(slice: &Slice<'_>, pair: &Pair<'_>) -> Option<[f64; 2]> {
    let worst = slice.worst()?;
    let count = |side: &super::Seen| {
        let calls = side.calls.as_ref()?;
        let these = calls.iter().filter(|call| call.name == worst.name);
        Some(these.map(|call| call.count).sum::<f64>())
    };
    let both = [count(pair.a)?, count(pair.b)?];
    (both[0] > 0.0).then_some(both)
}

/// Share of floating-point arithmetic among instructions.
fn floats(work: &[&Work]) -> f64 {
    let mut sum = Mix::default();
    work.iter().filter_map(|work| work.mix.as_ref()).for_each(|mix| sum.add(mix));
    let math = sum.with(Mark::ScalarMath) + sum.with(Mark::PackedMath) + sum.with(Mark::Fma);
    math as f64 / sum.working().max(1) as f64
}
