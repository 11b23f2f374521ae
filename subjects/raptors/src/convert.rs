//! Creates arrays from Python buffers, without a copy if possible, and from lists.

use crate::array::{Array, Extent, Owner};
use crate::kind::{EXPECTED, Kind, Numeric, by_kind};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use raptors_core::{Block, View};
use std::sync::Arc;

/// An array of anything that lends its memory, or of numbers in lists; float64 unless all are integers, then int32.
#[pyfunction]
#[pyo3(signature = (source, dtype=None, copy=false))]
pub(crate) fn array(
    source: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    copy: bool,
) -> PyResult<Array> {
    let asked = dtype.map(Kind::asked).transpose()?;
    let array = if let Ok(array) = source.cast::<Array>() {
        array.get().shared()
    } else if lends(source) {
        of_lender(source)?
    } else {
        return of_lists(source, asked);
    };
    match asked {
        Some(kind) if kind != array.kind => converted(&array, kind),
        _ if copy => converted(&array, array.kind),
        _ => Ok(array),
    }
}

fn lends(source: &Bound<'_, PyAny>) -> bool {
    // SAFETY: it is an object.
    unsafe { pyo3::ffi::PyObject_CheckBuffer(source.as_ptr()) == 1 }
}

/// Shares the memory of an object, or copies it if the layout is not supported.
fn of_lender(source: &Bound<'_, PyAny>) -> PyResult<Array> {
    let lent = PyUntypedBuffer::get(source)?;
    let Some(kind) = Kind::of_format(lent.format(), lent.item_size()) else {
        let format = lent.format().to_string_lossy();
        return Err(PyTypeError::new_err(format!("elements of format '{format}': {EXPECTED}")));
    };
    let mut extent =
        Extent { dimensions: lent.dimensions(), sizes: [1; 2], strides_in_bytes: [0; 2] };
    if !(1..=2).contains(&extent.dimensions) {
        let message = format!("{} dimensions: expected one or two", extent.dimensions);
        return Err(PyValueError::new_err(message));
    }
    let first = 2 - extent.dimensions;
    for (dimension, (&size, &stride)) in (first..).zip(lent.shape().iter().zip(lent.strides())) {
        extent.sizes[dimension] = size as isize;
        extent.strides_in_bytes[dimension] = stride;
    }
    if lent.suboffsets().is_some() {
        return Err(PyValueError::new_err("memory with suboffsets cannot be shared"));
    }
    let at: *mut u8 = lent.buf_ptr().cast();
    let size = kind.size();
    let is_aligned = at.addr().is_multiple_of(size)
        && extent.strides_in_bytes.iter().all(|stride| stride.unsigned_abs().is_multiple_of(size));
    if !is_aligned {
        // SAFETY: the exporter guarantees these elements.
        return unsafe { copied(kind, at, extent) };
    }
    Ok(Array { kind, at, extent, owner: Arc::new(Owner::Lent(lent)) })
}

/// A copy of elements with any layout.
///
/// # Safety
/// All elements of the extent exist.
unsafe fn copied(kind: Kind, at: *const u8, extent: Extent) -> PyResult<Array> {
    let [rows, cols] = extent.sizes;
    let [down, across] = extent.strides_in_bytes;
    by_kind!(kind, T => {
        let places = (0..rows).flat_map(|row| (0..cols).map(move |col| row * down + col * across));
        // SAFETY: guaranteed by the caller.
        fill::<T>(extent, places.map(|place| unsafe { at.offset(place).cast::<T>().read_unaligned() }))
    })
}

/// A contiguous copy, optionally with another type.
fn converted(array: &Array, kind: Kind) -> PyResult<Array> {
    by_kind!(array.kind, From => {
        let view: View<From> = array.view();
        let (rows, cols) = view.shape();
        let elements = (0..rows).flat_map(|row| (0..cols).map(move |col| view.get(row, col)));
        by_kind!(kind, To => fill::<To>(array.extent, elements.map(|element| To::of_f64(element.to_f64()))))
    })
}

/// A new row-major array with the shape of the extent.
fn fill<T: Numeric>(extent: Extent, elements: impl Iterator<Item = T>) -> PyResult<Array> {
    let len = extent.len();
    let block = Block::of::<T>(len)
        .ok_or_else(|| PyMemoryError::new_err(format!("not enough memory for {len} elements")))?;
    for (i, element) in elements.take(len).enumerate() {
        // SAFETY: the block has space for `len` elements.
        unsafe { block.as_ptr::<T>().add(i).write(element) };
    }
    let [rows, cols] = extent.sizes;
    let shape = (rows as usize, cols as usize);
    Ok(Array::of_block(block, T::KIND, Extent::dense(extent.dimensions, shape, T::KIND, false)))
}

/// An array from a sequence of numbers, or from a sequence of sequences with equal length.
fn of_lists(source: &Bound<'_, PyAny>, asked: Option<Kind>) -> PyResult<Array> {
    let mut numbers = Numbers { found: Vec::new(), are_integers: true };
    let mut cols = None;
    let mut rows = 0;
    let mut dimensions = 1;
    let items = source.try_iter().map_err(|_| {
        PyTypeError::new_err("expected numbers in lists, or an object that lends its memory")
    })?;
    for item in items {
        let item = item?;
        let is_row = !item.is_instance_of::<PyFloat>() && item.try_iter().is_ok();
        let before = numbers.found.len();
        if is_row {
            dimensions = 2;
            for number in item.try_iter()? {
                numbers.push(&number?)?;
            }
        } else {
            numbers.push(&item)?;
        }
        let len = is_row.then(|| numbers.found.len() - before);
        if *cols.get_or_insert(len) != len {
            return Err(PyValueError::new_err("the rows have different lengths"));
        }
        rows += 1;
    }
    let shape = match cols.flatten() {
        Some(cols) => (rows, cols),
        None => (1, rows),
    };
    let kind = asked.unwrap_or(match numbers.are_integers && !numbers.found.is_empty() {
        true => Kind::Int32,
        false => Kind::Float64,
    });
    if kind == Kind::Int32
        && let Some(wrong) = numbers.found.iter().find(|&&n| f64::from(n as i32) != n)
    {
        return Err(PyOverflowError::new_err(format!("{wrong} is no int32")));
    }
    let extent = Extent::dense(dimensions, shape, kind, false);
    by_kind!(kind, T => fill::<T>(extent, numbers.found.into_iter().map(T::of_f64)))
}

struct Numbers {
    found: Vec<f64>,
    are_integers: bool,
}

impl Numbers {
    fn push(&mut self, number: &Bound<'_, PyAny>) -> PyResult<()> {
        self.are_integers &= number.is_instance_of::<PyInt>();
        self.found.push(number.extract()?);
        Ok(())
    }
}
