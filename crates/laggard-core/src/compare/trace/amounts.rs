//! Findings from device operations: time per step of each side, the difference and its
//! significance.
//!
//! With at least five steps of each kind per side, confidence intervals are computed from the
//! variation between steps. With fewer, they are computed from the variation between operations of
//! the same kernel and shape within steps, which does not cover run-to-run variation.

use super::found::{Finding, Gap, Spent, Spread, Verdict};
use super::run::{Piece, Run};
use crate::model::NONE;
use crate::stats::correct::holm;
use crate::stats::mixed::{Kind, Middle, Varying, estimate_mixed, estimate_varying};
use crate::stats::ratio::{Estimate, FEWEST_ROUNDS, Interval};
use crate::trace::By;
use rustc_hash::{FxHashMap, FxHashSet};

/// Variation between two runs of the same program on the same device, as a share of their time. It
/// is caused by clock rates and temperature and is not visible in the variation between steps.
pub(super) const RUN_TO_RUN: f64 = 0.01;
/// Significance level.
const CHANCE: f64 = 0.05;
/// Maximum number of bootstrap resamples; fewer are used with many steps, where resamples differ
/// little.
const MOST_RESAMPLES: usize = 1000;
/// Minimum number of bootstrap resamples.
const FEWEST_RESAMPLES: usize = 200;
/// Approximate number of steps drawn per interval.
const DRAWN: usize = 400_000;
/// Maximum number of rows per table that get an interval: those with the largest differences.
const MOST_JUDGED: usize = 200;
/// Minimum number of rows that get an interval, for any number of steps.
const FEWEST_JUDGED: usize = 10;
/// Approximate limit on steps times rows.
const LAPS_OF_ALL_ROWS: usize = 4_000_000;
/// Maximum number of parts into which deviations within a step are summed.
const MOST_PARTS: usize = 64;
/// Minimum share of steps in which a row must occur for its median to be meaningful.
const IN_MOST_LAPS: f64 = 0.75;
/// Maximum share of time in kernels that run once, whose variation is unknown.
const MOST_ALONE: f64 = 0.5;

/// The traces of one side with their measured steps.
pub(super) struct Counted<'a> {
    pub(super) runs: Vec<&'a Run>,
    /// Index among the measured steps, by run and step; `NONE` for excluded steps.
    pub(super) slots: Vec<Vec<u32>>,
    /// Kind of each measured step.
    pub(super) kinds: Vec<u8>,
    /// Excluded slow steps at the start.
    pub(super) warm_up: u64,
    /// Excluded partial steps.
    pub(super) partial: u64,
}

impl Counted<'_> {
    /// Number of measured steps.
    pub(super) fn laps(&self) -> usize {
        self.kinds.len()
    }

    /// Drops steps of unwanted kinds.
    pub(super) fn keep(&mut self, wanted: impl Fn(u8) -> bool) {
        let kinds = std::mem::take(&mut self.kinds);
        for slot in self.slots.iter_mut().flatten().filter(|slot| **slot != NONE) {
            let kind = kinds[*slot as usize];
            *slot = NONE;
            if wanted(kind) {
                *slot = self.kinds.len() as u32;
                self.kinds.push(kind);
            }
        }
    }

    pub(super) fn slot(&self, run: usize, piece: usize) -> Option<usize> {
        let lap = self.runs[run].laps.of_row[piece];
        let slot = *self.slots[run].get(lap as usize)?;
        (slot != NONE).then_some(slot as usize)
    }
}

/// Kinds of steps with their weights. Both sides are weighted by A's mix.
pub(super) struct Mix(pub(super) Vec<(u8, f64)>);

impl Mix {
    /// Number of steps of the least frequent kind.
    fn fewest(&self, of: &Counted) -> usize {
        let count = |kind: u8| of.kinds.iter().filter(|own| **own == kind).count();
        self.0.iter().map(|(kind, _)| count(*kind)).min().unwrap_or(0)
    }

