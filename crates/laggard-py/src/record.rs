//! Sampling a block of this process.

use crate::error::raised;
use clap::ValueEnum;
use laggard::block::{Wanted, start};
use laggard::cli::ClockArg;
use laggard_probe::sample::here;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Samples of this process, until they are stopped.
#[pyclass(frozen, module = "laggard._laggard")]
pub(crate) struct Recording {
    under_way: Mutex<Option<here::Recording>>,
}

/// Samples this process from now on into a file; `laggard` are the words that start laggard, which
/// takes the samples in a process beside this one.
#[pyfunction]
pub(crate) fn record(
    py: Python<'_>,
    laggard: Vec<OsString>,
    path: PathBuf,
    rate: f64,
    clock: &str,
    gil: bool,
    force: bool,
) -> PyResult<Recording> {
    let clock = ClockArg::from_str(clock, false).map_err(PyValueError::new_err)?;
    let wanted = Wanted { rate, clock, gil, force, ..Wanted::to(path) };
    let started = py.detach(|| start(&wanted, &laggard));
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
