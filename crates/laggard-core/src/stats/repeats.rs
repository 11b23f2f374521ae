//! Statistics of a few repeats, each of which is the median of many samples.
//!
//! Repeats are process launches or runs of a program. They vary in ways that longer runs do not
//! average out, such as memory placement. The median of repeats is robust against a disturbed repeat.
//! Its confidence interval uses Student's t, widened because a median is less precise than a mean.

use super::ratio::Interval;
use super::summary::Summary;
use super::tail::{student_95, student_two_sided};

/// Standard error of a median relative to that of a mean, for normally distributed values.
const OF_A_MEDIAN: f64 = 1.2533;

/// The median of repeats with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeated {
    /// The median.
    pub middle: f64,
    /// Number of repeats.
    pub n: usize,
    /// Standard error of the median; `None` for a single repeat.
    error: Option<f64>,
}

impl Repeated {
    /// Median of the given repeats; `None` if empty.
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

    /// The median with its 95 % confidence interval; `None` for a single repeat.
    pub fn interval(&self) -> Option<Interval> {
        let half = student_95(self.n - 1) * self.error?;
        let middle = self.middle;
        Some(Interval { middle, low: middle - half, high: middle + half })
    }

    /// p-value for a true median of 0; 1 for a single repeat.
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
    fn intervals_match_known_values() {
        let found = Repeated::of(&[9.0, 10.0, 11.0]).unwrap_or_else(|| panic!("none"));
        let range = found.interval().unwrap_or_else(|| panic!("none"));
        // 4.303: Student's t with two degrees of freedom. The standard deviation is 1.
        assert!((range.high - 10.0 - 4.303 * 1.2533 / 3f64.sqrt()).abs() < 1e-2, "{range:?}");
        assert_eq!(found.middle, 10.0);
        assert!(found.p_of_zero() < 0.05);
        assert_eq!(Repeated::of(&[]), None);
        let single = Repeated::of(&[3.0]).unwrap_or_else(|| panic!("none"));
        assert_eq!((single.interval(), single.p_of_zero()), (None, 1.0));
        let sure = Repeated::of(&[2.0, 2.0]).unwrap_or_else(|| panic!("none"));
        assert!(sure.p_of_zero() < 0.05);
    }

    /// Intervals of few repeats cover the true value in 95 % of cases.
    #[test]
    fn intervals_have_the_stated_coverage() {
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
