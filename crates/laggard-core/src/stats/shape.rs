//! Detection of outliers, drift and bimodality in a series of samples.
//!
//! Input is samples in the order of measurement. Ordinary noise is reported as drift or bimodality in
//! fewer than 1 % of series. Disturbances that last a third of the measurement cannot be distinguished
//! from drift.

use super::dependence::{Dependence, pulled_in, sign};
use super::summary::{Summary, quantile, sorted};
use super::tail::student_two_sided;

/// Modified z-score above which a sample is an outlier. Larger than the usual 3.5, which assumes a normal
/// distribution: times have a long upper tail, and the spread of few samples is often underestimated.
const OUTLYING: f64 = 5.0;
/// Minimum number of samples to detect drift.
const FEWEST_FOR_DRIFT: usize = 20;
/// Minimum number of samples to detect bimodality.
const FEWEST_FOR_HEAPS: usize = 30;
/// Maximum number of points for drift detection; longer series are reduced.
const DRIFT_POINTS: usize = 200;
/// Minimum drift to report, as a share of the median.
const SMALL_DRIFT: f64 = 0.01;
/// Significance level for drift.
const CLEAR_DRIFT: f64 = 0.001;
/// Minimum share of samples in each mode.
const SMALLEST_HEAP: f64 = 0.1;
/// Minimum distance between modes, in units of their spread.
const WELL_APART: f64 = 4.0;
/// Minimum distance between modes, as a share of the lower one.
const WORTH_A_WORD: f64 = 0.02;
/// Minimum depth of the valley between modes, in standard errors.
const CLEAR_VALLEY: f64 = 2.0;

/// Outliers of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outliers {
    /// Number of outliers.
    pub count: usize,
    /// Share of all samples.
    pub share: f64,
}

/// Counts samples whose modified z-score exceeds the threshold.
pub fn outliers(samples: &[f64]) -> Outliers {
    let summary = Summary::of(samples);
    let spread = spread(&summary, samples);
    let is_far = |x: &&f64| x.is_finite() && (*x - summary.median).abs() > OUTLYING * spread;
    let count = samples.iter().filter(is_far).count();
    Outliers { count, share: count as f64 / summary.n.max(1) as f64 }
}

/// Robust standard deviation from the MAD. If more than half of the samples are equal, as with a coarse
/// clock, it uses the mean absolute deviation.
fn spread(summary: &Summary, samples: &[f64]) -> f64 {
    if summary.mad > 0.0 {
        return 1.4826 * summary.mad;
    }
    let distances = samples.iter().filter(|x| x.is_finite()).map(|x| (x - summary.median).abs());
    1.2533 * distances.sum::<f64>() / summary.n.max(1) as f64
}

/// Increase of samples over the measurement as a share of their median; negative for a decrease. `None`
/// if it is small or not significant. The test accounts for bursts that resemble a trend.
pub fn drift(samples: &[f64]) -> Option<f64> {
    let points = thinned(samples);
    if samples.len() < FEWEST_FOR_DRIFT || points.len() < 2 {
        return None;
    }
    let slope = median_slope(&points);
    let level: Vec<f64> = points.iter().enumerate().map(|(i, x)| x - slope * i as f64).collect();
    let rise = slope * (points.len() - 1) as f64 / Summary::of(samples).median;
    let is_clear = chance_of_trend(&points, Dependence::of_series(&level).time) < CLEAR_DRIFT;
    (is_clear && rise.is_finite() && rise.abs() >= SMALL_DRIFT).then_some(rise)
}

/// Reduces a series to medians of neighbouring samples.
fn thinned(samples: &[f64]) -> Vec<f64> {
    let finite: Vec<f64> = samples.iter().copied().filter(|x| x.is_finite()).collect();
    let neighbours = finite.len().div_ceil(DRIFT_POINTS).max(1);
    finite.chunks(neighbours).map(|chunk| quantile(&sorted(chunk), 0.5)).collect()
}

/// Theil-Sen slope: the median slope over all pairs of points.
fn median_slope(points: &[f64]) -> f64 {
    let mut slopes: Vec<f64> = (1..points.len())
        .flat_map(|j| (0..j).map(move |i| (points[j] - points[i]) / (j - i) as f64))
        .collect();
    let middle = slopes.len() / 2;
    *slopes.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// p-value of the Mann-Kendall trend test, with variance and tails for the effective number of
/// independent points.
fn chance_of_trend(points: &[f64], time: f64) -> f64 {
    let rises: f64 =
        (1..points.len()).flat_map(|j| (0..j).map(move |i| sign(points[j] - points[i]))).sum();
    let n = points.len() as f64;
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0 * time;
    let independent = (n / time) as usize;
    student_two_sided((rises.abs() - 1.0).max(0.0) / variance.sqrt(), independent)
}

/// A bimodal distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoHeaps {
    /// Median of the lower mode.
    pub low: f64,
    /// Median of the upper mode.
    pub high: f64,
    /// Share of samples in the upper mode.
    pub share_high: f64,
}

