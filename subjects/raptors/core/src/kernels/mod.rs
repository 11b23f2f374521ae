//! The kernels: one table of named functions per instruction set and type.
//!
//! [`lanes`] has the algorithms for vectors of any width. Each instruction set defines its vectors and a separate
//! function for every kernel, which is never inlined, so that profilers show which kernel ran.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "x86_64")]
mod lanes;
pub(crate) mod scalar;
#[cfg(target_arch = "x86_64")]
pub(crate) mod sse2;
#[cfg(test)]
mod tests;

use crate::{Element, dispatch};

/// The kernels of one type.
///
/// Contract of each kernel: the machine supports the instruction set; source pointers are valid for `len` elements, or
/// for `rows` rows of `cols` elements that start `stride` elements apart; `out` is valid for as many elements, is
/// contiguous, and does not overlap with a source.
pub struct Kernels<T: Element> {
    /// Kernels that write arrays with normal stores.
    pub cached: Writers<T>,
    /// The same with streaming stores, for results that do not fit into the caches.
    pub streaming: Writers<T>,
    /// The sum of a run: a, len.
    pub sum: unsafe fn(*const T, usize) -> T::Sum,
    /// Adds the sum of each column to `out`: src, rows, cols, stride, out.
    pub sum_axis0: unsafe fn(*const T, usize, usize, isize, *mut T::Sum),
    /// Writes the sum of each row to `out`: src, rows, cols, stride, out.
    pub sum_axis1: unsafe fn(*const T, usize, usize, isize, *mut T::Sum),
}

/// The kernels that write arrays.
pub struct Writers<T: Element> {
    /// `out = a + b`: a, b, out, len.
    pub add: unsafe fn(*const T, *const T, *mut T, usize),
    /// Adds one row to each row: src, rows, cols, stride, row, out.
    pub broadcast_row_add: unsafe fn(*const T, usize, usize, isize, *const T, *mut T),
    /// Adds to each row one element of a column: src, rows, cols, stride, column, its stride, out.
    pub broadcast_col_add: unsafe fn(*const T, usize, usize, isize, *const T, isize, *mut T),
    /// `out = a * factor`: a, factor, out, len.
    pub scale: unsafe fn(*const T, T, *mut T, usize),
}

impl<T: Element> Kernels<T> {
    /// Selects by the number of bytes read and written. For data larger than the last-level cache, streaming stores
    /// avoid reading the memory that they overwrite.
    pub(crate) fn writers(&self, bytes: usize) -> &Writers<T> {
        if bytes < dispatch::current().stream_from_bytes { &self.cached } else { &self.streaming }
    }
}

/// One table per type.
#[derive(Clone, Copy)]
pub(crate) struct Tables {
    /// For float32.
    pub(crate) f32: &'static Kernels<f32>,
    /// For float64.
    pub(crate) f64: &'static Kernels<f64>,
    /// For int32.
    pub(crate) i32: &'static Kernels<i32>,
}
