//! The judges of threads: `not-parallel`, `too-parallel` and `waiting`.

use super::{Finding, Kind, Pair, Part, Role, Slice, Unit, Verdict, Work};

/// B works with fewer threads at a time than A.
pub(super) fn judge_not_parallel(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    if slice.part != Part::Parallelism {
        return Verdict::Innocent;
    }
    let busy = [pair.a.parallelism(), pair.b.parallelism()];
    Finding::new(
        Kind::NotParallel,
        "",
        "let it use as many threads as A: look at the number of threads it is told, and at what it does alone",
    )
    .fact("threads at work", busy, Unit::Count, pair.b.rounds)
    .guilty()
}

/// B has more threads than A, and pays for it with locks, idle loops and waiting.
pub(super) fn judge_too_parallel(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    let is_price = matches!(
        slice.part,
        Part::Functions(Role::Sync | Role::Allocation | Role::StartUp)
            | Part::Kernel
            | Part::Waiting
    );
    let more_threads = pair.b.threads > pair.a.threads || pair.b.waits > pair.a.waits * 2.0 + 0.5;
    let has_threads = pair.b.threads > 1;
    if !is_price || !has_threads || !more_threads || pair.b.threads <= pair.a.threads {
        return Verdict::Innocent;
    }
    Finding::new(
        Kind::TooParallel,
        slice.worst().map(Work::at).unwrap_or_default(),
        "do small work on one thread: hand it out only from a size on at which that pays",
    )
    .fact("threads", [pair.a.threads, pair.b.threads].map(f64::from), Unit::Count, pair.b.rounds)
    .fact("waits of a thread", [pair.a.waits, pair.b.waits], Unit::Count, pair.b.rounds)
    .fact("CPU time", [pair.a.cpu_ns(), pair.b.cpu_ns()], Unit::Nanos, pair.b.rounds)
    .guilty()
}

/// Waits in a call that mean nothing: of a batch, the worker waits once for what to do next.
const SELDOM: f64 = 0.01;

/// B waits, or spins for a lock.
pub(super) fn judge_waiting(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    let switches = pair.b.waits - pair.a.waits;
    let is_switching = slice.part == Part::Kernel && switches * 20_000.0 > slice.gap_ns();
    if slice.part != Part::Waiting && !slice.is(Role::Sync) && !is_switching {
        return Verdict::Innocent;
    }
    // Whoever did not wait was made to: other programs had the processor.
    if slice.part == Part::Waiting && pair.b.waits < SELDOM {
        return Verdict::Innocent;
    }
    let lock = pair.b.work.iter().filter(|work| work.role == Role::Sync);
    let lock = lock.max_by(|x, y| x.ns.total_cmp(&y.ns));
    // Locks that nobody holds cost time too: as Python's, given back and taken again around a call.
    let is_free = slice.is(Role::Sync) && pair.b.waits < SELDOM;
    let advice = match is_free {
        true => {
            "nobody waits: locks are taken and given back, as Python's global lock around every call; do it once around more work"
        }
        false => {
            "look at what it waits for with `laggard record --clock wall`: a lock, Python's global lock, sleep, input or output"
        }
    };
    let mut finding = Finding::new(Kind::Waiting, lock.map(Work::at).unwrap_or_default(), advice);
    if slice.is(Role::Sync) {
        let samples = slice.b.iter().map(|work| work.samples).sum();
        let locking = [slice.a_ns, slice.b_ns];
        finding = finding.fact("time in functions that lock", locking, Unit::Nanos, samples);
    }
    if is_free {
        return finding.guilty();
    }
    finding
        .fact(
            "time without a thread at work",
            [pair.a.waiting_ns(), pair.b.waiting_ns()],
            Unit::Nanos,
            pair.b.rounds,
        )
        .fact("waits of a thread", [pair.a.waits, pair.b.waits], Unit::Count, pair.b.rounds)
        .guilty()
}