    /// Weight of each step of a side.
    pub(super) fn weights(&self, of: &Counted) -> Vec<f64> {
        let weight = |kind: &u8| {
            let part = self.0.iter().find(|(own, _)| own == kind).map_or(0.0, |(_, part)| *part);
            part / of.kinds.iter().filter(|own| *own == kind).count().max(1) as f64
        };
        let known: Vec<(u8, f64)> = self.0.iter().map(|(kind, _)| (*kind, weight(kind))).collect();
        let lap =
            |kind: &u8| known.iter().find(|(own, _)| own == kind).map_or(0.0, |found| found.1);
        of.kinds.iter().map(lap).collect()
    }

    /// Splits values of steps by kind; each kind has its weight.
    pub(super) fn split(&self, of: &Counted, values: &[f64]) -> Vec<(f64, Vec<f64>)> {
        let all = || of.kinds.iter().zip(values);
        let kind = |&(kind, weight): &(u8, f64)| {
            (weight, all().filter(|(own, _)| **own == kind).map(|(_, value)| *value).collect())
        };
        self.0.iter().map(kind).collect()
    }
}

/// A query: what is summed, and by which rows.
pub(super) struct Question<'a> {
    /// Names of rows.
    pub(super) names: Vec<String>,
    /// The row of a device operation, by side, run and index; `NONE` if it belongs to no row.
    pub(super) of: Box<dyn Fn(usize, usize, usize) -> u32 + 'a>,
    /// The value to sum.
    pub(super) value: Value,
}

/// The value of a device operation to sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Its duration.
    Time,
    /// Its exposed time.
    Exposed,
    /// The idle gap before it.
    Idle,
    /// Exposed time and idle gap.
    Whole,
}

impl Value {
    fn of(self, piece: &Piece) -> i64 {
        match self {
            Value::Time => piece.dur,
            Value::Exposed => piece.exposed,
            Value::Idle => piece.gap,
            Value::Whole => piece.own_time(),
        }
    }

    /// The parts that vary independently: exposed time by kernel, idle time by cause.
    fn parts(self, piece: &Piece) -> [Option<i64>; 2] {
        let idle = Some(piece.gap).filter(|gap| *gap > 0);
        match self {
            Value::Time | Value::Exposed => [Some(self.of(piece)), None],
            Value::Idle => [None, idle],
            Value::Whole => [Some(piece.exposed), idle],
        }
    }
}

/// Running sums of one row.
#[derive(Clone, Default)]
struct Sum {
    count: u64,
    total: i64,
    in_laps: u64,
    lap_total: i64,
    /// Weighted count and time per step.
    lap_count: f64,
    lap_ns: f64,
}

/// Sums both sides and compares them.
pub(super) fn findings(sides: [&Counted; 2], mix: &Mix, question: &Question) -> Vec<Finding> {
    let sums = [0, 1].map(|side| sums(side, sides[side], mix, question));
    let mean = |side: usize, row: usize| sums[side][row].lap_ns;
    let mut rows: Vec<usize> = (0..question.names.len())
        .filter(|&row| sums[0][row].count + sums[1][row].count > 0)
        .collect();
    let gap = |row: usize| mean(1, row) - mean(0, row);
    rows.sort_by(|&x, &y| gap(y).abs().total_cmp(&gap(x).abs()));
    let mut judged = vec![NONE; question.names.len()];
    // With many steps, only the rows with the largest differences get an interval, to limit the
    // run time.
    let laps = sides[0].laps().max(sides[1].laps()).max(1);
    let count = rows.len().min(MOST_JUDGED).min((LAPS_OF_ALL_ROWS / laps).max(FEWEST_JUDGED));
    for (place, &row) in rows.iter().take(count).enumerate() {
        judged[row] = place as u32;
    }
    // With enough steps, variation within steps is not needed.
    let within = sides.iter().any(|side| mix.fewest(side) < FEWEST_ROUNDS);
    let samples =
        [0, 1].map(|side| Samples::new(side, sides[side], question, (&judged, count), within));
    let mut found: Vec<Finding> = rows
        .iter()
        .enumerate()
        .map(|(place, &row)| {
            let spent = [0, 1].map(|side| {
                let sum = &sums[side][row];
                Spent {
                    count: sum.count,
                    total_ns: sum.total,
                    // Removes the rounding error of summed weights.
                    lap_count: (sum.lap_count * 1e6).round() / 1e6,
                    lap_ns: mean(side, row),
                    mean_ns: sum.lap_total as f64 / sum.in_laps.max(1) as f64,
                    n: 0,
                }
            });
            let finding =
                Finding { name: question.names[row].clone(), sides: spent, ..Finding::default() };
            match place < count {
                true => judge(finding, sides, mix, &samples, place),
                false => plain(finding),
            }
        })
        .collect();
    settle(&mut found);
    found.sort_by(|x, y| {
        let size = |row: &Finding| row.gap_ns.middle.abs();
        size(y).total_cmp(&size(x)).then_with(|| x.name.cmp(&y.name))
    });
    found
}

