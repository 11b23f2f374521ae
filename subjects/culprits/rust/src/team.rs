//! The Mandelbrot set, computed with any number of threads.

use crate::write;
use std::sync::{Mutex, PoisonError};
use std::thread;

const MOST: u32 = 64;

/// Computes the steps until each point of an image escapes and returns their sum. Threads take one row at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn escape_steps(
    out: *mut u32,
    width: usize,
    height: usize,
    threads: usize,
) -> u64 {
    // SAFETY: the contract of the crate.
    let out = unsafe { write(out, width * height) };
    let rows = Mutex::new(out.chunks_mut(width).enumerate());
    let next = || rows.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut sum = 0;
        while let Some((y, row)) = next() {
            sum += escape_row(row, 2.0 * y as f64 / height as f64 - 1.0);
        }
        sum
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        work() + others.into_iter().map(|other| other.join().unwrap_or(0)).sum::<u64>()
    })
}

#[inline(never)]
fn escape_row(row: &mut [u32], imaginary: f64) -> u64 {
    let width = row.len() as f64;
    let mut sum = 0;
    for (x, out) in row.iter_mut().enumerate() {
        *out = escape(3.0 * x as f64 / width - 2.0, imaginary);
        sum += u64::from(*out);
    }
    sum
}

fn escape(real: f64, imaginary: f64) -> u32 {
    let (mut a, mut b) = (0.0, 0.0);
    for step in 0..MOST {
        let (a2, b2) = (a * a, b * b);
        if a2 + b2 > 4.0 {
            return step;
        }
        (a, b) = (a2 - b2 + real, 2.0 * a * b + imaginary);
    }
    MOST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_threads_draws_the_same() {
        let picture = |threads| {
            let mut out = vec![0; 40 * 30];
            // SAFETY: the image has the given size.
            let sum = unsafe { escape_steps(out.as_mut_ptr(), 40, 30, threads) };
            (out, sum)
        };
        assert_eq!(picture(1), picture(2));
        assert_eq!(picture(1), picture(3));
    }
}
