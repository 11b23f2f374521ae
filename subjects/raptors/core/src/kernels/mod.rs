//! The kernels: one table of named functions an instruction set and type.
//!
//! The algorithms stand once, in [`lanes`], over a vector of any width. Each instruction set says what its vectors are
//! and gives every kernel a function of its own, never inlined, so that a profiler shows which one ran.

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
/// The contract of each: the machine has the instruction set; source pointers are valid for `len` elements, or for
/// `rows` rows of `cols` elements that begin `stride` elements apart; `out` is valid for as many elements, rows of it
/// without gaps, and overlaps no source.
pub struct Kernels<T: Element> {
    /// Those that write arrays, through the caches.
    pub cached: Writers<T>,
    /// The same past the caches, for results that do not fit into them.
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
    /// Adds to each row the element of a column beside it: src, rows, cols, stride, column, its stride, out.
    pub broadcast_col_add: unsafe fn(*const T, usize, usize, isize, *const T, isize, *mut T),
    /// `out = a * factor`: a, factor, out, len.
    pub scale: unsafe fn(*const T, T, *mut T, usize),
}

impl<T: Element> Kernels<T> {
    /// Those for work that reads and writes so many bytes. Past the last cache, a store that goes through the caches
    /// first reads what it overwrites.
    pub(crate) fn writers(&self, bytes: usize) -> &Writers<T> {
        if bytes < dispatch::current().stream_from_bytes { &self.cached } else { &self.streaming }
    }
}

/// One table a type.
#[derive(Clone, Copy)]
pub(crate) struct Tables {
    /// Of float32.
    pub(crate) f32: &'static Kernels<f32>,
    /// Of float64.
    pub(crate) f64: &'static Kernels<f64>,
    /// Of int32.
    pub(crate) i32: &'static Kernels<i32>,
}
