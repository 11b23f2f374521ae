//! Statistics of a set of calls: count, total time and distribution of durations.

use super::Measure;
use crate::model::calls::CallRow;
use std::collections::BTreeMap;

/// Sum of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of calls started.
    pub count: u64,
    /// Number of these that did not return.
    pub unfinished: u64,
    /// Total time of calls that returned, with traced callees.
    pub total_ns: u64,
    /// Self time, without traced callees.
    pub self_ns: u64,
    /// Shortest duration; `None` if no call was timed.
    pub min_ns: Option<u64>,
    /// Longest duration.
    pub max_ns: Option<u64>,
    /// Instructions with callees; `None` if not counted. Nested calls in this set count twice.
    pub instructions: Option<u64>,
    /// Self instructions. Recorded by function, so `None` if the set has only some of a function's
    /// calls.
    pub own_instructions: Option<u64>,
    /// Timed calls by lower bound of their histogram bucket.
    histogram: BTreeMap<u64, u64>,
}

/// A histogram bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Lower bound.
    pub low_ns: u64,
    /// Upper bound.
    pub high_ns: u64,
    /// Number of calls.
    pub count: u64,
}

/// A quantile of durations, with the resolution of the histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantile {
    /// Centre of the bucket.
    pub ns: u64,
    /// Lower bound of the bucket.
    pub low_ns: u64,
    /// Upper bound of the bucket.
    pub high_ns: u64,
}

impl Quantile {
    /// Maximum relative error.
    pub fn error(&self) -> f64 {
        if self.ns == 0 { 0.0 } else { (self.high_ns - self.low_ns) as f64 / 2.0 / self.ns as f64 }
    }
}

