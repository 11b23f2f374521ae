//! A thread pool.
//!
//! The threads are started for the first sufficiently large work and then stay. A forked child starts its own. If
//! another thread of the program is using the pool, the caller does all the work itself.

use crate::dispatch;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Waking a thread takes about ten microseconds, so work on fewer bytes is faster on one thread.
pub const SPLIT_FROM_BYTES: usize = 1 << 20;

/// Does `work` on `0..len`, split among threads if several are allowed and `bytes` is large enough. Parts start at
/// multiples of `unit`.
pub(crate) fn split(len: usize, unit: usize, bytes: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    let threads = dispatch::current().threads;
    let units = len.div_ceil(unit.max(1));
    let parts = threads.min(units);
    if parts < 2 || bytes < SPLIT_FROM_BYTES {
        return work(0..len);
    }
    let edge = |part: usize| (units * part / parts * unit).min(len);
    in_parallel(parts, &|part| work(edge(part)..edge(part + 1)));
}

/// Calls `work` with each number below `parts`, in that many threads.
fn in_parallel(parts: usize, work: &(dyn Fn(usize) + Sync)) {
    static CREW: Mutex<Option<Crew>> = Mutex::new(None);
    // A lock that another thread held during a fork stays locked in the child, which then uses no threads.
    let Ok(mut crew) = CREW.try_lock() else {
        return (0..parts).for_each(work);
    };
    let process = std::process::id();
    if crew.as_ref().is_none_or(|crew| crew.process != process) {
        *crew = Some(Crew { process, shared: Arc::default(), threads: 0 });
    }
    if let Some(crew) = crew.as_mut() {
        crew.run(parts, work);
    }
}

/// The threads of one process.
struct Crew {
    process: u32,
    shared: Arc<Shared>,
    threads: usize,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work_is_there: Condvar,
    all_is_done: Condvar,
}

#[derive(Default)]
struct State {
    job: Option<Job>,
    next_part: usize,
    parts: usize,
    running: usize,
    panic: Option<Box<dyn std::any::Any + Send>>,
}

/// Work of a caller that waits until no thread uses it.
#[derive(Clone, Copy)]
struct Job(&'static (dyn Fn(usize) + Sync));

impl Crew {
    fn run(&mut self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        while self.threads + 1 < parts {
            let shared = Arc::clone(&self.shared);
            let name = format!("raptors-{}", self.threads + 1);
            // With fewer threads, each does more parts.
            if std::thread::Builder::new().name(name).spawn(move || shared.serve()).is_err() {
                break;
            }
            self.threads += 1;
        }
        // SAFETY: the job is removed below, after all threads are done with it and before `work` ends.
        let job = Job(unsafe {
            std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work)
        });
        let shared = &*self.shared;
        let mut state = shared.lock();
        (state.job, state.next_part, state.parts) = (Some(job), 0, parts);
        shared.work_is_there.notify_all();
        while state.next_part < state.parts {
            state = shared.do_part(state, job);
        }
        while state.running > 0 {
            state = shared.all_is_done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.job = None;
        let panic = state.panic.take();
        drop(state);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Main loop of a thread.
    fn serve(&self) {
        let mut state = self.lock();
        loop {
            state = match state.job {
                Some(job) if state.next_part < state.parts => self.do_part(state, job),
                _ => self.work_is_there.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Does the next part, with the lock released.
    fn do_part<'a>(&'a self, mut state: MutexGuard<'a, State>, job: Job) -> MutexGuard<'a, State> {
        let part = state.next_part;
        state.next_part += 1;
        state.running += 1;
        drop(state);
        let done = catch_unwind(AssertUnwindSafe(|| (job.0)(part)));
        let mut state = self.lock();
        state.running -= 1;
        state.panic = done.err().or(state.panic.take());
        if state.running == 0 {
            self.all_is_done.notify_one();
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A part that is skipped or done twice would give a wrong result.
    #[test]
    fn every_part_is_done_once() {
        for parts in [1, 2, 3, 7] {
            for _ in 0..200 {
                let counts: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
                in_parallel(parts, &|part| {
                    counts[part].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
            }
        }
    }

    /// A panic must reach the caller, and the threads must survive it.
    #[test]
    fn a_panic_reaches_the_caller() {
        let panicked = catch_unwind(|| in_parallel(2, &|part| assert_eq!(part, 0)));
        assert!(panicked.is_err());
        in_parallel(2, &|_| ());
    }
}
