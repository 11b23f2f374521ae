//! What one way of building costs over another, and whether it can be told from noise.
//!
//! The null control is the same code in both, so what it differs by is what anything may differ by.

use super::{Known, beside, log_ratios, nets};
use crate::model::ffi::{Cell, Ffi, Who};
use crate::stats::correct::holm;
use crate::stats::repeats::Repeated;

/// p from which a difference may be chance.
const CHANCE: f64 = 0.05;

/// A caller's time in the second way of building over the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Place in [`Ffi::categories`].
    pub category: usize,
    /// Place in [`Ffi::pythons`].
    pub python: usize,
    /// Whose.
    pub who: Who,
    /// Time in the second over time in the first, each without the loop.
    pub ratio: Known,
    /// Second minus first, in nanoseconds of a call.
    pub gap_ns: Known,
    /// How likely that is by chance, corrected over all differences of the run.
    pub p: f64,
    /// What the null control of the category differs by at most, as a share.
    pub bound: f64,
    /// What to make of it.
    pub cost: Cost,
}

/// Whether a way of building costs time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cost {
    /// The second is slower.
    Slower,
    /// The second is faster.
    Faster,
    /// Not more than noise.
    None {
        /// The largest difference that is left open, as a share of the first.
        within: f64,
    },
    /// There is one launch, which says little.
    Unknown,
}

/// The second way of building against the first, cell by cell.
pub(super) fn differences(ffi: &Ffi) -> Vec<Difference> {
    let mut found: Vec<(Difference, f64)> = vec![];
    for first in ffi.cells.iter().filter(|cell| cell.profile == 0) {
        if matches!(first.who, Who::Loop | Who::C) {
            continue;
        }
        let of_second = Cell { profile: 1, launches: vec![], ..first.clone() };
        let Some(second) = beside(ffi, &of_second, first.who) else { continue };
        let (a, b) = (nets(ffi, first), nets(ffi, second));
        let Some(ratio) = Repeated::of(&log_ratios(&a, &b)) else { continue };
        let gaps: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
        let Some(gap_ns) = Known::of(&gaps) else { continue };
        let difference = Difference {
            category: first.category,
            python: first.python,
            who: first.who,
            ratio: Known::from(&ratio, f64::exp),
            gap_ns,
            p: 1.0,
            bound: 0.0,
            cost: Cost::Unknown,
        };
        found.push((difference, ratio.p_of_zero()));
    }
    let adjusted = holm(&found.iter().map(|(_, p)| *p).collect::<Vec<_>>());
    let mut found: Vec<Difference> = found.into_iter().map(|(difference, _)| difference).collect();
    let nulls: Vec<Difference> = found.iter().filter(|of| of.who == Who::Null).cloned().collect();
    for (difference, p) in found.iter_mut().zip(adjusted) {
        let is_null =
            |of: &&Difference| (of.category, of.python) == (difference.category, difference.python);
        let null = nulls.iter().find(is_null);
        difference.p = p;
        difference.bound = null.map_or(0.0, |null| farthest(&null.ratio));
        difference.cost = cost(difference);
    }
    found
}

/// The farther end of a range from 1.
fn farthest(ratio: &Known) -> f64 {
    let (low, high) = ratio.range.unwrap_or((ratio.middle, ratio.middle));
    (high - 1.0).max(1.0 - low)
}

fn cost(difference: &Difference) -> Cost {
    let ratio = &difference.ratio;
    if ratio.range.is_none() {
        return Cost::Unknown;
    }
    let is_noise = difference.p >= CHANCE || (ratio.middle - 1.0).abs() <= difference.bound;
    match is_noise || difference.who == Who::Null {
        true => Cost::None { within: farthest(ratio) },
        false if ratio.middle > 1.0 => Cost::Slower,
        false => Cost::Faster,
    }
}
