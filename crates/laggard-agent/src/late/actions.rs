//! Signal actions: installs ours for a recording, and restores those of the program.

use super::on_tick;
use crate::sample::{
    Action, SA_NODEFER, SA_ONSTACK, SA_RESTART, SA_RESTORER, SA_SIGINFO, SIGBUS, SIGSEGV, SIGTRAP,
    TICK, bit, keep_wanted, laggard_restore, on_fault, set_action, wanted_handler,
};
use crate::sys::{nr, syscall};
use core::cell::UnsafeCell;

/// Previous actions of the program, by index of the signal.
struct Before(UnsafeCell<[Action; SIGNALS.len()]>);

// SAFETY: accessed only while a recording is started or stopped, which happens in one thread at a
// time.
unsafe impl Sync for Before {}

static BEFORE: Before = Before(UnsafeCell::new([Action::DEFAULT; SIGNALS.len()]));

fn handler_of(signal: u32) -> u64 {
    match signal {
        SIGSEGV | SIGBUS => on_fault as *const () as u64,
        _ => on_tick as *const () as u64,
    }
}

/// Whether our handler is installed for a signal.
pub(super) fn is_installed(signal: u32) -> bool {
    action(signal).handler == handler_of(signal)
}

/// The current action of a signal.
fn action(signal: u32) -> Action {
    let mut now = Action::DEFAULT;
    // SAFETY: only queries; `now` is valid for writes.
    unsafe { syscall!(nr::RT_SIGACTION, signal, 0, &raw mut now, 8) };
    now
}

const SIGNALS: [u32; 4] = [SIGSEGV, SIGBUS, SIGTRAP, TICK];

fn before(signal: u32) -> *mut Action {
    let at = SIGNALS.iter().position(|&own| own == signal).unwrap_or(0);
    BEFORE.0.get().cast::<Action>().wrapping_add(at)
}

/// Installs our handler for a signal. The program's own action is stored, and is run for signals
/// that are not ours.
pub(super) unsafe fn install(signal: u32) {
    let old = action(signal);
    let handler = handler_of(signal);
    // Still installed since an earlier recording.
    if old.handler == handler {
        return;
    }
    let (flags, mask) = match signal {
        SIGSEGV | SIGBUS => (SA_ONSTACK | SA_NODEFER, 0),
        _ => (SA_RESTART, !(bit(SIGSEGV) | bit(SIGBUS))),
    };
    // SAFETY: only one thread at a time changes these; the handler is the one for this signal.
    unsafe {
        *before(signal) = old;
        keep_wanted(signal, &old);
        let flags = flags | SA_SIGINFO | SA_RESTORER;
        let restorer = laggard_restore as *const () as u64;
        set_action(signal, &Action { handler, flags, restorer, mask }, core::ptr::null_mut());
    }
}

/// Restores the program's own actions, unless the program has changed them since.
pub(super) unsafe fn restore() {
    for signal in SIGNALS {
        if is_installed(signal) {
            // SAFETY: the stored action came from the kernel; its handler is replaced, because a
            // one-shot action may have been used up.
            unsafe {
                let mut old = *before(signal);
                old.handler = wanted_handler(signal);
                set_action(signal, &old, core::ptr::null_mut());
            }
        }
    }
}
