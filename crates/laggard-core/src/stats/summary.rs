//! Five-number summary, mean and MAD of samples, and the confidence interval of their median.
//!
//! Non-finite samples are ignored. Without samples, `n` and all statistics are 0.

/// Summary statistics of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Number of finite samples.
    pub n: usize,
    /// Minimum.
    pub min: f64,
    /// 25th percentile.
    pub p25: f64,
    /// Median.
    pub median: f64,
    /// 75th percentile.
    pub p75: f64,
    /// Maximum.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median absolute deviation (MAD), a measure of spread that is robust against outliers.
    pub mad: f64,
}

impl Summary {
    /// Summarizes samples in any order.
    pub fn of(samples: &[f64]) -> Summary {
        let sorted = sorted(samples);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Summary::default();
        };
        let n = sorted.len();
        let median = quantile(&sorted, 0.5);
        let mean = sorted.iter().map(|x| x / n as f64).sum::<f64>().clamp(min, max);
        let mut distances: Vec<f64> = sorted.iter().map(|x| (x - median).abs()).collect();
        distances.sort_by(f64::total_cmp);
        let mad = quantile(&distances, 0.5);
        Summary {
            n,
            min,
            p25: quantile(&sorted, 0.25),
            median,
            p75: quantile(&sorted, 0.75),
            max,
            mean,
            mad,
        }
    }

    /// Summarizes integers, such as nanoseconds.
    pub fn of_i64(samples: &[i64]) -> Summary {
        let samples: Vec<f64> = samples.iter().map(|x| *x as f64).collect();
        Summary::of(&samples)
    }
}

/// Quantile `q` of sorted samples with linear interpolation; 0 without samples.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = q.clamp(0.0, 1.0) * last as f64;
    let below = (at.floor() as usize).min(last);
    let (a, b) = (sorted[below], sorted[(below + 1).min(last)]);
    (a + (b - a) * (at - below as f64)).max(a.min(b)).min(a.max(b))
}

/// Bootstrap 95 % confidence interval of the median: the central 95 % of the medians of `resamples`
/// resamples. The same seed gives the same interval.
pub fn bootstrap_median_interval(samples: &[f64], resamples: usize, seed: u64) -> (f64, f64) {
    let sorted = sorted(samples);
    let n = sorted.len();
    if n < 2 || resamples == 0 {
        let median = quantile(&sorted, 0.5);
        return (median, median);
    }
    let mut random = SplitMix(seed);
    let mut drawn = vec![0usize; n];
    let mut medians: Vec<f64> = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        drawn.fill(0);
        for _ in 0..n {
            drawn[random.below(n)] += 1;
        }
        let (a, b) = (nth_drawn(&drawn, (n - 1) / 2), nth_drawn(&drawn, n / 2));
        medians.push(sorted[a] / 2.0 + sorted[b] / 2.0);
    }
    medians.sort_by(f64::total_cmp);
    (quantile(&medians, 0.025), quantile(&medians, 0.975))
}

/// Index of the `nth` smallest draw, given the number of draws by index. Counting avoids sorting every
/// resample.
fn nth_drawn(drawn: &[usize], nth: usize) -> usize {
    let mut seen = 0;
    let reached = |count: &usize| {
        seen += count;
        seen > nth
    };
    drawn.iter().position(reached).unwrap_or(drawn.len() - 1)
}

