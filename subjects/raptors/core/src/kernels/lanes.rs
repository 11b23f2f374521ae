//! The algorithms for vectors of any width, and the macro that defines named kernels from them.
//!
//! Everything is inlined into a kernel with the instruction set enabled, because intrinsics become single instructions
//! only there. The contract of pointers is that of [`super::Kernels`].

use crate::Element;

/// A vector register of elements, and the registers for sums of its lanes.
///
/// Every function requires the instruction set. Pointers are valid for `LANES` elements and need no alignment.
pub(super) trait Vector: Copy {
    type Element: Element;
    /// One sum per lane; several registers if sums are wider than elements.
    type Sums: Copy;
    const LANES: usize;

    unsafe fn load(at: *const Self::Element) -> Self;
    unsafe fn store(self, at: *mut Self::Element);
    /// Streaming store; the address is a multiple of the vector size.
    unsafe fn stream(self, at: *mut Self::Element);
    unsafe fn splat(element: Self::Element) -> Self;
    unsafe fn plus(self, other: Self) -> Self;
    unsafe fn times(self, other: Self) -> Self;

    unsafe fn no_sums() -> Self::Sums;
    unsafe fn load_sums(at: *const Sum<Self>) -> Self::Sums;
    unsafe fn store_sums(sums: Self::Sums, at: *mut Sum<Self>);
    unsafe fn plus_sums(sums: Self::Sums, vector: Self) -> Self::Sums;
    unsafe fn join_sums(a: Self::Sums, b: Self::Sums) -> Self::Sums;
}

type Sum<V> = <<V as Vector>::Element as Element>::Sum;

/// Maximum number of lanes.
const MOST_LANES: usize = 16;
/// Vectors written per loop iteration.
const UNROLLED: usize = 4;

#[inline(always)]
pub(super) unsafe fn add<V: Vector, const STREAM: bool>(
    a: *const V::Element,
    b: *const V::Element,
    out: *mut V::Element,
    len: usize,
) {
    // SAFETY: guaranteed by the caller, and `write_run` stays within `len`.
    unsafe {
        write_run::<V, STREAM>(
            out,
            len,
            |i| V::load(a.add(i)).plus(V::load(b.add(i))),
            |i| (*a.add(i)).plus(*b.add(i)),
        );
    }
}

#[inline(always)]
pub(super) unsafe fn broadcast_row_add<V: Vector, const STREAM: bool>(
    src: *const V::Element,
    rows: usize,
    cols: usize,
    stride: isize,
    row: *const V::Element,
    out: *mut V::Element,
) {
    for i in 0..rows {
        // SAFETY: guaranteed by the caller for each row.
        unsafe { add::<V, STREAM>(src.offset(i as isize * stride), row, out.add(i * cols), cols) };
    }
}

#[inline(always)]
pub(super) unsafe fn broadcast_col_add<V: Vector, const STREAM: bool>(
    src: *const V::Element,
    rows: usize,
    cols: usize,
    stride: isize,
    col: *const V::Element,
    step: isize,
    out: *mut V::Element,
) {
    for i in 0..rows {
        // SAFETY: guaranteed by the caller, and `write_run` stays within `cols`.
        unsafe {
            let a = src.offset(i as isize * stride);
            let beside = *col.offset(i as isize * step);
            let all = V::splat(beside);
            write_run::<V, STREAM>(
                out.add(i * cols),
                cols,
                |j| V::load(a.add(j)).plus(all),
                |j| (*a.add(j)).plus(beside),
            );
        }
    }
}

#[inline(always)]
pub(super) unsafe fn scale<V: Vector, const STREAM: bool>(
    a: *const V::Element,
    factor: V::Element,
    out: *mut V::Element,
    len: usize,
) {
    // SAFETY: guaranteed by the caller, and `write_run` stays within `len`.
    unsafe {
        let all = V::splat(factor);
        write_run::<V, STREAM>(
            out,
            len,
            |i| V::load(a.add(i)).times(all),
            |i| (*a.add(i)).times(factor),
        );
    }
}

