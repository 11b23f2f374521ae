//! Compares every kernel of every instruction set of this machine with simple loops.

use crate::Element;
use crate::dispatch::Isa;
use proptest::prelude::*;

/// Small integers: their sums are exact in every type, so results must be bitwise equal.
trait FromSmall: Element {
    fn from_small(number: i32) -> Self;
    fn sum_from_small(number: i64) -> Self::Sum;
}

macro_rules! from_small {
    ($($element:ident $sum:ident)*) => {$(
        impl FromSmall for $element {
            fn from_small(number: i32) -> Self {
                number as Self
            }
            fn sum_from_small(number: i64) -> $sum {
                number as $sum
            }
        }
    )*};
}

from_small!(f32 f32 f64 f64 i32 i64);

/// Rows that start `stride` elements apart, and their values.
struct Rows {
    rows: usize,
    cols: usize,
    stride: usize,
    numbers: Vec<i32>,
}

impl Rows {
    fn get(&self, row: usize, col: usize) -> i32 {
        self.numbers[row * self.stride + col]
    }

    fn elements<T: FromSmall>(&self) -> Vec<T> {
        self.numbers.iter().map(|&number| T::from_small(number)).collect()
    }

    /// Result of a function at each position.
    fn map<T: FromSmall>(&self, of: impl Fn(usize, usize) -> i32) -> Vec<T> {
        let places = (0..self.rows).flat_map(|row| (0..self.cols).map(move |col| (row, col)));
        places.map(|(row, col)| T::from_small(of(row, col))).collect()
    }
}

fn check<T: FromSmall>(rows: &Rows)
where
    T::Sum: PartialEq + std::fmt::Debug,
{
    let src: Vec<T> = rows.elements();
    let &Rows { rows: count, cols, stride, .. } = rows;
    let other: Vec<T> = (0..count.max(cols)).map(|i| T::from_small(i as i32 % 17 - 8)).collect();
    let beside = |i: usize| i as i32 % 17 - 8;
    for isa in Isa::ALL {
        let Some(kernels) = T::kernels_of(isa) else { continue };
        let stride = stride as isize;
        for writers in [&kernels.cached, &kernels.streaming] {
            let mut out = vec![T::from_small(99); count * cols + 1];
            let len = src.len().min(out.len() - 1).min(other.len());

            // SAFETY: the source has `count` rows of `cols` elements; `other` and `out` are large enough.
            unsafe {
                (writers.broadcast_row_add)(
                    src.as_ptr(),
                    count,
                    cols,
                    stride,
                    other.as_ptr(),
                    out.as_mut_ptr(),
                );
            }
            let expected = rows.map::<T>(|row, col| rows.get(row, col) + beside(col));
            assert_eq!(out[..count * cols], expected, "broadcast_row_add {isa:?}");

            // SAFETY: as above.
            unsafe {
                (writers.broadcast_col_add)(
                    src.as_ptr(),
                    count,
                    cols,
                    stride,
                    other.as_ptr(),
                    1,
                    out.as_mut_ptr(),
                );
            }
            let expected = rows.map::<T>(|row, col| rows.get(row, col) + beside(row));
            assert_eq!(out[..count * cols], expected, "broadcast_col_add {isa:?}");

            // SAFETY: all three have `len` elements.
            unsafe { (writers.add)(src.as_ptr(), other.as_ptr(), out.as_mut_ptr(), len) };
            let expected: Vec<T> =
                (0..len).map(|i| T::from_small(rows.numbers[i] + beside(i))).collect();
            assert_eq!(out[..len], expected, "add {isa:?}");

            // SAFETY: both have `len` elements.
            unsafe { (writers.scale)(src.as_ptr(), T::from_small(-3), out.as_mut_ptr(), len) };
            let expected: Vec<T> = (0..len).map(|i| T::from_small(rows.numbers[i] * -3)).collect();
            assert_eq!(out[..len], expected, "scale {isa:?}");
            assert_eq!(out[count * cols], T::from_small(99), "written past the end, {isa:?}");
        }
        // SAFETY: that is its length.
        let sum = unsafe { (kernels.sum)(src.as_ptr(), src.len()) };
        let expected = rows.numbers.iter().map(|&number| i64::from(number)).sum();
        assert_eq!(sum, T::sum_from_small(expected), "sum {isa:?}");

        let mut sums = vec![T::sum_from_small(5); cols + 1];
        // SAFETY: the source is as above, and there is one sum per column.
        unsafe { (kernels.sum_axis0)(src.as_ptr(), count, cols, stride, sums.as_mut_ptr()) };
        let sum_of_col = |col| (0..count).map(|row| i64::from(rows.get(row, col))).sum::<i64>() + 5;
        let expected: Vec<T::Sum> =
            (0..cols).map(|col| T::sum_from_small(sum_of_col(col))).collect();
        assert_eq!(sums[..cols], expected, "sum_axis0 {isa:?}");
        assert_eq!(sums[cols], T::sum_from_small(5), "written past the end, {isa:?}");

        let mut sums = vec![T::sum_from_small(5); count + 1];
        // SAFETY: the source is as above, and there is one sum per row.
        unsafe { (kernels.sum_axis1)(src.as_ptr(), count, cols, stride, sums.as_mut_ptr()) };
        let sum_of_row = |row| (0..cols).map(|col| i64::from(rows.get(row, col))).sum();
        let expected: Vec<T::Sum> =
            (0..count).map(|row| T::sum_from_small(sum_of_row(row))).collect();
        assert_eq!(sums[..count], expected, "sum_axis1 {isa:?}");
        assert_eq!(sums[count], T::sum_from_small(5), "written past the end, {isa:?}");
    }
}

