//! Comparison of two call traces.
//!
//! A is the reference. Ratios are B divided by A and differences B minus A, so ratios above 1 and
//! positive differences mean that B lags. Traces with instruction counts are compared by instructions.
//! Traces with different measures are compared by number of calls. Functions are matched by name and
//! library; the same name in another library is reported as moved.

use super::{By, Measure, Tally, View, totals};
use std::collections::BTreeMap;

/// Totals of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// All calls.
    pub whole: Tally,
    /// Number of called functions.
    pub functions: usize,
    /// What was measured; `None` if nothing was called.
    pub measure: Option<Measure>,
}

/// Comparison of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its name.
    pub function: String,
    /// Its library.
    pub library: String,
    /// Calls in A; `None` if A does not call it.
    pub a: Option<Tally>,
    /// Calls in B; `None` if B does not call it.
    pub b: Option<Tally>,
}

impl Finding {
    /// B minus A by this measure.
    pub fn gap(&self, by: Measure) -> i128 {
        let amount =
            |side: &Option<Tally>| side.as_ref().and_then(|tally| tally.amount(by)).unwrap_or(0);
        i128::from(amount(&self.b)) - i128::from(amount(&self.a))
    }

    /// B divided by A by this measure; `None` if either has none.
    pub fn ratio(&self, by: Measure) -> Option<f64> {
        ratio(&self.a, &self.b, |tally| tally.amount(by))
    }

    /// Instructions per call in B divided by those in A.
    pub fn per_call_ratio(&self) -> Option<f64> {
        let (instructions, calls) = (self.ratio(Measure::Instructions)?, self.count_ratio()?);
        Some(instructions / calls)
    }

    /// Median call duration in B divided by that in A.
    pub fn median_ratio(&self) -> Option<f64> {
        ratio(&self.a, &self.b, |tally| Some(tally.median()?.ns))
    }

    /// Number of calls in B divided by that in A.
    pub fn count_ratio(&self) -> Option<f64> {
        ratio(&self.a, &self.b, |tally| Some(tally.count))
    }

    /// Whether the histogram buckets of the medians do not touch.
    pub fn medians_differ(&self) -> Option<bool> {
        let (a, b) = (self.a.as_ref()?.median()?, self.b.as_ref()?.median()?);
        Some(a.high_ns < b.low_ns || b.high_ns < a.low_ns)
    }
}

fn ratio(a: &Option<Tally>, b: &Option<Tally>, of: impl Fn(&Tally) -> Option<u64>) -> Option<f64> {
    let (a, b) = (of(a.as_ref()?)?, of(b.as_ref()?)?);
    (a > 0 && b > 0).then(|| b as f64 / a as f64)
}

/// A function that A calls in one library and B in another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Name of the function.
    pub function: String,
    /// Libraries that contain it only in A.
    pub a: Vec<String>,
    /// Libraries that contain it only in B.
    pub b: Vec<String>,
}

/// Differences between two call traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The reference side.
    pub a: Side,
    /// The compared side.
    pub b: Side,
    /// Measure of the comparison, available on both sides.
    pub measure: Measure,
    /// Functions by decreasing absolute difference.
    pub rows: Vec<Finding>,
    /// Functions that are in different libraries on the two sides.
    pub moved: Vec<Moved>,
}

impl Comparison {
    /// Overall difference, B minus A: self time, self instructions or number of calls.
    pub fn gap(&self) -> i128 {
        i128::from(self.whole(&self.b)) - i128::from(self.whole(&self.a))
    }

    /// Overall ratio, B divided by A.
    pub fn ratio(&self) -> Option<f64> {
        let (a, b) = (self.whole(&self.a), self.whole(&self.b));
        (a > 0 && b > 0).then(|| b as f64 / a as f64)
    }

    /// Whether the sides have different measures.
    pub fn is_mixed(&self) -> bool {
        matches!((self.a.measure, self.b.measure), (Some(a), Some(b)) if a != b)
    }

    fn whole(&self, side: &Side) -> u64 {
        match self.measure {
            Measure::Time => side.whole.self_ns,
            by => side.whole.amount(by).unwrap_or(0),
        }
    }
}

/// Compares two views.
pub fn compare(a: &View, b: &View) -> Comparison {
    let mut both: BTreeMap<(String, String), (Option<Tally>, Option<Tally>)> = BTreeMap::new();
    let (in_a, in_b) = (totals(a, By::Function), totals(b, By::Function));
    let sides = (
        Side { whole: in_a.whole, functions: in_a.rows.len(), measure: Measure::of(a.calls) },
        Side { whole: in_b.whole, functions: in_b.rows.len(), measure: Measure::of(b.calls) },
    );
    let measure = match (sides.0.measure, sides.1.measure) {
        (Some(a), Some(b)) if a != b => Measure::Calls,
        (a, b) => a.or(b).unwrap_or(Measure::Time),
    };
    for row in in_a.rows {
        both.entry((row.name, row.of)).or_default().0 = Some(row.tally);
    }
    for row in in_b.rows {
        both.entry((row.name, row.of)).or_default().1 = Some(row.tally);
    }
    let mut rows: Vec<Finding> = both
        .into_iter()
        .map(|((function, library), (a, b))| Finding { function, library, a, b })
        .collect();
    let moved = moved(&rows);
    // Stable sort: equal differences stay in the order of names.
    rows.sort_by_key(|row| std::cmp::Reverse((row.gap(measure).unsigned_abs(), calls(row))));
    Comparison { a: sides.0, b: sides.1, measure, rows, moved }
}

fn calls(row: &Finding) -> u64 {
    [&row.a, &row.b].into_iter().flatten().map(|tally| tally.count).max().unwrap_or(0)
}

fn moved(rows: &[Finding]) -> Vec<Moved> {
    let mut names: BTreeMap<&str, Moved> = BTreeMap::new();
    for row in rows {
        let moved = names.entry(&row.function).or_insert_with(|| Moved {
            function: row.function.clone(),
            a: vec![],
            b: vec![],
        });
        match (&row.a, &row.b) {
            (Some(_), None) => moved.a.push(row.library.clone()),
            (None, Some(_)) => moved.b.push(row.library.clone()),
            _ => {}
        }
    }
    names.into_values().filter(|moved| !moved.a.is_empty() && !moved.b.is_empty()).collect()
}
