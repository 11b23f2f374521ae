//! What calls across a language border cost, from what was measured of them.
//!
//! You give an [`Ffi`], you get its [`Figures`]: for every cell the time of a call without the loop
//! around it, its ratio to the floor and its rank; what one way of building costs over another; how
//! bindings compare over all categories; and from how many elements on the work of a call outweighs
//! the call. All is taken launch by launch, and ranges are over launches.

mod crossover;
mod difference;
mod standing;

pub use crossover::{Crossed, Crossing, Point, SMALL};
pub use difference::{Cost, Difference};
pub use standing::Standing;

use crate::model::ffi::{Cell, Ffi, Launch, Who};
use crate::model::timings::Batch;
use crate::stats::ratio::Interval;
use crate::stats::repeats::Repeated;
use crate::stats::summary::Summary;

/// A value, and the range that holds it where there is more than one launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// The median over launches.
    pub middle: f64,
    /// The range that holds it with 95 % confidence.
    pub range: Option<(f64, f64)>,
}

impl Known {
    fn of(values: &[f64]) -> Option<Known> {
        Repeated::of(values).map(|found| Known::from(&found, |value| value))
    }

    /// Of logarithms.
    fn of_logarithms(values: &[f64]) -> Option<Known> {
        Repeated::of(values).map(|found| Known::from(&found, f64::exp))
    }

    fn from(found: &Repeated, change: impl Fn(f64) -> f64) -> Known {
        let range = found.interval().map(|Interval { low, high, .. }| (change(low), change(high)));
        Known { middle: change(found.middle), range }
    }
}

/// What was found in a cell. Times are those of one call, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Without the loop.
    pub net: Option<Known>,
    /// The shortest batch, without the shortest loop.
    pub best_ns: f64,
    /// CPU time, without the loop's.
    pub cpu_ns: f64,
    /// With the loop.
    pub gross_ns: f64,
    /// The first call of all, in the median over launches.
    pub first_ns: f64,
    /// Batches in all launches.
    pub batches: usize,
    /// Over the floor, in the same category with the same interpreter and build.
    pub ratio: Option<Known>,
    /// Among bindings, from 1 for the fastest.
    pub rank: Option<usize>,
    /// What was counted for a call, without the loop's: name, value and how.
    pub counted: Vec<(String, f64, String)>,
}

/// What was found in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// In the order of [`Ffi::cells`].
    pub cells: Vec<Figure>,
    /// The binding that others are held against, by its place in [`Ffi::bindings`].
    pub floor: Option<usize>,
    /// What the second way of building costs over the first.
    pub differences: Vec<Difference>,
    /// Bindings over all categories, by interpreter and build.
    pub standings: Vec<Standing>,
    /// By interpreter and binding.
    pub crossed: Vec<Crossed>,
}

/// Works out what was found.
pub fn figures(ffi: &Ffi) -> Figures {
    let floor = floor(ffi);
    let mut cells: Vec<Figure> = ffi.cells.iter().map(|cell| figure(ffi, cell)).collect();
    for (cell, figure) in ffi.cells.iter().zip(&mut cells) {
        let reference = floor.and_then(|floor| beside(ffi, cell, Who::Binding(floor)));
        if let (Some(reference), Who::Binding(_) | Who::Null) = (reference, cell.who) {
            figure.ratio = ratio_of_nets(ffi, reference, cell);
        }
    }
    rank(ffi, &mut cells);
    Figures {
        floor,
        differences: difference::differences(ffi),
        standings: standing::standings(ffi, &cells),
        crossed: crossover::crossed(ffi),
        cells,
    }
}

/// The first binding that was measured and is not the user's.
fn floor(ffi: &Ffi) -> Option<usize> {
    let is_measured = |at: &usize| {
        let is_it = |cell: &&Cell| cell.who == Who::Binding(*at) && !cell.launches.is_empty();
        !ffi.bindings[*at].is_users && ffi.cells.iter().any(|cell| is_it(&cell))
    };
    (0..ffi.bindings.len()).find(is_measured)
}

/// What somebody else took for the same, with the same interpreter and build.
pub(crate) fn beside<'a>(ffi: &'a Ffi, cell: &Cell, who: Who) -> Option<&'a Cell> {
    ffi.cells.iter().find(|other| {
        other.who == who
            && other.category == cell.category
            && other.python == cell.python
            && (other.profile == cell.profile || who == Who::Loop || who == Who::C)
    })
}

