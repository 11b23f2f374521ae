//! The Python module `raptors`: arrays, and functions on them.
//!
//! Python calls these functions directly, without a Python wrapper. Arrays share memory with their source if possible;
//! results own their memory. Large operations release the GIL.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]

mod array;
mod call;
mod convert;
mod kind;
mod lend;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// Arrays of float32, float64 and int32 with one or two dimensions.
#[pymodule(gil_used = false)]
mod raptors {
    #[pymodule_export]
    use super::array::Array;
    #[pymodule_export]
    use super::call::{backend, broadcast_add, mean, mean_axis0, mean_axis1, scale, sum};
    #[pymodule_export]
    use super::convert::array;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        raptors_core::dispatch::start().map_err(|bad| PyImportError::new_err(bad.to_string()))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
