//! Autocorrelation of successive samples.
//!
//! Load on a shared machine comes in bursts that last several rounds, so rounds are not independent.
//! Input is samples in the order of measurement. Output is the autocorrelation time, the block length
//! for a block bootstrap, and the factor by which bootstrap intervals must be widened. With few rounds
//! bursts cannot be distinguished from chance, so some dependence is always assumed; it decreases with
//! the number of rounds.

use super::summary::{quantile, sorted};
use super::tail::{NORMAL_95, student_95};

/// Maximum lag.
const MOST_LAGS: usize = 1000;
/// Minimum number of blocks for the block bootstrap.
const FEWEST_BLOCKS: usize = 4;
/// Share of samples at each end that is winsorized, so that an outlier does not hide correlations.
const PULLED_IN: f64 = 0.05;

/// Dependence between successive samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dependence {
    /// Autocorrelation time: samples per independent sample, at least 1.
    pub time: f64,
    /// Block length for the bootstrap.
    pub block: usize,
    /// Number of samples.
    pub n: usize,
    /// Degrees of freedom: number of blocks minus 1.
    pub freedom: usize,
}

impl Dependence {
    /// The dependence of `n` rounds: the longest autocorrelation time of the series that affect the
    /// estimate.
    pub fn of<'a>(series: impl IntoIterator<Item = &'a [f64]>, n: usize) -> Dependence {
        let time = series.into_iter().map(autocorrelation_time).fold(1.0, f64::max);
        let correlation = (time - 1.0) / (time + 1.0) + 0.5 / (n.max(1) as f64).sqrt();
        let correlation = correlation.min(0.98);
        let time = (1.0 + correlation) / (1.0 - correlation);
        let most = (n / FEWEST_BLOCKS).max(1);
        let block = ((3.0 * (time - 1.0) + 1.0).round() as usize).clamp(1, most);
        let blocks = (n as f64 / block as f64).round() as usize;
        Dependence { time, block, n, freedom: blocks.max(2) - 1 }
    }

    /// The dependence of one series of samples.
    pub fn of_series(samples: &[f64]) -> Dependence {
        Dependence::of([&*signs(samples), &*pulled_in(samples)], samples.len())
    }

    /// Factor by which the central 95 % of bootstrap resamples is widened. Accounts for blocks shorter
    /// than the disturbances, for the small number of blocks, and for the variance that resamples of few
    /// rounds lack.
    pub fn widening(&self) -> f64 {
        let n = self.n.max(2) as f64;
        (self.time / self.seen()).sqrt() * student_95(self.freedom) / NORMAL_95
            * (n / (n - 1.0)).sqrt()
    }

    /// Autocorrelation time that blocks of this length capture.
    pub(super) fn seen(&self) -> f64 {
        let block = self.block as f64;
        let correlation = (self.time - 1.0) / (self.time + 1.0);
        let beyond_blocks = 2.0 * correlation * (1.0 - correlation.powf(block))
            / (block * (1.0 - correlation).powi(2));
        (self.time - beyond_blocks).max(f64::EPSILON)
    }
}

/// Sign of each sample relative to the median, which determines changes of the median.
pub(super) fn signs(samples: &[f64]) -> Vec<f64> {
    let median = quantile(&sorted(samples), 0.5);
    samples.iter().map(|x| sign(x - median)).collect()
}

/// -1, 0 or 1. `f64::signum` gives 1 for 0.
pub(super) fn sign(x: f64) -> f64 {
    f64::from(i8::from(x > 0.0) - i8::from(x < 0.0))
}

/// Winsorized samples.
pub(super) fn pulled_in(samples: &[f64]) -> Vec<f64> {
    let sorted = sorted(samples);
    let (low, high) = (quantile(&sorted, PULLED_IN), quantile(&sorted, 1.0 - PULLED_IN));
    samples.iter().map(|x| x.clamp(low, high)).collect()
}

/// Integrated autocorrelation time: 1 plus twice the sum of correlations, up to Sokal's window.
/// Corrects the bias from subtracting the estimated mean, which reduces correlations.
fn autocorrelation_time(series: &[f64]) -> f64 {
    let n = series.len();
    let mean = series.iter().sum::<f64>() / n.max(1) as f64;
    let centred: Vec<f64> = series.iter().map(|x| x - mean).collect();
    let variance: f64 = centred.iter().map(|x| x * x).sum();
    if !variance.is_normal() {
        return 1.0;
    }
    let mut time: f64 = 1.0;
    for lag in 1..(n / 2).min(MOST_LAGS) {
        let products = centred.iter().zip(&centred[lag..]).map(|(x, later)| x * later);
        let correlation = products.sum::<f64>() / variance + time.max(1.0) / n as f64;
        time += 2.0 * correlation;
        if lag as f64 >= 4.0 * time.max(1.0) {
            break;
        }
    }
    time.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::summary::SplitMix;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn repeated_samples_increase_the_autocorrelation_time() {
        let mut random = SplitMix(1);
        let scrambled: Vec<f64> = (0..400).map(|_| random.below(1000) as f64).collect();
        let repeated: Vec<f64> = scrambled.iter().flat_map(|x| [*x; 10]).collect();
        let (one, ten) = (Dependence::of_series(&scrambled), Dependence::of_series(&repeated));
        assert!(one.time < 1.5 && one.block <= 3, "{one:?}");
        assert!((7.0..15.0).contains(&ten.time) && ten.block >= 15, "{ten:?}");
    }

    #[test]
    fn few_rounds_widen_intervals_most() {
        let widening = |n| Dependence::of([], n).widening();
        assert!(widening(5) > 1.8 && widening(20) < 1.8 && widening(10_000) < 1.03);
        assert!(widening(5) > widening(20) && widening(20) > widening(400));
    }

    proptest! {
        #[test]
        fn any_series_is_accepted(samples in prop::collection::vec(any::<f64>(), 0..60)) {
            let found = Dependence::of_series(&samples);
            prop_assert!(found.time >= 1.0 && found.block >= 1 && found.freedom >= 1);
            prop_assert!(found.widening() >= 1.0);
        }
    }
}
