//! The sampling agent loaded late: samples a block of code in a process that is already running.
//!
//! `laggard_start` finds the existing threads and gives each a clock. `laggard_stop` removes the
//! clocks and restores the program's own signal actions. In between, only the signal handler runs.
//! It stores no state per thread: its input comes with the signal, and its buffer is borrowed for
//! one sample. Threads may therefore start and end at any time. docs/design/agent.md describes the
//! pitfalls.

mod actions;
mod clocks;

use crate::python::{LONGEST_CHAIN, Memory};
use crate::records::{copy_stack, forget_sent};
use crate::ring::Ring;
use crate::sample::{
    Context, Guarded, RSP, SHARED, SIG_DFL, SIG_IGN, SIGBUS, SIGSEGV, SIGTRAP, Signal, TRAP_PERF,
    Tick, bit, came_late, find_function, is_near, not_ours, now_ns, ring, take, tell_maps, waited,
    wanted_handler,
};
use crate::sys;
use crate::tasks::Tasks;
use crate::wire::{self, Header, PythonFrame, RED_ZONE, Trigger, kind, options, refusal, stopped};
use actions::{install, is_installed, restore};
use clocks::{
    Clock, ESRCH, MARK, MOST_THREADS, arm, clock_number, clock_of, clocks, disable, enable, note,
    number_of_descriptor, release, set_trigger, signal_of, trigger,
};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// Maximum number of concurrent samples.
const MOST_AT_ONCE: usize = 64;
/// Time that a sample in progress has to finish when sampling ends.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Time that the restore of the program's own actions waits for our pending signals.
const PATIENCE_WITH_SIGNALS_NS: u64 = 200_000_000;
/// CPU time after which a thread has certainly left the kernel and received its pending signals.
const WAS_SEEN_NS: u64 = 50_000;
/// Interval of the scans for new threads if they do not inherit clocks.
const BETWEEN_SCANS_NS: u64 = 20_000_000;

/// States of the library.
mod state {
    /// Idle.
    pub(super) const IDLE: u32 = 0;
    /// Sampling a program that it was preloaded into.
    pub(super) const PRELOADED: u32 = 1;
    /// Starting or stopping.
    pub(super) const CHANGING: u32 = 2;
    /// Sampling a block.
    pub(super) const SAMPLING: u32 = 3;
}

struct Late {
    state: AtomicU32,
    /// Whether the handler takes samples.
    is_on: AtomicU32,
    /// Borrowed chains, one bit each.
    lent: AtomicU64,
    chains: [UnsafeCell<[PythonFrame; LONGEST_CHAIN]>; MOST_AT_ONCE],
    /// Samples lost because all chains were borrowed.
    crowded: AtomicU64,
    next_scan_ns: AtomicU64,
    /// End of the stack of the first thread.
    stack_end: AtomicU64,
    knows_of_forks: AtomicU32,
}

// SAFETY: only the thread that set the bit of a chain accesses it.
unsafe impl Sync for Late {}

static LATE: Late = Late {
    state: AtomicU32::new(state::IDLE),
    is_on: AtomicU32::new(0),
    lent: AtomicU64::new(0),
    chains: [const {
        UnsafeCell::new([PythonFrame { code: 0, border: 0, lasti: 0, position: 0 }; LONGEST_CHAIN])
    }; MOST_AT_ONCE],
    crowded: AtomicU64::new(0),
    next_scan_ns: AtomicU64::new(0),
    stack_end: AtomicU64::new(0),
    knows_of_forks: AtomicU32::new(0),
};

/// Marks the library as preloaded: blocks cannot be sampled.
pub(crate) fn is_preloaded() {
    LATE.state.store(state::PRELOADED, Release);
}

/// The memory of the process, read by the kernel: slow, but needs no fault handler.
#[derive(Clone, Copy)]
struct Careful(u32);

