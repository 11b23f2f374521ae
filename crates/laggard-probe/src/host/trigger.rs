//! Tests the methods to interrupt a thread for a sample, and measures the rates they reach.
//!
//! Each method is tested in its own thread for a few milliseconds of CPU time. The signal handlers
//! of the process are restored only after that thread has ended, when no more traps can arrive.
#![allow(unsafe_code)] // perf events, timers and signal handlers

use super::event::{Event, attributes, refused};
use laggard_core::model::host::{Attempt, Trigger};
use perf_event_open_sys::bindings as name;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Requested rate: ten times that of a recording.
const ASKED_HZ: u64 = 9_999;
const NANOS: u64 = 1_000_000_000;
/// CPU time for each test.
const TRIED_NS: u64 = 20_000_000;
/// A signal that is ignored by default, so that a late one does no harm.
const QUIET: i32 = libc::SIGURG;

static CAME: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: i32) {
    CAME.fetch_add(1, Ordering::Relaxed);
}

pub(super) struct Triggers {
    pub(super) sigtrap: Trigger,
    pub(super) signal: Trigger,
    pub(super) timer: Trigger,
}

pub(super) fn try_all() -> Triggers {
    let tried = |signal: i32, way: fn() -> io::Result<f64>| {
        // The tests run one after the other, because they share the counter.
        let Some(before) = handle(signal) else {
            let attempt = Attempt::Untried("cannot install a signal handler".into());
            return Trigger { attempt, ..Trigger::default() };
        };
        let rate = thread::spawn(move || {
            unblock(signal);
            way()
        });
        let rate =
            rate.join().unwrap_or_else(|_| Err(io::Error::other("the test thread panicked")));
        restore(signal, &before);
        trigger(rate)
    };
    Triggers {
        sigtrap: tried(libc::SIGTRAP, by_trap),
        signal: tried(QUIET, by_signal),
        timer: tried(QUIET, by_timer),
    }
}

fn trigger(rate: io::Result<f64>) -> Trigger {
    let (attempt, rate_hz) = match rate {
        Ok(rate) if rate > 0.0 => (Attempt::Works, rate),
        Ok(_) => (Attempt::Refused { errno: 0, why: "no signal arrived".into() }, 0.0),
        Err(error) => (refused(&error), 0.0),
    };
    Trigger { attempt, rate_hz, asked_hz: ASKED_HZ as f64 }
}

fn by_trap() -> io::Result<f64> {
    let mut attr = clock();
    attr.set_sigtrap(1);
    attr.set_remove_on_exec(1);
    let event = Event::open(attr)?;
    event.enable()?;
    let rate = rate();
    event.disable()?;
    Ok(rate)
}

fn by_signal() -> io::Result<f64> {
    let mut attr = clock();
    attr.__bindgen_anon_2.wakeup_events = 1;
    let event = Event::open(attr)?;
    let owner = Owner { kind: F_OWNER_TID, id: thread_id() };
    // SAFETY: `event` owns the descriptor, and `owner` outlives the call.
    let asked = unsafe {
        libc::fcntl(event.fd(), libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK) == 0
            && libc::fcntl(event.fd(), F_SETSIG, QUIET) == 0
            && libc::fcntl(event.fd(), F_SETOWN_EX, &raw const owner) == 0
    };
    if !asked {
        return Err(io::Error::last_os_error());
    }
    event.enable()?;
    let rate = rate();
    event.disable()?;
    Ok(rate)
}

fn by_timer() -> io::Result<f64> {
    // SAFETY: `sigevent` has integers and a pointer that may be null, so all-zero bytes are valid.
    let mut to: libc::sigevent = unsafe { std::mem::zeroed() };
    to.sigev_notify = libc::SIGEV_THREAD_ID;
    to.sigev_signo = QUIET;
    to.sigev_notify_thread_id = thread_id();
    let mut timer: libc::timer_t = std::ptr::null_mut();
    // SAFETY: both structures outlive the call.
    let made =
        unsafe { libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut to, &raw mut timer) };
    if made != 0 {
        return Err(io::Error::last_os_error());
    }
    let period = libc::timespec { tv_sec: 0, tv_nsec: (NANOS / ASKED_HZ) as _ };
    let every = libc::itimerspec { it_interval: period, it_value: period };
    // SAFETY: `timer` was created above, and `every` outlives the call.
    let set = unsafe { libc::timer_settime(timer, 0, &raw const every, std::ptr::null_mut()) };
    let failed = io::Error::last_os_error();
    let rate = if set == 0 { rate() } else { 0.0 };
    // SAFETY: `timer` was created above and is not used again.
    unsafe { libc::timer_delete(timer) };
    if set == 0 { Ok(rate) } else { Err(failed) }
}

/// The thread's CPU time in user code, at the requested rate.
fn clock() -> name::perf_event_attr {
    let clock = u64::from(name::PERF_COUNT_SW_TASK_CLOCK);
    let mut attr = attributes(name::PERF_TYPE_SOFTWARE, clock, false);
    attr.__bindgen_anon_1.sample_period = NANOS / ASKED_HZ;
    attr
}

/// Signals per second of CPU time while the thread computes.
fn rate() -> f64 {
    CAME.store(0, Ordering::Relaxed);
    let start = cpu_ns();
    let mut spent = 0;
    let mut sum = 0_u64;
    while spent < TRIED_NS {
        // In user code, which the traps are restricted to.
        for i in 0..20_000_u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(i));
        }
        spent = cpu_ns().saturating_sub(start);
    }
    CAME.load(Ordering::Relaxed) as f64 * NANOS as f64 / spent as f64
}

fn cpu_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writes and outlives the call.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    // If the clock cannot be read, the test ends at once.
    if read == 0 { now.tv_sec as u64 * NANOS + now.tv_nsec as u64 } else { u64::MAX }
}

fn thread_id() -> libc::pid_t {
    // SAFETY: `gettid` takes no arguments and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

/// Installs the counting handler and returns the previous action.
fn handle(signal: i32) -> Option<libc::sigaction> {
    // SAFETY: `sigaction` has integers and pointers that may be null, so all-zero bytes are valid.
    let (mut action, mut before): (libc::sigaction, libc::sigaction) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    action.sa_sigaction = count as extern "C" fn(i32) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler only increments an atomic counter; both structures outlive the call.
    let set = unsafe { libc::sigaction(signal, &raw const action, &raw mut before) };
    (set == 0).then_some(before)
}

fn restore(signal: i32, before: &libc::sigaction) {
    // SAFETY: `before` is an action that the kernel returned for this signal.
    unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
}

/// Unblocks a signal in this thread: a blocked trap would kill the process.
fn unblock(signal: i32) {
    // SAFETY: `sigset_t` is plain data, and all-zero bytes are valid; it outlives the calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// `struct f_owner_ex`.
#[repr(C)]
struct Owner {
    kind: i32,
    id: libc::pid_t,
}

const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;
const F_OWNER_TID: i32 = 0;