fn sums(side: usize, of: &Counted, mix: &Mix, question: &Question) -> Vec<Sum> {
    let weights = mix.weights(of);
    let mut sums = vec![Sum::default(); question.names.len()];
    for (number, run) in of.runs.iter().enumerate() {
        for (at, piece) in run.pieces.iter().enumerate() {
            let Some(sum) = sums.get_mut((question.of)(side, number, at) as usize) else {
                continue;
            };
            let value = question.value.of(piece);
            sum.count += 1;
            sum.total = sum.total.saturating_add(value);
            if let Some(slot) = of.slot(number, at) {
                sum.in_laps += 1;
                sum.lap_count += weights[slot];
                sum.lap_ns += value as f64 * weights[slot];
                sum.lap_total = sum.lap_total.saturating_add(value);
            }
        }
    }
    sums
}

/// Identifies operations that should take equally long: row, kernel, shape and run; or row, `NONE`
/// and cause of idle time. The run is included because shape numbers differ between traces.
type Alike = (u32, u32, u32, u32);

/// A part of a row within a step.
struct Part {
    of: Alike,
    value: f64,
    /// Deviation from the mean of the preceding similar parts.
    off: f64,
}

/// Samples of one side for confidence intervals.
struct Samples {
    /// Time by row and step.
    laps: Vec<Vec<f64>>,
    /// Deviations of parts by row, and whether most of the row's time repeats.
    off_by: Vec<(Vec<f64>, bool)>,
    /// Number of repeated operations by row.
    repeated: Vec<u64>,
}

