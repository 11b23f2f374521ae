//! The ratio of two medians, and the range that holds it.

use super::summary::{SplitMix, quantile};

/// A value, and the range that holds it with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The value.
    pub middle: f64,
    /// Lower end of the range.
    pub low: f64,
    /// Upper end of the range.
    pub high: f64,
}

/// Median of `b` over median of `a`. Both have one sample of every round, in the same order: rounds
/// are drawn with replacement, whole, so that what disturbs a round disturbs both sides of it.
///
/// None with fewer than two rounds, or when `a` takes no time. The same seed gives the same range.
pub fn ratio_of_medians(a: &[f64], b: &[f64], resamples: usize, seed: u64) -> Option<Interval> {
    let n = a.len().min(b.len());
    let (mut of_a, mut of_b) = (a[..n].to_vec(), b[..n].to_vec());
    let middle = median(&mut of_b) / median(&mut of_a);
    if n < 2 || !middle.is_finite() {
        return None;
    }
    let mut random = SplitMix(seed);
    let mut ratios = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        for at in 0..n {
            let round = random.below(n);
            (of_a[at], of_b[at]) = (a[round], b[round]);
        }
        ratios.push(median(&mut of_b) / median(&mut of_a));
    }
    ratios.sort_by(f64::total_cmp);
    Some(Interval { middle, low: quantile(&ratios, 0.025), high: quantile(&ratios, 0.975) })
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    quantile(samples, 0.5)
}