/// Detects two modes that are well separated, have at least a tenth of the samples each, and have a
/// valley between them.
pub fn two_heaps(samples: &[f64]) -> Option<TwoHeaps> {
    let sorted = sorted(samples);
    if sorted.len() < FEWEST_FOR_HEAPS {
        return None;
    }
    let (lower, upper) = sorted.split_at(best_split(&pulled_in(&sorted)));
    let (low, high) = (Summary::of(lower), Summary::of(upper));
    let width = spread(&low, lower).hypot(spread(&high, upper)) / std::f64::consts::SQRT_2;
    let apart = high.median - low.median;
    let heaps = TwoHeaps {
        low: low.median,
        high: high.median,
        share_high: high.n as f64 / sorted.len() as f64,
    };
    let is_found = apart > WELL_APART * width
        && apart > WORTH_A_WORD * low.median.abs()
        && has_valley(&sorted, heaps);
    is_found.then_some(heaps)
}

/// Index that splits sorted samples into the two narrowest parts.
fn best_split(sorted: &[f64]) -> usize {
    let n = sorted.len();
    let smallest = ((n as f64 * SMALLEST_HEAP).ceil() as usize).max(1);
    let total: f64 = sorted.iter().sum();
    let (mut below, mut best) = (0.0, (f64::NEG_INFINITY, n / 2));
    for (at, sample) in sorted.iter().enumerate().take(n - smallest + 1) {
        let (of_low, of_high) = (at as f64, (n - at) as f64);
        let between = below * below / of_low.max(1.0) + (total - below).powi(2) / of_high;
        if at >= smallest && between > best.0 {
            best = (between, at);
        }
        below += sample;
    }
    best.1
}

/// Whether there are significantly fewer samples halfway between the modes than around either.
fn has_valley(sorted: &[f64], heaps: TwoHeaps) -> bool {
    let reach = (heaps.high - heaps.low) / 6.0;
    let around = |centre: f64| {
        let below = |limit: f64| sorted.partition_point(|x| *x < limit);
        (below(centre + reach) - below(centre - reach)) as f64
    };
    let between = around(f64::midpoint(heaps.low, heaps.high));
    let smaller = around(heaps.low).min(around(heaps.high));
    between <= smaller / 4.0 && smaller - between >= CLEAR_VALLEY * (smaller + between).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn outliers_are_counted_on_both_ends() {
        let mut samples: Vec<f64> = (0..98).map(|i| f64::from(100 + i % 7)).collect();
        samples.extend([10.0, 900.0, f64::NAN]);
        assert_eq!(outliers(&samples), Outliers { count: 2, share: 0.02 });
        assert_eq!(outliers(&[]), Outliers::default());
        assert_eq!(outliers(&[5.0; 30]).count, 0);
        let mut coarse = [5.0; 30];
        coarse[7] = 50.0;
        assert_eq!(outliers(&coarse).count, 1);
    }

    #[test]
    fn drift_has_size_and_sign() {
        let rising: Vec<f64> = (0..300)
            .map(|i| 100.0 + f64::from(i) / 30.0 + f64::from(i * 7919 % 13) / 10.0)
            .collect();
        let falling: Vec<f64> = rising.iter().rev().copied().collect();
        let (up, down) = (drift(&rising).unwrap(), drift(&falling).unwrap());
        assert!((up - 0.095).abs() < 0.005 && (down + 0.095).abs() < 0.005, "{up} {down}");
        assert_eq!(drift(&rising[..10]), None);
    }

    #[test]
    fn bimodality_is_detected_with_its_share() {
        let sample = |i: u32| {
            f64::from(i * 7919 % 13) / 10.0 + if i.is_multiple_of(4) { 120.0 } else { 100.0 }
        };
        let heaps = two_heaps(&(0..200).map(sample).collect::<Vec<_>>()).unwrap();
        assert!((heaps.low - 100.6).abs() < 0.2 && (heaps.high - 120.6).abs() < 0.2, "{heaps:?}");
        assert_eq!(heaps.share_high, 0.25);
    }

    proptest! {
        #[test]
        fn any_series_is_accepted(samples in prop::collection::vec(any::<f64>(), 0..60)) {
            outliers(&samples);
            drift(&samples);
            two_heaps(&samples);
        }
    }
}
