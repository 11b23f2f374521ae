//! Process groups that are killed when this process is asked to end.
//!
//! Workers run in their own process groups, so that each can be killed as a whole; Ctrl-C therefore
//! reaches only the driver. While groups exist, a signal that asks for termination first kills them
//! and then has its previous effect. With [`Interrupts`], the first Ctrl-C only kills them, so that
//! what was measured so far can be reported.
#![allow(unsafe_code, reason = "signals have no safe interface")]

use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicPtr, AtomicU8, Ordering::*};
use std::sync::{Mutex, PoisonError};

/// More than can run at once. A group that finds no free slot is still killed by the kernel when
/// this process ends, but not its descendants.
static GROUPS: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];
/// A slot taken for a group whose ID is not known yet.
const RESERVED: i32 = -1;

const REQUESTS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// Number of groups.
static COUNT: Mutex<usize> = Mutex::new(0);
/// The previous signal actions; null for ignored signals. A signal handler reads them, so they are
/// never freed.
static BEFORE: [AtomicPtr<libc::sigaction>; 4] = [const { AtomicPtr::new(null_mut()) }; 4];

/// Effect of Ctrl-C: one of the three following values.
static ON_INTERRUPT: AtomicU8 = AtomicU8::new(END);
/// It has its previous effect.
const END: u8 = 0;
/// It kills the groups, and this process continues.
const CONTINUE: u8 = 1;
/// It did so; the next one has its previous effect.
const INTERRUPTED: u8 = 2;
/// Time of the first interrupt, in milliseconds.
static INTERRUPTED_MS: AtomicI64 = AtomicI64::new(0);
/// A program such as `timeout` signals the process and its group at once. Interrupts this close to
/// the first one are the same request.
const SAME_REQUEST_MS: i64 = 300;

/// While this value exists, the first Ctrl-C ends the measurement instead of this process:
/// measurements return what they have.
pub struct Interrupts {
    /// Keeps the signal handler between measurements.
    _group: Group,
}

impl Interrupts {
    /// Handles Ctrl-C from now on.
    pub fn keep() -> Interrupts {
        let interrupts = Interrupts { _group: Group::reserve() };
        ON_INTERRUPT.store(CONTINUE, SeqCst);
        interrupts
    }

    /// Stops handling Ctrl-C. Returns whether the measurement was interrupted.
    pub fn end(self) -> bool {
        was_interrupted()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        ON_INTERRUPT.store(END, SeqCst);
    }
}

/// Whether the user interrupted the measurement, while [`Interrupts`] exists.
pub fn was_interrupted() -> bool {
    ON_INTERRUPT.load(SeqCst) == INTERRUPTED
}

/// A group that is killed on a termination signal for as long as this value exists.
pub(super) struct Group(Option<&'static AtomicI32>);

impl Group {
    /// Reserves a slot for a group that is about to start.
    pub(super) fn reserve() -> Group {
        let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        if *count == 1 {
            for (signal, before) in REQUESTS.into_iter().zip(&BEFORE) {
                answer(signal, before);
            }
        }
        let is_free =
            |place: &&AtomicI32| place.compare_exchange(0, RESERVED, SeqCst, SeqCst).is_ok();
        Group(GROUPS.iter().find(is_free))
    }

    /// Sets the ID of the group.
    pub(super) fn set(&self, leader: i32) {
        if let Some(place) = self.0 {
            place.store(leader, SeqCst);
        }
        // The signal may have arrived before the group was known.
        if was_interrupted() && leader > 1 {
            // SAFETY: the leader has not been waited for, so its ID is still valid.
            unsafe { libc::kill(-leader, libc::SIGKILL) };
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.store(0, SeqCst);
        }
        let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        if *count == 0 {
            for (signal, before) in REQUESTS.into_iter().zip(&BEFORE) {
                restore(signal, before);
            }
        }
    }
}

/// Installs the handler and stores the previous action. An ignored signal stays ignored.
fn answer(signal: i32, kept: &AtomicPtr<libc::sigaction>) {
    // SAFETY: `sigaction` is plain data, and all-zero bytes are valid. The handler only makes
    // system calls. `place` is null or points to a box that is never freed.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, null(), &raw mut before);
        if before.sa_sigaction == libc::SIG_IGN {
            kept.store(null_mut(), SeqCst);
            return;
        }
        // Reused once allocated, because a handler may be reading it.
        let place = kept.load(SeqCst);
        if place.is_null() || (*place).sa_sigaction != before.sa_sigaction {
            kept.store(Box::into_raw(Box::new(before)), SeqCst);
        }
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = end_all as *const () as libc::sighandler_t;
        ours.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const ours, null_mut());
    }
}

/// Restores the previous action. Async-signal-safe.
fn restore(signal: i32, kept: &AtomicPtr<libc::sigaction>) {
    let before = kept.load(SeqCst);
    if !before.is_null() {
        // SAFETY: `before` points to the previous action, which is never freed.
        unsafe { libc::sigaction(signal, before, null_mut()) };
    }
}

/// Kills all groups. Then the signal has its previous effect: a program ends, and Python raises
/// `KeyboardInterrupt`. The first Ctrl-C has no other effect if there are [`Interrupts`].
extern "C" fn end_all(signal: i32) {
    let now = now_ms();
    let is_kept = signal == libc::SIGINT
        && match ON_INTERRUPT.compare_exchange(CONTINUE, INTERRUPTED, SeqCst, SeqCst) {
            Ok(_) => {
                INTERRUPTED_MS.store(now, SeqCst);
                true
            }
            // The time is 0 if another thread is about to store it.
            Err(INTERRUPTED) => match INTERRUPTED_MS.load(SeqCst) {
                0 => true,
                first => now - first < SAME_REQUEST_MS,
            },
            Err(_) => false,
        };
    for place in &GROUPS {
        let leader = place.load(SeqCst);
        if leader > 1 {
            // SAFETY: `kill` is async-signal-safe. The leader has not been waited for, so its ID is
            // still valid.
            unsafe { libc::kill(-leader, libc::SIGKILL) };
        }
    }
    if is_kept {
        return;
    }
    if let Some(before) = REQUESTS.iter().position(|request| *request == signal) {
        restore(signal, &BEFORE[before]);
    }
    // SAFETY: `raise` is async-signal-safe. The signal is delivered when the handler returns.
    unsafe { libc::raise(signal) };
}

/// Monotonic time. Async-signal-safe.
fn now_ms() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writes, and the call is async-signal-safe.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}
