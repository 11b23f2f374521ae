//! Sums of views with any number of dimensions: one kernel for contiguous views and one for all others.

use crate::read;

/// The sum of a view. Strides are in elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn total(
    first: *const f64,
    shape: *const usize,
    strides: *const isize,
    dims: usize,
) -> f64 {
    // SAFETY: the contract of the crate.
    let (shape, strides) = unsafe { (read(shape, dims), read(strides, dims)) };
    // SAFETY: a contiguous view is as long as its shape; otherwise the strides locate the elements.
    unsafe {
        if is_contiguous(shape, strides) {
            total_contiguous(first, shape.iter().product())
        } else {
            total_strided(first, shape, strides)
        }
    }
}

/// Whether the strides are those of a contiguous array.
fn is_contiguous(shape: &[usize], strides: &[isize]) -> bool {
    let mut expected = 1;
    shape.iter().zip(strides).rev().all(|(&len, &stride)| {
        let fits = stride == expected;
        expected *= len as isize;
        fits
    })
}

#[inline(never)]
unsafe fn total_contiguous(first: *const f64, len: usize) -> f64 {
    // SAFETY: guaranteed by the caller.
    unsafe { read(first, len) }.iter().sum()
}

/// Iterates over all indices, with the last dimension fastest.
#[inline(never)]
unsafe fn total_strided(first: *const f64, shape: &[usize], strides: &[isize]) -> f64 {
    let mut index = vec![0; shape.len()];
    let len: usize = shape.iter().product();
    let mut sum = 0.0;
    for _ in 0..len {
        let at: isize = index.iter().zip(strides).map(|(&i, &stride)| i as isize * stride).sum();
        // SAFETY: the index is within the shape.
        sum += unsafe { *first.offset(at) };
        for (i, &len) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < len {
                break;
            }
            *i = 0;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shape: &[usize], strides: &[isize], contiguous: bool) {
        let values: Vec<f64> = (0..60).map(f64::from).collect();
        assert_eq!(is_contiguous(shape, strides), contiguous);
        // SAFETY: the views have 60 elements.
        let sum = unsafe { total(values.as_ptr(), shape.as_ptr(), strides.as_ptr(), shape.len()) };
        assert_eq!(sum, values.iter().sum::<f64>());
    }

    #[test]
    fn both_kernels_give_the_same_sum() {
        check(&[60], &[1], true);
        check(&[1, 6, 10], &[60, 10, 1], true);
        check(&[1, 6, 10], &[0, 10, 1], false);
        check(&[10, 6], &[1, 10], false);
    }
}
