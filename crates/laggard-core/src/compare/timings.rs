//! Sides of a bench against its first side: ratio, gap, verdict.
//!
//! You give the evidence of a bench, you get one comparison for every case and every side after the
//! first. A side against itself is called different in at most 5 % of runs, however many cases a run
//! has, with load that comes in bursts too: verdicts come from the interval of the ratio, which knows
//! how long bursts last, and their p values are corrected over all comparisons of the run.

use super::notice::{Notice, notices};
use crate::model::timings::{Series, Timings};
use crate::stats::correct::holm;
use crate::stats::rank::{MannWhitney, mann_whitney};
use crate::stats::ratio::{Estimate, Interval, TakenFrom, estimate_paired, estimate_unpaired};
use crate::stats::summary::Summary;
use std::collections::BTreeMap;

/// Resamples for what is shown.
const RESAMPLES: usize = 2000;
/// Resamples to decide whether to go on measuring.
const RESAMPLES_TO_STOP: usize = 500;
/// Rounds before which precision may be luck.
const FEWEST_ROUNDS_TO_STOP: usize = 20;
/// p from which a difference may be chance.
const CHANCE: f64 = 0.05;

/// One side against the first, in one case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseComparison {
    /// Place of the case in [`Timings::cases`].
    pub case: usize,
    /// Place of the side in [`Timings::sides`].
    pub side: usize,
    /// Rounds that both sides have; where they share none, samples of the side that has fewer.
    pub n: usize,
    /// Wall time of a call over that of the first side; none when there are too few rounds.
    pub wall: Option<Interval>,
    /// What the ratio and the gap were taken from.
    pub from: TakenFrom,
    /// Wall time of a call minus that of the first side, in nanoseconds.
    pub gap_ns: Option<Interval>,
    /// CPU time of a call over that of the first side; none when it was not measured.
    pub cpu: Option<Interval>,
    /// How likely so large a difference of wall times is by chance. Belongs to the interval.
    pub p: f64,
    /// The same, corrected over all comparisons of the run. The verdict follows it.
    pub adjusted_p: f64,
    /// The ranks of the wall times, as other tools give them; they take rounds as independent.
    pub ranks: Option<MannWhitney>,
    /// What to make of it.
    pub verdict: Verdict,
    /// What is noticed in the series of the first side.
    pub notices_a: Vec<Notice>,
    /// What is noticed in the series of this side.
    pub notices_b: Vec<Notice>,
}

/// What to make of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// B takes longer.
    Slower,
    /// B takes less time.
    Faster,
    /// Nothing can be told apart from noise.
    NoDetectableDifference {
        /// The largest difference that the interval leaves open, as a share of A.
        within: f64,
    },
    /// There are too few rounds for an interval.
    TooFew,
}

impl Verdict {
    /// The verdict of a ratio with its adjusted p.
    pub(super) fn of(ratio: Option<Interval>, adjusted_p: f64) -> Verdict {
        match ratio {
            None => Verdict::TooFew,
            Some(ratio) if adjusted_p >= CHANCE || ratio.holds(1.0) => {
                let within = (ratio.high - 1.0).max(1.0 - ratio.low);
                Verdict::NoDetectableDifference { within }
            }
            Some(ratio) if ratio.middle > 1.0 => Verdict::Slower,
            Some(_) => Verdict::Faster,
        }
    }
}

/// Compares every side after the first with the first, case by case. The same seed gives the same
/// intervals.
pub fn compare(timings: &Timings, seed: u64) -> Vec<CaseComparison> {
    let mut found = vec![];
    for (case, measured) in timings.cases.iter().enumerate() {
        let Some((first, others)) = measured.series.split_first() else { continue };
        for (other, series) in others.iter().enumerate() {
            let seed = seed.wrapping_add(found.len() as u64);
            let comparison = compare_series(first, series, seed);
            found.push(CaseComparison { case, side: other + 1, ..comparison });
        }
    }
    let adjusted = holm(&found.iter().map(|comparison| comparison.p).collect::<Vec<_>>());
    for (comparison, adjusted_p) in found.iter_mut().zip(adjusted) {
        comparison.adjusted_p = adjusted_p;
        comparison.verdict = Verdict::of(comparison.wall, adjusted_p);
    }
    found
}

