//! Cost of one build profile relative to another, and whether it exceeds the noise.
//!
//! The null control runs the same code in both profiles, so its difference bounds the noise.

use super::{Known, beside, log_ratios, nets};
use crate::model::ffi::{Cell, Ffi, Who};
use crate::stats::correct::holm;
use crate::stats::repeats::Repeated;

/// Significance level.
const CHANCE: f64 = 0.05;

/// Time of a caller in the second build profile compared with the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Place in [`Ffi::categories`].
    pub category: usize,
    /// Place in [`Ffi::pythons`].
    pub python: usize,
    /// The caller.
    pub who: Who,
    /// Time in the second profile divided by time in the first, without loop overhead.
    pub ratio: Known,
    /// Second minus first, in nanoseconds per call.
    pub gap_ns: Known,
    /// p-value, corrected over all differences of the run.
    pub p: f64,
    /// Largest difference of the null control in this category, as a share.
    pub bound: f64,
    /// The verdict.
    pub cost: Cost,
}

/// Verdict on a difference between build profiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cost {
    /// The second is slower.
    Slower,
    /// The second is faster.
    Faster,
    /// No difference beyond the noise.
    None {
        /// The largest difference compatible with the data, as a share of the first.
        within: f64,
    },
    /// Only one process launch, so there is no confidence interval.
    Unknown,
}

/// Compares the second build profile with the first, cell by cell.
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

/// The larger distance of an interval's bounds from 1.
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