/// Writes a run: whole vectors where possible, single elements before and after. Streaming stores start at an address
/// that is aligned to the vector size.
#[inline(always)]
unsafe fn write_run<V: Vector, const STREAM: bool>(
    out: *mut V::Element,
    len: usize,
    vector: impl Fn(usize) -> V,
    element: impl Fn(usize) -> V::Element,
) {
    let mut i = 0;
    // SAFETY: every index is below `len`.
    unsafe {
        if STREAM {
            while i < len && !out.add(i).addr().is_multiple_of(size_of::<V>()) {
                *out.add(i) = element(i);
                i += 1;
            }
        }
        while i + UNROLLED * V::LANES <= len {
            for k in 0..UNROLLED {
                let at = i + k * V::LANES;
                if STREAM {
                    vector(at).stream(out.add(at));
                } else {
                    vector(at).store(out.add(at));
                }
            }
            i += UNROLLED * V::LANES;
        }
        while i + V::LANES <= len {
            vector(i).store(out.add(i));
            i += V::LANES;
        }
        while i < len {
            *out.add(i) = element(i);
            i += 1;
        }
    }
}

/// Sums with `CHAINS` independent additions, to hide their latency.
#[inline(always)]
pub(super) unsafe fn sum<V: Vector, const CHAINS: usize>(
    a: *const V::Element,
    len: usize,
) -> Sum<V> {
    // SAFETY: every index is below `len`.
    unsafe {
        let mut sums = [V::no_sums(); CHAINS];
        let mut i = 0;
        while i + CHAINS * V::LANES <= len {
            for (k, sum) in sums.iter_mut().enumerate() {
                *sum = V::plus_sums(*sum, V::load(a.add(i + k * V::LANES)));
            }
            i += CHAINS * V::LANES;
        }
        while i + V::LANES <= len {
            sums[0] = V::plus_sums(sums[0], V::load(a.add(i)));
            i += V::LANES;
        }
        let mut width = CHAINS;
        while width > 1 {
            width /= 2;
            for k in 0..width {
                sums[k] = V::join_sums(sums[k], sums[k + width]);
            }
        }
        let mut total = total::<V>(sums[0]);
        while i < len {
            total = V::Element::plus_sum(total, *a.add(i));
            i += 1;
        }
        total
    }
}

/// The sum over all lanes.
#[inline(always)]
unsafe fn total<V: Vector>(sums: V::Sums) -> Sum<V> {
    let mut lanes = [Sum::<V>::default(); MOST_LANES];
    // SAFETY: no vector has more lanes.
    unsafe { V::store_sums(sums, lanes.as_mut_ptr()) };
    let mut width = V::LANES;
    while width > 1 {
        width /= 2;
        for k in 0..width {
            lanes[k] = V::Element::join_sums(lanes[k], lanes[k + width]);
        }
    }
    lanes[0]
}

/// Adds eight rows at a time to the sums of the columns, which stay in the L1 cache: rows are read sequentially, and
/// each sum is loaded and stored once per eight elements.
#[inline(always)]
pub(super) unsafe fn sum_axis0<V: Vector>(
    src: *const V::Element,
    rows: usize,
    cols: usize,
    stride: isize,
    out: *mut Sum<V>,
) {
    let mut i = 0;
    // SAFETY: guaranteed by the caller; rows are below `rows`.
    unsafe {
        while i + 8 <= rows {
            sum_few_rows::<V, 8>(src.offset(i as isize * stride), cols, stride, out);
            i += 8;
        }
        if i + 4 <= rows {
            sum_few_rows::<V, 4>(src.offset(i as isize * stride), cols, stride, out);
            i += 4;
        }
        while i < rows {
            sum_few_rows::<V, 1>(src.offset(i as isize * stride), cols, stride, out);
            i += 1;
        }
    }
}

#[inline(always)]
unsafe fn sum_few_rows<V: Vector, const ROWS: usize>(
    src: *const V::Element,
    cols: usize,
    stride: isize,
    out: *mut Sum<V>,
) {
    let mut j = 0;
    // SAFETY: every column is below `cols`, every row below `ROWS`.
    unsafe {
        while j + V::LANES <= cols {
            let mut even = V::load_sums(out.add(j));
            let mut odd = V::no_sums();
            for k in 0..ROWS {
                let vector = V::load(src.offset(k as isize * stride).add(j));
                if k % 2 == 0 {
                    even = V::plus_sums(even, vector);
                } else {
                    odd = V::plus_sums(odd, vector);
                }
            }
            if ROWS > 1 {
                even = V::join_sums(even, odd);
            }
            V::store_sums(even, out.add(j));
            j += V::LANES;
        }
        while j < cols {
            let mut sum = *out.add(j);
            for k in 0..ROWS {
                sum = V::Element::plus_sum(sum, *src.offset(k as isize * stride).add(j));
            }
            *out.add(j) = sum;
            j += 1;
        }
    }
}

