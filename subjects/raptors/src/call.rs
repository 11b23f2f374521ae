//! The operations as called from Python: checks arguments, selects the type, releases the GIL for large work.

use crate::array::{Array, Extent};
use crate::convert;
use crate::kind::{Kind, Numeric, by_kind};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat};
use raptors_core::ops::{self, Axis, Mismatch};
use raptors_core::{Block, dispatch};

/// Work on fewer bytes is too short to release the GIL.
const UNLOCK_FROM_BYTES: usize = 64 << 10;

/// The sum of all elements, or the sums along an axis.
#[pyfunction]
#[pyo3(signature = (a, axis=None))]
pub(crate) fn sum<'py>(
    py: Python<'py>,
    a: Operand<'py>,
    axis: Option<isize>,
) -> PyResult<Bound<'py, PyAny>> {
    sum_of(py, &a, axis)
}

/// The mean of all elements, or the means along an axis.
#[pyfunction]
#[pyo3(signature = (a, axis=None))]
pub(crate) fn mean<'py>(
    py: Python<'py>,
    a: Operand<'py>,
    axis: Option<isize>,
) -> PyResult<Bound<'py, PyAny>> {
    mean_of(py, &a, axis)
}

/// The means over all rows: one a column.
#[pyfunction]
pub(crate) fn mean_axis0<'py>(py: Python<'py>, a: Operand<'py>) -> PyResult<Bound<'py, PyAny>> {
    mean_of(py, &a, Some(0))
}

/// The means over all columns: one a row.
#[pyfunction]
pub(crate) fn mean_axis1<'py>(py: Python<'py>, a: Operand<'py>) -> PyResult<Bound<'py, PyAny>> {
    mean_of(py, &a, Some(1))
}

/// The sum of two arrays, one of which may be a row or a column that is repeated.
#[pyfunction]
pub(crate) fn broadcast_add(py: Python<'_>, a: Operand<'_>, b: Operand<'_>) -> PyResult<Array> {
    sum_of_two(py, &a, &b)
}

/// Each element times a factor.
#[pyfunction]
pub(crate) fn scale(py: Python<'_>, a: Operand<'_>, factor: &Bound<'_, PyAny>) -> PyResult<Array> {
    scale_by(py, &a, factor)
}

/// What this process works with, decided when the module was imported.
#[pyfunction]
pub(crate) fn backend(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let backend = dispatch::start().map_err(|bad| PyValueError::new_err(bad.to_string()))?;
    let said = PyDict::new(py);
    said.set_item("simd", backend.isa.word())?;
    said.set_item("threads", backend.threads)?;
    said.set_item("blas", backend.blas.as_ref().map(|blas| &*blas.name))?;
    said.set_item("cache_bytes", backend.cache_bytes)?;
    Ok(said)
}

/// An argument: an array, or an object that can be converted to one.
pub(crate) enum Operand<'py> {
    Array(Bound<'py, Array>),
    Made(Array),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Operand<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<Array>() {
            Ok(array) => Ok(Self::Array(array.to_owned())),
            Err(_) => convert::array(&object, None, false).map(Self::Made),
        }
    }
}

impl std::ops::Deref for Operand<'_> {
    type Target = Array;

    fn deref(&self) -> &Array {
        match self {
            Self::Array(array) => array.get(),
            Self::Made(array) => array,
        }
    }
}

pub(crate) fn sum_of<'py>(
    py: Python<'py>,
    a: &Array,
    axis: Option<isize>,
) -> PyResult<Bound<'py, PyAny>> {
    by_kind!(a.kind, T => {
        let view = a.view::<T>();
        let Some(axis) = axis_of(a, axis)? else {
            return Ok(T::total(py, unlocked(py, a, || ops::sum(view))));
        };
        let Some(kind) = T::SUM_KIND else {
            let message = "sums of int32 along an axis are int64, which arrays cannot have; means can be had";
            return Err(PyTypeError::new_err(message));
        };
        along(py, a, axis, kind, || ops::sum_axis(view, axis))
    })
}