/// Whether the ratio of two sides is known as well as asked: half the width of its interval is at
/// most `precision`, a share of the ratio. Takes one sample of every round, as [`estimate_paired`].
///
/// A driver may ask after every round and stop at the first yes. That is fair because only the
/// *width* is looked at: stopping once a difference is significant would find one in anything. What
/// is left is that widths are sometimes small by luck, so few rounds are never precise.
pub fn is_precise(a: &[f64], b: &[f64], precision: f64, seed: u64) -> bool {
    let is_enough = a.len().min(b.len()) >= FEWEST_ROUNDS_TO_STOP;
    let estimate = || estimate_paired(a, b, RESAMPLES_TO_STOP, seed);
    is_enough && estimate().is_some_and(|estimate| estimate.ratio.precision() <= precision)
}

/// What two processes of the same program differ by, as a share of their time, however long they are
/// measured: their memory lies in other pages, and so in other places of the caches. A statement
/// against itself in 2 s, under bursts of load, is off by 0.3 % in the median; rounds alone called 10
/// to 20 % of such pairs different. See docs/benchmarks.md for what is left of it.
pub(super) const BETWEEN_PROCESSES: f64 = 0.005;

fn compare_series(a: &Series, b: &Series, seed: u64) -> CaseComparison {
    let wall = Sampled::of(a, b, Series::wall);
    let cpu = Sampled::of(a, b, Series::cpu).estimate(seed);
    let estimate = wall.estimate(seed);
    let widened = |ratio: Interval| ratio.widened(ratio.middle * BETWEEN_PROCESSES);
    let between_ns = Summary::of(&wall.a).median * BETWEEN_PROCESSES;
    CaseComparison {
        case: 0,
        side: 0,
        n: wall.a.len().min(wall.b.len()),
        wall: estimate.map(|estimate| widened(estimate.ratio)),
        from: estimate.map_or(TakenFrom::Medians, |estimate| estimate.from),
        gap_ns: estimate.map(|estimate| estimate.gap.widened(between_ns)),
        cpu: cpu.map(|estimate| widened(estimate.ratio)),
        p: estimate.map_or(1.0, |estimate| estimate.p),
        adjusted_p: 1.0,
        ranks: mann_whitney(&wall.a, &wall.b),
        verdict: Verdict::TooFew,
        notices_a: notices(a),
        notices_b: notices(b),
    }
}

/// Samples of two sides, by rounds where they share them.
pub(super) struct Sampled {
    pub(super) a: Vec<f64>,
    pub(super) b: Vec<f64>,
    pub(super) is_paired: bool,
}

impl Sampled {
    /// Samples of the rounds that both have, unless these are few; then all samples.
    pub(super) fn of(a: &Series, b: &Series, samples: impl Fn(&Series) -> Vec<f64>) -> Sampled {
        let (of_a, of_b) = (samples(a), samples(b));
        let rounds_of_b: BTreeMap<u32, f64> =
            b.batches.iter().zip(&of_b).map(|(batch, sample)| (batch.round, *sample)).collect();
        let rounds_of_a: BTreeMap<u32, f64> =
            a.batches.iter().zip(&of_a).map(|(batch, sample)| (batch.round, *sample)).collect();
        let both = rounds_of_a.iter().filter_map(|(round, a)| Some((*a, *rounds_of_b.get(round)?)));
        let (in_a, in_b): (Vec<f64>, Vec<f64>) = both.unzip();
        let is_paired = in_a.len() * 2 >= of_a.len().min(of_b.len());
        match is_paired {
            true => Sampled { a: in_a, b: in_b, is_paired },
            false => Sampled { a: of_a, b: of_b, is_paired },
        }
    }

    fn estimate(&self, seed: u64) -> Option<Estimate> {
        match self.is_paired {
            true => estimate_paired(&self.a, &self.b, RESAMPLES, seed),
            false => estimate_unpaired(&self.a, &self.b, RESAMPLES, seed),
        }
    }
}
