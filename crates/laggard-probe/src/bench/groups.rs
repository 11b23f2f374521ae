//! Groups of processes that must not outlive a request to end.
//!
//! Workers are in groups of their own, so that a whole one can be ended; Ctrl-C then reaches only
//! the driver. While there are groups, such a request ends them first and is then answered as it
//! was before.
#![allow(unsafe_code, reason = "signals have no safe interface")]

use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering::*};
use std::sync::{Mutex, PoisonError};

/// More than can run at once; one that finds no place is ended by the kernel with us all the same,
/// though not what it has started.
static GROUPS: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];
/// A place that is taken for a group whose number is not known yet.
const RESERVED: i32 = -1;

const REQUESTS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// How many groups there are.
static COUNT: Mutex<usize> = Mutex::new(0);
/// How requests were answered before there were any; null where they are ignored. A handler reads
/// them, so they are never freed.
static BEFORE: [AtomicPtr<libc::sigaction>; 4] = [const { AtomicPtr::new(null_mut()) }; 4];

/// A group that is ended on request for as long as this lives.
pub(super) struct Group(Option<&'static AtomicI32>);

impl Group {
    /// A place for a group that is about to be.
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

    /// Its number.
    pub(super) fn set(&self, leader: i32) {
        if let Some(place) = self.0 {
            place.store(leader, SeqCst);
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

/// Puts our answer in place of another, which is kept. One that is ignored stays so.
fn answer(signal: i32, kept: &AtomicPtr<libc::sigaction>) {
    // SAFETY: plain data; the handler makes system calls only.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, null(), &raw mut before);
        if before.sa_sigaction == libc::SIG_IGN {
            kept.store(null_mut(), SeqCst);
            return;
        }
        // Kept in one place from the first time on: a handler may be reading it.
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

/// Puts the answer back that was there before; may be called in a handler.
fn restore(signal: i32, kept: &AtomicPtr<libc::sigaction>) {
    let before = kept.load(SeqCst);
    if !before.is_null() {
        // SAFETY: the action that was there before, which is never freed.
        unsafe { libc::sigaction(signal, before, null_mut()) };
    }
}

/// Ends all groups; then the request is answered as it would have been without us: a program ends,
/// and Python raises `KeyboardInterrupt`.
extern "C" fn end_all(signal: i32) {
    for place in &GROUPS {
        let leader = place.load(SeqCst);
        if leader > 1 {
            // SAFETY: may be called in a handler; the leader has not been waited for.
            unsafe { libc::kill(-leader, libc::SIGKILL) };
        }
    }
    if let Some(before) = REQUESTS.iter().position(|request| *request == signal) {
        restore(signal, &BEFORE[before]);
    }
    // SAFETY: may be called in a handler. The signal is delivered when the handler returns.
    unsafe { libc::raise(signal) };
}
