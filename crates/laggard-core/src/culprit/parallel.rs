//! Threading judges: `not-parallel`, `too-parallel` and `waiting`.

use super::system::is_synchronization;
use super::{
    Finding, Kind, Pair, Part, Role, Seen, Slice, Spot, Unit, Verdict, Work, is_idle_loop,
};
use std::ops::Range;

/// B keeps fewer threads busy than A.
pub(super) fn judge_not_parallel(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    if slice.part != Part::Parallelism {
        return Verdict::Innocent;
    }
    let busy = [pair.a.parallelism(), pair.b.parallelism()];
    Finding::new(
        Kind::NotParallel,
        "",
        "use as many threads as A: check B's thread count settings and its single-threaded \
         sections",
    )
    .fact("busy threads (mean)", busy, Unit::Count, pair.b.rounds)
    .guilty()
}

/// B has more threads than A and spends time on locks, idle loops and waiting.
pub(super) fn judge_too_parallel(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    let is_threading_cost = matches!(
        slice.part,
        Part::Functions(Role::Sync | Role::Allocation | Role::StartUp)
            | Part::Kernel
            | Part::Waiting
    );
    let more_threads = pair.b.threads > pair.a.threads || pair.b.waits > pair.a.waits * 2.0 + 0.5;
    let has_threads = pair.b.threads > 1;
    if !is_threading_cost || !has_threads || !more_threads || pair.b.threads <= pair.a.threads {
        return Verdict::Innocent;
    }
    Finding::new(
        Kind::TooParallel,
        slice.worst().map(Work::at).unwrap_or_default(),
        "run small inputs on one thread; use more threads only above a size where they pay off",
    )
    .fact("threads", [pair.a.threads, pair.b.threads].map(f64::from), Unit::Count, pair.b.rounds)
    .fact("thread waits per call", [pair.a.waits, pair.b.waits], Unit::Count, pair.b.rounds)
    .fact("CPU time", [pair.a.cpu_ns(), pair.b.cpu_ns()], Unit::Nanos, pair.b.rounds)
    .guilty()
}

/// Threads of B wait for each other in idle loops, which use CPU time and yield the CPU repeatedly.
pub(super) fn judge_idle_loops(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    /// Bounds of the time of a call that yields the CPU.
    const YIELD_NS: Range<f64> = 50.0..20_000.0;
    let idle = |side: &Seen| {
        let idle = side.work.iter().filter(|work| is_idle_loop(&work.name));
        idle.map(|work| work.ns).sum::<f64>()
    };
    let yields = |side: &Seen| {
        let yields = side.calls.iter().flatten().filter(|call| call.name == "sched_yield");
        yields.map(|call| call.count).sum::<f64>()
    };
    let sides = [pair.a, pair.b];
    let (idle, yields) = (sides.map(idle), sides.map(yields));
    let of_b = pair.b.work.iter().filter(|work| is_idle_loop(&work.name));
    let Some(worst) = of_b.max_by(|x, y| x.ns.total_cmp(&y.ns)) else { return Verdict::Innocent };
    let is_idle = match slice.part {
        Part::Functions(Role::Sync) => idle[1] - idle[0] >= slice.gap_ns() / 2.0,
        Part::Kernel => YIELD_NS.contains(&(slice.gap_ns() / (yields[1] - yields[0]))),
        _ => false,
    };
    if !is_idle {
        return Verdict::Innocent;
    }
    let finding = Finding::new(
        Kind::TooParallel,
        worst.at(),
        "use fewer threads for problems of this size (for example OPENBLAS_NUM_THREADS=1), and no \
         more threads than free CPUs",
    )
    .fact("time in idle loops of threads", idle, Unit::Nanos, worst.samples);
    match slice.part {
        Part::Kernel => finding.fact("calls of sched_yield", yields, Unit::Count, 1),
        _ => {
            let busy = sides.map(Seen::parallelism);
            finding.fact("busy threads (mean)", busy, Unit::Count, pair.b.rounds)
        }
    }
    .guilty()
}

/// Waits per call up to this are ignored: the worker waits once per batch for its next command.
const SELDOM: f64 = 0.01;