impl Samples {
    fn new(
        side: usize,
        of: &Counted,
        question: &Question,
        (judged, count): (&[u32], usize),
        within: bool,
    ) -> Samples {
        let mut laps = vec![vec![0.0; of.laps()]; count];
        // Operations of one kernel with inputs of one shape should take equally long. The deviation
        // of each from the mean of the preceding ones is independent of their deviations.
        let mut alike: FxHashMap<Alike, (u64, f64)> = FxHashMap::default();
        let mut parts: Vec<Part> = vec![];
        let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
        for (number, run) in of.runs.iter().enumerate() {
            let shapes = run.labels(By::Shape);
            let kernels: Vec<u32> = run
                .kernels
                .iter()
                .map(|kernel| {
                    let next = numbers.len() as u32;
                    *numbers.entry(&kernel.name).or_insert(next)
                })
                .collect();
            for &at in &run.in_order {
                let at = at as usize;
                let row = (question.of)(side, number, at);
                let place = judged.get(row as usize).copied().unwrap_or(NONE);
                let (true, Some(slot)) = (place != NONE, of.slot(number, at)) else { continue };
                let piece = &run.pieces[at];
                laps[place as usize][slot] += question.value.of(piece) as f64;
                if !within {
                    continue;
                }
                let shape = shapes.map_or(NONE, |labels| labels.of[at]);
                let keys = [
                    (place, kernels[piece.kernel as usize], shape, number as u32),
                    (place, NONE, piece.cause as u32, 0),
                ];
                for (key, value) in keys.into_iter().zip(question.value.parts(piece)) {
                    let Some(value) = value.map(|value| value as f64) else { continue };
                    let (n, sum) = alike.entry(key).or_default();
                    let before = *n as f64;
                    let off = match *n {
                        0 => 0.0,
                        _ => (value - *sum / before) * (before / (before + 1.0)).sqrt(),
                    };
                    (*n, *sum) = (*n + 1, *sum + value);
                    parts.push(Part { of: key, value, off });
                }
            }
        }
        let mut off_by: Vec<Vec<f64>> = vec![vec![]; count];
        let (mut alone, mut all) = (vec![0.0; count], vec![0.0; count]);
        let mut repeated = vec![0u64; count];
        let mut is_known: FxHashSet<Alike> = FxHashSet::default();
        for Part { of: key, value, off } in parts {
            let (n, _) = alike[&key];
            let place = key.0 as usize;
            all[place] += value;
            // Idle times vary far more than kernels, so their variation needs more samples.
            let is_idle = key.1 == NONE;
            let is_alone = n < if is_idle { FEWEST_ROUNDS as u64 } else { 2 };
            let is_counted = !is_idle || question.value == Value::Idle;
            repeated[place] += u64::from(!is_alone && is_counted);
            match n {
                _ if is_alone => alone[place] += value,
                // The first one has no preceding similar operation; the others are scaled up for
                // it.
                _ if is_known.insert(key) => {}
                n => off_by[place].push(off * (n as f64 / (n - 1) as f64).sqrt()),
            }
        }
        let off_by = off_by
            .into_iter()
            .zip(alone.iter().zip(&all))
            .map(|(parts, (alone, all))| (summed_up(&parts), *alone <= MOST_ALONE * all))
            .collect();
        Samples { laps, off_by, repeated }
    }
}

/// Sums neighbouring deviations to limit their number.
fn summed_up(parts: &[f64]) -> Vec<f64> {
    let size = parts.len().div_ceil(MOST_PARTS).max(1);
    parts.chunks(size).map(|parts| parts.iter().sum()).collect()
}

fn judge(
    mut finding: Finding,
    sides: [&Counted; 2],
    mix: &Mix,
    samples: &[Samples; 2],
    row: usize,
) -> Finding {
    let by_kind = [0, 1].map(|side| mix.split(sides[side], &samples[side].laps[row]));
    let kinds = by_kind.each_ref().map(|kinds| {
        kinds.iter().map(|(weight, samples)| Kind { weight: *weight, samples }).collect::<Vec<_>>()
    });
    let in_most = kinds.iter().flatten().all(|kind| {
        let has = kind.samples.iter().filter(|time| **time > 0.0).count();
        has == 0 || has as f64 >= IN_MOST_LAPS * kind.samples.len() as f64
    });
    let middle = if in_most { Middle::Median } else { Middle::Mean };
    for (spent, kinds) in finding.sides.iter_mut().zip(&kinds) {
        spent.lap_ns = middle.of(kinds);
    }
    let laps = sides.map(|side| side.laps() as u64);
    let seed = row as u64;
    let resamples = DRAWN / (sides[0].laps() + sides[1].laps()).max(1);
    let resamples = resamples.clamp(FEWEST_RESAMPLES, MOST_RESAMPLES);
    let [a, b] = &kinds;
    // The sides draw different random numbers. A fixed order keeps the result of swapped sides the
    // same.
    let is_swapped = samples[0].laps[row] > samples[1].laps[row];
    let estimate = match is_swapped {
        true => estimate_mixed(b, a, middle, resamples, seed).map(Estimate::mirrored),
        false => estimate_mixed(a, b, middle, resamples, seed),
    };
    if let Some(estimate) = estimate {
        return with_estimate(finding, &estimate, Spread::Laps, laps);
    }
    let parts = [0, 1].map(|side| {
        let laps = sides[side].laps().max(1) as f64;
        samples[side].off_by[row].0.iter().map(|off| off / laps).collect::<Vec<f64>>()
    });
    let varying =
        |side: usize| Varying { middle: finding.sides[side].lap_ns, off_by: &parts[side] };
    let repeats = samples.iter().all(|side| side.off_by[row].1);
    let estimate = repeats.then(|| match is_swapped {
        true => {
            estimate_varying(varying(1), varying(0), MOST_RESAMPLES, seed).map(Estimate::mirrored)
        }
        false => estimate_varying(varying(0), varying(1), MOST_RESAMPLES, seed),
    });
    match estimate.flatten() {
        Some(estimate) => {
            let n = samples.each_ref().map(|side| side.repeated[row]);
            with_estimate(finding, &estimate, Spread::WithinOneLap, n)
        }
        None => {
            for (spent, laps) in finding.sides.iter_mut().zip(laps) {
                spent.n = laps;
            }
            plain(finding)
        }
    }
}