impl Memory for Careful {
    fn load(self, address: u64) -> Option<u64> {
        let mut word = 0u64;
        // SAFETY: `word` has room for eight bytes.
        let got = unsafe { copy_stack((&raw mut word).cast(), address, 8, self.0) };
        (got == 8).then_some(word)
    }
}

/// Takes one sample. Runs in the signal handler of the sampled thread.
unsafe extern "C" fn on_tick(signal: i32, info: *mut Signal, context: *mut Context) {
    // SAFETY: signal, info and context come from the kernel for this thread. The chain is borrowed
    // by this handler alone.
    unsafe {
        let Some(number) = number_of(signal as u32, &*info) else {
            return not_ours(signal, info, context);
        };
        let Some(chain) = borrow_chain() else {
            LATE.crowded.fetch_add(1, Relaxed);
            return;
        };
        // Checked while a chain is borrowed: stopping waits until no chain is borrowed.
        if LATE.is_on.load(SeqCst) != 0
            && let Some(ring) = ring()
        {
            let chain = &mut *LATE.chains[chain].get();
            sample(ring, signal as u32, number, &*info, &*context, chain);
        }
        LATE.lent.fetch_and(!(1 << chain), SeqCst);
    }
}

/// The index of the clock that a signal comes from; `None` if the signal belongs to the program.
fn number_of(signal: u32, info: &Signal) -> Option<usize> {
    const SI_TIMER: i32 = -2;
    const POLL: core::ops::RangeInclusive<i32> = 1..=6;
    let marked = (info.data & !0xffff_ffff == MARK).then_some((info.data as u32) as usize);
    if signal == SIGTRAP {
        return marked.filter(|_| info.code == TRAP_PERF);
    }
    if POLL.contains(&info.code) {
        let fd = info.data as i32;
        let found = number_of_descriptor(fd);
        // Late signals have no clock any more. They are dropped if the program has no handler for
        // them.
        return found.or_else(|| {
            matches!(wanted_handler(signal), SIG_DFL | SIG_IGN).then_some(MOST_THREADS)
        });
    }
    marked.filter(|_| info.code == SI_TIMER)
}

/// Borrows a free chain.
fn borrow_chain() -> Option<usize> {
    let mut lent = LATE.lent.load(Relaxed);
    loop {
        let free = lent.trailing_ones();
        if free as usize >= MOST_AT_ONCE {
            return None;
        }
        match LATE.lent.compare_exchange_weak(lent, lent | 1 << free, SeqCst, Relaxed) {
            Ok(_) => return Some(free as usize),
            Err(now) => lent = now,
        }
    }
}

unsafe fn sample(
    ring: &Ring,
    signal: u32,
    number: usize,
    info: &Signal,
    context: &Context,
    chain: &mut [PythonFrame],
) {
    let header = ring.header();
    let (tid, pid) = (sys::gettid(), SHARED.pid.load(Relaxed));
    let Some(clock) = clock_number(number) else { return };
    let is_own = clock.tid.load(Relaxed) == tid;
    // A thread that was created during the start may have inherited a clock and also got its own.
    if (!is_own && clock_of(tid).is_some_and(Clock::is_real))
        || header.options.load(Relaxed) & options::EMPTY != 0
    {
        return;
    }
    let (cpu_ns, waits) = waited(header, clock.seen_ns.load(Relaxed));
    if is_own {
        clock.seen_ns.store(cpu_ns, Relaxed);
    }
    let stack_pointer = context.registers[RSP] - RED_ZONE;
    // A thread's control block lies above its stack, except for the first thread.
    let first = LATE.stack_end.load(Relaxed);
    let is_whole = tid == pid && is_near(stack_pointer, first);
    let stack_end = if is_whole { first } else { sys::thread_pointer() };
    // SAFETY: the context comes from the kernel for this thread.
    unsafe {
        let late = if signal == SIGTRAP { came_late(header, info) } else { 0 };
        let tick = Tick { tid, stack_end, is_whole, flags: waits | late, cpu_ns, value: 0 };
        // There is no notification if the program replaces the fault handler, so it is checked
        // here.
        if is_installed(SIGSEGV) {
            take(ring, &tick, chain, context, Guarded);
        } else {
            header.careful.fetch_add(1, Relaxed);
            take(ring, &tick, chain, context, Careful(pid));
        }
    }
    look_for_threads(header);
}

