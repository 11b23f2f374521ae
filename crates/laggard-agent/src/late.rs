//! The sampling agent loaded late: samples of a block of code in a process that runs already.
//!
//! `laggard_start` finds the threads that there are and gives each a clock, `laggard_stop` takes
//! the clocks away and puts the program's own signal actions back. In between the handler alone
//! runs. It keeps nothing of a thread: what it needs to know comes with the signal, and what it
//! needs to write to is lent for the time of a sample. So threads may come and go as they like.
//! Traps of this are in docs/design/agent.md, "Loaded late".

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

/// Samples that can be taken at the same moment.
const MOST_AT_ONCE: usize = 64;
/// How long what is under way may take when samples end.
const PATIENCE_NS: u64 = 1_000_000_000;
/// How long the program's own actions wait for signals of ours that are still to come.
const PATIENCE_WITH_SIGNALS_NS: u64 = 200_000_000;
/// CPU time after which a thread has surely left the kernel, and met what was waiting for it there.
const WAS_SEEN_NS: u64 = 50_000;
/// Time between looks for threads where clocks are not passed on to new ones.
const BETWEEN_SCANS_NS: u64 = 20_000_000;

/// What the library does.
mod state {
    /// Nothing.
    pub(super) const IDLE: u32 = 0;
    /// Samples, for a program that it was loaded with.
    pub(super) const PRELOADED: u32 = 1;
    /// It starts or stops.
    pub(super) const CHANGING: u32 = 2;
    /// Samples, of a block.
    pub(super) const SAMPLING: u32 = 3;
}

struct Late {
    state: AtomicU32,
    /// Whether the handler takes samples.
    is_on: AtomicU32,
    /// Which of the chains are lent: a bit each.
    lent: AtomicU64,
    chains: [UnsafeCell<[PythonFrame; LONGEST_CHAIN]>; MOST_AT_ONCE],
    /// Samples lost because all of them were.
    crowded: AtomicU64,
    next_scan_ns: AtomicU64,
    /// Where the stack of the first thread ends.
    stack_end: AtomicU64,
    knows_of_forks: AtomicU32,
}

// SAFETY: a chain belongs to whoever set its bit.
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

/// The library came with the program: no block can be sampled.
pub(crate) fn is_preloaded() {
    LATE.state.store(state::PRELOADED, Release);
}

/// The memory of the process, read by the kernel: slow, and needs no handler of faults.
#[derive(Clone, Copy)]
struct Careful(u32);

impl Memory for Careful {
    fn load(self, address: u64) -> Option<u64> {
        let mut word = 0u64;
        // SAFETY: there is room for a word.
        let got = unsafe { copy_stack((&raw mut word).cast(), address, 8, self.0) };
        (got == 8).then_some(word)
    }
}

/// Takes one sample. Runs in the signal handler of the sampled thread.
unsafe extern "C" fn on_tick(signal: i32, info: *mut Signal, context: *mut Context) {
    // SAFETY: signal, info and context are the kernel's for this thread.
    unsafe {
        let Some(number) = number_of(signal as u32, &*info) else {
            return not_ours(signal, info, context);
        };
        let Some(chain) = borrow_chain() else {
            LATE.crowded.fetch_add(1, Relaxed);
            return;
        };
        // Asked for while a chain is lent: who ends the samples waits until none is.
        if LATE.is_on.load(SeqCst) != 0
            && let Some(ring) = ring()
        {
            let chain = &mut *LATE.chains[chain].get();
            sample(ring, signal as u32, number, &*info, &*context, chain);
        }
        LATE.lent.fetch_and(!(1 << chain), SeqCst);
    }
}

/// The number of the clock that a signal is from; none when it is the program's own.
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
        // Late ones have no clock any more; who has no action for them gets none.
        return found.or_else(|| {
            matches!(wanted_handler(signal), SIG_DFL | SIG_IGN).then_some(MOST_THREADS)
        });
    }
    marked.filter(|_| info.code == SI_TIMER)
}

/// A chain that nobody else has.
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
    // A thread that was born while clocks were given away may have inherited one and got another.
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
    // A thread's control block stands above its stack, but for the first thread.
    let first = LATE.stack_end.load(Relaxed);
    let is_whole = tid == pid && is_near(stack_pointer, first);
    let stack_end = if is_whole { first } else { sys::thread_pointer() };
    // SAFETY: the context is the kernel's.
    unsafe {
        let late = if signal == SIGTRAP { came_late(header, info) } else { 0 };
        let tick = Tick { tid, stack_end, is_whole, flags: waits | late, cpu_ns, value: 0 };
        // Nobody tells us when the program takes the signal of faults for itself.
        if is_installed(SIGSEGV) {
            take(ring, &tick, chain, context, Guarded);
        } else {
            header.careful.fetch_add(1, Relaxed);
            take(ring, &tick, chain, context, Careful(pid));
        }
    }
    look_for_threads(header);
}