fn with_estimate(
    mut finding: Finding,
    estimate: &Estimate,
    spread: Spread,
    n: [u64; 2],
) -> Finding {
    for (spent, n) in finding.sides.iter_mut().zip(n) {
        spent.n = n;
    }
    finding.ratio_range = Some(widened(estimate.ratio));
    let longer = finding.sides[0].lap_ns.abs().max(finding.sides[1].lap_ns.abs());
    let gap = estimate.gap.widened(longer * RUN_TO_RUN);
    finding.gap_ns.range = Some((gap.low, gap.high));
    (finding.spread, finding.p) = (spread, estimate.p);
    plain(finding)
}

/// Widens the interval of a ratio by the run-to-run variation.
pub(super) fn widened(ratio: Interval) -> Interval {
    let wide = ratio.widened_by_share(RUN_TO_RUN);
    Interval { low: wide.low.max(0.0), ..wide }
}

/// Fills in the difference and the ratio.
fn plain(mut finding: Finding) -> Finding {
    let [a, b] = finding.sides.map(|spent| spent.lap_ns);
    finding.gap_ns = Gap { middle: b - a, ..finding.gap_ns };
    finding.ratio = (a > 0.0 && b > 0.0).then(|| b / a);
    if finding.spread == Spread::None {
        finding.p = 1.0;
    }
    finding
}

/// Corrects the p-values of one table and sets the verdicts of its rows.
fn settle(rows: &mut [Finding]) {
    let judged: Vec<usize> =
        (0..rows.len()).filter(|&row| rows[row].spread != Spread::None).collect();
    let adjusted = holm(&judged.iter().map(|&row| rows[row].p).collect::<Vec<_>>());
    for (&row, p) in judged.iter().zip(adjusted) {
        rows[row].p = p;
    }
    for row in rows {
        row.verdict = verdict(row);
    }
}

pub(super) fn verdict(row: &Finding) -> Verdict {
    match (row.sides[0].count, row.sides[1].count, row.ratio_range) {
        (0, _, _) => Verdict::OnlyInB,
        (_, 0, _) => Verdict::OnlyInA,
        (_, _, None) => Verdict::SingleSample,
        (_, _, Some(range)) => match (row.spread, row.gap_ns.range) {
            // For a sum of few parts, the difference has a far tighter interval than the ratio.
            (Spread::WithinOneLap, Some((low, high))) if low > 0.0 || high < 0.0 => {
                match row.p < CHANCE {
                    true if row.gap_ns.middle > 0.0 => Verdict::Slower,
                    true => Verdict::Faster,
                    false => no_difference(range),
                }
            }
            (Spread::WithinOneLap, _) => no_difference(range),
            _ => of_range(range, row.p),
        },
    }
}

fn no_difference(range: Interval) -> Verdict {
    Verdict::NoDetectableDifference((range.high - 1.0).max(1.0 - range.low))
}

pub(super) fn of_range(range: Interval, p: f64) -> Verdict {
    match range {
        range if p >= CHANCE || range.holds(1.0) => no_difference(range),
        range if range.middle > 1.0 => Verdict::Slower,
        _ => Verdict::Faster,
    }
}
