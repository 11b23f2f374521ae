//! Block bootstrap of medians and means, and confidence intervals from it.
//!
//! Samples are sorted once. A resample is the number of draws of each round; its median is found by
//! counting in sorted order, at a few operations per round.

use super::dependence::Dependence;
use super::ratio::Interval;
use super::summary::{SplitMix, quantile};
use super::tail::{student_95, student_two_sided};

/// Minimum ratio of widths for preferring another, narrower interval.
const MUCH_WIDER: f64 = 2.0;

/// A statistic and its value in every resample.
pub(super) struct Resampled {
    pub(super) middle: f64,
    pub(super) draws: Vec<f64>,
    /// Degrees of freedom of the resamples.
    pub(super) freedom: usize,
}

impl Resampled {
    /// Median of a series, widened.
    pub(super) fn median_of(
        series: &[f64],
        dependence: &Dependence,
        resamples: usize,
        random: &mut SplitMix,
    ) -> Resampled {
        let ranked = Ranked::of(series);
        let mut drawn = vec![0; series.len()];
        let draw = |_| {
            draw_blocks(&mut drawn, dependence.block, random);
            ranked.median_of(&drawn)
        };
        let draws = (0..resamples).map(draw).collect();
        Resampled { middle: ranked.median(), draws, freedom: dependence.freedom }
            .widened(dependence)
    }

    /// Median of a long series, widened. The rank of a resample's median is approximately normal, so no
    /// resampling is needed.
    pub(super) fn median_of_many(
        series: &[f64],
        dependence: &Dependence,
        resamples: usize,
        random: &mut SplitMix,
    ) -> Resampled {
        let ranked = Ranked::of(series);
        let independent = (series.len() as f64 / dependence.seen()).max(1.0);
        let draw = |_| {
            let place = 0.5 + 0.5 * random.normal() / independent.sqrt();
            quantile(&ranked.sorted, place.clamp(0.0, 1.0))
        };
        let draws = (0..resamples).map(draw).collect();
        Resampled { middle: ranked.median(), draws, freedom: dependence.freedom }
            .widened(dependence)
    }

    /// Mean of a series, widened.
    pub(super) fn mean_of(
        series: &[f64],
        dependence: &Dependence,
        resamples: usize,
        random: &mut SplitMix,
    ) -> Resampled {
        let n = series.len().max(1) as f64;
        let mut drawn = vec![0; series.len()];
        let draw = |_| {
            draw_blocks(&mut drawn, dependence.block, random);
            let sum: f64 = series.iter().zip(&drawn).map(|(x, times)| x * f64::from(*times)).sum();
            sum / n
        };
        let draws = (0..resamples).map(draw).collect();
        let middle = series.iter().sum::<f64>() / n;
        Resampled { middle, draws, freedom: dependence.freedom }.widened(dependence)
    }

    /// Mean of a long series, widened. It is approximately normal, with the variance of block means.
    pub(super) fn mean_of_many(
        series: &[f64],
        dependence: &Dependence,
        resamples: usize,
        random: &mut SplitMix,
    ) -> Resampled {
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
        let middle = mean(series);
        let blocks: Vec<f64> = series.chunks(dependence.block.max(1)).map(mean).collect();
        let squares: f64 = blocks.iter().map(|block| (block - middle).powi(2)).sum();
        let error = squares.sqrt() / blocks.len().max(1) as f64;
        let draws = (0..resamples).map(|_| middle + error * random.normal()).collect();
        Resampled { middle, draws, freedom: dependence.freedom }.widened(dependence)
    }

    /// Scales the distances of all resamples from the value by the widening factor.
    pub(super) fn widened(self, dependence: &Dependence) -> Resampled {
        let (middle, by) = (self.middle, dependence.widening());
        self.map(|draw| middle + (draw - middle) * by)
    }

    /// Applies a function to the value and to every resample.
    pub(super) fn map(&self, change: impl Fn(f64) -> f64) -> Resampled {
        let draws = self.draws.iter().map(|draw| change(*draw)).collect();
        Resampled { middle: change(self.middle), draws, freedom: self.freedom }
    }

    /// The logarithm; `None` if the value is not above 0. Resamples of 0 are replaced by a tiny value.
    pub(super) fn logarithm(&self) -> Option<Resampled> {
        (self.middle > 0.0).then(|| self.map(|x| x.max(f64::MIN_POSITIVE).ln()))
    }

    /// Difference to another statistic, by resample.
    pub(super) fn minus(&self, other: &Resampled) -> Resampled {
        let draws = self.draws.iter().zip(&other.draws).map(|(x, y)| x - y).collect();
        let freedom = self.freedom.min(other.freedom);
        Resampled { middle: self.middle - other.middle, draws, freedom }
    }

    /// Sum with another statistic, by resample.
    pub(super) fn plus(&self, other: &Resampled) -> Resampled {
        self.minus(&other.map(|value| -value))
    }

