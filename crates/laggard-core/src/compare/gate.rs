//! The gate: whether a case has become slower by more than is allowed.

use super::runs::{Change, RunsComparison, compare_runs};
use super::timings::Verdict;
use crate::model::timings::Timings;

/// What a gate found.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// How much slower a case may become: 0.05 is 5 %.
    pub limit: f64,
    /// How the cases changed since the baseline.
    pub comparison: RunsComparison,
}

impl Gate {
    /// The changes that are too much.
    pub fn tripped(&self) -> impl Iterator<Item = &Change> {
        self.comparison.changes.iter().filter(|change| trips(change, self.limit))
    }

    /// Whether any is.
    pub fn is_tripped(&self) -> bool {
        self.tripped().next().is_some()
    }
}

/// Compares with a baseline. Where both have a reference side, the ratio to it is what must not
/// rise, so that a baseline of another machine still means something; else it is the time.
pub fn gate(baseline: &Timings, now: &Timings, limit: f64, seed: u64) -> Gate {
    Gate { limit, comparison: compare_runs(baseline, now, seed) }
}

/// A change is too much when it is detectable, and larger than the limit in its middle. By the
/// middle, a gate at 5 % trips on a true 10 % however short the run; that it is detectable keeps
/// noise from tripping it.
pub fn trips(change: &Change, limit: f64) -> bool {
    change.verdict == Verdict::Slower && change.change.is_some_and(|of| of.middle > 1.0 + limit)
}
