//! The Python module `raptors`: arrays, and functions on them.
//!
//! Python calls straight into these functions, without a wrapper between. Arrays share the memory of what they were
//! made from where that can be; results are arrays of their own. Large work runs without the interpreter's lock.

#![allow(
    clippy::needless_pass_by_value,
    reason = "what Python passes is taken out of its objects by value"
)]

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
