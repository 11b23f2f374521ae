//! Computes the cost of calls across a language boundary from measurements.
//!
//! Input is an [`Ffi`], output its [`Figures`]: time per call without loop overhead, ratio to the
//! floor and rank of every cell; cost of one build profile relative to another; ranking of bindings
//! over all categories; and the array size from which call overhead is small. All values are
//! computed per process launch, and confidence intervals are over process launches.

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

/// A value with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// Median over process launches.
    pub middle: f64,
    /// 95 % confidence interval; `None` for a single process launch.
    pub range: Option<(f64, f64)>,
}

impl Known {
    fn of(values: &[f64]) -> Option<Known> {
        Repeated::of(values).map(|found| Known::from(&found, |value| value))
    }

    /// From logarithms of the values.
    fn of_logarithms(values: &[f64]) -> Option<Known> {
        Repeated::of(values).map(|found| Known::from(&found, f64::exp))
    }

    fn from(found: &Repeated, change: impl Fn(f64) -> f64) -> Known {
        let range = found.interval().map(|Interval { low, high, .. }| (change(low), change(high)));
        Known { middle: change(found.middle), range }
    }
}

/// Figures of a cell. Times are nanoseconds per call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Without loop overhead.
    pub net: Option<Known>,
    /// Fastest batch minus the fastest batch of the empty loop.
    pub best_ns: f64,
    /// CPU time, without loop overhead.
    pub cpu_ns: f64,
    /// With loop overhead.
    pub gross_ns: f64,
    /// Very first call; median over process launches.
    pub first_ns: f64,
    /// Batches in all process launches.
    pub batches: usize,
    /// Ratio to the floor in the same category, interpreter and build profile.
    pub ratio: Option<Known>,
    /// Rank among bindings; 1 is the fastest.
    pub rank: Option<usize>,
    /// Counters per call, without loop overhead: name, value and source.
    pub counted: Vec<(String, f64, String)>,
}

/// Figures of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// In the order of [`Ffi::cells`].
    pub cells: Vec<Figure>,
    /// The reference binding, as index into [`Ffi::bindings`].
    pub floor: Option<usize>,
    /// Cost of the second build profile relative to the first.
    pub differences: Vec<Difference>,
    /// Ranking over all categories, by interpreter and build profile.
    pub standings: Vec<Standing>,
    /// Call overhead by array size, per interpreter and binding.
    pub crossed: Vec<Crossed>,
}

/// Computes the figures of a run.
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

/// The first measured binding that is not the user's.
fn floor(ffi: &Ffi) -> Option<usize> {
    let is_measured = |at: &usize| {
        let is_it = |cell: &&Cell| cell.who == Who::Binding(*at) && !cell.launches.is_empty();
        !ffi.bindings[*at].is_users && ffi.cells.iter().any(|cell| is_it(&cell))
    };
    (0..ffi.bindings.len()).find(is_measured)
}

/// The cell of another caller in the same category, interpreter and build profile. The loop and
/// C are measured for one profile only.
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

/// Time per statement of every batch.
fn times(launch: &Launch, of: fn(&Batch) -> u64) -> impl Iterator<Item = f64> {
    launch.batches.iter().map(move |batch| batch.per_call(of(batch)))
}

/// Median time per call of every process launch.
fn per_launch(cell: &Cell, of: fn(&Batch) -> u64) -> Vec<f64> {
    let median = |launch: &Launch| {
        Summary::of(&times(launch, of).collect::<Vec<_>>()).median / cell.calls.max(1) as f64
    };
    cell.launches.iter().map(median).collect()
}

/// Time per call without loop overhead, of every process launch.
pub(crate) fn nets(ffi: &Ffi, cell: &Cell) -> Vec<f64> {
    nets_of(ffi, cell, wall)
}

fn nets_of(ffi: &Ffi, cell: &Cell, of: fn(&Batch) -> u64) -> Vec<f64> {
    let all = per_launch(cell, of);
    let Some(around) = loop_around(ffi, cell) else { return all };
    // A statement with several calls has an inner loop with the same overhead per call.
    all.iter().zip(per_launch(around, of)).map(|(whole, around)| whole - around).collect()
}

/// The empty loop to subtract from a cell. Not used for C, which has its own loop.
fn loop_around<'a>(ffi: &'a Ffi, cell: &Cell) -> Option<&'a Cell> {
    let has_one = !matches!(cell.who, Who::Loop | Who::C);
    has_one.then(|| beside(ffi, cell, Who::Loop)).flatten()
}

/// Logarithms of the ratios b/a, per process launch.
pub(crate) fn log_ratios(a: &[f64], b: &[f64]) -> Vec<f64> {
    let both = a.iter().zip(b).filter(|(a, b)| **a > 0.0 && **b > 0.0);
    both.map(|(a, b)| (b / a).ln()).collect()
}

fn ratio_of_nets(ffi: &Ffi, reference: &Cell, cell: &Cell) -> Option<Known> {
    Known::of_logarithms(&log_ratios(&nets(ffi, reference), &nets(ffi, cell)))
}

/// Ranks the bindings within each category.
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
