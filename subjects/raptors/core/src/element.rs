//! Element types of arrays.

use crate::kernels::Kernels;
use crate::{blas, dispatch};

/// An element type, with its types for sums.
pub trait Element: Copy + Send + Sync + PartialEq + std::fmt::Debug + 'static {
    /// Type of sums in a kernel.
    type Sum: Copy + Send + Sync + Default + 'static;
    /// Type of sums over many blocks, and of the result.
    type Total: Copy + Send + Sync + Default + 'static;
    /// Type of means along an axis.
    type Mean: Copy + Send + Sync + 'static;

    /// The kernels of this process.
    fn kernels() -> &'static Kernels<Self>;
    /// The kernels of one instruction set, if this machine supports it.
    fn kernels_of(isa: dispatch::Isa) -> Option<&'static Kernels<Self>>;
    /// The matrix-vector product of BLAS, if requested and available for this type.
    fn gemv(blas: &blas::Blas) -> Option<blas::Gemv<Self>>;

    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// `self + other`, integers wrapping.
    fn plus(self, other: Self) -> Self;
    /// `self * other`, integers wrapping.
    fn times(self, other: Self) -> Self;
    /// `sum + self`.
    fn plus_sum(sum: Self::Sum, element: Self) -> Self::Sum;
    /// `a + b`.
    fn join_sums(a: Self::Sum, b: Self::Sum) -> Self::Sum;
    /// `total + sum`.
    fn plus_total(total: Self::Total, sum: Self::Sum) -> Self::Total;
    /// `a + b`.
    fn join_totals(a: Self::Total, b: Self::Total) -> Self::Total;
    /// A sum along an axis, as stored in the result.
    fn sum_of_total(total: Self::Total) -> Self::Sum;
    /// `total / count`, as stored in an array of means.
    fn mean_of_total(total: Self::Total, count: usize) -> Self::Mean;
    /// A total as f64.
    fn total_as_f64(total: Self::Total) -> f64;
}

macro_rules! floats {
    ($($float:ident $gemv:ident)*) => {$(
        impl Element for $float {
            type Sum = $float;
            type Total = f64;
            type Mean = $float;

            fn kernels() -> &'static Kernels<Self> {
                dispatch::current().$float
            }
            fn kernels_of(isa: dispatch::Isa) -> Option<&'static Kernels<Self>> {
                Some(dispatch::table(isa)?.$float)
            }
            fn gemv(blas: &blas::Blas) -> Option<blas::Gemv<Self>> {
                Some(blas.$gemv)
            }

            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn plus_sum(sum: Self, element: Self) -> Self {
                sum + element
            }
            #[inline(always)]
            fn join_sums(a: Self, b: Self) -> Self {
                a + b
            }
            #[inline(always)]
            fn plus_total(total: f64, sum: Self) -> f64 {
                total + f64::from(sum)
            }
            fn join_totals(a: f64, b: f64) -> f64 {
                a + b
            }
            #[inline(always)]
            fn sum_of_total(total: f64) -> Self {
                total as $float
            }
            #[inline(always)]
            fn mean_of_total(total: f64, count: usize) -> Self {
                (total / count as f64) as $float
            }
            fn total_as_f64(total: f64) -> f64 {
                total
            }
        }
    )*};
}

floats!(f32 sgemv f64 dgemv);

impl Element for i32 {
    type Sum = i64;
    type Total = i64;
    type Mean = f64;

    fn kernels() -> &'static Kernels<Self> {
        dispatch::current().i32
    }
    fn kernels_of(isa: dispatch::Isa) -> Option<&'static Kernels<Self>> {
        Some(dispatch::table(isa)?.i32)
    }
    fn gemv(_: &blas::Blas) -> Option<blas::Gemv<Self>> {
        None
    }

    const ZERO: Self = 0;
    const ONE: Self = 1;
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }
    #[inline(always)]
    fn plus_sum(sum: i64, element: Self) -> i64 {
        sum.wrapping_add(i64::from(element))
    }
    #[inline(always)]
    fn join_sums(a: i64, b: i64) -> i64 {
        a.wrapping_add(b)
    }
    #[inline(always)]
    fn plus_total(total: i64, sum: i64) -> i64 {
        total.wrapping_add(sum)
    }
    fn join_totals(a: i64, b: i64) -> i64 {
        a.wrapping_add(b)
    }
    #[inline(always)]
    fn sum_of_total(total: i64) -> i64 {
        total
    }
    #[inline(always)]
    fn mean_of_total(total: i64, count: usize) -> f64 {
        total as f64 / count as f64
    }
    fn total_as_f64(total: i64) -> f64 {
        total as f64
    }
}