/// Gives clocks to threads that were created since, if they do not inherit them.
fn look_for_threads(header: &Header) {
    let is_passed_on = trigger() == Some(Trigger::SigTrap);
    let now = now_ns();
    let next = LATE.next_scan_ns.load(Relaxed);
    if is_passed_on || now < next {
        return;
    }
    let Some(mut tasks) = Tasks::try_lock() else { return };
    // Stopping changes the state first, then waits for the lock.
    if LATE.state.load(SeqCst) == state::SAMPLING {
        LATE.next_scan_ns.store(now + BETWEEN_SCANS_NS, Relaxed);
        scan(&mut tasks, header, |clock| enable(clock, header));
    }
}

/// Samples this process from now on, for the driver that has the ring at `path`. Returns 0, one of
/// [`refusal`], or the negated error number of the last trigger.
///
/// # Safety
/// `path` must be null-terminated.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn laggard_start(path: *const u8) -> i32 {
    match LATE.state.compare_exchange(state::IDLE, state::CHANGING, SeqCst, SeqCst) {
        Ok(_) => {}
        Err(state::PRELOADED) => return refusal::PRELOADED,
        Err(_) => return refusal::BUSY,
    }
    // SAFETY: the caller guarantees the path; the state keeps others from starting or stopping.
    let answer = unsafe { start(path) };
    let next = if answer == 0 { state::SAMPLING } else { state::IDLE };
    LATE.state.store(next, SeqCst);
    answer
}

unsafe fn start(path: *const u8) -> i32 {
    // SAFETY: the state keeps others from starting or stopping, and no handler uses the ring before
    // `is_on` is set.
    unsafe {
        if !wait_for_handlers() {
            return refusal::UNDER_WAY;
        }
        close_ring();
        let pid = sys::getpid();
        let is_free =
            |header: &Header| header.root_pid.compare_exchange(0, pid, AcqRel, Acquire).is_ok();
        let Some(ring) = Ring::open(path, is_free) else { return refusal::NO_RING };
        SHARED.pid.store(pid, Relaxed);
        ring.populate();
        *SHARED.ring.get() = Some(ring);
        forget_sent();
        follow_forks();
        for signal in [SIGSEGV, SIGBUS] {
            install(signal);
        }
        tell_maps(1);
        LATE.is_on.store(1, SeqCst);
        let header = ring.header();
        let mut tasks = Tasks::lock();
        let error = choose(&mut tasks, header);
        if error != 0 {
            drop(tasks);
            clocks::clear();
            LATE.is_on.store(0, SeqCst);
            restore();
            close_ring();
            return -(error as i32);
        }
        // Threads may be created meanwhile by threads that have no clock to pass on yet.
        const MOST_SCANS: u32 = 8;
        for _ in 0..MOST_SCANS {
            let found = scan(&mut tasks, header, |_| ());
            if found > 0 {
                continue;
            }
            if clocks().iter().all(Clock::is_real) {
                break;
            }
            // Threads that are just starting unblock their signals in a moment.
            sys::sleep_ns(500_000);
        }
        LATE.next_scan_ns.store(now_ns() + BETWEEN_SCANS_NS, Relaxed);
        // The calling thread comes last, so that the rest of this function is not sampled.
        clocks().iter().skip(1).chain(clocks().first()).for_each(|clock| enable(clock, header));
        0
    }
}

