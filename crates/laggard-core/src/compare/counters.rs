//! Comparison of performance counters: ratios of B to A.
//!
//! A single run does not show the variation between runs. A verdict therefore needs the standard error
//! of the mean that `perf stat -r` reports. The confidence interval of a ratio uses Student's
//! t-distribution on logarithms, so that swapping the sides inverts it.

use crate::counters::{Derived, derive, totals};
use crate::model::counters::{Counter, Counters};
use crate::stats::ratio::Interval;
use crate::stats::tail::student_95;

/// Assumed number of runs if a file has standard errors but no number of runs. `perf stat -x,` never
/// writes it; fewer than five runs are rare.
pub const RUNS_IF_NOT_SAID: u64 = 5;
/// Minimum standard error: perf rounds to 0.01 %.
const ROUNDED: f64 = 0.00005;

/// Differences between two counter files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountersComparison {
    /// Counters in A's order, followed by those that only B has.
    pub counters: Vec<Compared<Counter>>,
    /// Derived metrics.
    pub derived: Vec<Compared<Derived>>,
}

/// A value on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared<T> {
    /// Value of A; `None` if missing.
    pub a: Option<T>,
    /// Value of B.
    pub b: Option<T>,
    /// B divided by A.
    pub ratio: Option<f64>,
    /// 95 % confidence interval of the ratio, if both sides have a standard error.
    pub interval: Option<Interval>,
    /// B minus A.
    pub gap: Option<f64>,
    /// Conclusion of the comparison.
    pub verdict: Verdict,
}

/// Conclusion of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// B is significantly larger.
    More,
    /// B is significantly smaller.
    Less,
    /// The difference is not significant.
    NoDetectableDifference {
        /// Largest difference within the confidence interval, as a share of A.
        within: f64,
    },
    /// Only one run: the variation between runs is unknown.
    SingleSample,
    /// One side has no value.
    NotComparable,
}

impl Verdict {
    /// The id in JSON and CSV.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::More => "more",
            Verdict::Less => "less",
            Verdict::NoDetectableDifference { .. } => "same",
            Verdict::SingleSample => "single-sample",
            Verdict::NotComparable => "not-comparable",
        }
    }
}

/// Compares counters by name, and the metrics derived from them.
pub fn compare(a: &Counters, b: &Counters) -> CountersComparison {
    let (of_a, of_b) = (totals(a), totals(b));
    let freedom = [a, b].map(|of| of.runs.unwrap_or(RUNS_IF_NOT_SAID)).into_iter().min();
    let freedom = freedom.unwrap_or(RUNS_IF_NOT_SAID).saturating_sub(1).min(1000) as usize;
    let (derived_a, derived_b) = (derive(a, &of_a), derive(b, &of_b));
    let counters = paired(of_a, of_b, |a, b| {
        a.name == b.name && a.modifiers == b.modifiers && a.unit == b.unit
    });
    let derived = paired(derived_a, derived_b, |a, b| a.name == b.name);
    let of_counter = |row: &Counter| (row.value(), row.spread);
    let of_derived = |row: &Derived| (row.value, row.spread);
    CountersComparison {
        counters: counters.into_iter().map(|pair| judge(pair, of_counter, freedom)).collect(),
        derived: derived.into_iter().map(|pair| judge(pair, of_derived, freedom)).collect(),
    }
}

type Pair<T> = (Option<T>, Option<T>);

/// Pairs matching rows; unmatched rows have an empty counterpart.
fn paired<T>(a: Vec<T>, b: Vec<T>, are_same: impl Fn(&T, &T) -> bool) -> Vec<Pair<T>> {
    let mut rest: Vec<Option<T>> = b.into_iter().map(Some).collect();
    let mut pairs: Vec<Pair<T>> = Vec::with_capacity(a.len());
    for row in a {
        let is_it = |other: &&mut Option<T>| other.as_ref().is_some_and(|b| are_same(&row, b));
        let other = rest.iter_mut().find(is_it).and_then(Option::take);
        pairs.push((Some(row), other));
    }
    pairs.extend(rest.into_iter().flatten().map(|row| (None, Some(row))));
    pairs
}

