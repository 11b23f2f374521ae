//! Whether a side is warm: its times stay as they are.

use laggard_core::stats::summary::Summary;

/// How many batches are compared with as many before them.
const WINDOW: usize = 4;
/// They may differ by this much, or by what batches differ anyway.
const TOLERANCE: f64 = 0.03;

/// Whether the last times of a call are no different from those before.
pub(super) fn is_steady(times: &[f64]) -> bool {
    let Some(from) = times.len().checked_sub(2 * WINDOW) else { return false };
    let (before, last) = times[from..].split_at(WINDOW);
    let (before, last) = (Summary::of(before), Summary::of(last));
    let noise = before.mad.max(last.mad).max(TOLERANCE * last.median);
    (before.median - last.median).abs() <= noise
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falling_times_are_not_steady() {
        assert!(!is_steady(&[10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0]));
        assert!(!is_steady(&[1.0; 7]), "too few");
        assert!(is_steady(&[9.0, 1.0, 1.01, 1.0, 1.02, 1.0, 1.01, 1.0, 1.0]));
        assert!(is_steady(&[1.0, 9.0, 1.0, 1.0, 1.0, 1.0, 7.0, 1.0]), "outliers");
    }
}