/// Gives the calling thread the best available clock, which all others get too. Returns the error
/// number if there is none.
fn choose(tasks: &mut Tasks, header: &Header) -> u32 {
    let is_wall = header.options.load(Relaxed) & options::WALL != 0;
    let mut number = if is_wall { Trigger::Wall as u32 } else { header.trigger.load(Relaxed) };
    let mut error = 0;
    while let Some(trigger) = Trigger::from_number(number) {
        set_trigger(trigger);
        // SAFETY: only the starting thread changes signal actions.
        unsafe { install(signal_of(trigger)) };
        match arm(tasks, header, sys::gettid()) {
            Ok(_) => {
                header.got_trigger.store(number + 1, Relaxed);
                return 0;
            }
            Err(why) => error = why,
        }
        let _ = header.trigger_error.compare_exchange(0, error, Relaxed, Relaxed);
        if trigger == Trigger::Timer {
            break;
        }
        number += 1;
    }
    error.max(1)
}

/// Gives a clock to every thread that has none, and calls `each` for it. Returns the number of
/// these threads.
fn scan(tasks: &mut Tasks, header: &Header, each: impl Fn(&Clock)) -> usize {
    let mut found = 0;
    let mut unsampled = 0;
    tasks.each(|tasks, tid| match arm(tasks, header, tid) {
        Ok(Some(clock)) => {
            found += 1;
            each(clock);
        }
        Ok(None) | Err(ESRCH) => {}
        Err(_) => unsampled += 1,
    });
    header.unarmed.fetch_max(unsampled, Relaxed);
    found
}

/// Stops sampling this process and restores its signal actions. Returns bits of [`stopped`].
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) extern "C" fn laggard_stop() -> i32 {
    let is_ours =
        LATE.state.compare_exchange(state::SAMPLING, state::CHANGING, SeqCst, SeqCst).is_ok();
    if !is_ours {
        return stopped::NOTHING;
    }
    // SAFETY: the state keeps others from starting or stopping.
    let answer = unsafe { stop() };
    LATE.state.store(state::IDLE, SeqCst);
    answer
}

unsafe fn stop() -> i32 {
    let mut tasks = Tasks::lock();
    let Some(ring) = ring() else { return stopped::NOTHING };
    let header = ring.header();
    clocks().iter().for_each(disable);
    tell_ends(&mut tasks, ring);
    tell_maps(2);
    header.dropped.fetch_add(LATE.crowded.swap(0, Relaxed), Relaxed);
    let signal = trigger().map_or(SIGTRAP, signal_of);
    // SAFETY: the handler does not use the ring any more once no chain is borrowed.
    unsafe {
        if !is_installed(signal) {
            header.taken_over.store(1, Relaxed);
        }
        LATE.is_on.store(0, SeqCst);
        clocks().iter().for_each(release);
        if wait_for_handlers() {
            close_ring();
        }
        let is_quiet = settle(&mut tasks, bit(signal));
        clocks::clear();
        if !is_quiet {
            return stopped::KEPT;
        }
        restore();
        0
    }
}

/// Sends name and CPU time of all live threads, and stores the CPU time of threads without a clock.
fn tell_ends(tasks: &mut Tasks, ring: &Ring) {
    let header = ring.header();
    let pid = SHARED.pid.load(Relaxed);
    let signal = trigger().map_or(SIGTRAP, signal_of);
    let is_passed_on = trigger() == Some(Trigger::SigTrap);
    let (mut blocked, mut unseen) = (0, 0);
    tasks.each(|tasks, tid| {
        let used = sys::clock_ns(sys::clock_of_thread(tid));
        let known = clock_of(tid);
        let status = tasks.status(tid).unwrap_or_default();
        if status.blocked & bit(signal) != 0 || known.is_some_and(|clock| !clock.is_real()) {
            blocked += 1;
        } else if known.is_none() && !is_passed_on {
            unseen += 1;
        }
        let before = known.map_or(0, |clock| clock.began_ns.load(Relaxed));
        match known {
            Some(clock) => clock.seen_ns.store(used, Relaxed),
            None => note(tid, used),
        }
        let name = tasks.name(tid);
        if used > before
            && let Some(place) = ring.reserve(size_of::<wire::Thread>(), pid)
        {
            let cpu_ns = used - before;
            let record = wire::Thread { pid, tid, cpu_ns, name, has_inherited: 0 };
            // SAFETY: the slot has room for the record.
            unsafe { place.payload.cast::<wire::Thread>().write(record) };
            ring.commit(&place, kind::THREAD_END);
        }
    });
    header.blocked.store(blocked, Relaxed);
    header.unseen.store(unseen, Relaxed);
}

