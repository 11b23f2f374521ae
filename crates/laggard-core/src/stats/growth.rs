//! Growth of a time with a parameter, such as the number of elements.

use super::ratio::Interval;
use super::summary::{Summary, bootstrap_median_interval};
use super::tail::{NORMAL_95, student_95};
use crate::model::timings::Case;
use serde::{Deserialize, Serialize};

/// Minimum number of values of the parameter.
pub const FEWEST_VALUES: usize = 3;
/// Number of resamples per median.
const RESAMPLES: usize = 400;

/// A time that grows as a power of a parameter n: time = c · n^exponent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Growth {
    /// Name of the parameter.
    pub parameter: String,
    /// Values of the parameter with the median time in nanoseconds, by increasing value.
    pub points: Vec<(f64, f64)>,
    /// The exponent.
    pub exponent: f64,
    /// Ends of its 95 % confidence interval.
    pub interval: [f64; 2],
}

impl Growth {
    /// Fits a power to the times of a side in cases with these values of a parameter.
    pub fn of_side(
        parameter: &str,
        cases: &[(f64, &Case)],
        side: usize,
        seed: u64,
    ) -> Option<Growth> {
        let sample = |(n, case): &(f64, &Case)| Some((*n, case.series.get(side)?.wall()));
        let samples: Vec<_> = cases.iter().map(sample).collect::<Option<_>>()?;
        Growth::fit(parameter, &samples, seed)
    }

    /// Fits a power to samples of the time for each value of a parameter, by least squares of the
    /// logarithms. The interval covers the uncertainty of the medians and the deviation from a power.
    /// `None` with fewer than [`FEWEST_VALUES`] different positive values, or without samples.
    pub fn fit(parameter: &str, samples: &[(f64, Vec<f64>)], seed: u64) -> Option<Growth> {
        let mut points: Vec<Point> =
            samples.iter().map(|(n, times)| Point::new(*n, times, seed)).collect::<Option<_>>()?;
        points.sort_by(|x, y| x.n.total_cmp(&y.n));
        points.dedup_by(|x, y| x.n == y.n);
        if points.len() < FEWEST_VALUES {
            return None;
        }
        let count = points.len() as f64;
        let mean = |of: &dyn Fn(&Point) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x_mean, y_mean) = (mean(&Point::x), mean(&Point::y));
        let spread: f64 = points.iter().map(|point| (point.x() - x_mean).powi(2)).sum();
        // Huge numbers may have equal logarithms.
        if spread <= 0.0 {
            return None;
        }
        let product = |point: &Point| (point.x() - x_mean) * (point.y() - y_mean);
        let exponent = points.iter().map(product).sum::<f64>() / spread;
        let residual = |point: &Point| point.y() - y_mean - exponent * (point.x() - x_mean);
        let residuals: f64 = points.iter().map(|point| residual(point).powi(2)).sum();
        let of_fit = residuals / (count - 2.0) / spread;
        let of_medians: f64 =
            points.iter().map(|point| ((point.x() - x_mean) * point.error / spread).powi(2)).sum();
        let of_fit = student_95(points.len() - 2) * of_fit.sqrt();
        let half = of_fit.hypot(NORMAL_95 * of_medians.sqrt());
        Some(Growth {
            parameter: parameter.to_owned(),
            points: points.iter().map(|point| (point.n, point.median)).collect(),
            exponent,
            interval: [exponent - half, exponent + half],
        })
    }

    /// The exponent with its confidence interval.
    pub fn exponent(&self) -> Interval {
        let [low, high] = self.interval;
        Interval { middle: self.exponent, low, high }
    }
}

/// The time for one value of the parameter.
struct Point {
    n: f64,
    median: f64,
    /// Standard error of the logarithm of the median.
    error: f64,
}

impl Point {
    fn new(n: f64, times: &[f64], seed: u64) -> Option<Point> {
        let median = Summary::of(times).median;
        let is_positive = n > 0.0 && n.is_finite() && median > 0.0 && median.is_finite();
        if !is_positive || times.is_empty() {
            return None;
        }
        let (low, high) = bootstrap_median_interval(times, RESAMPLES, seed);
        let error = if low > 0.0 { (high / low).ln() / 2.0 / NORMAL_95 } else { 0.0 };
        Some(Point { n, median, error })
    }

    fn x(&self) -> f64 {
        self.n.ln()
    }

    fn y(&self) -> f64 {
        self.median.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exact(exponent: f64, values: &[f64]) -> Vec<(f64, Vec<f64>)> {
        values.iter().map(|n| (*n, vec![3.0 * n.powf(exponent); 9])).collect()
    }

    #[test]
    fn exact_powers_have_their_exponent() {
        for exponent in [0.0, 0.5, 1.0, 2.0] {
            let Some(growth) = Growth::fit("n", &exact(exponent, &[4000.0, 1000.0, 2000.0]), 1)
            else {
                panic!("no growth");
            };
            assert!((growth.exponent - exponent).abs() < 1e-9, "{growth:?}");
            assert!(growth.exponent().high - growth.exponent().low < 1e-6, "{growth:?}");
            assert_eq!(growth.points[0].0, 1000.0);
        }
    }

    #[test]
    fn too_few_or_invalid_values_have_no_growth() {
        assert_eq!(Growth::fit("n", &exact(1.0, &[1.0, 2.0]), 1), None);
        assert_eq!(Growth::fit("n", &exact(1.0, &[1.0, 2.0, 2.0]), 1), None);
        assert_eq!(Growth::fit("n", &exact(1.0, &[0.0, 1.0, 2.0]), 1), None);
        let unmeasured = [(1.0, vec![1.0]), (2.0, vec![]), (3.0, vec![2.0])];
        assert_eq!(Growth::fit("n", &unmeasured, 1), None);
    }

    proptest! {
        /// The interval of noisy times contains the exponent in most cases.
        #[test]
        fn noise_widens_the_interval(noise in prop::collection::vec(0.9..1.1f64, 60)) {
            let values = [1000.0, 2000.0, 4000.0, 8000.0];
            let samples: Vec<(f64, Vec<f64>)> = values
                .iter()
                .zip(noise.chunks(15))
                .map(|(n, noise)| (*n, noise.iter().map(|factor| factor * n * n).collect()))
                .collect();
            let growth = Growth::fit("n", &samples, 1).unwrap_or_default();
            prop_assert!((growth.exponent - 2.0).abs() < 0.1, "{growth:?}");
            prop_assert!(growth.interval[0] < growth.exponent && growth.exponent < growth.interval[1]);
        }
    }
}
