//! Sampling a block of this process.

use crate::error::raised;
use laggard_probe::sample::here;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Samples of this process, until they are stopped.
#[pyclass(frozen, module = "laggard._laggard")]
pub(crate) struct Recording {
    under_way: Mutex<Option<here::Recording>>,
}

/// Samples this process from now on; `driver` is the command of the process that takes the samples.
#[pyfunction]
pub(crate) fn record(py: Python<'_>, driver: Vec<OsString>) -> PyResult<Recording> {
    let [program, words @ ..] = &driver[..] else {
        return Err(PyValueError::new_err("a driver has a program"));
    };
    let mut command = Command::new(program);
    command.args(words);
    // On this thread, which is the one that is recorded.
    let started = py.detach(|| here::start(command));
    let under_way = started.map_err(|error| raised(py, &error.into()))?;
    Ok(Recording { under_way: Mutex::new(Some(under_way)) })
}

#[pymethods]
impl Recording {
    /// Ends the samples, and waits until they are written: how many there are, how many have whole
    /// stacks, and what else is to be said. None in a process that was forked off.
    fn stop(&self, py: Python<'_>) -> PyResult<Option<(u64, u64, Vec<String>)>> {
        let recording = self.under_way.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(recording) = recording else { return Ok(None) };
        let ended = py.detach(|| recording.stop());
        let ended = ended.map_err(|error| raised(py, &error.into()))?;
        Ok(ended.map(|ended| (ended.samples, ended.complete, ended.warnings)))
    }
}
