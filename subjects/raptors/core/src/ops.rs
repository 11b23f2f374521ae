//! The operations. Every layout is converted to rows that are contiguous runs, which are passed to kernels.
//!
//! A view with contiguous columns is transposed, and so is its result, as in NumPy. A view with gaps between all its
//! elements is packed, one band of rows at a time.

use crate::kernels::Kernels;
use crate::{Block, Element, View, blas, dispatch, threads};

/// Elements summed before adding to a wider sum; bounds the error of float32.
const RUN: usize = 4 << 10;
/// Rows summed before adding to a wider sum.
const DEEP: usize = 1 << 10;
/// Elements packed at a time: fits into the L2 cache.
const BAND: usize = 16 << 10;

/// An operation that cannot be computed.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum Mismatch {
    /// Shapes that cannot be broadcast.
    #[error("shapes ({}, {}) and ({}, {}) do not fit together", a.0, a.1, b.0, b.1)]
    Shapes {
        /// Of the first operand.
        a: (usize, usize),
        /// Of the second operand.
        b: (usize, usize),
    },
    /// Not enough memory for the result.
    #[error("not enough memory for {0} elements")]
    Memory(usize),
}

/// A result with rows and columns.
#[derive(Debug)]
pub struct Out {
    /// Its contiguous memory.
    pub block: Block,
    /// Rows and columns.
    pub shape: (usize, usize),
    /// Whether it is column-major.
    pub is_turned: bool,
}

/// The axis to reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Over all rows: one result per column.
    Rows,
    /// Over all columns: one result per row.
    Columns,
}