/// Gives clocks to threads that were born since, where they do not inherit them.
fn look_for_threads(header: &Header) {
    let is_passed_on = trigger() == Some(Trigger::SigTrap);
    let now = now_ns();
    let next = LATE.next_scan_ns.load(Relaxed);
    if is_passed_on || now < next {
        return;
    }
    let Some(mut tasks) = Tasks::try_lock() else { return };
    // Who ends the samples changes this first, then waits for the lock.
    if LATE.state.load(SeqCst) == state::SAMPLING {
        LATE.next_scan_ns.store(now + BETWEEN_SCANS_NS, Relaxed);
        scan(&mut tasks, header, |clock| enable(clock, header));
    }
}

/// Samples this process from now on, for the driver that has the ring at `path`. Returns 0, one of
/// [`refusal`], or the negative number of the error that the last trigger gave.
///
/// # Safety
/// `path` ends in a zero.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn laggard_start(path: *const u8) -> i32 {
    match LATE.state.compare_exchange(state::IDLE, state::CHANGING, SeqCst, SeqCst) {
        Ok(_) => {}
        Err(state::PRELOADED) => return refusal::PRELOADED,
        Err(_) => return refusal::BUSY,
    }
    // SAFETY: the caller's path; nobody else starts or stops.
    let answer = unsafe { start(path) };
    let next = if answer == 0 { state::SAMPLING } else { state::IDLE };
    LATE.state.store(next, SeqCst);
    answer
}

unsafe fn start(path: *const u8) -> i32 {
    // SAFETY: nobody else starts or stops, and no handler uses the ring before it is said to.
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
        // Threads are born meanwhile, by threads that have no clock yet to pass on.
        const MOST_SCANS: u32 = 8;
        for _ in 0..MOST_SCANS {
            let found = scan(&mut tasks, header, |_| ());
            if found > 0 {
                continue;
            }
            if clocks().iter().all(Clock::is_real) {
                break;
            }
            // Those just being born will have their signals open in a moment.
            sys::sleep_ns(500_000);
        }
        LATE.next_scan_ns.store(now_ns() + BETWEEN_SCANS_NS, Relaxed);
        // This one last: it has nothing left to do.
        clocks().iter().skip(1).chain(clocks().first()).for_each(|clock| enable(clock, header));
        0
    }
}

/// Gives the calling thread the best clock that can be had, which all others get too. Returns the
/// error when there is none.
fn choose(tasks: &mut Tasks, header: &Header) -> u32 {
    let is_wall = header.options.load(Relaxed) & options::WALL != 0;
    let mut number = if is_wall { Trigger::Wall as u32 } else { header.trigger.load(Relaxed) };
    let mut error = 0;
    while let Some(trigger) = Trigger::from_number(number) {
        set_trigger(trigger);
        // SAFETY: whoever starts is alone in changing actions.
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

/// Gives a clock to every thread that has none, and calls `each` for it; returns how many there were.
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

/// Ends the samples of this process, and puts things back as they were. Returns bits of
/// [`stopped`].
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) extern "C" fn laggard_stop() -> i32 {
    let is_ours =
        LATE.state.compare_exchange(state::SAMPLING, state::CHANGING, SeqCst, SeqCst).is_ok();
    if !is_ours {
        return stopped::NOTHING;
    }
    // SAFETY: nobody else starts or stops.
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
    // SAFETY: the handler no longer uses the ring once nobody has a chain.
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

/// Sends name and CPU time in the block of all threads that live, and notes it of those that have
/// no clock of their own.
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
            // SAFETY: the slot has room for it.
            unsafe { place.payload.cast::<wire::Thread>().write(record) };
            ring.commit(&place, kind::THREAD_END);
        }
    });
    header.blocked.store(blocked, Relaxed);
    header.unseen.store(unseen, Relaxed);
}

/// Waits until no sample is under way; false when that takes too long.
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

/// Waits until none of these signals can come any more: a thread may have been interrupted by its
/// clock and not run since, or may have the signal blocked. False when one may still come.
fn settle(tasks: &mut Tasks, signals: u64) -> bool {
    let own = sys::gettid();
    let began = now_ns();
    loop {
        let mut is_quiet = true;
        tasks.each(|tasks, tid| {
            let Some(status) = tasks.status(tid) else { return };
            let used = sys::clock_ns(sys::clock_of_thread(tid));
            // Who was born since was born without a clock.
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

/// What is known when the library is loaded, under the dynamic linker's lock.
pub(crate) fn on_load() {
    if let Some(place) = find_function(b"__libc_stack_end", false) {
        // Number and list of arguments stand there, above the first frame.
        const START_OF_PROGRAM: u64 = 64;
        // SAFETY: a variable of the dynamic linker that never changes.
        let end = unsafe { *(place as *const u64) } + START_OF_PROGRAM;
        LATE.stack_end.store(end, Relaxed);
    }
}

/// Gives the ring back.
///
/// # Safety
/// No handler uses it.
unsafe fn close_ring() {
    // SAFETY: the caller's.
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
    // SAFETY: libc's own function; the library is never unloaded.
    unsafe { register(None, None, Some(after_fork), core::ptr::null()) };
}

/// A forked process is not sampled: it has no clocks, and gives back what it has of ours.
unsafe extern "C" fn after_fork() {
    // SAFETY: the only thread of a new process.
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

/// The process ends in an orderly way while it is sampled.
pub(crate) fn on_unload() {
    if LATE.state.load(SeqCst) == state::SAMPLING {
        tell_maps(2);
    }
}
