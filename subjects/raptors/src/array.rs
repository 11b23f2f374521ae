//! The Python class `Array`: owner of the memory, layout, and Python methods.

use crate::call::{self, Operand};
use crate::kind::{Kind, Numeric, by_kind};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyTuple};
use raptors_core::{Block, Out, View};
use std::sync::Arc;

/// An array with one or two dimensions; a view of memory that may be shared.
#[pyclass(frozen, module = "raptors")]
pub(crate) struct Array {
    pub(crate) kind: Kind,
    /// The first element.
    pub(crate) at: *mut u8,
    pub(crate) extent: Extent,
    pub(crate) owner: Arc<Owner>,
}

// SAFETY: the owner keeps the memory alive in any thread, and arrays are not written after creation.
unsafe impl Send for Array {}
// SAFETY: as above.
unsafe impl Sync for Array {}

/// Owner of the memory.
pub(crate) enum Owner {
    /// A result of an operation.
    Ours(#[expect(dead_code, reason = "held, not read")] Block),
    /// A Python object that shares its memory and may modify it.
    Lent(#[expect(dead_code, reason = "held, not read")] PyUntypedBuffer),
}

/// Sizes and strides of two dimensions; with one dimension, only the second counts.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) dimensions: usize,
    pub(crate) sizes: [isize; 2],
    pub(crate) strides_in_bytes: [isize; 2],
}

impl Extent {
    /// Contiguous, row-major or column-major.
    pub(crate) fn dense(
        dimensions: usize,
        shape: (usize, usize),
        kind: Kind,
        is_turned: bool,
    ) -> Self {
        let (rows, cols) = (shape.0 as isize, shape.1 as isize);
        let size = kind.size() as isize;
        let strides_in_bytes = if is_turned { [size, size * rows] } else { [size * cols, size] };
        Self { dimensions, sizes: [rows, cols], strides_in_bytes }
    }

    pub(crate) fn sizes(&self) -> &[isize] {
        &self.sizes[2 - self.dimensions..]
    }

    pub(crate) fn strides_in_bytes(&self) -> &[isize] {
        &self.strides_in_bytes[2 - self.dimensions..]
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.sizes.iter().product::<isize>() as usize
    }

    /// A selection of elements along one dimension.
    fn narrow(&mut self, at: &mut *mut u8, dimension: usize, part: Part) {
        let stride = self.strides_in_bytes[dimension];
        *at = at.wrapping_offset(part.start * stride);
        self.sizes[dimension] = part.len;
        self.strides_in_bytes[dimension] = stride * part.step;
    }
}

/// The elements of a dimension that an index selects.
struct Part {
    start: isize,
    step: isize,
    len: isize,
    is_single: bool,
}

impl Array {
    pub(crate) fn of_block(block: Block, kind: Kind, extent: Extent) -> Self {
        Self { kind, at: block.as_ptr(), extent, owner: Arc::new(Owner::Ours(block)) }
    }

    pub(crate) fn of_out(out: Out, kind: Kind, dimensions: usize) -> Self {
        let extent = Extent::dense(dimensions, out.shape, kind, out.is_turned);
        Self::of_block(out.block, kind, extent)
    }

    /// The elements, which must be of this type.
    pub(crate) fn view<T: Numeric>(&self) -> View<T> {
        debug_assert!(self.kind == T::KIND);
        let [rows, cols] = self.extent.sizes;
        let [row_stride, col_stride] =
            self.extent.strides_in_bytes.map(|bytes| bytes / size_of::<T>() as isize);
        let shape = (rows as usize, cols as usize);
        // SAFETY: arrays are created only from memory with these aligned elements, and keep its owner alive.
        unsafe { View::new(self.at.cast(), shape, (row_stride, col_stride)) }
    }

    /// The same memory with another layout.
    fn sharing(&self, at: *mut u8, extent: Extent) -> Self {
        Self { kind: self.kind, at, extent, owner: Arc::clone(&self.owner) }
    }

    pub(crate) fn shared(&self) -> Self {
        self.sharing(self.at, self.extent)
    }

    fn part(&self, dimension: usize, index: &Bound<'_, PyAny>) -> PyResult<Part> {
        let size = self.extent.sizes[dimension];
        if let Ok(slice) = index.cast::<PySlice>() {
            let found = slice.indices(size)?;
            let len = found.slicelength as isize;
            let start = if len == 0 { 0 } else { found.start };
            return Ok(Part { start, step: found.step, len, is_single: false });
        }
        let asked: isize = index.extract().map_err(|_| {
            PyTypeError::new_err("an index is an integer or a slice, or two of them")
        })?;
        let start = if asked < 0 { asked + size } else { asked };
        if !(0..size).contains(&start) {
            return Err(PyIndexError::new_err(format!(
                "index {asked} is out of bounds for size {size}"
            )));
        }
        Ok(Part { start, step: 1, len: 1, is_single: true })
    }
}

#[pymethods]
impl Array {
    /// Sizes of the dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.extent.sizes())
    }

