//! The scalar kernels: one element per instruction, several independent sums to hide latency.
//!
//! Functions take pointers to runs or rows of elements and write results through a pointer. `raptors-core` checks the
//! arguments. The crate is compiled with an optimization level that does not vectorize (see the workspace's
//! `Cargo.toml`). Nothing is generic, because generic code is compiled in the crate that uses it.

#![allow(clippy::missing_safety_doc, reason = "one contract for all functions, below")]

/// Defines the kernels of one type.
///
/// Contract of each kernel: source pointers are valid for `len` elements, or for `rows` rows of `cols` elements that
/// start `stride` elements apart; `out` is valid for as many elements, is contiguous, and does not overlap with a source.
macro_rules! kernels {
    ($element:ty, $sum:ty, $plus:expr, $times:expr, $plus_sum:expr, $add:ident, $row:ident, $col:ident, $scale:ident,
     $total:ident, $axis0:ident, $axis1:ident) => {
        /// Adds two runs.
        #[inline(never)]
        pub unsafe fn $add(a: *const $element, b: *const $element, out: *mut $element, len: usize) {
            let mut i = 0;
            while i < len {
                // SAFETY: the contract of the kernels.
                unsafe { *out.add(i) = $plus(*a.add(i), *b.add(i)) };
                i += 1;
            }
        }

        /// Adds one row to each row.
        #[inline(never)]
        pub unsafe fn $row(
            src: *const $element,
            rows: usize,
            cols: usize,
            stride: isize,
            row: *const $element,
            out: *mut $element,
        ) {
            let mut i = 0;
            while i < rows {
                // SAFETY: the contract of the kernels.
                let (src, out) = unsafe { (src.offset(i as isize * stride), out.add(i * cols)) };
                let mut j = 0;
                while j < cols {
                    // SAFETY: the contract of the kernels.
                    unsafe { *out.add(j) = $plus(*src.add(j), *row.add(j)) };
                    j += 1;
                }
                i += 1;
            }
        }

        /// Adds to each row one element of a column, whose elements are `step` apart.
        #[inline(never)]
        pub unsafe fn $col(
            src: *const $element,
            rows: usize,
            cols: usize,
            stride: isize,
            col: *const $element,
            step: isize,
            out: *mut $element,
        ) {
            let mut i = 0;
            while i < rows {
                // SAFETY: the contract of the kernels.
                let (src, out) = unsafe { (src.offset(i as isize * stride), out.add(i * cols)) };
                // SAFETY: the contract of the kernels.
                let beside = unsafe { *col.offset(i as isize * step) };
                let mut j = 0;
                while j < cols {
                    // SAFETY: the contract of the kernels.
                    unsafe { *out.add(j) = $plus(*src.add(j), beside) };
                    j += 1;
                }
                i += 1;
            }
        }

        /// Multiplies a run by one factor.
        #[inline(never)]
        pub unsafe fn $scale(a: *const $element, factor: $element, out: *mut $element, len: usize) {
            let mut i = 0;
            while i < len {
                // SAFETY: the contract of the kernels.
                unsafe { *out.add(i) = $times(*a.add(i), factor) };
                i += 1;
            }
        }

        /// Sums a run.
        #[inline(never)]
        pub unsafe fn $total(a: *const $element, len: usize) -> $sum {
            let zero = 0 as $sum;
            let (mut s0, mut s1, mut s2, mut s3) = (zero, zero, zero, zero);
            let (mut s4, mut s5, mut s6, mut s7) = (zero, zero, zero, zero);
            let mut i = 0;
            while i + 8 <= len {
                // SAFETY: the contract of the kernels.
                unsafe {
                    s0 = $plus_sum(s0, *a.add(i) as $sum);
                    s1 = $plus_sum(s1, *a.add(i + 1) as $sum);
                    s2 = $plus_sum(s2, *a.add(i + 2) as $sum);
                    s3 = $plus_sum(s3, *a.add(i + 3) as $sum);
                    s4 = $plus_sum(s4, *a.add(i + 4) as $sum);
                    s5 = $plus_sum(s5, *a.add(i + 5) as $sum);
                    s6 = $plus_sum(s6, *a.add(i + 6) as $sum);
                    s7 = $plus_sum(s7, *a.add(i + 7) as $sum);
                }
                i += 8;
            }
            while i < len {
                // SAFETY: the contract of the kernels.
                s0 = unsafe { $plus_sum(s0, *a.add(i) as $sum) };
                i += 1;
            }
            let low = $plus_sum($plus_sum(s0, s1), $plus_sum(s2, s3));
            let high = $plus_sum($plus_sum(s4, s5), $plus_sum(s6, s7));
            $plus_sum(low, high)
        }

        /// Adds the sum of each column to `out`, which has one element per column.
        #[inline(never)]
        pub unsafe fn $axis0(
            src: *const $element,
            rows: usize,
            cols: usize,
            stride: isize,
            out: *mut $sum,
        ) {
            let mut i = 0;
            while i + 4 <= rows {
                // SAFETY: the contract of the kernels.
                let (r0, r1) = unsafe {
                    (src.offset(i as isize * stride), src.offset((i + 1) as isize * stride))
                };
                // SAFETY: the contract of the kernels.
                let (r2, r3) = unsafe {
                    (src.offset((i + 2) as isize * stride), src.offset((i + 3) as isize * stride))
                };
                let mut j = 0;
                while j < cols {
                    // SAFETY: the contract of the kernels.
                    unsafe {
                        let low = $plus_sum(*r0.add(j) as $sum, *r1.add(j) as $sum);
                        let high = $plus_sum(*r2.add(j) as $sum, *r3.add(j) as $sum);
                        *out.add(j) = $plus_sum(*out.add(j), $plus_sum(low, high));
                    }
                    j += 1;
                }
                i += 4;
            }
            while i < rows {
                // SAFETY: the contract of the kernels.
                let row = unsafe { src.offset(i as isize * stride) };
                let mut j = 0;
                while j < cols {
                    // SAFETY: the contract of the kernels.
                    unsafe { *out.add(j) = $plus_sum(*out.add(j), *row.add(j) as $sum) };
                    j += 1;
                }
                i += 1;
            }
        }

        /// Writes the sum of each row to `out`, which has one element per row.
        #[inline(never)]
        pub unsafe fn $axis1(
            src: *const $element,
            rows: usize,
            cols: usize,
            stride: isize,
            out: *mut $sum,
        ) {
            let mut i = 0;
            while i < rows {
                // SAFETY: the contract of the kernels.
                unsafe { *out.add(i) = $total(src.offset(i as isize * stride), cols) };
                i += 1;
            }
        }
    };
}

kernels!(
    f32,
    f32,
    |a: f32, b: f32| a + b,
    |a: f32, b: f32| a * b,
    |a: f32, b: f32| a + b,
    add_f32_scalar,
    broadcast_row_add_f32_scalar,
    broadcast_col_add_f32_scalar,
    scale_f32_scalar,
    sum_f32_scalar,
    sum_axis0_f32_scalar,
    sum_axis1_f32_scalar
);
kernels!(
    f64,
    f64,
    |a: f64, b: f64| a + b,
    |a: f64, b: f64| a * b,
    |a: f64, b: f64| a + b,
    add_f64_scalar,
    broadcast_row_add_f64_scalar,
    broadcast_col_add_f64_scalar,
    scale_f64_scalar,
    sum_f64_scalar,
    sum_axis0_f64_scalar,
    sum_axis1_f64_scalar
);
kernels!(
    i32,
    i64,
    i32::wrapping_add,
    i32::wrapping_mul,
    i64::wrapping_add,
    add_i32_scalar,
    broadcast_row_add_i32_scalar,
    broadcast_col_add_i32_scalar,
    scale_i32_scalar,
    sum_i32_scalar,
    sum_axis0_i32_scalar,
    sum_axis1_i32_scalar
);
