//! What is known from a few repeats, each of which is the median of many samples.
//!
//! Repeats are launches of a program, or runs of it: between them differs what stays the same within
//! one, however long that is. Their median is robust against one that was disturbed, and its range
//! is Student's, widened by what a median is less exact than a mean.

use super::ratio::Interval;
use super::summary::Summary;
use super::tail::{student_95, student_two_sided};

/// The error of a median over that of a mean, where values are spread normally.
const OF_A_MEDIAN: f64 = 1.2533;

/// The median of repeats, and the range that holds what it estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeated {
    /// The median.
    pub middle: f64,
    /// How many repeats there are.
    pub n: usize,
    /// The error of the median; none of one repeat.
    error: Option<f64>,
}

impl Repeated {
    /// Of these repeats; none when there are none.
    pub fn of(values: &[f64]) -> Option<Repeated> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let Summary { median: middle, mean, .. } = Summary::of(values);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (n > 1).then(|| OF_A_MEDIAN * (squares / (n - 1) as f64 / n as f64).sqrt());
        Some(Repeated { middle, n, error })
    }

    /// The range with its middle; none of one repeat.
    pub fn interval(&self) -> Option<Interval> {
        let half = student_95(self.n - 1) * self.error?;
        let middle = self.middle;
        Some(Interval { middle, low: middle - half, high: middle + half })
    }

    /// How likely a median so far from 0 is when 0 is right; 1 of one repeat.
    pub fn p_of_zero(&self) -> f64 {
        match self.error {
            None => 1.0,
            Some(0.0) if self.middle == 0.0 => 1.0,
            Some(error) => {
                let distance = self.middle / error.max(f64::MIN_POSITIVE);
                student_two_sided(distance, self.n - 1).max(f64::EPSILON)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::summary::SplitMix;

    #[test]
    fn known_ranges() {
        let found = Repeated::of(&[9.0, 10.0, 11.0]).unwrap_or_else(|| panic!("none"));
        let range = found.interval().unwrap_or_else(|| panic!("none"));
        // 4.303 is Student's t of two degrees of freedom; the deviation is 1.
        assert!((range.high - 10.0 - 4.303 * 1.2533 / 3f64.sqrt()).abs() < 1e-2, "{range:?}");
        assert_eq!(found.middle, 10.0);
        assert!(found.p_of_zero() < 0.05);
        assert_eq!(Repeated::of(&[]), None);
        let single = Repeated::of(&[3.0]).unwrap_or_else(|| panic!("none"));
        assert_eq!((single.interval(), single.p_of_zero()), (None, 1.0));
        let sure = Repeated::of(&[2.0, 2.0]).unwrap_or_else(|| panic!("none"));
        assert!(sure.p_of_zero() < 0.05);
    }

    /// Ranges of few repeats hold the truth in 95 % of cases.
    #[test]
    fn ranges_hold_what_they_should() {
        let mut random = SplitMix(3);
        for n in [3, 5, 8] {
            let hits = (0..2000)
                .filter(|_| {
                    let values: Vec<f64> = (0..n).map(|_| random.normal()).collect();
                    let range = Repeated::of(&values).and_then(|found| found.interval());
                    range.is_some_and(|range| range.holds(0.0))
                })
                .count();
            assert!((1870..1985).contains(&hits), "{n}: {hits} of 2000");
        }
    }
}
