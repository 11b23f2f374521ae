//! Code selection judges: `slow-path` and `slow-instruction`.

use super::partition::{generation, stem};
use super::{Finding, Kind, Pair, Slice, Unit, Verdict, Work};
use crate::model::code::{Mark, Mix};

/// B runs a slower function of a library that also contains the faster one that A runs.
pub(super) fn judge_slow_path(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    if !slice.is_work() {
        return Verdict::Innocent;
    }
    /// Minimum share of a side's CPU time in the function.
    const SHARE_THAT_MATTERS: f64 = 0.4;
    let Some(worst) = slice.worst() else { return Verdict::Innocent };
    if worst.ns < pair.b.user_ns * SHARE_THAT_MATTERS {
        return Verdict::Innocent;
    }
    let is_faster = |work: &&Work| {
        work.library == worst.library
            && work.name != worst.name
            && !is_older(&work.name, &worst.name)
            && work.role == worst.role
            && work.ns >= pair.a.user_ns * SHARE_THAT_MATTERS
            // Variants for other CPUs belong to the SIMD judges.
            && stem(&work.name) != stem(&worst.name)
            && is_same_entry(work, worst, pair)
            // Neither side runs the other's function, although B's library contains it.
            && !pair.a.work.iter().any(|own| own.name == worst.name && own.ns * 10.0 > worst.ns)
            && !pair.b.work.iter().any(|other| other.name == work.name && other.ns > work.ns / 10.0)
            && pair.b.available.iter().any(|(library, name)| *library == work.library && *name == work.name)
    };
    let faster = pair.a.work.iter().filter(is_faster).max_by(|x, y| x.ns.total_cmp(&y.ns));
    let Some(faster) = faster.filter(|work| work.ns * 1.05 < worst.ns) else {
        return Verdict::Innocent;
    };
    Finding::new(
        Kind::SlowPath,
        worst.at(),
        format!(
            "{} also contains {}, which A runs: check why it is not selected for B",
            worst.library, faster.name
        ),
    )
    .fact(
        &format!("time in the function (A: {}, B: {})", faster.name, worst.name),
        [faster.ns, worst.ns],
        Unit::Nanos,
        worst.samples,
    )
    .guilty()
}

/// Whether a function needs an older instruction set than another one.
fn is_older(other: &str, own: &str) -> bool {
    matches!((generation(other), generation(own)), (Some(other), Some(own)) if other < own)
}

/// Whether both sides reach these functions through the same entry points of the library. If so, the
/// library selected the function; otherwise the caller did.
fn is_same_entry(a: &Work, b: &Work, pair: &Pair<'_>) -> bool {
    let entries = |side: &super::Seen| -> Vec<String> {
        let calls = side.calls.iter().flatten().filter(|call| call.library == b.library);
        let mut names: Vec<String> = calls.map(|call| call.name.clone()).collect();
        names.sort();
        names
    };
    let (of_a, of_b) = (entries(pair.a), entries(pair.b));
    match of_a.is_empty() && of_b.is_empty() {
        // Calls that Python makes through function pointers are not traced.
        true => !b.parent.is_empty() && a.parent == b.parent,
        false => of_a == of_b && !of_b.iter().any(|name| *name == b.name || *name == a.name),
    }
}

/// B executes a larger share of divisions than A.
pub(super) fn judge_slow_instruction(slice: &Slice<'_>, _: &Pair<'_>) -> Verdict {
    /// Minimum difference in the share of divisions among instructions, weighted by samples.
    const SHARE_THAT_MATTERS: f64 = 0.03;
    if !slice.is_work() {
        return Verdict::Innocent;
    }
    let divisions = |work: &[&Work]| {
        let mut sum = Mix::default();
        work.iter().filter_map(|work| work.mix.as_ref()).for_each(|mix| sum.add(mix));
        sum.with(Mark::Divide) as f64 / sum.working().max(1) as f64
    };
    let [of_a, of_b] = [divisions(&slice.a), divisions(&slice.b)];
    if of_b - of_a < SHARE_THAT_MATTERS || of_b < of_a * 2.0 {
        return Verdict::Innocent;
    }
    Finding::new(
        Kind::SlowInstruction,
        slice.worst().map(Work::at).unwrap_or_default(),
        "multiply by the reciprocal if the divisor is constant, or use vector division".to_owned(),
    )
    .fact(
        "division and square root instructions",
        [of_a, of_b],
        Unit::Share,
        slice.b.iter().map(|work| work.samples).sum(),
    )
    .guilty()
}