    /// The value with the central 95 % of the resamples.
    pub(super) fn interval(&self) -> Interval {
        let mut draws = self.draws.clone();
        draws.sort_unstable_by(f64::total_cmp);
        let middle = self.middle;
        let end = |q| if draws.is_empty() { middle } else { quantile(&draws, q) };
        Interval { middle, low: end(0.025).min(middle), high: end(0.975).max(middle) }
    }

    /// p-value for a true value of 0: below 0.05 exactly if the interval does not contain 0. Outside
    /// the interval, the tail is that of Student's t.
    pub(super) fn p_of_zero(&self) -> f64 {
        let Interval { middle, low, high } = self.interval();
        let towards_zero = if middle > 0.0 { middle - low } else { high - middle };
        if middle == 0.0 {
            return 1.0;
        }
        let distance = middle.abs() / towards_zero * student_95(self.freedom);
        student_two_sided(distance, self.freedom).max(f64::EPSILON)
    }

    pub(super) fn is_much_wider(&self, than: &Resampled) -> bool {
        let width = |of: Interval| of.high - of.low;
        width(self.interval()) > MUCH_WIDER * width(than.interval())
    }
}

/// Samples in ascending order, each with its round.
pub(super) struct Ranked {
    rounds: Vec<u32>,
    sorted: Vec<f64>,
}

impl Ranked {
    pub(super) fn of(samples: &[f64]) -> Ranked {
        let mut rounds: Vec<u32> = (0..samples.len() as u32).collect();
        rounds.sort_by(|x, y| samples[*x as usize].total_cmp(&samples[*y as usize]));
        let sorted = rounds.iter().map(|round| samples[*round as usize]).collect();
        Ranked { rounds, sorted }
    }

    /// Median of all samples; 0 without samples.
    pub(super) fn median(&self) -> f64 {
        quantile(&self.sorted, 0.5)
    }

    /// Median of a resample. `drawn` has the number of draws of each round; their sum is the number of
    /// rounds.
    pub(super) fn median_of(&self, drawn: &[u32]) -> f64 {
        let n = self.sorted.len();
        let (lower, upper) = ((n.saturating_sub(1) / 2) as u32, (n / 2) as u32);
        let mut seen = 0;
        let mut below = None;
        for (round, sample) in self.rounds.iter().zip(&self.sorted) {
            seen += drawn[*round as usize];
            if seen > lower && below.is_none() {
                below = Some(*sample);
            }
            if seen > upper {
                return below.unwrap_or(*sample) / 2.0 + sample / 2.0;
            }
        }
        self.median()
    }
}

/// Draws a resample in blocks that wrap around the end. Counts the draws of each round in `drawn`.
pub(super) fn draw_blocks(drawn: &mut [u32], block: usize, random: &mut SplitMix) {
    drawn.fill(0);
    let n = drawn.len();
    let mut left = n;
    while left > 0 {
        let (start, length) = (random.below(n), block.clamp(1, left));
        let end = start + length;
        drawn[start..end.min(n)].iter_mut().for_each(|count| *count += 1);
        drawn[..end.saturating_sub(n)].iter_mut().for_each(|count| *count += 1);
        left -= length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The approximation agrees with resampling for independent and for dependent samples.
    #[test]
    fn the_normal_approximation_agrees_with_resampling() {
        let mut random = SplitMix(7);
        let mut last = 0.0;
        for memory in [0.0, 0.6] {
            let samples: Vec<f64> = (0..1500)
                .map(|_| {
                    last = memory * last + random.normal();
                    100.0 + last
                })
                .collect();
            let dependence = Dependence::of_series(&samples);
            let drawn = Resampled::median_of(&samples, &dependence, 1000, &mut random).interval();
            let many =
                Resampled::median_of_many(&samples, &dependence, 1000, &mut random).interval();
            let (one, other) = (drawn.high - drawn.low, many.high - many.low);
            assert_eq!(drawn.middle, many.middle);
            assert!((0.8..1.5).contains(&(other / one)), "{memory}: {drawn:?} {many:?}");
            let drawn = Resampled::mean_of(&samples, &dependence, 1000, &mut random).interval();
            let many = Resampled::mean_of_many(&samples, &dependence, 1000, &mut random).interval();
            let (one, other) = (drawn.high - drawn.low, many.high - many.low);
            assert!((0.8..1.25).contains(&(other / one)), "{memory}: {drawn:?} {many:?}");
        }
    }

    proptest! {
        #[test]
        fn counting_gives_the_median_of_a_resample(
            samples in prop::collection::vec(-1e6f64..1e6, 1..40),
            block in 1usize..50,
            seed in any::<u64>(),
        ) {
            let mut drawn = vec![0; samples.len()];
            draw_blocks(&mut drawn, block, &mut SplitMix(seed));
            prop_assert_eq!(drawn.iter().sum::<u32>() as usize, samples.len());
            let resample: Vec<f64> = samples
                .iter()
                .zip(&drawn)
                .flat_map(|(sample, count)| vec![*sample; *count as usize])
                .collect();
            let expected = Ranked::of(&resample).median();
            let found = Ranked::of(&samples).median_of(&drawn);
            prop_assert!((found - expected).abs() < 1e-6);
        }
    }
}
