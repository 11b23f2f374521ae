//! Ratio and difference of B and A with confidence intervals.
//!
//! Input is the time per call in every round, one sample per side, in the order of measurement. The
//! bootstrap resamples whole rounds, so that a disturbance affects both sides of a round, and in blocks
//! as long as disturbances last. The central 95 % of the resamples is widened to correct for few blocks
//! (see [`Dependence`]). `tests/stats/coverage.rs` measures the coverage of the intervals.
//!
//! Intervals of ratios are computed on logarithms, so that swapping the sides inverts them. The method
//! is not valid for sides measured one after the other, because the machine may change in between.

use super::dependence::{Dependence, pulled_in, signs};
use super::repeats::Repeated;
use super::resample::{Ranked, Resampled, draw_blocks};
use super::summary::SplitMix;

/// Minimum number of rounds for an interval.
pub const FEWEST_ROUNDS: usize = 5;

/// A value with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The value.
    pub middle: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Interval {
    /// Widens the interval by this amount on each side.
    pub fn widened(self, by: f64) -> Interval {
        Interval { low: self.low - by, high: self.high + by, ..self }
    }

    /// Widens the interval of a ratio by this share at both ends. Swapped sides give the inverse.
    pub fn widened_by_share(self, by: f64) -> Interval {
        Interval { low: self.low / (1.0 + by), high: self.high * (1.0 + by), ..self }
    }

    /// Whether the interval contains a value.
    pub fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half the width of the interval as a share of the value.
    pub fn precision(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.middle
    }
}

/// Statistic that a ratio is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenFrom {
    /// Median of B divided by median of A.
    Medians,
    /// Median of the ratios by round. Used for bimodal samples, as under intermittent load: their
    /// medians lie between the modes and are imprecise.
    Rounds,
}

/// Comparison of two sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Time of B divided by time of A.
    pub ratio: Interval,
    /// Time of B minus time of A, in the unit of the samples.
    pub gap: Interval,
    /// p-value of the ratio. Below 0.05 exactly if the interval of the ratio does not contain 1.
    pub p: f64,
    /// Statistic that the comparison is based on.
    pub from: TakenFrom,
}

impl Estimate {
    /// The same comparison with the sides swapped.
    pub fn mirrored(self) -> Estimate {
        let Interval { middle, low, high } = self.ratio;
        Estimate {
            ratio: Interval { middle: 1.0 / middle, low: 1.0 / high, high: 1.0 / low },
            gap: Interval { middle: -self.gap.middle, low: -self.gap.high, high: -self.gap.low },
            ..self
        }
    }
}

/// Median of `b` divided by median of `a`. Both have one sample per round, in the same order.
///
/// `None` with fewer rounds than [`FEWEST_ROUNDS`], or if a median is not above 0. The same seed gives
/// the same interval.
pub fn ratio_of_medians(a: &[f64], b: &[f64], resamples: usize, seed: u64) -> Option<Interval> {
    let rounds = Rounds::of(a, b)?;
    Some(exponential(rounds.log_of_medians(&rounds.medians(resamples, seed))?.interval()))
}

/// Compares sides measured in the same rounds: by medians, unless ratios by round are much more precise.
pub fn estimate_paired(a: &[f64], b: &[f64], resamples: usize, seed: u64) -> Option<Estimate> {
    let rounds = Rounds::of(a, b)?;
    let medians = rounds.medians(resamples, seed);
    let by_medians = rounds.log_of_medians(&medians)?;
    match rounds.log_of_ratios(resamples, seed).filter(|ratios| by_medians.is_much_wider(ratios)) {
        Some(ratios) => {
            let gap = rounds.median_gap(resamples, seed);
            Some(estimate(&ratios, gap.interval(), TakenFrom::Rounds))
        }
        None => {
            let gap = medians.1.minus(&medians.0).widened(&rounds.dependence);
            Some(estimate(&by_medians, gap.interval(), TakenFrom::Medians))
        }
    }
}

/// Minimum number of rounds for [`estimate_few`].
pub const FEWEST_OF_ALL: usize = 3;

/// Compares sides of a few rounds in the same order, by the ratios of the rounds. Few rounds cannot be
/// resampled, so the interval assumes that the logarithms are normally distributed.
pub fn estimate_few(a: &[f64], b: &[f64]) -> Option<Estimate> {
    let both = || a.iter().zip(b).filter(|(a, b)| **a > 0.0 && **b > 0.0);
    let ratios = Repeated::of(&both().map(|(a, b)| (b / a).ln()).collect::<Vec<_>>())?;
    let gaps = Repeated::of(&both().map(|(a, b)| b - a).collect::<Vec<_>>())?;
    (ratios.n >= FEWEST_OF_ALL).then_some(Estimate {
        ratio: exponential(ratios.interval()?),
        gap: gaps.interval()?,
        p: ratios.p_of_zero(),
        from: TakenFrom::Rounds,
    })
}

/// Compares sides without common rounds, by medians.
pub fn estimate_unpaired(a: &[f64], b: &[f64], resamples: usize, seed: u64) -> Option<Estimate> {
    let (a, b) = (finite(a), finite(b));
    if a.len().min(b.len()) < FEWEST_ROUNDS {
        return None;
    }
    // The sides draw different random numbers, so that the result would depend on their order.
    if a > b {
        return estimate_unpaired(&b, &a, resamples, seed).map(Estimate::mirrored);
    }
    let mut random = SplitMix(seed);
    let a = Resampled::median_of(&a, &Dependence::of_series(&a), resamples, &mut random);
    let b = Resampled::median_of(&b, &Dependence::of_series(&b), resamples, &mut random);
    let ratio = b.logarithm()?.minus(&a.logarithm()?);
    Some(estimate(&ratio, b.minus(&a).interval(), TakenFrom::Medians))
}

