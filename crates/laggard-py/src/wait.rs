//! Runs work on another thread so that Ctrl-C keeps working.

use pyo3::prelude::*;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Interval for checking signals.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs `work` on a new thread without the GIL and waits for its result.
///
/// An exception raised by a signal handler, such as `KeyboardInterrupt`, ends the wait at once. The
/// work continues in the background and its result is dropped, because readers cannot be cancelled.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (send, receive) = channel();
    let thread = thread::spawn(move || {
        // Sending fails if the wait was interrupted.
        let _ = send.send(work());
    });
    // `Receiver` is not `Sync`, which `detach` requires. The mutex is never contended.
    let receive: Mutex<Receiver<T>> = Mutex::new(receive);
    loop {
        let next = py.detach(|| {
            receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PATIENCE)
        });
        match next {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let panic = thread.join().err();
    std::panic::resume_unwind(panic.unwrap_or_else(|| Box::new("the worker thread sent no result")))
}
