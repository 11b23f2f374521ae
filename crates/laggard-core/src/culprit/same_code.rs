//! Judges for equal work that takes longer: `more-instructions`, `more-calls`, `branch-misses`,
//! `cache-misses`, `memory-bound`, `layout` and `denormals`.

use super::Simulated;
use super::{Finding, Kind, Missing, Pair, Slice, Unit, Verdict, Work};
use crate::model::code::{Mark, Mix};

/// B executes more instructions, or calls the same functions more often.
pub(super) fn judge_more_work(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    /// Minimum share of the slice's slowdown that the additional instructions account for.
    const SHARE_THAT_MATTERS: f64 = 0.6;
    if !slice.is_work() {
        return Verdict::Innocent;
    }
    let Some([a, b]) = counted(slice, pair) else { return Verdict::Unknown(Missing::Counts) };
    let slower = slice.b_ns / slice.a_ns.max(1.0);
    let more = b.instructions / a.instructions.max(1.0);
    if a.instructions <= 0.0 || more < 1.1 || more - 1.0 < (slower - 1.0) * SHARE_THAT_MATTERS {
        return Verdict::Innocent;
    }
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
    finding
        .fact("instructions", [a.instructions, b.instructions], Unit::Count, pair.b.samples())
        .guilty()
}

/// The same instructions take longer in B.
pub(super) fn judge_slower_code(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    /// Costs of a mispredicted branch, a first-level cache miss and a last-level cache miss:
    /// conservative values for CPUs of the last ten years.
    const BRANCH_MISS_NS: f64 = 4.0;
    const CACHE_MISS_NS: f64 = 2.0;
    const MEMORY_NS: f64 = 20.0;
    /// Maximum relative difference in instruction counts for which the code counts as the same.
    const SAME: f64 = 0.02;
    /// Minimum share of the slice's difference that the misses account for.
    const SHARE_THAT_MATTERS: f64 = 0.25;
    if !slice.is_work() {
        return Verdict::Innocent;
    }
    let Some([a, b]) = counted(slice, pair) else { return Verdict::Unknown(Missing::Counts) };
    let at = slice.worst().map(Work::at).unwrap_or_default();
    let enough = slice.gap_ns() * SHARE_THAT_MATTERS;
    let branches = (b.branch_misses - a.branch_misses) * BRANCH_MISS_NS;
    let misses = [a.cache_misses, b.cache_misses];
    let memory = (b.memory_accesses - a.memory_accesses) * MEMORY_NS;
    let cache = (misses[1] - misses[0]) * CACHE_MISS_NS + memory;
    if branches >= enough && branches >= cache {
        return Finding::new(
            Kind::BranchMisses,
            at,
            "sort or group the data, or make the code branchless (select, mask, min and max)",
        )
        .fact("mispredicted branches", [a.branch_misses, b.branch_misses], Unit::Count, 1)
        .guilty();
    }
    if memory >= enough && memory > cache / 2.0 {
        return Finding::new(
            Kind::MemoryBound,
            at,
            "reduce memory traffic: smaller types, fewer passes, in-place results",
        )
        .fact("last-level cache misses", [a.memory_accesses, b.memory_accesses], Unit::Count, 1)
        .fact("loads and stores", [a.accesses, b.accesses], Unit::Count, 1)
        .guilty();
    }
    if cache >= enough {
        let rates = [a, b].map(|side| side.cache_misses / side.accesses.max(1.0));
        let is_same_code = slice.best().map(|work| &work.name)
            == slice.worst().map(|work| &work.name)
            && (b.instructions / a.instructions.max(1.0) - 1.0).abs() < SAME;
        return layout_or_cache(slice, at, misses, rates, is_same_code).guilty();
    }
    let same_work = (b.instructions / a.instructions.max(1.0) - 1.0).abs() < 0.1;
    if same_work && pair.b.faults - pair.a.faults >= 1.0 {
        return Finding::new(
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
        .inferred()
        .guilty();
    }
    if same_work && floats(&slice.b) > 0.05 && slice.b_ns > slice.a_ns * 1.3 {
        return Finding::new(
            Kind::Denormals,
            at,
            "flush denormals to zero (FTZ and DAZ), or keep values away from 1e-38 (float32) and \
             1e-308 (float64)",
        )
        .fact("instructions", [a.instructions, b.instructions], Unit::Count, 1)
        .fact(
            "time for these instructions",
            [slice.a_ns, slice.b_ns],
            Unit::Nanos,
            pair.b.samples(),
        )
        .inferred()
        .guilty();
    }
    Verdict::Innocent
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

/// Counts of a slice's functions. Falls back to the counts of the whole sides if either side has no
/// counts by function.
fn counted(slice: &Slice<'_>, pair: &Pair<'_>) -> Option<[Simulated; 2]> {
    let sum = |work: &[&Work]| {
        let mut sum = Simulated::default();
        let counted: Vec<Simulated> = work.iter().filter_map(|work| work.counted).collect();
        counted.iter().for_each(|one| sum.add(one));
        (!counted.is_empty()).then_some(sum)
    };
    match (sum(&slice.a), sum(&slice.b)) {
        (Some(a), Some(b)) => Some([a, b]),
        _ => Some([pair.a.counted?, pair.b.counted?]),
    }
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
