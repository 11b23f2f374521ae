//! Signal actions: ours for the time of a block, the program's own before and after it.

use super::on_tick;
use crate::sample::{
    Action, SA_NODEFER, SA_ONSTACK, SA_RESTART, SA_RESTORER, SA_SIGINFO, SIGBUS, SIGSEGV, SIGTRAP,
    TICK, bit, keep_wanted, laggard_restore, on_fault, set_action, wanted_handler,
};
use crate::sys::{nr, syscall};
use core::cell::UnsafeCell;

/// Actions of the program that ours stand for.
struct Before(UnsafeCell<[Action; SIGNALS.len()]>);

// SAFETY: used by whoever starts or stops a block, and there is one at a time.
unsafe impl Sync for Before {}

static BEFORE: Before = Before(UnsafeCell::new([Action::DEFAULT; SIGNALS.len()]));

fn handler_of(signal: u32) -> u64 {
    match signal {
        SIGSEGV | SIGBUS => on_fault as *const () as u64,
        _ => on_tick as *const () as u64,
    }
}

/// Whether a signal comes to us first.
pub(super) fn is_installed(signal: u32) -> bool {
    action(signal).handler == handler_of(signal)
}

/// The action that a signal has.
fn action(signal: u32) -> Action {
    let mut now = Action::DEFAULT;
    // SAFETY: only asks.
    unsafe { syscall!(nr::RT_SIGACTION, signal, 0, &raw mut now, 8) };
    now
}

const SIGNALS: [u32; 4] = [SIGSEGV, SIGBUS, SIGTRAP, TICK];

fn before(signal: u32) -> *mut Action {
    let at = SIGNALS.iter().position(|&own| own == signal).unwrap_or(0);
    BEFORE.0.get().cast::<Action>().wrapping_add(at)
}

/// Has a signal come to us first. The program's own action is kept, and run for what is not ours.
pub(super) unsafe fn install(signal: u32) {
    let old = action(signal);
    let handler = handler_of(signal);
    // Kept from an earlier block.
    if old.handler == handler {
        return;
    }
    let (flags, mask) = match signal {
        SIGSEGV | SIGBUS => (SA_ONSTACK | SA_NODEFER, 0),
        _ => (SA_RESTART, !(bit(SIGSEGV) | bit(SIGBUS))),
    };
    // SAFETY: nobody else changes these; the handler is one for this signal.
    unsafe {
        *before(signal) = old;
        keep_wanted(signal, &old);
        let flags = flags | SA_SIGINFO | SA_RESTORER;
        let restorer = laggard_restore as *const () as u64;
        set_action(signal, &Action { handler, flags, restorer, mask }, core::ptr::null_mut());
    }
}

/// Puts the program's own actions back, where it has not changed them since.
pub(super) unsafe fn restore() {
    for signal in SIGNALS {
        if is_installed(signal) {
            // SAFETY: what the kernel gave us; an action for once may have been used up.
            unsafe {
                let mut old = *before(signal);
                old.handler = wanted_handler(signal);
                set_action(signal, &old, core::ptr::null_mut());
            }
        }
    }
}
