//! A view of strided memory that the caller keeps alive.

/// Rows and columns of elements with strides. A run is a view of one row.
///
/// Strides may be negative, or zero for repeated elements.
#[derive(Clone, Copy, Debug)]
pub struct View<T> {
    pub(crate) at: *const T,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) row_stride: isize,
    pub(crate) col_stride: isize,
}

// SAFETY: a view only reads, and its creator guarantees that the memory is valid in any thread.
unsafe impl<T: Send + Sync> Send for View<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for View<T> {}

impl<T: Copy> View<T> {
    /// # Safety
    /// Every element given by shape and strides is readable and aligned, and stays so while the view is in use.
    pub unsafe fn new(
        at: *const T,
        (rows, cols): (usize, usize),
        (row_stride, col_stride): (isize, isize),
    ) -> Self {
        Self { at, rows, cols, row_stride, col_stride }
    }

    /// A row-major view of a slice; `None` if the slice is too short.
    pub fn of_slice(slice: &[T], rows: usize, cols: usize) -> Option<Self> {
        (slice.len() >= rows.checked_mul(cols)?).then_some(Self {
            at: slice.as_ptr(),
            rows,
            cols,
            row_stride: cols as isize,
            col_stride: 1,
        })
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.rows * self.cols
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The transposed view.
    pub fn transposed(self) -> Self {
        Self {
            at: self.at,
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }

    /// Whether each row is a run.
    pub(crate) fn has_runs(&self) -> bool {
        self.col_stride == 1 || self.cols <= 1
    }

    /// Whether it is one contiguous run, row by row.
    pub(crate) fn is_run(&self) -> bool {
        self.has_runs() && (self.row_stride == self.cols as isize || self.rows <= 1)
    }

    /// Whether its columns are runs and its rows are not.
    pub(crate) fn runs_down(&self) -> bool {
        !self.has_runs() && self.transposed().has_runs()
    }

    /// `rows` rows from `start`, which must exist.
    pub(crate) fn some_rows(self, start: usize, rows: usize) -> Self {
        debug_assert!(start + rows <= self.rows);
        Self { at: self.at.wrapping_offset(start as isize * self.row_stride), rows, ..self }
    }

    /// `cols` columns from `start`, which must exist.
    pub(crate) fn some_cols(self, start: usize, cols: usize) -> Self {
        self.transposed().some_rows(start, cols).transposed()
    }

    /// Pointer to an element of a run.
    pub(crate) fn from(&self, start: usize) -> *const T {
        debug_assert!(self.is_run() && start <= self.len());
        self.at.wrapping_add(start)
    }

    /// One element.
    ///
    /// # Panics
    /// If the element does not exist.
    pub fn get(&self, row: usize, col: usize) -> T {
        assert!(row < self.rows && col < self.cols, "no element ({row}, {col})");
        let offset = row as isize * self.row_stride + col as isize * self.col_stride;
        // SAFETY: the creator of the view guarantees its elements, and this is one of them.
        unsafe { *self.at.offset(offset) }
    }

    /// Broadcasts one row or one column to the shape; `None` if it does not fit.
    pub(crate) fn stretched(self, (rows, cols): (usize, usize)) -> Option<Self> {
        let stretch = |has: usize, wanted: usize, stride: isize| match has {
            _ if has == wanted => Some(stride),
            1 => Some(0),
            _ => None,
        };
        let row_stride = stretch(self.rows, rows, self.row_stride)?;
        let col_stride = stretch(self.cols, cols, self.col_stride)?;
        Some(Self { at: self.at, rows, cols, row_stride, col_stride })
    }

    /// Appends the elements of one row, which must exist, to a run.
    pub(crate) fn extend_with_row(&self, row: usize, run: &mut Vec<T>) {
        let row = self.some_rows(row, 1);
        // SAFETY: the creator of the view guarantees its elements, and these are part of it.
        run.extend(
            (0..self.cols as isize).map(|col| unsafe { *row.at.offset(col * row.col_stride) }),
        );
    }
}
