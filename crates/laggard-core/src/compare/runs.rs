//! Comparison of a benchmark with an earlier one, case by case.
//!
//! If both have the same reference side, *ratios* to it are compared. A baseline from another machine
//! remains valid then, because a faster machine is faster for both sides. Otherwise medians are
//! compared directly. This assumes the same machine in the same state, which the samples cannot
//! verify. Cases are matched by name and parameters, sides by name. Unmatched cases are listed.

use super::timings::{BETWEEN_PROCESSES, Sampled, Verdict};
use crate::model::timings::{Case, Series, Timings};
use crate::stats::correct::holm;
use crate::stats::ratio::{Estimate, Interval, TakenFrom, estimate_change, estimate_unpaired};

/// Bootstrap resamples for reported intervals.
const RESAMPLES: usize = 2000;

/// Changes between two benchmarks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunsComparison {
    /// Cases in both benchmarks, in the order of the later one.
    pub changes: Vec<Change>,
    /// Cases only in the earlier benchmark.
    pub only_before: Vec<Place>,
    /// Cases only in the later benchmark.
    pub only_after: Vec<Place>,
}

/// A side of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index in [`Timings::cases`].
    pub case: usize,
    /// Index in [`Timings::sides`].
    pub side: usize,
}

/// What is compared between two benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Ratios to the reference side.
    Ratios,
    /// Times.
    Times,
}

/// Change of one side in one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Position in the earlier benchmark.
    pub before: Place,
    /// Position in the later benchmark.
    pub after: Place,
    /// What was compared.
    pub compared: Compared,
    /// The smaller number of rounds of the two benchmarks.
    pub n: usize,
    /// Later value divided by earlier value, of ratios or wall times. `None` with too few rounds.
    pub change: Option<Interval>,
    /// Later minus earlier value, of ratios or of wall times in nanoseconds.
    pub gap: Option<Interval>,
    /// Statistic that the change is based on.
    pub from: TakenFrom,
    /// p-value of the change.
    pub p: f64,
    /// p-value corrected for multiple comparisons.
    pub adjusted_p: f64,
    /// Whether the side became slower or faster.
    pub verdict: Verdict,
}

/// Compares a benchmark with an earlier one. The same seed gives the same intervals.
pub fn compare_runs(before: &Timings, after: &Timings, seed: u64) -> RunsComparison {
    let compared = compared(before, after);
    let mut found = RunsComparison::default();
    let mut left = places(before, compared);
    for place in places(after, compared) {
        let same = left.iter().position(|other| is_same(before, *other, after, place));
        let Some(same) = same else {
            found.only_after.push(place);
            continue;
        };
        let seed = seed.wrapping_add(found.changes.len() as u64);
        found.changes.push(change(before, left.remove(same), after, place, compared, seed));
    }
    found.only_before = left;
    let adjusted = holm(&found.changes.iter().map(|change| change.p).collect::<Vec<_>>());
    for (change, adjusted_p) in found.changes.iter_mut().zip(adjusted) {
        change.adjusted_p = adjusted_p;
        change.verdict = Verdict::of(change.change, adjusted_p);
    }
    found
}

fn compared(before: &Timings, after: &Timings) -> Compared {
    let reference = |timings: &Timings| match timings.sides.as_slice() {
        [first, _, ..] => Some(first.name.clone()),
        _ => None,
    };
    match (reference(before), reference(after)) {
        (Some(then), Some(now)) if then == now => Compared::Ratios,
        _ => Compared::Times,
    }
}

/// Comparable sides: all, or all except the reference.
fn places(timings: &Timings, compared: Compared) -> Vec<Place> {
    let first = usize::from(compared == Compared::Ratios);
    let sides = |case: usize| first..timings.cases[case].series.len();
    (0..timings.cases.len())
        .flat_map(|case| sides(case).map(move |side| Place { case, side }))
        .collect()
}

fn is_same(before: &Timings, then: Place, after: &Timings, now: Place) -> bool {
    let name =
        |timings: &Timings, side: usize| timings.sides.get(side).map(|side| side.name.clone());
    is_same_case(&before.cases[then.case], &after.cases[now.case])
        && name(before, then.side) == name(after, now.side)
}

/// Compares cases regardless of the order of parameters.
fn is_same_case(a: &Case, b: &Case) -> bool {
    let sorted = |case: &Case| {
        let mut parameters = case.parameters.clone();
        parameters.sort();
        parameters
    };
    a.name == b.name && sorted(a) == sorted(b)
}

fn change(
    before: &Timings,
    then: Place,
    after: &Timings,
    now: Place,
    compared: Compared,
    seed: u64,
) -> Change {
    let (was, is) = (&before.cases[then.case].series, &after.cases[now.case].series);
    let (n, estimate) = match compared {
        Compared::Ratios => change_of_ratio((was, then.side), (is, now.side), seed),
        Compared::Times => change_of_time(&was[then.side], &is[now.side], seed),
    };
    Change {
        before: then,
        after: now,
        compared,
        n,
        change: estimate.map(|estimate| estimate.ratio.widened_by_share(BETWEEN_PROCESSES)),
        gap: estimate.map(|estimate| estimate.gap),
        from: estimate.map_or(TakenFrom::Medians, |estimate| estimate.from),
        p: estimate.map_or(1.0, |estimate| estimate.p),
        adjusted_p: 1.0,
        verdict: Verdict::TooFew,
    }
}

fn change_of_ratio(
    (before, then): (&[Series], usize),
    (after, now): (&[Series], usize),
    seed: u64,
) -> (usize, Option<Estimate>) {
    let was = Sampled::of(&before[0], &before[then], Series::wall);
    let is = Sampled::of(&after[0], &after[now], Series::wall);
    let n = [&was.a, &was.b, &is.a, &is.b].into_iter().map(Vec::len).min().unwrap_or(0);
    (n, estimate_change((&was.a, &was.b), (&is.a, &is.b), RESAMPLES, seed))
}

fn change_of_time(before: &Series, after: &Series, seed: u64) -> (usize, Option<Estimate>) {
    let (was, is) = (before.wall(), after.wall());
    (was.len().min(is.len()), estimate_unpaired(&was, &is, RESAMPLES, seed))
}