fn judge<T>(
    (a, b): Pair<T>,
    value: impl Fn(&T) -> (Option<f64>, Option<f64>),
    freedom: usize,
) -> Compared<T> {
    let none = (None, None);
    let (of_a, spread_a) = a.as_ref().map_or(none, &value);
    let (of_b, spread_b) = b.as_ref().map_or(none, &value);
    let both = of_a.zip(of_b);
    let ratio = both.filter(|&(a, b)| a > 0.0 && b >= 0.0).map(|(a, b)| b / a);
    let interval = ratio.filter(|&ratio| ratio > 0.0 && freedom > 0).and_then(|middle| {
        let error = spread_a?.max(ROUNDED).hypot(spread_b?.max(ROUNDED));
        let factor = (student_95(freedom) * error).exp();
        Some(Interval { middle, low: middle / factor, high: middle * factor })
    });
    let verdict = match (both, interval) {
        (None, _) => Verdict::NotComparable,
        (Some(_), None) => Verdict::SingleSample,
        (Some(_), Some(of)) if of.low > 1.0 => Verdict::More,
        (Some(_), Some(of)) if of.high < 1.0 => Verdict::Less,
        (Some(_), Some(of)) => {
            Verdict::NoDetectableDifference { within: (of.high - 1.0).max(1.0 - of.low) }
        }
    };
    Compared { a, b, ratio, interval, gap: both.map(|(a, b)| b - a), verdict }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::counters::Reading;

    fn counters(rows: &[(&str, f64, Option<f64>)], runs: Option<u64>) -> Counters {
        let row = |&(name, value, spread): &(&str, f64, Option<f64>)| Counter {
            name: name.into(),
            reading: Reading::Value(value),
            spread,
            ..Counter::default()
        };
        Counters { rows: rows.iter().map(row).collect(), runs, ..Counters::default() }
    }

    fn verdicts(a: &[(&str, f64, Option<f64>)], b: &[(&str, f64, Option<f64>)]) -> Vec<Verdict> {
        let found = compare(&counters(a, Some(10)), &counters(b, Some(10)));
        found.counters.iter().map(|row| row.verdict).collect()
    }

    #[test]
    fn single_runs_have_no_verdict() {
        let one = [("cycles", 100.0, None)];
        assert_eq!(verdicts(&one, &[("cycles", 900.0, None)]), [Verdict::SingleSample]);
        assert_eq!(
            verdicts(&one, &[("branches", 1.0, None)]),
            [Verdict::NotComparable, Verdict::NotComparable]
        );
    }

    #[test]
    fn standard_errors_determine_the_verdict() {
        let check = |b: f64, spread: f64, expected: &str| {
            let found =
                verdicts(&[("cycles", 100.0, Some(spread))], &[("cycles", b, Some(spread))]);
            assert_eq!(found[0].word(), expected, "{b} within {spread}");
        };
        check(110.0, 0.01, "more");
        check(90.0, 0.01, "less");
        check(101.0, 0.01, "same");
        check(110.0, 0.05, "same");
        // A standard error rounded to 0 is not treated as exact.
        check(100.01, 0.0, "same");
        check(101.0, 0.0, "more");
    }

    #[test]
    fn intervals_depend_on_the_number_of_runs() {
        let side = |value| counters(&[("cycles", value, Some(0.01))], Some(3));
        let found = compare(&side(100.0), &side(104.0));
        let of = found.counters[0].interval.expect("both have spreads");
        // 4.303: Student's t with two degrees of freedom.
        assert!((of.high / of.middle - (4.303 * 0.01 * 2f64.sqrt()).exp()).abs() < 1e-4);
        assert!(of.holds(1.0));
    }
}