pub(crate) fn mean_of<'py>(
    py: Python<'py>,
    a: &Array,
    axis: Option<isize>,
) -> PyResult<Bound<'py, PyAny>> {
    by_kind!(a.kind, T => {
        let view = a.view::<T>();
        let Some(axis) = axis_of(a, axis)? else {
            return Ok(PyFloat::new(py, unlocked(py, a, || ops::mean(view))).into_any());
        };
        along(py, a, axis, T::MEAN_KIND, || ops::mean_axis(view, axis))
    })
}

pub(crate) fn scale_by(py: Python<'_>, a: &Array, factor: &Bound<'_, PyAny>) -> PyResult<Array> {
    by_kind!(a.kind, T => {
        let factor = T::factor(factor)?;
        let view = a.view::<T>();
        let out = unlocked(py, a, || ops::scale(view, factor)).map_err(raised)?;
        Ok(Array::of_out(out, a.kind, a.extent.dimensions))
    })
}

pub(crate) fn sum_of_two(py: Python<'_>, a: &Array, b: &Array) -> PyResult<Array> {
    if a.kind != b.kind {
        let message = format!("{} and {} cannot be added", a.kind.word(), b.kind.word());
        return Err(PyTypeError::new_err(message));
    }
    by_kind!(a.kind, T => {
        let (left, right) = (a.view::<T>(), b.view::<T>());
        let larger = if a.extent.len() < b.extent.len() { b } else { a };
        let out = unlocked(py, larger, || ops::add(left, right)).map_err(|mismatch| match mismatch {
            Mismatch::Shapes { .. } => {
                let (a, b) = (a.extent.sizes(), b.extent.sizes());
                PyValueError::new_err(format!("shapes {a:?} and {b:?} do not fit together"))
            }
            Mismatch::Memory(_) => raised(mismatch),
        })?;
        Ok(Array::of_out(out, a.kind, a.extent.dimensions.max(b.extent.dimensions)))
    })
}

/// The axis; `None` for all elements, also if there is only one axis.
fn axis_of(a: &Array, axis: Option<isize>) -> PyResult<Option<Axis>> {
    let Some(axis) = axis else { return Ok(None) };
    let dimensions = a.extent.dimensions as isize;
    match (dimensions, if axis < 0 { axis + dimensions } else { axis }) {
        (1, 0) => Ok(None),
        (2, 0) => Ok(Some(Axis::Rows)),
        (2, 1) => Ok(Some(Axis::Columns)),
        _ => {
            let message = format!("axis {axis} is out of bounds for {dimensions} dimensions");
            Err(PyValueError::new_err(message))
        }
    }
}

/// The array of results along the remaining axis.
fn along<'py>(
    py: Python<'py>,
    a: &Array,
    axis: Axis,
    kind: Kind,
    work: impl Send + FnOnce() -> Result<Block, Mismatch>,
) -> PyResult<Bound<'py, PyAny>> {
    let block = unlocked(py, a, work).map_err(raised)?;
    let left = a.extent.sizes[if axis == Axis::Rows { 1 } else { 0 }] as usize;
    let extent = Extent::dense(1, (1, left), kind, false);
    Ok(Bound::new(py, Array::of_block(block, kind, extent))?.into_any())
}

/// Does work on this array, with the GIL released if the array is large.
fn unlocked<R: Send>(py: Python<'_>, a: &Array, work: impl Send + FnOnce() -> R) -> R {
    if a.extent.len() * a.kind.size() < UNLOCK_FROM_BYTES { work() } else { py.detach(work) }
}

fn raised(mismatch: Mismatch) -> PyErr {
    match mismatch {
        Mismatch::Shapes { .. } => PyValueError::new_err(mismatch.to_string()),
        Mismatch::Memory(_) => PyMemoryError::new_err(mismatch.to_string()),
    }
}
