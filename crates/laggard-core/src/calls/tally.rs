//! What some calls amount to: how many, how long, and how their durations spread.

use super::Measure;
use crate::model::calls::CallRow;
use std::collections::BTreeMap;

/// Calls, summed up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls begun.
    pub count: u64,
    /// Of these, calls that did not return.
    pub unfinished: u64,
    /// Time in calls that returned, with traced calls below.
    pub total_ns: u64,
    /// The same without them.
    pub self_ns: u64,
    /// The shortest; none when nothing was timed.
    pub min_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
    /// Instructions in these calls and whatever they called; none where they were not counted. Where
    /// one of these calls makes another, those of the inner one count twice.
    pub instructions: Option<u64>,
    /// Instructions of the functions themselves. They are known by function, so none where only
    /// some of a function's calls are meant.
    pub own_instructions: Option<u64>,
    /// Timed calls by the lower bound of their class.
    histogram: BTreeMap<u64, u64>,
}

/// Calls of about the same duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// No call in it was shorter.
    pub low_ns: u64,
    /// None was longer.
    pub high_ns: u64,
    /// How many.
    pub count: u64,
}

/// A duration below which a share of the calls lies, as well as classes tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantile {
    /// The middle of its class.
    pub ns: u64,
    /// It is not shorter,
    pub low_ns: u64,
    /// and not longer.
    pub high_ns: u64,
}

impl Quantile {
    /// How far off it may be, as a share of it.
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

    /// Adds calls that were summed up already.
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

    /// Calls whose duration is known.
    pub fn timed(&self) -> u64 {
        self.histogram.values().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Time per timed call. One preempted call can move it far: prefer the median.
    pub fn mean_ns(&self) -> Option<f64> {
        let timed = self.timed();
        (timed > 0).then(|| self.total_ns as f64 / timed as f64)
    }

    /// Calls by duration, shortest first.
    pub fn classes(&self) -> impl Iterator<Item = Class> + '_ {
        let (min, max) = (self.min_ns.unwrap_or(0), self.max_ns.unwrap_or(u64::MAX));
        let mut later = self.histogram.keys().skip(1).copied();
        self.histogram.iter().map(move |(&low, &count)| {
            // The next class that is in use cannot begin within this one.
            let end = class_end(low).min(later.next().unwrap_or(u64::MAX)).min(max);
            let low_ns = low.max(min);
            Class { low_ns, high_ns: end.max(low_ns), count }
        })
    }

    /// The duration below which the share `q` of timed calls lies; none when nothing was timed.
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

    /// The duration in the middle.
    pub fn median(&self) -> Option<Quantile> {
        self.quantile(0.5)
    }

    /// What functions are compared by: total time, own instructions (which add up, where those with
    /// whatever was called would show a gap at every level) or calls.
    pub fn amount(&self, by: Measure) -> Option<u64> {
        match by {
            Measure::Time => Some(self.total_ns),
            Measure::Instructions => self.own_instructions.or(self.instructions),
            Measure::Calls => Some(self.count),
        }
    }

    /// Instructions per call, with whatever the calls called.
    pub fn instructions_per_call(&self) -> Option<f64> {
        self.instructions.filter(|_| self.count > 0).map(|n| n as f64 / self.count as f64)
    }

    /// This self time as a share of that of a whole, or of calls where nothing has a time.
    pub fn share_of(&self, whole: &Tally) -> f64 {
        if whole.self_ns == 0 {
            return self.share_of_calls(whole);
        }
        self.self_ns as f64 / whole.self_ns as f64
    }

    /// These calls as a share of those of a whole.
    pub fn share_of_calls(&self, whole: &Tally) -> f64 {
        if whole.count == 0 { 0.0 } else { self.count as f64 / whole.count as f64 }
    }

    /// These own instructions as a share of those of a whole; none where either is not known.
    pub fn share_of_own(&self, whole: &Tally) -> Option<f64> {
        part(self.own_instructions?, whole.own_instructions?)
    }

    /// The same of instructions with whatever the calls called: a share only where no call of the
    /// whole makes another.
    pub fn share_of_instructions(&self, whole: &Tally) -> Option<f64> {
        part(self.instructions?, whole.instructions?)
    }
}

/// What is known of two sums.
fn added(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (known, None) | (None, known) => known,
    }
}

fn part(of: u64, whole: u64) -> Option<f64> {
    Some(if whole == 0 { 0.0 } else { of as f64 / whole as f64 })
}

/// Where a class ends at most. Classes are eight to an octave of the duration and a few ticks of
/// the processor's clock, so an eighth of it and two nanoseconds wide at most.
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
    fn quantiles_are_the_middle_of_their_class() {
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
    fn one_call_is_known_exactly() {
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
        /// Whatever a file says, and however rows are spread.
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
