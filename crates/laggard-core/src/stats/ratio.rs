//! How much longer B takes than A: a ratio and a gap, with the ranges that hold them.
//!
//! You give the time of a call in every round, one sample a side, in the order of measurement. Rounds
//! are drawn with replacement, whole, so that what disturbs a round disturbs both sides of it, and
//! in blocks as long as disturbances last. The middle 95 % of what is drawn is then widened for what
//! a bootstrap of few blocks misses (see [`Dependence`]). `tests/stats/coverage.rs`
//! measures how often ranges hold the truth.
//!
//! Ranges are of ratios in logarithms, so that swapping sides inverts them. This is not for sides
//! that were measured one after the other: no interval knows how the machine changed in between.

use super::dependence::{Dependence, pulled_in, signs};
use super::resample::{Ranked, Resampled, draw_blocks};
use super::summary::SplitMix;

/// Rounds below which there is no interval.
pub const FEWEST_ROUNDS: usize = 5;

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

impl Interval {
    /// Wider by this much to either side.
    pub fn widened(self, by: f64) -> Interval {
        Interval { low: self.low - by, high: self.high + by, ..self }
    }

    /// Whether the value is in the range.
    pub fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half the width of the range, as a share of the value.
    pub fn precision(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.middle
    }
}

/// What a ratio was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenFrom {
    /// The median of B's samples over that of A's.
    Medians,
    /// The median of the ratios of all rounds. Where samples fall into two heaps, as under load that
    /// comes and goes, a median lies between them and says little; the rounds still do.
    Rounds,
}

/// How two sides compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Time of B over time of A.
    pub ratio: Interval,
    /// Time of B minus time of A, in the unit of the samples.
    pub gap: Interval,
    /// How likely a ratio so far from 1 is when there is no difference. Below 0.05 exactly when the
    /// range of the ratio leaves 1 out.
    pub p: f64,
    /// What it was taken from.
    pub from: TakenFrom,
}

/// Median of `b` over median of `a`. Both have one sample of every round, in the same order.
///
/// None with fewer rounds than [`FEWEST_ROUNDS`], or when a median is not above 0. The same seed
/// gives the same range.
pub fn ratio_of_medians(a: &[f64], b: &[f64], resamples: usize, seed: u64) -> Option<Interval> {
    let rounds = Rounds::of(a, b)?;
    Some(exponential(rounds.log_of_medians(&rounds.medians(resamples, seed))?.interval()))
}

/// Compares sides that were measured in the same rounds: by their medians, unless the ratios of
/// rounds know much better.
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

/// Compares sides that have no rounds in common, by their medians.
pub fn estimate_unpaired(a: &[f64], b: &[f64], resamples: usize, seed: u64) -> Option<Estimate> {
    let (a, b) = (finite(a), finite(b));
    if a.len().min(b.len()) < FEWEST_ROUNDS {
        return None;
    }
    let mut random = SplitMix(seed);
    let a = Resampled::median_of(&a, &Dependence::of_series(&a), resamples, &mut random);
    let b = Resampled::median_of(&b, &Dependence::of_series(&b), resamples, &mut random);
    let ratio = b.logarithm()?.minus(&a.logarithm()?);
    Some(estimate(&ratio, b.minus(&a).interval(), TakenFrom::Medians))
}

/// How the ratio of B to A changed between two measurements, which may be of two machines: the ratio
/// in `after` over the ratio in `before`, and the gap between these. Each has A's samples and B's.
pub fn estimate_change(
    before: (&[f64], &[f64]),
    after: (&[f64], &[f64]),
    resamples: usize,
    seed: u64,
) -> Option<Estimate> {
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

fn exponential(of: Interval) -> Interval {
    Interval { middle: of.middle.exp(), low: of.low.exp(), high: of.high.exp() }
}

fn finite(samples: &[f64]) -> Vec<f64> {
    samples.iter().copied().filter(|x| x.is_finite()).collect()
}

/// Samples of two sides, by round. All are finite, and there are enough.
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

    /// The medians of A and of B. Every draw has the same rounds of both, so they are to be
    /// combined before they are widened.
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

    /// The logarithm of the ratio of medians.
    fn log_of_medians(&self, (a, b): &(Resampled, Resampled)) -> Option<Resampled> {
        Some(b.logarithm()?.minus(&a.logarithm()?).widened(&self.dependence))
    }

    /// The median of the logarithms of the ratios of rounds; none when a sample is not above 0.
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

/// How long what disturbs the *comparison* lasts. What slows both sides of a round alike does not,
/// so this looks at the difference of the signs that move the medians, and at the ratios.
fn dependence(a: &[f64], b: &[f64]) -> Dependence {
    let apart: Vec<f64> = signs(a).iter().zip(signs(b)).map(|(a, b)| b - a).collect();
    let ratios = log_ratios(a, b);
    Dependence::of([&*apart, &*signs(&ratios), &*pulled_in(&ratios)], a.len())
}

fn log_ratios(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect()
}
