//! Medians, confidence intervals and shares for the tables.

use laggard_core::stats::summary::{Summary, bootstrap_median_interval, quantile};
use laggard_samples::Rng;

const RESAMPLES: usize = 2000;

/// A median and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) middle: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Estimate {
    /// Median of values in any order.
    pub(super) fn median(values: &[f64]) -> Estimate {
        let (low, high) = bootstrap_median_interval(values, RESAMPLES, 1);
        Estimate { middle: Summary::of(values).median, low, high }
    }

    /// Median of `a` minus median of `b`.
    pub(super) fn difference(a: &[f64], b: &[f64]) -> Estimate {
        let mut rng = Rng::new(1);
        let mut differences: Vec<f64> =
            (0..RESAMPLES).map(|_| resampled(a, &mut rng) - resampled(b, &mut rng)).collect();
        differences.sort_by(f64::total_cmp);
        Estimate {
            middle: Summary::of(a).median - Summary::of(b).median,
            low: quantile(&differences, 0.025),
            high: quantile(&differences, 0.975),
        }
    }

    /// A ratio as a relative change: `+3.4 % [+3.1, +3.8]`.
    pub(super) fn as_change(self) -> String {
        Estimate { middle: self.middle - 1.0, low: self.low - 1.0, high: self.high - 1.0 }
            .as_percent()
    }

    /// A difference of ratios: `+0.2 % [-0.3, +0.7]`.
    pub(super) fn as_percent(self) -> String {
        let [middle, low, high] = [self.middle, self.low, self.high].map(|part| 100.0 * part);
        format!("{middle:+.2} % [{low:+.2}, {high:+.2}]")
    }
}

/// Median of a bootstrap resample.
fn resampled(values: &[f64], rng: &mut Rng) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let mut drawn: Vec<f64> = values.iter().map(|_| *rng.pick(values)).collect();
    drawn.sort_by(f64::total_cmp);
    quantile(&drawn, 0.5)
}

/// `1.021 (0.998..1.043)`: median, minimum and maximum.
pub(super) fn range(values: &[f64], places: usize) -> String {
    let Summary { n, min, median, max, .. } = Summary::of(values);
    match n {
        0 => "-".into(),
        1 => format!("{median:.places$}"),
        _ => format!("{median:.places$} ({min:.places$}..{max:.places$})"),
    }
}

/// `512 of 512 (100.0 %)`.
pub(super) fn share(part: usize, whole: usize) -> String {
    match whole {
        0 => "0 of 0".into(),
        _ => format!("{part} of {whole} ({:.1} %)", 100.0 * part as f64 / whole as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_a_difference() {
        let values: Vec<f64> = (0..50).map(f64::from).collect();
        let same = Estimate::difference(&values, &values);
        assert!(same.middle == 0.0 && same.low < 0.0 && same.high > 0.0, "{same:?}");
        let shifted: Vec<f64> = values.iter().map(|value| value + 100.0).collect();
        let apart = Estimate::difference(&shifted, &values);
        assert!(apart.middle == 100.0 && apart.low > 50.0 && apart.high < 150.0, "{apart:?}");
    }

    #[test]
    fn changes_have_a_sign() {
        let estimate = Estimate { middle: 1.034, low: 0.998, high: 1.05 };
        assert_eq!(estimate.as_change(), "+3.40 % [-0.20, +5.00]");
    }
}