impl Tally {
    /// Adds the calls of a row.
    pub fn add(&mut self, row: &CallRow) {
        let mut other = Tally {
            count: row.count,
            unfinished: row.unfinished,
            total_ns: row.total_ns,
            self_ns: row.self_ns,
            instructions: row.instructions,
            ..Tally::default()
        };
        for &(low, count) in row.histogram.iter().filter(|class| class.1 > 0) {
            let sum = other.histogram.entry(low).or_default();
            *sum = sum.saturating_add(count);
        }
        if !other.histogram.is_empty() {
            (other.min_ns, other.max_ns) = (Some(row.min_ns), Some(row.max_ns));
        }
        self.merge(&other);
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: &Tally) {
        self.count = self.count.saturating_add(other.count);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.self_ns = self.self_ns.saturating_add(other.self_ns);
        self.min_ns = self.min_ns.into_iter().chain(other.min_ns).min();
        self.max_ns = self.max_ns.max(other.max_ns);
        self.instructions = added(self.instructions, other.instructions);
        self.own_instructions = added(self.own_instructions, other.own_instructions);
        for (&low, &count) in &other.histogram {
            let sum = self.histogram.entry(low).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// Number of calls with a known duration.
    pub fn timed(&self) -> u64 {
        self.histogram.values().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Mean time per timed call. Sensitive to preempted calls; prefer the median.
    pub fn mean_ns(&self) -> Option<f64> {
        let timed = self.timed();
        (timed > 0).then(|| self.total_ns as f64 / timed as f64)
    }

    /// Histogram buckets, shortest durations first.
    pub fn classes(&self) -> impl Iterator<Item = Class> + '_ {
        let (min, max) = (self.min_ns.unwrap_or(0), self.max_ns.unwrap_or(u64::MAX));
        let mut later = self.histogram.keys().skip(1).copied();
        self.histogram.iter().map(move |(&low, &count)| {
            // A bucket ends where the next used bucket starts.
            let end = class_end(low).min(later.next().unwrap_or(u64::MAX)).min(max);
            let low_ns = low.max(min);
            Class { low_ns, high_ns: end.max(low_ns), count }
        })
    }

    /// Quantile `q` of durations; `None` if no call was timed.
    pub fn quantile(&self, q: f64) -> Option<Quantile> {
        let rank = ((q.clamp(0.0, 1.0) * self.timed() as f64).ceil() as u64).max(1);
        let mut seen = 0u64;
        let found = self.classes().find(|class| {
            seen = seen.saturating_add(class.count);
            seen >= rank
        });
        let Class { low_ns, high_ns, .. } = found.or_else(|| self.classes().last())?;
        Some(Quantile { ns: low_ns + (high_ns - low_ns) / 2, low_ns, high_ns })
    }

    /// Median duration.
    pub fn median(&self) -> Option<Quantile> {
        self.quantile(0.5)
    }

    /// Amount that functions are compared by: total time, self instructions or calls. Self instructions
    /// avoid showing the same difference at every level of the call tree.
    pub fn amount(&self, by: Measure) -> Option<u64> {
        match by {
            Measure::Time => Some(self.total_ns),
            Measure::Instructions => self.own_instructions.or(self.instructions),
            Measure::Calls => Some(self.count),
        }
    }

    /// Instructions per call, with callees.
    pub fn instructions_per_call(&self) -> Option<f64> {
        self.instructions.filter(|_| self.count > 0).map(|n| n as f64 / self.count as f64)
    }

    /// Share of self time, or of calls if there are no times.
    pub fn share_of(&self, whole: &Tally) -> f64 {
        if whole.self_ns == 0 {
            return self.share_of_calls(whole);
        }
        self.self_ns as f64 / whole.self_ns as f64
    }

    /// Share of calls.
    pub fn share_of_calls(&self, whole: &Tally) -> f64 {
        if whole.count == 0 { 0.0 } else { self.count as f64 / whole.count as f64 }
    }

    /// Share of self instructions; `None` if either is unknown.
    pub fn share_of_own(&self, whole: &Tally) -> Option<f64> {
        part(self.own_instructions?, whole.own_instructions?)
    }

    /// Share of instructions with callees. Valid only if no call of the whole is nested in another.
    pub fn share_of_instructions(&self, whole: &Tally) -> Option<f64> {
        part(self.instructions?, whole.instructions?)
    }
}

/// Sum of two optional values; a missing value counts as 0.
fn added(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (known, None) | (None, known) => known,
    }
}

fn part(of: u64, whole: u64) -> Option<f64> {
    Some(if whole == 0 { 0.0 } else { of as f64 / whole as f64 })
}

/// Maximum end of a bucket. Buckets are eight per octave, rounded to ticks of the CPU's clock, so a
/// bucket is at most 1/8 of its start plus 2 ns wide.
fn class_end(low_ns: u64) -> u64 {
    low_ns.saturating_add(low_ns / 8).saturating_add(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(histogram: &[(u64, u64)], min_ns: u64, max_ns: u64) -> CallRow {
        let count = histogram.iter().map(|class| class.1).sum();
        CallRow {
            function: 0,
            caller: 0,
            thread: 0,
            count,
            unfinished: 0,
            total_ns: count * min_ns,
            self_ns: count * min_ns,
            min_ns,
            max_ns,
            histogram: histogram.to_vec(),
            instructions: None,
        }
    }

    fn tally(rows: &[CallRow]) -> Tally {
        let mut sum = Tally::default();
        rows.iter().for_each(|row| sum.add(row));
        sum
    }

    #[test]
    fn quantiles_are_bucket_centres() {
        let sum = tally(&[row(&[(80, 1), (800, 97), (8000, 2)], 85, 8100)]);
        let check = |q: f64, low_ns, high_ns| {
            let found = sum.quantile(q);
            let ns = low_ns + (high_ns - low_ns) / 2;
            assert_eq!(found, Some(Quantile { ns, low_ns, high_ns }), "{q}");
        };
        check(0.0, 85, 92);
        check(0.01, 85, 92);
        check(0.5, 800, 902);
        check(0.98, 800, 902);
        check(0.99, 8000, 8100);
        check(1.0, 8000, 8100);
        assert!(sum.median().is_some_and(|median| median.error() < 0.0625));
    }

    #[test]
    fn a_single_call_is_exact() {
        let sum = tally(&[row(&[(900, 1)], 955, 955)]);
        assert_eq!(sum.median(), Some(Quantile { ns: 955, low_ns: 955, high_ns: 955 }));
        assert_eq!(sum.mean_ns(), Some(955.0));
    }

    #[test]
    fn calls_that_never_returned_have_no_duration() {
        let mut unfinished = row(&[], 0, 0);
        (unfinished.count, unfinished.unfinished) = (3, 3);
        let sum = tally(&[unfinished, row(&[(10, 1)], 11, 11)]);
        assert_eq!((sum.count, sum.unfinished, sum.timed()), (4, 3, 1));
        assert_eq!((sum.min_ns, sum.max_ns), (Some(11), Some(11)));
        assert_eq!(Tally::default().median(), None);
    }

    proptest! {
        /// Holds for any input.
        #[test]
        fn quantiles_rise_and_stay_in_bounds(
            rows in prop::collection::vec(
                (prop::collection::vec((any::<u64>(), any::<u64>()), 0..5), any::<u64>(), any::<u64>()),
                0..5,
            ),
        ) {
            let mut sum = Tally::default();
            for (histogram, min_ns, max_ns) in rows {
                sum.add(&CallRow { histogram, min_ns, max_ns, ..row(&[], 0, 0) });
            }
            let all: Vec<u64> =
                [0.0, 0.1, 0.5, 0.9, 1.0].into_iter().filter_map(|q| sum.quantile(q)).map(|q| q.low_ns).collect();
            prop_assert!(all.is_sorted());
            prop_assert_eq!(all.is_empty(), sum.timed() == 0);
        }
    }
}