fn check_all(rows: usize, cols: usize, gap: usize, seed: i32) {
    let stride = cols + gap;
    let numbers = (0..rows * stride).map(|i| (i as i32).wrapping_mul(seed) % 101 - 50).collect();
    let rows = Rows { rows, cols, stride, numbers };
    check::<f32>(&rows);
    check::<f64>(&rows);
    check::<i32>(&rows);
}

/// Every remainder of every vector width and of every number of rows per iteration.
#[test]
fn all_small_shapes() {
    for rows in 0..14 {
        for cols in (0..70).chain([127, 128, 129, 255, 257]) {
            check_all(rows, cols, rows % 3, 7919);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_shape(rows in 0usize..200, cols in 0usize..300, gap in 0usize..9, seed in 1i32..1000) {
        check_all(rows, cols, gap, seed);
    }
}

/// Sums of int32 need 64 bits, including negative ones, and products wrap as in NumPy.
#[test]
fn integers_at_their_ends() {
    for extreme in [i32::MIN, i32::MAX] {
        let many = vec![extreme; 1000];
        for isa in Isa::ALL {
            let Some(kernels) = i32::kernels_of(isa) else { continue };
            let mut out = vec![0; many.len()];
            // SAFETY: that is its length.
            assert_eq!(unsafe { (kernels.sum)(many.as_ptr(), 1000) }, i64::from(extreme) * 1000);
            for factor in [2, -7, i32::MIN, i32::MAX] {
                // SAFETY: both have that length.
                unsafe { (kernels.cached.scale)(many.as_ptr(), factor, out.as_mut_ptr(), 1000) };
                assert!(out.iter().all(|&product| product == extreme.wrapping_mul(factor)));
            }
        }
    }
}

/// Equal numbers are the worst case: all rounding errors have the same sign.
#[test]
fn float32_sums_stay_accurate() {
    let numbers = vec![0.1f32; 4 << 10];
    let exact = f64::from(0.1f32) * numbers.len() as f64;
    for isa in Isa::ALL {
        let Some(kernels) = f32::kernels_of(isa) else { continue };
        // SAFETY: that is its length.
        let sum = unsafe { (kernels.sum)(numbers.as_ptr(), numbers.len()) };
        assert!((f64::from(sum) / exact - 1.0).abs() < 2e-5, "{isa:?}: {sum} for {exact}");
    }
}
