//! Groups of processes that must not outlive a request to end.
//!
//! Workers are in groups of their own, so that a whole one can be ended; Ctrl-C then reaches only
//! the driver. While there are groups, such a request ends them first and is then answered as it
//! was before.
#![allow(unsafe_code, reason = "signals have no safe interface")]

use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, Ordering::*};
use std::sync::{Mutex, PoisonError};

/// More than can run at once; one that finds no place is ended by the kernel with us all the same,
/// though not what it has started.
static GROUPS: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];
/// A place that is taken for a group whose number is not known yet.
const RESERVED: i32 = -1;

const REQUESTS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// How many groups there are, and how requests were answered before there were any.
static BEFORE: Mutex<(usize, [Option<libc::sigaction>; 4])> = Mutex::new((0, [None; 4]));

/// A group that is ended on request for as long as this lives.
pub(super) struct Group(Option<&'static AtomicI32>);

impl Group {
    /// A place for a group that is about to be.
    pub(super) fn reserve() -> Group {
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        before.0 += 1;
        if before.0 == 1 {
            before.1 = REQUESTS.map(answer);
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
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        before.0 -= 1;
        if before.0 == 0 {
            for (signal, action) in REQUESTS.into_iter().zip(before.1) {
                if let Some(action) = action {
                    // SAFETY: the action that was there before.
                    unsafe { libc::sigaction(signal, &raw const action, null_mut()) };
                }
            }
        }
    }
}

/// Puts our answer in place of another, which is given back. One that is ignored stays so.
fn answer(signal: i32) -> Option<libc::sigaction> {
    // SAFETY: plain data; the handler makes system calls only.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, null(), &raw mut before);
        if before.sa_sigaction == libc::SIG_IGN {
            return None;
        }
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = end_all as *const () as libc::sighandler_t;
        ours.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const ours, null_mut());
        Some(before)
    }
}

/// Ends all groups, then this process, as if it had been asked only now.
///
/// What was the answer before cannot be read here, its lock may be held. Programs that have an
/// answer of their own do not use it while they measure.
extern "C" fn end_all(signal: i32) {
    for place in &GROUPS {
        let leader = place.load(SeqCst);
        if leader > 1 {
            // SAFETY: may be called in a handler; the leader has not been waited for.
            unsafe { libc::kill(-leader, libc::SIGKILL) };
        }
    }
    // SAFETY: both may be called in a handler. The signal is delivered when the handler returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
