//! The extension module of the Python package `laggard`: evidence and its tables as Python objects,
//! and the command line.
//!
//! Long operations run without the GIL, and Ctrl-C ends the wait for them. The Python part of the
//! package (`python/laggard`) converts keyword arguments to flags, defines the exceptions, and
//! implements `query` and `fleet`.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]

mod arrow;
mod error;
mod evidence;
mod measure;
mod record;
mod wait;

use pyo3::prelude::*;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command line and returns its exit status. `package` runs the verbs implemented in
/// Python: it takes the name of the verb and its flags as JSON, and returns the exit status.
#[pyfunction]
fn main(py: Python<'_>, words: Vec<OsString>, package: Py<PyAny>) -> u8 {
    py.detach(|| {
        let run = |verb: &str, flags: &str| {
            Python::attach(|py| {
                let code = package.call1(py, (verb, flags)).and_then(|code| code.extract(py));
                code.unwrap_or_else(|error: PyErr| {
                    error.print(py);
                    2
                })
            })
        };
        number(laggard::main_in(Some(&run), words.into_iter()))
    })
}

/// Converts an `ExitCode` to a number, which the standard library does not support.
fn number(code: ExitCode) -> u8 {
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(2)
}

#[pymodule]
fn _laggard(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<arrow::Table>()?;
    module.add_class::<arrow::Rows>()?;
    module.add_class::<evidence::Loaded>()?;
    module.add_class::<record::Recording>()?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(evidence::load, module)?)?;
    module.add_function(wrap_pyfunction!(evidence::schemas, module)?)?;
    module.add_function(wrap_pyfunction!(measure::bench, module)?)?;
    module.add_function(wrap_pyfunction!(measure::bench_here, module)?)?;
    module.add_function(wrap_pyfunction!(measure::why, module)?)?;
    module.add_function(wrap_pyfunction!(measure::why_here, module)?)?;
    module.add_function(wrap_pyfunction!(measure::seconds, module)?)?;
    module.add_function(wrap_pyfunction!(measure::share, module)?)?;
    module.add_function(wrap_pyfunction!(record::record, module)?)?;
    Ok(())
}
