//! The extension behind the Python package `laggard`: evidence and its tables as Python objects, and
//! the whole command line.
//!
//! What is done here is done without the interpreter's lock, and Ctrl-C ends the wait for it. The
//! package around it (`python/laggard`) has what is easier said in Python: names of flags, types of
//! errors, engines of `query` and `fleet`.

#![allow(clippy::needless_pass_by_value, reason = "what comes from Python comes by value")]

mod arrow;
mod error;
mod evidence;
mod measure;
mod record;
mod wait;

use pyo3::prelude::*;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command line; gives its exit code. `package` runs verbs that need an engine: it is
/// called with the verb's name and its flags as JSON, and gives the exit code.
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

/// The number of an exit code, which the standard library does not give.
fn number(code: ExitCode) -> u8 {
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(2)
}

#[pymodule]
fn _laggard(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<arrow::Table>()?;
    module.add_class::<evidence::Loaded>()?;
    module.add_class::<record::Recording>()?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(evidence::load, module)?)?;
    module.add_function(wrap_pyfunction!(evidence::schemas, module)?)?;
    module.add_function(wrap_pyfunction!(measure::bench, module)?)?;
    module.add_function(wrap_pyfunction!(measure::bench_here, module)?)?;
    module.add_function(wrap_pyfunction!(measure::why, module)?)?;
    module.add_function(wrap_pyfunction!(measure::why_here, module)?)?;
    module.add_function(wrap_pyfunction!(record::record, module)?)?;
    Ok(())
}