/// Finite samples in ascending order.
pub(super) fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|x| x.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// SplitMix64 random number generator, sufficient for resampling.
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    /// A random number below `n`; `n` is at least 1.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * n as u128) >> 64) as usize
    }

    /// An approximately standard normal number: the sum of twelve uniform ones.
    pub(super) fn normal(&mut self) -> f64 {
        const STEPS: usize = 1 << 32;
        (0..12).map(|_| self.below(STEPS) as f64 / STEPS as f64).sum::<f64>() - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn statistics_of_a_few_samples() {
        let summary = Summary::of(&[4.0, 1.0, f64::NAN, 3.0, 2.0, 100.0, f64::INFINITY]);
        let expected = Summary {
            n: 5,
            min: 1.0,
            p25: 2.0,
            median: 3.0,
            p75: 4.0,
            max: 100.0,
            mean: 22.0,
            mad: 1.0,
        };
        assert_eq!(summary, expected);
        assert_eq!(Summary::of_i64(&[7]), Summary { n: 1, mad: 0.0, ..all(7.0) });
        assert_eq!(Summary::of(&[1.0, 2.0]).p25, 1.25);
    }

    fn all(x: f64) -> Summary {
        Summary { n: 0, min: x, p25: x, median: x, p75: x, max: x, mean: x, mad: x }
    }

    #[test]
    fn empty_input_gives_zeros() {
        assert_eq!(Summary::of(&[]), Summary::default());
        assert_eq!(Summary::of(&[f64::NAN]), Summary::default());
        assert_eq!(quantile(&[], 0.5), 0.0);
        assert_eq!(bootstrap_median_interval(&[], 100, 1), (0.0, 0.0));
        assert_eq!(bootstrap_median_interval(&[5.0], 100, 1), (5.0, 5.0));
        assert_eq!(bootstrap_median_interval(&[1.0, 2.0, 9.0], 0, 1), (2.0, 2.0));
    }

    /// Intervals with less than 95 % coverage would report noise as differences.
    #[test]
    fn the_interval_has_the_stated_coverage() {
        let mut random = SplitMix(7);
        let mut covered = 0;
        for seed in 0..400 {
            let samples: Vec<f64> = (0..31).map(|_| random.below(1_000_001) as f64).collect();
            let (lo, hi) = bootstrap_median_interval(&samples, 400, seed);
            covered += usize::from((lo..=hi).contains(&500_000.0));
        }
        assert!((360..=396).contains(&covered), "{covered} of 400");
    }

    #[test]
    fn more_samples_narrow_the_interval() {
        let width = |n: i32| {
            let samples: Vec<f64> = (0..n).map(|i| f64::from(i * 7919 % 1009)).collect();
            let (lo, hi) = bootstrap_median_interval(&samples, 500, 3);
            hi - lo
        };
        assert!(width(1000) < width(50) / 2.0);
    }

    proptest! {
        #[test]
        fn percentiles_are_in_order(samples in prop::collection::vec(-1e15f64..1e15, 1..60)) {
            let s = Summary::of(&samples);
            prop_assert!(s.min <= s.p25 && s.p25 <= s.median && s.median <= s.p75 && s.p75 <= s.max);
            prop_assert!(s.min <= s.mean && s.mean <= s.max);
            prop_assert!(0.0 <= s.mad && s.mad <= s.max - s.min);
            let mut reversed = samples;
            reversed.reverse();
            prop_assert_eq!(Summary::of(&reversed), s);
        }

        #[test]
        fn statistics_shift_with_the_samples(samples in prop::collection::vec(-1_000_000i64..1_000_000, 1..40), by in -1000i64..1000) {
            let moved: Vec<i64> = samples.iter().map(|x| x + by).collect();
            let (a, b) = (Summary::of_i64(&samples), Summary::of_i64(&moved));
            prop_assert!((b.median - a.median - by as f64).abs() < 1e-6);
            prop_assert!((b.mad - a.mad).abs() < 1e-6);
        }

        #[test]
        fn any_samples_are_accepted(samples in prop::collection::vec(any::<f64>(), 0..20), q in any::<f64>()) {
            let s = Summary::of(&samples);
            prop_assert!(s.n <= samples.len());
            quantile(&samples, q);
            bootstrap_median_interval(&samples, 5, 0);
        }

        #[test]
        fn an_interval_is_repeatable_and_within_the_samples(samples in prop::collection::vec(-1e9f64..1e9, 1..40), seed in any::<u64>()) {
            let (lo, hi) = bootstrap_median_interval(&samples, 50, seed);
            let s = Summary::of(&samples);
            prop_assert!(s.min <= lo && lo <= hi && hi <= s.max);
            prop_assert_eq!((lo, hi), bootstrap_median_interval(&samples, 50, seed));
        }
    }
}