    /// Bytes from one element to the next along each dimension.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.extent.strides_in_bytes())
    }

    /// `"float32"`, `"float64"` or `"int32"`.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.kind.word()
    }

    /// Number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.extent.dimensions
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.extent.len()
    }

    /// The same memory with columns for rows.
    #[getter(T)]
    fn transposed(&self) -> Self {
        let mut extent = self.extent;
        if extent.dimensions == 2 {
            extent.sizes.reverse();
            extent.strides_in_bytes.reverse();
        }
        self.sharing(self.at, extent)
    }

    fn __len__(&self) -> usize {
        self.extent.sizes()[0] as usize
    }

    /// A view of some elements, or one of them as a number.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let indices = match index.cast::<PyTuple>() {
            Ok(several) => several.iter().collect(),
            Err(_) => vec![index.clone()],
        };
        if indices.len() > self.extent.dimensions {
            let message =
                format!("too many indices: {} for {}", indices.len(), self.extent.dimensions);
            return Err(PyIndexError::new_err(message));
        }
        let (mut at, mut extent) = (self.at, self.extent);
        let first = 2 - extent.dimensions;
        let mut singles = [false; 2];
        for (dimension, index) in (first..).zip(&indices) {
            let part = self.part(dimension, index)?;
            singles[dimension] = part.is_single;
            extent.narrow(&mut at, dimension, part);
        }
        if singles[first..].iter().all(|single| *single) {
            return by_kind!(self.kind, T => {
                // SAFETY: the index was checked, so the element exists.
                T::number(py, unsafe { at.cast::<T>().read() })
            });
        }
        if singles[1] {
            extent.sizes.reverse();
            extent.strides_in_bytes.reverse();
        }
        extent.dimensions -= usize::from(singles[0] || singles[1]);
        Ok(Bound::new(py, self.sharing(at, extent))?.into_any())
    }

    /// The elements as a list, or as a list of lists.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = by_kind!(self.kind, T => {
            let view = self.view::<T>();
            let (rows, cols) = view.shape();
            let number = |row, col| T::number(py, view.get(row, col));
            let list = |row| PyList::new(py, (0..cols).map(|col| number(row, col)).collect::<PyResult<Vec<_>>>()?);
            (0..rows).map(list).collect::<PyResult<Vec<_>>>()?
        });
        match (self.extent.dimensions, rows.into_iter()) {
            (1, mut rows) => rows.next().map_or_else(|| Ok(PyList::empty(py)), Ok),
            (_, rows) => PyList::new(py, rows),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shape = self.shape(py)?;
        if self.extent.len() > 100 {
            return Ok(format!("raptors.Array(shape={shape}, dtype='{}')", self.kind.word()));
        }
        Ok(format!("raptors.array({}, dtype='{}')", self.tolist(py)?, self.kind.word()))
    }

    /// The sum of all elements, or the sums along an axis.
    #[pyo3(signature = (axis=None))]
    fn sum<'py>(&self, py: Python<'py>, axis: Option<isize>) -> PyResult<Bound<'py, PyAny>> {
        call::sum_of(py, self, axis)
    }

    /// The mean of all elements, or the means along an axis.
    #[pyo3(signature = (axis=None))]
    fn mean<'py>(&self, py: Python<'py>, axis: Option<isize>) -> PyResult<Bound<'py, PyAny>> {
        call::mean_of(py, self, axis)
    }

    /// The means over all rows: one a column.
    fn mean_axis0<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        call::mean_of(py, self, Some(0))
    }

    /// The means over all columns: one a row.
    fn mean_axis1<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        call::mean_of(py, self, Some(1))
    }

    /// Each element times a factor.
    fn scale(&self, py: Python<'_>, factor: &Bound<'_, PyAny>) -> PyResult<Self> {
        call::scale_by(py, self, factor)
    }

    /// This plus an array of the same shape, or plus a row or a column that is repeated.
    fn broadcast_add(&self, py: Python<'_>, other: Operand<'_>) -> PyResult<Self> {
        call::sum_of_two(py, self, &other)
    }

    fn __add__(&self, py: Python<'_>, other: Operand<'_>) -> PyResult<Self> {
        call::sum_of_two(py, self, &other)
    }

    fn __mul__(&self, py: Python<'_>, factor: &Bound<'_, PyAny>) -> PyResult<Self> {
        call::scale_by(py, self, factor)
    }

    fn __rmul__(&self, py: Python<'_>, factor: &Bound<'_, PyAny>) -> PyResult<Self> {
        call::scale_by(py, self, factor)
    }

    /// A NumPy array of the same memory, which may not be written to.
    fn to_numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("numpy")?.call_method1("asarray", (slf,))
    }

    /// What NumPy calls where it does not take the memory itself.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let lent = pyo3::types::PyMemoryView::from(slf.as_any())?;
        let make = if copy == Some(true) { "array" } else { "asarray" };
        py.import("numpy")?.call_method1(make, (lent, dtype))
    }

    /// Lends the memory, for reading.
    ///
    /// # Safety
    /// `buffer` points to a buffer that Python asks to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        buffer: *mut pyo3::ffi::Py_buffer,
        flags: std::ffi::c_int,
    ) -> PyResult<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { crate::lend::fill(slf, buffer, flags) }
    }
}
