//! Exports the memory of an array through the buffer protocol, so that NumPy can use it without a copy.

use crate::array::Array;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;

/// Fills a read-only buffer, which keeps the array alive.
///
/// # Safety
/// `buffer` is null or points to a buffer to fill.
pub(crate) unsafe fn fill(
    array: Bound<'_, Array>,
    buffer: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    if buffer.is_null() {
        return Err(PyBufferError::new_err("there is no buffer to fill"));
    }
    let asks = |flag: c_int| flags & flag == flag;
    let Array { kind, at, extent, .. } = array.get();
    let refuse = |why: &str| {
        // SAFETY: guaranteed by the caller; a rejected buffer has no object.
        unsafe { (*buffer).obj = std::ptr::null_mut() };
        Err(PyBufferError::new_err(why.to_owned()))
    };
    if asks(ffi::PyBUF_WRITABLE) {
        return refuse("arrays lend their memory for reading only");
    }
    let view = Dense::of(array.get());
    let wants_rows = asks(ffi::PyBUF_C_CONTIGUOUS) || !asks(ffi::PyBUF_STRIDES);
    if wants_rows && !view.by_rows
        || asks(ffi::PyBUF_F_CONTIGUOUS) && !view.by_columns
        || asks(ffi::PyBUF_ANY_CONTIGUOUS) && !view.by_rows && !view.by_columns
    {
        return refuse("the elements do not lie in the order that is asked for");
    }
    let first = 2 - extent.dimensions;
    // The array is immutable and the buffer keeps it alive, so pointers to its sizes and strides stay valid.
    let sizes = std::ptr::from_ref(&extent.sizes[first]).cast_mut();
    let strides = std::ptr::from_ref(&extent.strides_in_bytes[first]).cast_mut();
    let or_null = |flag, pointer| if asks(flag) { pointer } else { std::ptr::null_mut() };
    let filled = ffi::Py_buffer {
        buf: at.cast(),
        len: (extent.len() * kind.size()) as isize,
        itemsize: kind.size() as isize,
        readonly: 1,
        ndim: extent.dimensions as c_int,
        format: if asks(ffi::PyBUF_FORMAT) {
            kind.format().as_ptr().cast_mut()
        } else {
            std::ptr::null_mut()
        },
        shape: or_null(ffi::PyBUF_ND, sizes),
        strides: or_null(ffi::PyBUF_STRIDES, strides),
        suboffsets: std::ptr::null_mut(),
        internal: std::ptr::null_mut(),
        obj: array.into_ptr(),
    };
    // SAFETY: guaranteed by the caller.
    unsafe { buffer.write(filled) };
    Ok(())
}

/// Whether the elements are contiguous in row-major and in column-major order.
struct Dense {
    by_rows: bool,
    by_columns: bool,
}

impl Dense {
    fn of(array: &Array) -> Self {
        let size = array.kind.size() as isize;
        let [rows, cols] = array.extent.sizes;
        let [down, across] = array.extent.strides_in_bytes;
        let is_empty = rows == 0 || cols == 0;
        let steps = |count: isize, stride: isize, expected: isize| count <= 1 || stride == expected;
        Self {
            by_rows: is_empty || steps(cols, across, size) && steps(rows, down, size * cols),
            by_columns: is_empty || steps(rows, down, size) && steps(cols, across, size * rows),
        }
    }
}
