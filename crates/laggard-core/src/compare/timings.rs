//! Comparison of the sides of a benchmark with its first side: ratio, difference and verdict.
//!
//! Input is timings. Output is one comparison for each case and each side after the first. Identical
//! sides are reported as different in at most 5 % of runs, for any number of cases and also under
//! bursts of load: verdicts use the confidence interval of the ratio, which accounts for the length of
//! bursts, and p-values are corrected for multiple comparisons.

use super::notice::{Notice, notices};
use crate::model::timings::{Series, Timings};
use crate::stats::correct::holm;
use crate::stats::rank::{MannWhitney, mann_whitney};
use crate::stats::ratio::{
    Estimate, Interval, TakenFrom, estimate_few, estimate_paired, estimate_unpaired,
};
use crate::stats::summary::Summary;
use std::collections::BTreeMap;

/// Bootstrap resamples for reported intervals.
const RESAMPLES: usize = 2000;
/// Bootstrap resamples to decide whether to stop measuring.
const RESAMPLES_TO_STOP: usize = 500;
/// Minimum rounds before stopping: with fewer, a narrow interval may be chance.
const FEWEST_ROUNDS_TO_STOP: usize = 20;
/// Significance level.
const CHANCE: f64 = 0.05;

/// Comparison of one side with the first, in one case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseComparison {
    /// Index in [`Timings::cases`].
    pub case: usize,
    /// Index in [`Timings::sides`].
    pub side: usize,
    /// Number of common rounds; without common rounds, the smaller number of samples.
    pub n: usize,
    /// Wall time per call divided by that of the first side; `None` with too few rounds.
    pub wall: Option<Interval>,
    /// Statistic that the ratio and the difference are based on.
    pub from: TakenFrom,
    /// Wall time per call minus that of the first side, in nanoseconds.
    pub gap_ns: Option<Interval>,
    /// CPU time per call divided by that of the first side; `None` if not measured.
    pub cpu: Option<Interval>,
    /// p-value of the wall time ratio, consistent with its confidence interval.
    pub p: f64,
    /// p-value corrected for multiple comparisons; decides the verdict.
    pub adjusted_p: f64,
    /// Mann-Whitney U test of wall times, for comparison with other tools. Assumes independent rounds.
    pub ranks: Option<MannWhitney>,
    /// Conclusion of the comparison.
    pub verdict: Verdict,
    /// Anomalies of the first side.
    pub notices_a: Vec<Notice>,
    /// Anomalies of this side.
    pub notices_b: Vec<Notice>,
}

/// Conclusion of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// B is slower.
    Slower,
    /// B is faster.
    Faster,
    /// The difference is not significant.
    NoDetectableDifference {
        /// Largest difference within the confidence interval, as a share of A.
        within: f64,
    },
    /// Too few rounds for a confidence interval.
    TooFew,
}

impl Verdict {
    /// The verdict for a ratio and its corrected p-value.
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

/// Compares every side with the first, case by case. The same seed gives the same intervals.
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

/// Whether half the width of the ratio's confidence interval is at most `precision`, a share of the
/// ratio. Takes one sample per round, like [`estimate_paired`].
///
/// A driver may call this after every round and stop at the first `true`. This does not bias the
/// verdict because it checks only the *width*; stopping as soon as a difference is significant would
/// cause false positives. Widths can be small by chance, so a minimum number of rounds is required.
pub fn is_precise(a: &[f64], b: &[f64], precision: f64, seed: u64) -> bool {
    let is_enough = a.len().min(b.len()) >= FEWEST_ROUNDS_TO_STOP;
    let estimate = || estimate_paired(a, b, RESAMPLES_TO_STOP, seed);
    is_enough && estimate().is_some_and(|estimate| estimate.ratio.precision() <= precision)
}

/// Difference between two processes of the same program, as a share of their time. It does not shrink
/// with longer measurements: page placement differs by process and changes cache conflicts. Identical
/// statements measured for 2 s under bursts of load differ by 0.3 % in the median. Without this margin,
/// 10 to 20 % of such pairs were reported as different. docs/benchmarks.md has the remaining rate.
pub(super) const BETWEEN_PROCESSES: f64 = 0.005;

fn compare_series(a: &Series, b: &Series, seed: u64) -> CaseComparison {
    let wall = Sampled::of(a, b, Series::wall);
    let cpu = Sampled::of(a, b, Series::cpu).estimate(seed);
    let estimate = wall.estimate(seed);
    let widened = |ratio: Interval| ratio.widened_by_share(BETWEEN_PROCESSES);
    // The larger one, so that the difference does not depend on the order of the sides.
    let median = |samples: &[f64]| Summary::of(samples).median;
    let between_ns = median(&wall.a).max(median(&wall.b)) * BETWEEN_PROCESSES;
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

/// Samples of two sides, paired by round if possible.
pub(super) struct Sampled {
    pub(super) a: Vec<f64>,
    pub(super) b: Vec<f64>,
    pub(super) is_paired: bool,
}

impl Sampled {
    /// Samples of the common rounds; all samples if there are few common rounds.
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
            true => estimate_paired(&self.a, &self.b, RESAMPLES, seed)
                .or_else(|| estimate_few(&self.a, &self.b)),
            false => estimate_unpaired(&self.a, &self.b, RESAMPLES, seed),
        }
    }
}
