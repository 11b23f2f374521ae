//! Clocks of threads: a perf event or a timer per thread, which signals that thread.

use crate::sample::{
    PERF_ENABLE, PERF_ID, PerfEvent, SIGTRAP, TICK, bit, clock_event, high_descriptor, own_signal,
    random_below,
};
use crate::sys::{self, nr, syscall};
use crate::tasks::Tasks;
use crate::wire::{Header, Trigger};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Maximum number of threads with a clock.
pub(super) const MOST_THREADS: usize = 4096;
/// Marks our signals, above the index of the clock; signals of the program do not have it.
pub(super) const MARK: u64 = 0x6c61_6767 << 32;

/// A thread's clock.
pub(super) struct Clock {
    pub(super) tid: AtomicU32,
    /// Its perf event, and the ID of the event: the program may close our descriptor and open
    /// another file with the same number.
    fd: AtomicI32,
    id: AtomicU64,
    timer: AtomicI32,
    /// CPU time of the thread when it got the clock, and at the last check.
    pub(super) began_ns: AtomicU64,
    pub(super) seen_ns: AtomicU64,
}

impl Clock {
    /// Whether it has an event or a timer; otherwise it only stores the CPU times of its thread.
    pub(super) fn is_real(&self) -> bool {
        self.fd.load(Relaxed) >= 0 || self.timer.load(Relaxed) >= 0
    }
}

/// Clocks are appended only by the holder of the [`Tasks`] lock.
struct Table {
    /// The trigger of all threads plus one.
    trigger: AtomicU32,
    clocks: [Clock; MOST_THREADS],
    count: AtomicUsize,
}

static TABLE: Table = Table {
    trigger: AtomicU32::new(0),
    clocks: [const {
        Clock {
            tid: AtomicU32::new(0),
            fd: AtomicI32::new(-1),
            id: AtomicU64::new(0),
            timer: AtomicI32::new(-1),
            began_ns: AtomicU64::new(0),
            seen_ns: AtomicU64::new(0),
        }
    }; MOST_THREADS],
    count: AtomicUsize::new(0),
};

pub(super) fn clocks() -> &'static [Clock] {
    &TABLE.clocks[..TABLE.count.load(Acquire)]
}

/// The entry of a thread.
pub(super) fn clock_of(tid: u32) -> Option<&'static Clock> {
    clocks().iter().find(|clock| clock.tid.load(Relaxed) == tid)
}

pub(super) fn trigger() -> Option<Trigger> {
    TABLE.trigger.load(Relaxed).checked_sub(1).and_then(Trigger::from_number)
}

/// The signal of a trigger.
pub(super) fn signal_of(trigger: Trigger) -> u32 {
    if trigger == Trigger::SigTrap { SIGTRAP } else { TICK }
}

/// The clock with this index.
pub(super) fn clock_number(number: usize) -> Option<&'static Clock> {
    clocks().get(number)
}

/// The index of the clock that has this descriptor.
pub(super) fn number_of_descriptor(fd: i32) -> Option<usize> {
    clocks().iter().position(|clock| clock.fd.load(Relaxed) == fd)
}

pub(super) fn set_trigger(trigger: Trigger) {
    TABLE.trigger.store(trigger as u32 + 1, Relaxed);
}

/// Removes all clocks.
pub(super) fn clear() {
    TABLE.count.store(0, Release);
}

pub(super) const ESRCH: u32 = 3;
const ENOSPC: u32 = 28;
const PERF_DISABLE: usize = 0x2401;

/// Creates a disabled clock for a thread; `None` if it already has one or cannot have one now.
pub(super) fn arm(
    tasks: &mut Tasks,
    header: &Header,
    tid: u32,
) -> Result<Option<&'static Clock>, u32> {
    let trigger = trigger().ok_or(ESRCH)?;
    let known = clocks().iter().position(|clock| clock.tid.load(Relaxed) == tid);
    let at = known.unwrap_or(clocks().len());
    let clock = TABLE.clocks.get(at).ok_or(ENOSPC)?;
    if known.is_some() && clock.is_real() {
        return Ok(None);
    }
    let status = tasks.status(tid).ok_or(ESRCH)?;
    if known.is_none() {
        note(tid, sys::clock_ns(sys::clock_of_thread(tid)));
    }
    // A blocked signal could stay pending in the thread forever, or be delivered to a thread that
    // waits for signals. A thread that is just starting has all signals blocked for a moment.
    if status.blocked & bit(signal_of(trigger)) != 0 {
        return Ok(None);
    }
    let mark = MARK | at as u64;
    match trigger {
        Trigger::SigTrap | Trigger::Overflow => {
            let (fd, id) = open_event(header, trigger, tid, mark)?;
            clock.id.store(id, Relaxed);
            clock.fd.store(fd, Release);
        }
        Trigger::Timer => {
            clock.timer.store(open_timer(sys::clock_of_thread(tid), tid, mark)?, Release);
        }
        Trigger::Wall => clock.timer.store(open_timer(sys::CLOCK_MONOTONIC, tid, mark)?, Release),
    }
    Ok(Some(clock))
}