fn figure(ffi: &Ffi, cell: &Cell) -> Figure {
    let around = loop_around(ffi, cell);
    let least = |cell: &Cell| {
        let times = cell.launches.iter().flat_map(|launch| times(launch, wall));
        times.fold(f64::INFINITY, f64::min) / cell.calls.max(1) as f64
    };
    let firsts: Vec<f64> = cell.launches.iter().map(|launch| launch.first_ns).collect();
    let counted = cell.counters.iter().map(|counter| {
        let same = |of: &&crate::model::timings::Counter| of.name == counter.name;
        let of_loop = around.and_then(|around| around.counters.iter().find(same));
        let net =
            counter.per_call / cell.calls.max(1) as f64 - of_loop.map_or(0.0, |of| of.per_call);
        (counter.name.clone(), net, counter.source.clone())
    });
    Figure {
        net: Known::of(&nets(ffi, cell)),
        best_ns: if cell.launches.is_empty() {
            0.0
        } else {
            least(cell) - around.map_or(0.0, least)
        },
        cpu_ns: Summary::of(&nets_of(ffi, cell, cpu)).median,
        gross_ns: Summary::of(&per_launch(cell, wall)).median,
        first_ns: Summary::of(&firsts).median,
        batches: cell.launches.iter().map(|launch| launch.batches.len()).sum(),
        ratio: None,
        rank: None,
        counted: counted.collect(),
    }
}

fn wall(batch: &Batch) -> u64 {
    batch.wall_ns
}

fn cpu(batch: &Batch) -> u64 {
    batch.user_ns + batch.system_ns
}

/// Times of a statement in every batch.
fn times(launch: &Launch, of: fn(&Batch) -> u64) -> impl Iterator<Item = f64> {
    launch.batches.iter().map(move |batch| batch.per_call(of(batch)))
}

/// The median time of a call in every launch.
fn per_launch(cell: &Cell, of: fn(&Batch) -> u64) -> Vec<f64> {
    let median = |launch: &Launch| {
        Summary::of(&times(launch, of).collect::<Vec<_>>()).median / cell.calls.max(1) as f64
    };
    cell.launches.iter().map(median).collect()
}

/// The time of a call without the loop, in every launch.
pub(crate) fn nets(ffi: &Ffi, cell: &Cell) -> Vec<f64> {
    nets_of(ffi, cell, wall)
}

fn nets_of(ffi: &Ffi, cell: &Cell, of: fn(&Batch) -> u64) -> Vec<f64> {
    let all = per_launch(cell, of);
    let Some(around) = loop_around(ffi, cell) else { return all };
    // A statement that calls several times has a loop within, which takes as long.
    all.iter().zip(per_launch(around, of)).map(|(whole, around)| whole - around).collect()
}

/// The loop that is to be taken off a cell. C has one of its own, and the loop is what it is.
fn loop_around<'a>(ffi: &'a Ffi, cell: &Cell) -> Option<&'a Cell> {
    let has_one = !matches!(cell.who, Who::Loop | Who::C);
    has_one.then(|| beside(ffi, cell, Who::Loop)).flatten()
}

/// Logarithms of the ratio of two cells' times, launch by launch.
pub(crate) fn log_ratios(a: &[f64], b: &[f64]) -> Vec<f64> {
    let both = a.iter().zip(b).filter(|(a, b)| **a > 0.0 && **b > 0.0);
    both.map(|(a, b)| (b / a).ln()).collect()
}

fn ratio_of_nets(ffi: &Ffi, reference: &Cell, cell: &Cell) -> Option<Known> {
    Known::of_logarithms(&log_ratios(&nets(ffi, reference), &nets(ffi, cell)))
}

/// Gives bindings their ranks within each category.
fn rank(ffi: &Ffi, figures: &mut [Figure]) {
    for (at, cell) in ffi.cells.iter().enumerate() {
        let is_binding = |who| matches!(who, Who::Binding(of) if !ffi.bindings[of].is_users);
        let Some(own) = figures[at].net.filter(|_| is_binding(cell.who)) else { continue };
        let is_rival = |other: &&Cell| {
            is_binding(other.who)
                && (other.category, other.python, other.profile)
                    == (cell.category, cell.python, cell.profile)
        };
        let rivals = ffi.cells.iter().zip(&*figures).filter(|(other, _)| is_rival(other));
        let faster = rivals.filter(|(_, of)| of.net.is_some_and(|net| net.middle < own.middle));
        figures[at].rank = Some(faster.count() + 1);
    }
}

#[cfg(test)]
mod tests;