/// The sum of all elements.
pub fn sum<T: Element>(view: View<T>) -> T::Total {
    let (view, _) = upright(view);
    let bytes = view.len() * size_of::<T>();
    let kernels = T::kernels();
    let total = std::sync::Mutex::new(T::Total::default());
    let plus = |part| {
        let mut total = total.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *total = T::join_totals(*total, part);
    };
    if view.is_run() {
        threads::split(view.len(), 64, bytes, &|range| {
            // SAFETY: the range lies within the run.
            plus(unsafe { sum_run(kernels, view.from(range.start), range.len()) });
        });
    } else {
        threads::split(view.rows, 1, bytes, &|range| {
            let mut part = T::Total::default();
            in_bands(view.some_rows(range.start, range.len()), |_, band| {
                for row in 0..band.rows {
                    // SAFETY: the rows of a band are runs of the view.
                    let sum = unsafe { sum_run(kernels, band.some_rows(row, 1).at, band.cols) };
                    part = T::join_totals(part, sum);
                }
            });
            plus(part);
        });
    }
    total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The mean of all elements; NaN if there are none.
pub fn mean<T: Element>(view: View<T>) -> f64 {
    T::total_as_f64(sum(view)) / view.len() as f64
}

/// Sums along an axis, as `T::Sum`.
pub fn sum_axis<T: Element>(view: View<T>, axis: Axis) -> Result<Block, Mismatch> {
    reduce(view, axis, |total| T::sum_of_total(total))
}

/// Means along an axis, as `T::Mean`.
pub fn mean_axis<T: Element>(view: View<T>, axis: Axis) -> Result<Block, Mismatch> {
    let count = if axis == Axis::Rows { view.rows } else { view.cols };
    reduce(view, axis, |total| T::mean_of_total(total, count))
}

/// Each element times a factor.
pub fn scale<T: Element>(view: View<T>, factor: T) -> Result<Out, Mismatch> {
    let shape = view.shape();
    let (view, is_turned) = upright(view);
    let (block, out) = room::<T>(view.len())?;
    let bytes = view.len() * size_of::<T>();
    let writers = T::kernels().writers(2 * bytes);
    if view.is_run() {
        threads::split(view.len(), 64, bytes, &|range| {
            // SAFETY: the range lies within the run, and the result is as long.
            unsafe {
                let (src, out) = (view.from(range.start), out.at().add(range.start));
                (writers.scale)(src, factor, out, range.len());
            }
        });
    } else {
        each_row(view, out, |_, src, out| {
            // SAFETY: a row has that many elements, and so has a row of the result.
            unsafe { (writers.scale)(src, factor, out, view.cols) }
        });
    }
    Ok(Out { block, shape, is_turned })
}

/// The sum of two arrays of equal shape, or of an array and a broadcast row, column or element.
pub fn add<T: Element>(a: View<T>, b: View<T>) -> Result<Out, Mismatch> {
    let larger = |a: usize, b: usize| if a == 1 { b } else { a };
    let shape = (larger(a.rows, b.rows), larger(a.cols, b.cols));
    let stretched = a.stretched(shape).zip(b.stretched(shape));
    let Some((wide_a, wide_b)) = stretched else {
        return Err(Mismatch::Shapes { a: a.shape(), b: b.shape() });
    };
    // Addition is commutative: swap so that the first operand is not broadcast, if possible.
    let (a, b) = if a.shape() == shape { (wide_a, wide_b) } else { (wide_b, wide_a) };
    let (a, is_turned) = upright(a);
    let b = if is_turned { b.transposed() } else { b };
    let (block, out) = room::<T>(a.len())?;
    if !a.is_empty() {
        add_upright(a, b, out);
    }
    Ok(Out { block, shape, is_turned })
}

/// Adds views of equal shape. `a` has runs if possible.
fn add_upright<T: Element>(a: View<T>, b: View<T>, out: Place<T>) {
    let bytes = a.len() * size_of::<T>();
    let is_repeated = b.row_stride == 0 && a.rows > 1 || b.col_stride == 0 && a.cols > 1;
    let writers = T::kernels().writers(bytes * if is_repeated { 2 } else { 3 });
    if a.is_run() && b.is_run() {
        threads::split(a.len(), 64, bytes, &|range| {
            // SAFETY: the range lies within both runs, and the result is as long.
            unsafe {
                let (a, b) = (a.from(range.start), b.from(range.start));
                (writers.add)(a, b, out.at().add(range.start), range.len());
            }
        });
        return;
    }
    let mut packed_row = Vec::new();
    let row = (b.row_stride == 0 && a.rows > 1).then(|| {
        if b.has_runs() {
            return b.at;
        }
        b.extend_with_row(0, &mut packed_row);
        packed_row.as_ptr()
    });
    let row = row.map(|at| Place(at.cast_mut()));
    let b_is_column = b.col_stride == 0 && a.cols > 1;
    threads::split(a.rows, 1, bytes, &|range| {
        let b = b.some_rows(range.start, range.len());
        // SAFETY: the rows of a band are runs of `a`, `b` has as many, and the result has space for them.
        in_bands(a.some_rows(range.start, range.len()), |first, band| unsafe {
            let View { at, rows, cols, row_stride: stride, .. } = band;
            let out = out.at().add((range.start + first) * cols);
            let b = b.some_rows(first, rows);
            match row {
                _ if b_is_column => {
                    (writers.broadcast_col_add)(at, rows, cols, stride, b.at, b.row_stride, out);
                }
                Some(row) => {
                    (writers.broadcast_row_add)(at, rows, cols, stride, row.at(), out);
                }
                None => {
                    in_bands(b, |first, b| {
                        for row in 0..b.rows {
                            let a = band.some_rows(first + row, 1).at;
                            let out = out.add((first + row) * cols);
                            (writers.add)(a, b.some_rows(row, 1).at, out, cols);
                        }
                    });
                }
            }
        });
    });
}

/// One result per remaining index, computed from its total by `finish`.
fn reduce<T: Element, R: Copy>(
    view: View<T>,
    axis: Axis,
    finish: impl Fn(T::Total) -> R + Sync,
) -> Result<Block, Mismatch> {
    // Sums are computed in the memory of the results.
    const { assert!(size_of::<R>() == size_of::<T::Sum>()) };
    let view = if axis == Axis::Rows { view } else { view.transposed() };
    let (block, out) = room::<R>(view.cols)?;
    let bytes = view.len() * size_of::<T>();
    let turned = view.transposed();
    if view.runs_down() || (view.cols <= 1 && turned.has_runs()) {
        threads::split(turned.rows, 1, bytes, &|range| {
            let rows = turned.some_rows(range.start, range.len());
            // SAFETY: the results of other parts lie elsewhere.
            unsafe { reduce_rows(rows, out.at().add(range.start), &finish) };
        });
    } else {
        threads::split(view.cols, 64, bytes, &|range| {
            let cols = view.some_cols(range.start, range.len());
            // SAFETY: the results of other parts lie elsewhere.
            unsafe { reduce_columns(cols, out.at().add(range.start), &finish) };
        });
    }
    Ok(block)
}

/// The total of each row, which is a run.
///
/// # Safety
/// `out` has space for one result per row, of the size of a sum.
unsafe fn reduce_rows<T: Element, R: Copy>(
    view: View<T>,
    out: *mut R,
    finish: &impl Fn(T::Total) -> R,
) {
    let View { at, rows, cols, row_stride: stride, .. } = view;
    if cols > RUN {
        for row in 0..rows {
            // SAFETY: the view has this row, and `out` has an element for it.
            unsafe {
                let total = sum_run(T::kernels(), view.some_rows(row, 1).at, cols);
                out.add(row).write(finish(total));
            }
        }
        return;
    }
    let sums: *mut T::Sum = out.cast();
    // SAFETY: `out` has space for one sum per row.
    unsafe {
        match gemv_for(&view) {
            // Only floats have it, whose sums are of their own type.
            Some(gemv) => blas::sum_axis1_blas(gemv, at, rows, cols, stride, sums.cast()),
            None => (T::kernels().sum_axis1)(at, rows, cols, stride, sums),
        }
        finish_in_place::<T, R>(sums, rows, finish);
    }
}

/// The total of each column.
///
/// # Safety
/// `out` has space for one result per column, of the size of a sum.
unsafe fn reduce_columns<T: Element, R: Copy>(
    view: View<T>,
    out: *mut R,
    finish: &impl Fn(T::Total) -> R,
) {
    let cols = view.cols;
    let sums: *mut T::Sum = out.cast();
    let clear = || {
        for col in 0..cols {
            // SAFETY: `out` has space for one sum per column.
            unsafe { sums.add(col).write(T::Sum::default()) };
        }
    };
    // SAFETY: a band has runs of `cols` elements, and `out` has space for as many sums.
    let add_rows = |View { at, rows, row_stride: stride, .. }: View<T>| unsafe {
        match gemv_for(&view) {
            // Only floats have it, whose sums are of their own type.
            Some(gemv) => blas::sum_axis0_blas(gemv, at, rows, cols, stride, sums.cast()),
            None => (T::kernels().sum_axis0)(at, rows, cols, stride, sums),
        }
    };
    clear();
    if view.rows <= DEEP {
        in_bands(view, |_, band| add_rows(band));
        // SAFETY: the sums are there now.
        return unsafe { finish_in_place::<T, R>(sums, cols, finish) };
    }
    let mut totals = vec![T::Total::default(); cols];
    for first in (0..view.rows).step_by(DEEP) {
        let rows = DEEP.min(view.rows - first);
        in_bands(view.some_rows(first, rows), |_, band| add_rows(band));
        for (col, total) in totals.iter_mut().enumerate() {
            // SAFETY: the sums are there now.
            *total = T::plus_total(*total, unsafe { *sums.add(col) });
        }
        clear();
    }
    for (col, total) in totals.into_iter().enumerate() {
        // SAFETY: `out` has space for one result per column.
        unsafe { out.add(col).write(finish(total)) };
    }
}

/// Converts sums to results in place.
///
/// # Safety
/// There are `len` sums, and a result is as large as a sum.
unsafe fn finish_in_place<T: Element, R: Copy>(
    sums: *mut T::Sum,
    len: usize,
    finish: &impl Fn(T::Total) -> R,
) {
    for i in 0..len {
        // SAFETY: guaranteed by the caller; each sum is read before it is overwritten.
        unsafe {
            let total = T::plus_total(T::Total::default(), *sums.add(i));
            sums.add(i).cast::<R>().write(finish(total));
        }
    }
}

/// The BLAS function, if requested and applicable to this view.
fn gemv_for<T: Element>(view: &View<T>) -> Option<blas::Gemv<T>> {
    let blas = dispatch::current().blas.as_ref()?;
    let fits = view.has_runs() && !view.is_empty() && view.row_stride >= view.cols as isize;
    let is_small = [view.rows, view.cols, view.row_stride.unsigned_abs()]
        .into_iter()
        .all(|size| i32::try_from(size).is_ok());
    (fits && is_small).then(|| T::gemv(blas)).flatten()
}

/// The total of a run, in pieces that are short enough for sums with the precision of the elements.
///
/// # Safety
/// The run has `len` elements.
unsafe fn sum_run<T: Element>(kernels: &Kernels<T>, at: *const T, len: usize) -> T::Total {
    let mut total = T::Total::default();
    let mut start = 0;
    while start < len {
        let piece = RUN.min(len - start);
        // SAFETY: the piece lies within the run.
        total = T::plus_total(total, unsafe { (kernels.sum)(at.add(start), piece) });
        start += piece;
    }
    total
}

/// The view, transposed if only then its rows are runs, and whether it was transposed.
fn upright<T: Copy>(view: View<T>) -> (View<T>, bool) {
    if view.runs_down() { (view.transposed(), true) } else { (view, false) }
}

/// Calls `work` with each row as a run and its index in the result.
fn each_row<T: Element>(
    view: View<T>,
    out: Place<T>,
    work: impl Fn(usize, *const T, *mut T) + Sync,
) {
    let bytes = view.len() * size_of::<T>();
    threads::split(view.rows, 1, bytes, &|range| {
        in_bands(view.some_rows(range.start, range.len()), |first, band| {
            for row in 0..band.rows {
                let index = range.start + first + row;
                let place = out.at().wrapping_add(index * view.cols);
                work(index, band.some_rows(row, 1).at, place);
            }
        });
    });
}

/// Calls `work` with bands of rows that are runs and the index of the first row: the view itself if its rows are runs,
/// otherwise packed copies.
fn in_bands<T: Element>(view: View<T>, mut work: impl FnMut(usize, View<T>)) {
    if view.has_runs() || view.is_empty() {
        return work(0, view);
    }
    let deep = (BAND / view.cols).clamp(1, view.rows);
    let mut packed = Vec::with_capacity(deep * view.cols);
    for first in (0..view.rows).step_by(deep) {
        let rows = deep.min(view.rows - first);
        pack_strided(view.some_rows(first, rows), &mut packed);
        let stride = view.cols as isize;
        work(first, View { at: packed.as_ptr(), rows, row_stride: stride, col_stride: 1, ..view });
    }
}

/// Copies strided elements into one run, row by row.
#[inline(never)]
fn pack_strided<T: Element>(view: View<T>, packed: &mut Vec<T>) {
    packed.clear();
    for row in 0..view.rows {
        view.extend_with_row(row, packed);
    }
}

/// Output pointer that threads share; each writes to its own part.
#[derive(Clone, Copy)]
struct Place<T>(*mut T);

impl<T> Place<T> {
    fn at(self) -> *mut T {
        self.0
    }
}

// SAFETY: users keep the parts of threads disjoint.
unsafe impl<T> Send for Place<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Place<T> {}

fn room<T>(len: usize) -> Result<(Block, Place<T>), Mismatch> {
    let block = Block::of::<T>(len).ok_or(Mismatch::Memory(len))?;
    let place = Place(block.as_ptr());
    Ok((block, place))
}
