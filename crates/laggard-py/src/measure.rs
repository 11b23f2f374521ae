//! `laggard bench` and `laggard why` from Python.

use crate::error::raised;
use crate::evidence::Loaded;
use crate::wait::wait;
use laggard::library;
use laggard_probe::bench::{Here, Limits, Rounds, measure_here};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Parses a time such as `500ms`, in seconds.
#[pyfunction]
pub(crate) fn seconds(text: &str) -> PyResult<f64> {
    library::time(text).map(|time| time.as_secs_f64()).map_err(PyValueError::new_err)
}

/// Parses a percentage such as `5%`, as a fraction.
#[pyfunction]
pub(crate) fn share(text: &str) -> PyResult<f64> {
    library::share(text).map_err(PyValueError::new_err)
}

/// Runs `laggard bench` with these arguments.
#[pyfunction]
pub(crate) fn bench(py: Python<'_>, words: Vec<String>) -> PyResult<Loaded> {
    let found = wait(py, move || library::measure(&words, &mut |_| ()))?;
    Loaded::of(py, found)
}

/// Runs `laggard why` with these arguments.
#[pyfunction]
pub(crate) fn why(py: Python<'_>, words: Vec<String>) -> PyResult<Loaded> {
    let found = wait(py, move || library::judge(&words))?;
    Loaded::of(py, found)
}

/// Explains why the second callable is slower, from the timings of both and a recording of each: its
/// file and the number of recorded calls.
#[pyfunction]
pub(crate) fn why_here(
    py: Python<'_>,
    timed: &Loaded,
    sampled: [(PathBuf, u64); 2],
) -> PyResult<Loaded> {
    let timed = timed.of.clone();
    let found = wait(py, move || library::judge_here(&timed, &sampled))?;
    Loaded::of(py, found)
}

/// Benchmarks callables in this process and on this thread.
#[pyfunction]
pub(crate) fn bench_here(
    py: Python<'_>,
    names: Vec<String>,
    calls: Vec<Py<PyAny>>,
    time: f64,
    rounds: Option<u32>,
    precision: f64,
) -> PyResult<Loaded> {
    let limits = Limits {
        time: Duration::from_secs_f64(time),
        rounds: rounds.map_or(Limits::default().rounds, Rounds::Exactly),
        precision,
        ..Limits::default()
    };
    let failed: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let side = |(name, (letter, call)): (String, (char, Py<PyAny>))| Here {
        name: letter.into(),
        runs: name,
        call: caller(call, failed.clone()),
    };
    let sides = names.into_iter().zip(('A'..='Z').zip(calls)).map(side).collect();
    let timings = measure_here(sides, limits, library::SEED, &mut |_| ());
    // Exceptions of the callables propagate unchanged.
    if let Some(error) = failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    let timings = timings.map_err(|error| raised(py, &error.into()))?;
    Loaded::of(py, Ok(library::of_timings(timings)))
}

/// Converts a callable to a function that calls it n times.
fn caller(
    call: Py<PyAny>,
    failed: Arc<Mutex<Option<PyErr>>>,
) -> Box<dyn FnMut(u64) -> Result<(), String>> {
    Box::new(move |calls| {
        Python::attach(|py| {
            let call = call.bind(py);
            let made = (0..calls).try_for_each(|_| call.call0().map(drop));
            made.and_then(|()| py.check_signals()).map_err(|error| {
                let words = error.to_string();
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                words
            })
        })
    })
}
