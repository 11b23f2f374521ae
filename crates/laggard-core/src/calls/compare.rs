//! Two records side by side: what only one of them reaches, and where B takes longer.
//!
//! A is the reference. Ratios are B over A and gaps B minus A, so that above 1 and positive mean
//! that B lags. Records of instructions are compared by those, and records that were measured in
//! different ways by calls alone. A function is its name in its library: the same name in another library is another
//! function, and is listed as such.

use super::{By, Measure, Tally, View, totals};
use std::collections::BTreeMap;

/// What one side amounts to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// All its calls.
    pub whole: Tally,
    /// Functions it calls.
    pub functions: usize,
    /// What was measured of them; none where nothing was called.
    pub measure: Option<Measure>,
}

/// A function on both sides, or on one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its name.
    pub function: String,
    /// Its library.
    pub library: String,
    /// Its calls in A; none when A does not call it.
    pub a: Option<Tally>,
    /// Its calls in B.
    pub b: Option<Tally>,
}

impl Finding {
    /// What B has of a measure minus what A has of it.
    pub fn gap(&self, by: Measure) -> i128 {
        let amount =
            |side: &Option<Tally>| side.as_ref().and_then(|tally| tally.amount(by)).unwrap_or(0);
        i128::from(amount(&self.b)) - i128::from(amount(&self.a))
    }

    /// What B has of a measure over what A has of it; none when either has none.
    pub fn ratio(&self, by: Measure) -> Option<f64> {
        ratio(&self.a, &self.b, |tally| tally.amount(by))
    }

    /// Instructions of B over those of A, per call.
    pub fn per_call_ratio(&self) -> Option<f64> {
        let (instructions, calls) = (self.ratio(Measure::Instructions)?, self.count_ratio()?);
        Some(instructions / calls)
    }

    /// Median duration of a call in B over that in A.
    pub fn median_ratio(&self) -> Option<f64> {
        ratio(&self.a, &self.b, |tally| Some(tally.median()?.ns))
    }

    /// Calls of B over those of A.
    pub fn count_ratio(&self) -> Option<f64> {
        ratio(&self.a, &self.b, |tally| Some(tally.count))
    }

    /// Whether the medians are in classes that do not touch.
    pub fn medians_differ(&self) -> Option<bool> {
        let (a, b) = (self.a.as_ref()?.median()?, self.b.as_ref()?.median()?);
        Some(a.high_ns < b.low_ns || b.high_ns < a.low_ns)
    }
}

fn ratio(a: &Option<Tally>, b: &Option<Tally>, of: impl Fn(&Tally) -> Option<u64>) -> Option<f64> {
    let (a, b) = (of(a.as_ref()?)?, of(b.as_ref()?)?);
    (a > 0 && b > 0).then(|| b as f64 / a as f64)
}

/// A name that A reaches in one library and B in another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The name.
    pub function: String,
    /// Libraries that have it in A alone.
    pub a: Vec<String>,
    /// Libraries that have it in B alone.
    pub b: Vec<String>,
}

/// What two records differ in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The reference.
    pub a: Side,
    /// The one asked about.
    pub b: Side,
    /// What they are compared by: what was measured of both.
    pub measure: Measure,
    /// Functions, largest gap first, whichever its sign.
    pub rows: Vec<Finding>,
    /// Names that are on both sides in different libraries.
    pub moved: Vec<Moved>,
}

impl Comparison {
    /// Self time of all calls of B minus that of A; own instructions or calls where those are
    /// compared.
    pub fn gap(&self) -> i128 {
        i128::from(self.whole(&self.b)) - i128::from(self.whole(&self.a))
    }

    /// The same as a ratio.
    pub fn ratio(&self) -> Option<f64> {
        let (a, b) = (self.whole(&self.a), self.whole(&self.b));
        (a > 0 && b > 0).then(|| b as f64 / a as f64)
    }

    /// Whether the sides were measured in different ways.
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
    // Stable: equal gaps stay in the order of names.
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
