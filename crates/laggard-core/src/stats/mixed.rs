//! Comparison of sides with several kinds of samples, such as prefill and decode iterations of a
//! serving engine. Kinds are summarized separately and combined with the same weights for both sides.

use super::dependence::Dependence;
use super::ratio::{Estimate, FEWEST_ROUNDS, TakenFrom, estimate};
use super::resample::Resampled;
use super::summary::SplitMix;

/// Samples of one kind, in the order of measurement.
#[derive(Clone, Copy, Debug)]
pub struct Kind<'a> {
    /// Weight of the kind in the mix.
    pub weight: f64,
    /// The samples.
    pub samples: &'a [f64],
}

/// Number of samples above which a normal approximation replaces resampling.
const MANY: usize = 500;

/// Statistic that represents the samples of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Middle {
    /// The median.
    Median,
    /// The mean. Costs that occur in only some samples would vanish in a median.
    Mean,
}

impl Middle {
    /// Weighted sum of the statistic over all kinds.
    pub fn of(self, kinds: &[Kind]) -> f64 {
        let middle = |kind: &Kind| match self {
            _ if kind.samples.is_empty() => 0.0,
            Middle::Median => super::resample::Ranked::of(kind.samples).median(),
            Middle::Mean => kind.samples.iter().sum::<f64>() / kind.samples.len() as f64,
        };
        kinds.iter().map(|kind| kind.weight * middle(kind)).sum()
    }
}

/// Compares the mixes of two sides without common rounds. `None` if a kind has too few samples for an
/// interval, or if a side is not above 0.
pub fn estimate_mixed(
    a: &[Kind],
    b: &[Kind],
    middle: Middle,
    resamples: usize,
    seed: u64,
) -> Option<Estimate> {
    let mut random = SplitMix(seed);
    let mut side = |kinds: &[Kind]| -> Option<Resampled> {
        let mut sum: Option<Resampled> = None;
        for kind in kinds.iter().filter(|kind| kind.weight > 0.0) {
            if kind.samples.len() < FEWEST_ROUNDS {
                return None;
            }
            let dependence = Dependence::of_series(kind.samples);
            let of = match middle {
                Middle::Median if kind.samples.len() > MANY => Resampled::median_of_many,
                Middle::Median => Resampled::median_of,
                Middle::Mean if kind.samples.len() > MANY => Resampled::mean_of_many,
                Middle::Mean => Resampled::mean_of,
            };
            let drawn = of(kind.samples, &dependence, resamples, &mut random);
            let drawn = drawn.map(|value| value * kind.weight);
            sum = Some(match sum {
                Some(sum) => sum.plus(&drawn),
                None => drawn,
            });
        }
        sum
    };
    let (a, b) = (side(a)?, side(b)?);
    compared(&a, &b)
}

/// A sum with known variation of its parts: the deviations of the parts from their expected values, in
/// the order of measurement.
#[derive(Clone, Copy, Debug)]
pub struct Varying<'a> {
    /// The sum.
    pub middle: f64,
    /// Deviations of the parts; they add up to about 0.
    pub off_by: &'a [f64],
}

/// Compares two sums. `None` if there are too few parts, or if a side is not above 0.
pub fn estimate_varying(a: Varying, b: Varying, resamples: usize, seed: u64) -> Option<Estimate> {
    let mut random = SplitMix(seed);
    let mut side = |side: Varying| {
        let n = side.off_by.len();
        (n >= FEWEST_ROUNDS).then(|| {
            let dependence = Dependence::of_series(side.off_by);
            let drawn = Resampled::mean_of(side.off_by, &dependence, resamples, &mut random);
            let mean = drawn.middle;
            drawn.map(|value| side.middle + (value - mean) * n as f64)
        })
    };
    let (a, b) = (side(a)?, side(b)?);
    // The distribution of sums is symmetric; that of their logarithms is not.
    let p = b.minus(&a).p_of_zero();
    Some(Estimate { p, ..compared(&a, &b)? })
}

fn compared(a: &Resampled, b: &Resampled) -> Option<Estimate> {
    let ratio = b.logarithm()?.minus(&a.logarithm()?);
    Some(estimate(&ratio, b.minus(a).interval(), TakenFrom::Medians))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(n: usize, middle: f64, spread: f64, seed: u64) -> Vec<f64> {
        let mut random = SplitMix(seed);
        (0..n).map(|_| middle + spread * (random.below(2001) as f64 / 1000.0 - 1.0)).collect()
    }

    #[test]
    fn a_different_mix_is_not_a_difference() {
        let (short, long) = (noise(40, 10.0, 0.2, 1), noise(12, 100.0, 2.0, 2));
        let (other_short, other_long) = (noise(15, 10.0, 0.2, 3), noise(30, 100.0, 2.0, 4));
        let mix = |short, long| {
            [Kind { weight: 0.75, samples: short }, Kind { weight: 0.25, samples: long }]
        };
        let found = estimate_mixed(
            &mix(&short, &long),
            &mix(&other_short, &other_long),
            Middle::Median,
            1000,
            5,
        );
        let found = found.unwrap_or_else(|| panic!("none"));
        assert!(found.ratio.holds(1.0), "{found:?}");
        assert!(found.ratio.precision() < 0.05, "{found:?}");
        let few = &short[..4];
        assert!(estimate_mixed(&mix(few, &long), &mix(few, &long), Middle::Mean, 100, 5).is_none());
    }

    /// For 200 pairs of equal sums, about 95 % of the intervals cover the true value.
    #[test]
    fn intervals_of_sums_have_the_stated_coverage() {
        let mut held = 0;
        for seed in 0..200 {
            let side = |seed: u64| {
                let parts = noise(60, 1.0, 0.1, seed);
                let sum: f64 = parts.iter().sum();
                let off: Vec<f64> = parts.iter().map(|part| part - sum / 60.0).collect();
                (sum, off)
            };
            let ((sum_a, off_a), (sum_b, off_b)) = (side(2 * seed), side(2 * seed + 1));
            let of = |middle, off_by| Varying { middle, off_by };
            let found = estimate_varying(of(sum_a, &off_a), of(sum_b, &off_b), 500, seed);
            held += u32::from(found.is_some_and(|found| found.ratio.holds(1.0)));
        }
        assert!((184..=200).contains(&held), "{held}");
    }
}