fn open_event(header: &Header, trigger: Trigger, tid: u32, mark: u64) -> Result<(i32, u64), u32> {
    let mut event: PerfEvent = clock_event(header.period_ns.load(Relaxed).max(1000));
    if trigger == Trigger::SigTrap {
        event.signal_and_pass_on(mark);
    }
    let mut id = 0u64;
    // SAFETY: `event` outlives the call, and the thread belongs to this process. The descriptor is
    // the one just opened, and `id` is valid for writes.
    unsafe {
        const CLOSE_ON_EXEC: usize = 8;
        let at = &raw const event;
        let fd = syscall!(nr::PERF_EVENT_OPEN, at, tid, -1i64, -1i64, CLOSE_ON_EXEC);
        if fd < 0 {
            return Err(-fd as u32);
        }
        let fd = high_descriptor(fd);
        syscall!(nr::IOCTL, fd, PERF_ID, &raw mut id);
        if trigger == Trigger::Overflow {
            own_signal(fd, tid);
        }
        Ok((fd as i32, id))
    }
}

fn open_timer(clock: usize, tid: u32, mark: u64) -> Result<i32, u32> {
    const SIGEV_THREAD_ID: u64 = 4;
    let mut event = [0u64; 8];
    event[0] = mark;
    event[1] = u64::from(TICK) | SIGEV_THREAD_ID << 32;
    event[2] = u64::from(tid);
    let mut timer = 0i32;
    // SAFETY: the kernel reads `event` and writes `timer`, which both outlive the call.
    let made = unsafe { syscall!(nr::TIMER_CREATE, clock, event.as_ptr(), &raw mut timer) };
    if made < 0 { Err(-made as u32) } else { Ok(timer) }
}

pub(super) fn enable(clock: &Clock, header: &Header) {
    let (fd, timer) = (clock.fd.load(Relaxed), clock.timer.load(Relaxed));
    // SAFETY: the descriptor and the timer belong to this clock; `times` outlives the call.
    unsafe {
        if fd >= 0 {
            syscall!(nr::IOCTL, fd, PERF_ENABLE, 0);
        }
        if timer >= 0 {
            let period = header.period_ns.load(Relaxed).max(1000);
            let first = random_below(period);
            const SECOND: u64 = 1_000_000_000;
            let times = [period / SECOND, period % SECOND, first / SECOND, first % SECOND];
            syscall!(nr::TIMER_SETTIME, timer, 0, times.as_ptr(), 0);
        }
    }
}

pub(super) fn disable(clock: &Clock) {
    let (fd, timer) = (clock.fd.load(Relaxed), clock.timer.load(Relaxed));
    // SAFETY: the descriptor is checked to be ours, and the timer belongs to this clock. Events
    // that threads inherited from it are disabled with it.
    unsafe {
        if fd >= 0 && is_still_ours(clock) {
            syscall!(nr::IOCTL, fd, PERF_DISABLE, 0);
        }
        if timer >= 0 {
            syscall!(nr::TIMER_DELETE, timer);
        }
    }
}

fn is_still_ours(clock: &Clock) -> bool {
    let mut id = 0u64;
    // SAFETY: the kernel writes one word to `id`. Files other than events return an error.
    let answer = unsafe { syscall!(nr::IOCTL, clock.fd.load(Relaxed), PERF_ID, &raw mut id) };
    answer == 0 && id == clock.id.load(Relaxed)
}

/// Closes the event of a clock, and all events that threads inherited from it.
pub(super) fn release(clock: &Clock) {
    if clock.fd.load(Relaxed) >= 0 && is_still_ours(clock) {
        // SAFETY: the descriptor is checked to be ours.
        unsafe { syscall!(nr::CLOSE, clock.fd.load(Relaxed)) };
    }
    clock.fd.store(-1, Relaxed);
    clock.timer.store(-1, Relaxed);
}

/// Adds a thread without a clock, with its CPU time.
pub(super) fn note(tid: u32, used: u64) {
    let at = TABLE.count.load(Relaxed);
    if let Some(clock) = TABLE.clocks.get(at) {
        clock.tid.store(tid, Relaxed);
        clock.fd.store(-1, Relaxed);
        clock.timer.store(-1, Relaxed);
        clock.began_ns.store(used, Relaxed);
        clock.seen_ns.store(used, Relaxed);
        TABLE.count.store(at + 1, Release);
    }
}
