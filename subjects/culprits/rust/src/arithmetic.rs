//! Loops over arrays of numbers.

use crate::{read, write};

/// Maps brightness values with a polynomial and a clamp.
#[inline(always)]
fn tone(out: &mut [f32], values: &[f32]) {
    for (out, &x) in out.iter_mut().zip(values) {
        let y = (((0.25 * x - 0.5) * x + 0.125) * x - 0.75) * x + 1.5;
        let y = ((y * x - 0.375) * x + 0.875) * x + 0.0625;
        *out = y.clamp(0.0, 1.0);
    }
}

/// Maps brightness values with SSE2, the baseline of x86-64.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tone_f32_sse2(out: *mut f32, values: *const f32, len: usize) {
    // SAFETY: the contract of the crate.
    unsafe { tone(write(out, len), read(values, len)) }
}

/// Maps brightness values with AVX2, which the CPU must support.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tone_f32_avx2(out: *mut f32, values: *const f32, len: usize) {
    // SAFETY: the contract of the crate.
    unsafe { tone(write(out, len), read(values, len)) }
}

/// Number of points near a given point.
#[inline(always)]
fn near(x: f64, y: f64, xs: &[f64], ys: &[f64], cutoff: f64) -> u64 {
    let square = cutoff * cutoff;
    let near = |(a, b): (&f64, &f64)| (a - x) * (a - x) + (b - y) * (b - y) < square;
    xs.iter().zip(ys).map(|at| u64::from(near(at))).sum()
}

/// Number of pairs of nearby points; visits each pair once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contacts_half(
    xs: *const f64,
    ys: *const f64,
    len: usize,
    cutoff: f64,
) -> u64 {
    // SAFETY: the contract of the crate.
    let (xs, ys) = unsafe { (read(xs, len), read(ys, len)) };
    (0..len).map(|i| near(xs[i], ys[i], &xs[i + 1..], &ys[i + 1..], cutoff)).sum()
}

/// Number of pairs of nearby points; visits each pair twice. A point is not its own neighbour.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contacts_full(
    xs: *const f64,
    ys: *const f64,
    len: usize,
    cutoff: f64,
) -> u64 {
    // SAFETY: the contract of the crate.
    let (xs, ys) = unsafe { (read(xs, len), read(ys, len)) };
    let seen: u64 = (0..len).map(|i| near(xs[i], ys[i], xs, ys, cutoff) - 1).sum();
    seen / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn vectors_of_either_width_give_the_same() {
        if !std::is_x86_feature_detected!("avx2") {
            return;
        }
        let values: Vec<f32> = (0..1003).map(|i| i as f32 / 501.0 - 1.0).collect();
        let (mut a, mut b) = (vec![0.0f32; 1003], vec![9.0f32; 1003]);
        // SAFETY: all slices have the same length, and the CPU has AVX2.
        unsafe {
            tone_f32_avx2(a.as_mut_ptr(), values.as_ptr(), values.len());
            tone_f32_sse2(b.as_mut_ptr(), values.as_ptr(), values.len());
        }
        assert_eq!(a, b);
    }

    #[test]
    fn contacts_are_the_same_from_one_side_and_from_both() {
        let xs: Vec<f64> = (0..300).map(|i| f64::from(i * 37 % 101)).collect();
        let ys: Vec<f64> = (0..300).map(|i| f64::from(i * 53 % 97)).collect();
        // SAFETY: both slices have the same length.
        let (half, full) = unsafe {
            (
                contacts_half(xs.as_ptr(), ys.as_ptr(), 300, 10.0),
                contacts_full(xs.as_ptr(), ys.as_ptr(), 300, 10.0),
            )
        };
        assert!(half > 0);
        assert_eq!(half, full);
    }
}
