//! Recording a block of code in this process.

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

/// A running recording of this process.
#[pyclass(frozen, module = "laggard._laggard")]
pub(crate) struct Recording {
    under_way: Mutex<Option<here::Recording>>,
}

/// Starts a recording of this process. `laggard` is the command line that starts laggard, which
/// reads the samples in a separate process.
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
    /// Stops sampling and waits until the file is written. Returns the number of samples, the
    /// number with complete stacks, and warnings; `None` in a forked child.
    fn stop(&self, py: Python<'_>) -> PyResult<Option<(u64, u64, Vec<String>)>> {
        let recording = self.under_way.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(recording) = recording else { return Ok(None) };
        let ended = py.detach(|| recording.stop());
        let ended = ended.map_err(|error| raised(py, &error.into()))?;
        Ok(ended.map(|ended| (ended.samples, ended.complete, ended.warnings)))
    }
}