/// Whether B hardly waits, so that its locks are free when it acquires them.
pub(super) fn is_uncontended(pair: &Pair<'_>) -> bool {
    pair.b.waits < SELDOM
}

/// B waits or spins on a lock.
pub(super) fn judge_waiting(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    let switches = pair.b.waits - pair.a.waits;
    let is_switching = slice.part == Part::Kernel && switches * 20_000.0 > slice.gap_ns();
    if slice.part != Part::Waiting && !slice.is(Role::Sync) && !is_switching {
        return Verdict::Innocent;
    }
    // Idle time without waits means that other programs used the CPU.
    if slice.part == Part::Waiting && pair.b.waits < SELDOM {
        return Verdict::Innocent;
    }
    let lock = pair.b.work.iter().filter(|work| work.role == Role::Sync);
    let lock = lock.max_by(|x, y| x.ns.total_cmp(&y.ns));
    // Uncontended locks cost time too, such as the GIL released and acquired around every call.
    let is_free = slice.is(Role::Sync) && is_uncontended(pair);
    let spot = pair.b.wait_spots.first().filter(|_| !is_free);
    if slice.part == Part::Waiting && spot.is_some_and(|spot| is_synchronization(&spot.function)) {
        // A system call of its own kind.
        return Verdict::Innocent;
    }
    let advice = match (is_free, spot) {
        (true, _) => {
            "the locks are not contended, but acquired often: acquire them once for several calls \
             instead of once per call (for example, the GIL)"
        }
        (false, Some(spot)) => advice_for(&spot.function),
        (false, None) => {
            "run `laggard record --clock wall` to see what B waits for: a lock, the GIL, sleep, \
             or I/O"
        }
    };
    let at = spot.map(Spot::at).or_else(|| lock.map(Work::at)).unwrap_or_default();
    let mut finding = Finding::new(Kind::Waiting, at, advice);
    if slice.is(Role::Sync) {
        let samples = slice.b.iter().map(|work| work.samples).sum();
        let locking = [slice.a_ns, slice.b_ns];
        finding = finding.fact("time in lock functions", locking, Unit::Nanos, samples);
    }
    if is_free {
        return finding.guilty();
    }
    finding
        .fact(
            "time with no thread running",
            [pair.a.waiting_ns(), pair.b.waiting_ns()],
            Unit::Nanos,
            pair.b.rounds,
        )
        .fact("thread waits per call", [pair.a.waits, pair.b.waits], Unit::Count, pair.b.rounds)
        .guilty()
}

/// How to wait less in a function of libc.
fn advice_for(function: &str) -> &'static str {
    // Without the library, whose name may contain the same words.
    let name = function.split(" (").next().unwrap_or_default();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match () {
        () if has(&["pthread_", "PyThread", "take_gil", "futex", "lll_lock", "cond_", "sem_"]) => {
            "B waits for another thread here: hold the lock for a shorter time, or use fewer \
             threads"
        }
        () if has(&["sleep"]) => "B sleeps here: wait for an event instead, or sleep less",
        () if has(&["poll", "select"]) => "B waits for a file, a socket or another process here",
        () if has(&["wait4", "waitpid", "waitid"]) => "B waits for a child process here",
        () if has(&["read", "recv", "accept", "write", "send", "sync"]) => {
            "B waits for input or output here: use larger requests, or overlap them with work"
        }
        () => "B waits here without using the CPU",
    }
}

#[cfg(test)]
mod tests {
    use super::advice_for;

    #[test]
    fn advice_fits_what_is_waited_for() {
        for (function, expected) in [
            ("pthread_cond_wait (libc.so.6)", "another thread"),
            ("PyThread_acquire_lock_timed (python3.13)", "another thread"),
            ("poll (libpthread-2.31.so)", "a file, a socket"),
            ("clock_nanosleep (libc.so.6)", "sleeps"),
            ("fsync (libc.so.6)", "input or output"),
            ("wait4 (libc.so.6)", "a child process"),
            ("something (app)", "without using the CPU"),
        ] {
            assert!(advice_for(function).contains(expected), "{function}");
        }
    }
}
