//! Medians of rounds that are drawn with replacement, in blocks of rounds that follow each other, and
//! the ranges that follow from them.
//!
//! Samples are sorted once. A resample is how often each round was drawn, and its median is found by
//! counting in that order, so that a resample costs a few operations a round.

use super::dependence::Dependence;
use super::ratio::Interval;
use super::summary::{SplitMix, quantile};
use super::tail::{student_95, student_two_sided};

/// How many times wider than another a range must be to be given up for it.
const MUCH_WIDER: f64 = 2.0;

/// A value, and what it was in every resample.
pub(super) struct Resampled {
    pub(super) middle: f64,
    pub(super) draws: Vec<f64>,
    /// Degrees of freedom of the draws.
    pub(super) freedom: usize,
}

impl Resampled {
    /// The median of a series, widened.
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

    /// The median of a long series, widened. Which sample is the median of a resample is then spread
    /// normally about the middle, so that no resample need be drawn.
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

    /// The mean of a series, widened.
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

    /// The mean of a long series, widened: it is spread normally, as the means of its blocks say.
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

    /// The same with all draws farther from the middle, by what a bootstrap misses.
    pub(super) fn widened(self, dependence: &Dependence) -> Resampled {
        let (middle, by) = (self.middle, dependence.widening());
        self.map(|draw| middle + (draw - middle) * by)
    }

    /// The same with something done to the value and to every draw.
    pub(super) fn map(&self, change: impl Fn(f64) -> f64) -> Resampled {
        let draws = self.draws.iter().map(|draw| change(*draw)).collect();
        Resampled { middle: change(self.middle), draws, freedom: self.freedom }
    }

    /// The logarithm; none when the value is not above 0. Draws of 0 become very small instead.
    pub(super) fn logarithm(&self) -> Option<Resampled> {
        (self.middle > 0.0).then(|| self.map(|x| x.max(f64::MIN_POSITIVE).ln()))
    }

    /// The difference to another, draw by draw.
    pub(super) fn minus(&self, other: &Resampled) -> Resampled {
        let draws = self.draws.iter().zip(&other.draws).map(|(x, y)| x - y).collect();
        let freedom = self.freedom.min(other.freedom);
        Resampled { middle: self.middle - other.middle, draws, freedom }
    }

    /// The sum with another, draw by draw.
    pub(super) fn plus(&self, other: &Resampled) -> Resampled {
        self.minus(&other.map(|value| -value))
    }

    /// The middle 95 % of the draws, and the value.
    pub(super) fn interval(&self) -> Interval {
        let mut draws = self.draws.clone();
        draws.sort_unstable_by(f64::total_cmp);
        let middle = self.middle;
        let end = |q| if draws.is_empty() { middle } else { quantile(&draws, q) };
        Interval { middle, low: end(0.025).min(middle), high: end(0.975).max(middle) }
    }

    /// How likely a value so far from 0 is when 0 is right: below 0.05 exactly when the range
    /// leaves 0 out. Beyond the range the tail is that of Student's t.
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

/// Samples in the order of size, each with its round.
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

    /// The median of all samples, each counted once. 0 when there are none.
    pub(super) fn median(&self) -> f64 {
        quantile(&self.sorted, 0.5)
    }

    /// The median of a resample. `drawn` says how often each round is in it, and as many rounds are
    /// drawn as there are.
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

/// Draws as many rounds as there are, in blocks; the last round is followed by the first. Counts in
/// `drawn` how often each was drawn.
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

    /// Both ways to a median's range agree, on samples that are independent and that are not.
    #[test]
    fn many_samples_need_not_be_drawn() {
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
        fn counting_finds_the_median_of_a_resample(
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
