//! Work away from the interpreter, which stays able to answer Ctrl-C.

use pyo3::prelude::*;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long Ctrl-C may go unanswered.
const PATIENCE: Duration = Duration::from_millis(50);

/// Does something on a thread of its own, without the interpreter's lock, and waits for it.
///
/// An exception that a signal's handler raises, as `KeyboardInterrupt`, ends the wait at once. The
/// work itself goes on until it is done, and what it gives is dropped: readers have no place where
/// they could stop.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (send, receive) = channel();
    let thread = thread::spawn(move || {
        // Nobody may be waiting any more.
        let _ = send.send(work());
    });
    // A receiver may not be looked at by two threads, and here it never is.
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
    std::panic::resume_unwind(panic.unwrap_or_else(|| Box::new("a thread ended without a word")))
}
