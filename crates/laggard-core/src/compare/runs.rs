//! A bench against an earlier one: what got slower since, case by case.
//!
//! Where both have the same reference side, *ratios* to it are compared, so that a baseline from
//! another machine still means something: a machine that is twice as fast is so for both sides. Else
//! medians are compared directly, which takes both runs to be from the same machine in the same
//! state; nothing in the samples could tell. Cases are the same by name and parameters, sides by
//! name. What is in one run alone is listed.

use super::timings::{BETWEEN_PROCESSES, Sampled, Verdict};
use crate::model::timings::{Case, Series, Timings};
use crate::stats::correct::holm;
use crate::stats::ratio::{Estimate, Interval, TakenFrom, estimate_change, estimate_unpaired};

/// Resamples for what is shown.
const RESAMPLES: usize = 2000;

/// What changed between two runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunsComparison {
    /// What is in both, in the order of the later run.
    pub changes: Vec<Change>,
    /// What is in the earlier run alone.
    pub only_before: Vec<Place>,
    /// What is in the later run alone.
    pub only_after: Vec<Place>,
}

/// A side in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Place of the case in [`Timings::cases`].
    pub case: usize,
    /// Place of the side in [`Timings::sides`].
    pub side: usize,
}

/// What is compared of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The ratios to the reference side.
    Ratios,
    /// The times themselves.
    Times,
}

/// One side of one case, then and now.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Where it is in the earlier run.
    pub before: Place,
    /// Where it is in the later run.
    pub after: Place,
    /// What was compared.
    pub compared: Compared,
    /// Rounds of the run that has fewer.
    pub n: usize,
    /// Now over then: of ratios, or of wall times. None when there are too few rounds.
    pub change: Option<Interval>,
    /// Now minus then: of ratios, or of wall times in nanoseconds.
    pub gap: Option<Interval>,
    /// What the change was taken from.
    pub from: TakenFrom,
    /// How likely so large a change is by chance.
    pub p: f64,
    /// The same, corrected over all changes.
    pub adjusted_p: f64,
    /// What to make of it: whether it got slower.
    pub verdict: Verdict,
}

/// Compares a run with an earlier one. The same seed gives the same intervals.
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

/// What can be compared of a run: all sides, or all but the reference.
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

/// Parameters may come in another order.
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
        change: estimate
            .map(|estimate| estimate.ratio.widened(estimate.ratio.middle * BETWEEN_PROCESSES)),
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