/// Change of the ratio of B to A between two measurements, possibly on different machines: the ratio in
/// `after` divided by the ratio in `before`, and their difference. Each tuple has the samples of A and B.
pub fn estimate_change(
    before: (&[f64], &[f64]),
    after: (&[f64], &[f64]),
    resamples: usize,
    seed: u64,
) -> Option<Estimate> {
    // As in `estimate_unpaired`.
    if before > after {
        return estimate_change(after, before, resamples, seed).map(Estimate::mirrored);
    }
    let (was, is) = (Rounds::of(before.0, before.1)?, Rounds::of(after.0, after.1)?);
    let by_medians =
        |rounds: &Rounds, seed| rounds.log_of_medians(&rounds.medians(resamples, seed));
    let medians = (by_medians(&was, seed)?, by_medians(&is, !seed)?);
    let ratios = (was.log_of_ratios(resamples, seed), is.log_of_ratios(resamples, !seed));
    let by_medians = medians.1.minus(&medians.0);
    if let (Some(was), Some(is)) = ratios {
        let by_rounds = is.minus(&was);
        if by_medians.is_much_wider(&by_rounds) {
            return Some(estimate(&by_rounds, gap_of_logs(&was, &is), TakenFrom::Rounds));
        }
    }
    Some(estimate(&by_medians, gap_of_logs(&medians.0, &medians.1), TakenFrom::Medians))
}

fn gap_of_logs(a: &Resampled, b: &Resampled) -> Interval {
    b.map(f64::exp).minus(&a.map(f64::exp)).interval()
}

pub(super) fn estimate(log_ratio: &Resampled, gap: Interval, from: TakenFrom) -> Estimate {
    Estimate { ratio: exponential(log_ratio.interval()), gap, p: log_ratio.p_of_zero(), from }
}

/// The interval of a ratio from that of its logarithm. Bounded, so that its inverse is finite.
fn exponential(of: Interval) -> Interval {
    const LARGEST: f64 = 700.0;
    let exp = |log: f64| log.clamp(-LARGEST, LARGEST).exp();
    Interval { middle: exp(of.middle), low: exp(of.low), high: exp(of.high) }
}

fn finite(samples: &[f64]) -> Vec<f64> {
    samples.iter().copied().filter(|x| x.is_finite()).collect()
}

/// Samples of two sides by round: finite, and at least [`FEWEST_ROUNDS`].
struct Rounds {
    a: Vec<f64>,
    b: Vec<f64>,
    dependence: Dependence,
}

impl Rounds {
    fn of(a: &[f64], b: &[f64]) -> Option<Rounds> {
        let both = a.iter().copied().zip(b.iter().copied());
        let (a, b): (Vec<f64>, Vec<f64>) =
            both.filter(|(a, b)| a.is_finite() && b.is_finite()).unzip();
        (a.len() >= FEWEST_ROUNDS).then(|| Rounds { dependence: dependence(&a, &b), a, b })
    }

    /// Medians of A and B. Each resample uses the same rounds for both, so they must be combined before
    /// widening.
    fn medians(&self, resamples: usize, seed: u64) -> (Resampled, Resampled) {
        let (a, b) = (Ranked::of(&self.a), Ranked::of(&self.b));
        let Dependence { block, freedom, .. } = self.dependence;
        let mut random = SplitMix(seed);
        let mut drawn = vec![0; self.a.len()];
        let draws = (0..resamples).map(|_| {
            draw_blocks(&mut drawn, block, &mut random);
            (a.median_of(&drawn), b.median_of(&drawn))
        });
        let (of_a, of_b) = draws.unzip();
        (
            Resampled { middle: a.median(), draws: of_a, freedom },
            Resampled { middle: b.median(), draws: of_b, freedom },
        )
    }

    /// Logarithm of the ratio of medians.
    fn log_of_medians(&self, (a, b): &(Resampled, Resampled)) -> Option<Resampled> {
        Some(b.logarithm()?.minus(&a.logarithm()?).widened(&self.dependence))
    }

    /// Median of the logarithms of ratios by round; `None` if a sample is not above 0.
    fn log_of_ratios(&self, resamples: usize, seed: u64) -> Option<Resampled> {
        let ratios = log_ratios(&self.a, &self.b);
        let is_positive = ratios.iter().all(|ratio| ratio.is_finite());
        is_positive.then(|| self.median_of_rounds(&ratios, resamples, seed))
    }

    fn median_gap(&self, resamples: usize, seed: u64) -> Resampled {
        let gaps: Vec<f64> = self.a.iter().zip(&self.b).map(|(a, b)| b - a).collect();
        self.median_of_rounds(&gaps, resamples, seed)
    }

    fn median_of_rounds(&self, of_rounds: &[f64], resamples: usize, seed: u64) -> Resampled {
        Resampled::median_of(of_rounds, &self.dependence, resamples, &mut SplitMix(seed))
    }
}

/// Dependence of the *comparison*. Disturbances that affect both sides of a round equally do not matter,
/// so this uses the difference of the signs that determine the medians, and the ratios.
fn dependence(a: &[f64], b: &[f64]) -> Dependence {
    let apart: Vec<f64> = signs(a).iter().zip(signs(b)).map(|(a, b)| b - a).collect();
    let ratios = log_ratios(a, b);
    Dependence::of([&*apart, &*signs(&ratios), &*pulled_in(&ratios)], a.len())
}

fn log_ratios(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect()
}
