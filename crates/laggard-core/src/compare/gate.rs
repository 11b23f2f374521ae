//! Regression gate: whether a case became slower by more than a limit.

use super::runs::{Change, RunsComparison, compare_runs};
use super::timings::Verdict;
use crate::model::timings::Timings;

/// Result of a gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// Maximum slowdown of a case: 0.05 is 5 %.
    pub limit: f64,
    /// Changes since the baseline.
    pub comparison: RunsComparison,
}

impl Gate {
    /// Changes that exceed the limit.
    pub fn tripped(&self) -> impl Iterator<Item = &Change> {
        self.comparison.changes.iter().filter(|change| trips(change, self.limit))
    }

    /// Whether any change exceeds the limit.
    pub fn is_tripped(&self) -> bool {
        self.tripped().next().is_some()
    }
}

/// Compares with a baseline. If both have the same reference side, ratios to it are compared, so that
/// a baseline from another machine remains valid. Otherwise times are compared.
pub fn gate(baseline: &Timings, now: &Timings, limit: f64, seed: u64) -> Gate {
    Gate { limit, comparison: compare_runs(baseline, now, seed) }
}

/// Whether a change is detectable and its estimate exceeds the limit. Using the estimate, and not the
/// lower end of the interval, lets a gate at 5 % detect a true 10 % in a short run. Requiring a
/// detectable change prevents failures from noise.
pub fn trips(change: &Change, limit: f64) -> bool {
    change.verdict == Verdict::Slower && change.change.is_some_and(|of| of.middle > 1.0 + limit)
}