/// Waits until no sample is in progress; false on a timeout.
fn wait_for_handlers() -> bool {
    let began = now_ns();
    while LATE.lent.load(SeqCst) != 0 {
        if now_ns().wrapping_sub(began) > PATIENCE_NS {
            return false;
        }
        sys::sleep_ns(50_000);
    }
    true
}

/// Waits until none of these signals can arrive any more: a thread may have been interrupted by its
/// clock and not run since, or may block the signal. Returns false if one may still arrive.
fn settle(tasks: &mut Tasks, signals: u64) -> bool {
    let own = sys::gettid();
    let began = now_ns();
    loop {
        let mut is_quiet = true;
        tasks.each(|tasks, tid| {
            let Some(status) = tasks.status(tid) else { return };
            let used = sys::clock_ns(sys::clock_of_thread(tid));
            // A thread that was created since has no clock.
            let seen = clock_of(tid).map_or(0, |clock| clock.seen_ns.load(Relaxed));
            let has_run = used.saturating_sub(seen) > WAS_SEEN_NS;
            let may_come = status.is_running && !has_run && tid != own;
            is_quiet &= status.pending & signals == 0 && !may_come;
        });
        if is_quiet || now_ns().wrapping_sub(began) > PATIENCE_WITH_SIGNALS_NS {
            return is_quiet;
        }
        sys::sleep_ns(200_000);
    }
}

/// Runs when the library is loaded, under the dynamic linker's lock.
pub(crate) fn on_load() {
    if let Some(place) = find_function(b"__libc_stack_end", false) {
        // The argument count and the argument list lie there, above the first frame.
        const START_OF_PROGRAM: u64 = 64;
        // SAFETY: a variable of the dynamic linker that never changes.
        let end = unsafe { *(place as *const u64) } + START_OF_PROGRAM;
        LATE.stack_end.store(end, Relaxed);
    }
}

/// Unmaps the ring.
///
/// # Safety
/// No handler may use it.
unsafe fn close_ring() {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if let Some(ring) = (*SHARED.ring.get()).take() {
            ring.close();
        }
    }
}

fn follow_forks() {
    if LATE.knows_of_forks.swap(1, Relaxed) != 0 {
        return;
    }
    let Some(register) = SHARED.register_fork() else { return };
    // SAFETY: libc's function with its own type; the library is never unloaded, so the callback
    // stays valid.
    unsafe { register(None, None, Some(after_fork), core::ptr::null()) };
}

/// A forked process is not sampled: it has no clocks, and releases its copies of our resources.
unsafe extern "C" fn after_fork() {
    // SAFETY: runs in the only thread of a new process.
    unsafe {
        SHARED.pid.store(sys::getpid(), Relaxed);
        LATE.is_on.store(0, SeqCst);
        LATE.lent.store(0, SeqCst);
        Tasks::forget_others();
        clocks().iter().for_each(release);
        clocks::clear();
        restore();
        close_ring();
        LATE.state.store(state::IDLE, SeqCst);
    }
}

/// Runs when the process exits normally while it is being sampled.
pub(crate) fn on_unload() {
    if LATE.state.load(SeqCst) == state::SAMPLING {
        tell_maps(2);
    }
}