#[inline(always)]
pub(super) unsafe fn sum_axis1<V: Vector, const CHAINS: usize>(
    src: *const V::Element,
    rows: usize,
    cols: usize,
    stride: isize,
    out: *mut Sum<V>,
) {
    for i in 0..rows {
        // SAFETY: guaranteed by the caller for each row.
        unsafe { *out.add(i) = sum::<V, CHAINS>(src.offset(i as isize * stride), cols) };
    }
}

/// Defines the named kernels of one instruction set and type, and their table.
macro_rules! kernels {
    ($table:ident, $feature:literal, $element:ty, $vector:ty, $chains:literal:
     $add:ident $row:ident $col:ident $scale:ident
     $add_stream:ident $row_stream:ident $col_stream:ident $scale_stream:ident
     $sum:ident $axis0:ident $axis1:ident) => {
        static $table: Kernels<$element> = Kernels {
            cached: Writers {
                add: $add,
                broadcast_row_add: $row,
                broadcast_col_add: $col,
                scale: $scale,
            },
            streaming: Writers {
                add: $add_stream,
                broadcast_row_add: $row_stream,
                broadcast_col_add: $col_stream,
                scale: $scale_stream,
            },
            sum: $sum,
            sum_axis0: $axis0,
            sum_axis1: $axis1,
        };

        lanes::writers!($feature, $element, $vector, false: $add $row $col $scale);
        lanes::writers!(
            $feature, $element, $vector, true: $add_stream $row_stream $col_stream $scale_stream
        );

        #[target_feature(enable = $feature)]
        #[inline(never)]
        unsafe fn $sum(a: *const $element, len: usize) -> <$element as Element>::Sum {
            // SAFETY: guaranteed by the caller.
            unsafe { lanes::sum::<$vector, $chains>(a, len) }
        }

        #[target_feature(enable = $feature)]
        #[inline(never)]
        unsafe fn $axis0(
            src: *const $element,
            rows: usize,
            cols: usize,
            stride: isize,
            out: *mut <$element as Element>::Sum,
        ) {
            // SAFETY: guaranteed by the caller.
            unsafe { lanes::sum_axis0::<$vector>(src, rows, cols, stride, out) }
        }

        #[target_feature(enable = $feature)]
        #[inline(never)]
        unsafe fn $axis1(
            src: *const $element,
            rows: usize,
            cols: usize,
            stride: isize,
            out: *mut <$element as Element>::Sum,
        ) {
            // SAFETY: guaranteed by the caller.
            unsafe { lanes::sum_axis1::<$vector, $chains>(src, rows, cols, stride, out) }
        }
    };
}
pub(super) use kernels;

/// Defines the named kernels that write arrays. A fence after streaming stores orders them for other threads.
macro_rules! writers {
    ($feature:literal, $element:ty, $vector:ty, $stream:literal:
     $add:ident $row:ident $col:ident $scale:ident) => {
        #[target_feature(enable = $feature)]
        #[inline(never)]
        unsafe fn $add(a: *const $element, b: *const $element, out: *mut $element, len: usize) {
            // SAFETY: guaranteed by the caller.
            unsafe { lanes::add::<$vector, $stream>(a, b, out, len) };
            lanes::fence_if($stream);
        }

        #[target_feature(enable = $feature)]
        #[inline(never)]
        unsafe fn $row(
            src: *const $element,
            rows: usize,
            cols: usize,
            stride: isize,
            row: *const $element,
            out: *mut $element,
        ) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                lanes::broadcast_row_add::<$vector, $stream>(src, rows, cols, stride, row, out)
            };
            lanes::fence_if($stream);
        }

        #[target_feature(enable = $feature)]
        #[inline(never)]
        unsafe fn $col(
            src: *const $element,
            rows: usize,
            cols: usize,
            stride: isize,
            col: *const $element,
            step: isize,
            out: *mut $element,
        ) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                lanes::broadcast_col_add::<$vector, $stream>(
                    src, rows, cols, stride, col, step, out,
                )
            };
            lanes::fence_if($stream);
        }

        #[target_feature(enable = $feature)]
        #[inline(never)]
        unsafe fn $scale(a: *const $element, factor: $element, out: *mut $element, len: usize) {
            // SAFETY: guaranteed by the caller.
            unsafe { lanes::scale::<$vector, $stream>(a, factor, out, len) };
            lanes::fence_if($stream);
        }
    };
}
pub(super) use writers;

#[inline(always)]
pub(super) fn fence_if(streamed: bool) {
    if streamed {
        // SAFETY: every x86-64 CPU supports it.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }
}
