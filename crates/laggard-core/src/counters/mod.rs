//! Analysis of performance counters.
//!
//! [`merge_cores`] merges the counters of different core types of a hybrid CPU. [`totals`] sums counters
//! over CPUs, threads and intervals. [`derive`] computes ratios and rates, and lists the events that are
//! missing for them.

mod derive;
mod merge;

pub use derive::{Derived, Figure, Rate, derive, rates};
pub use merge::merge_cores;

use crate::model::counters::{Counter, Counters, Reading};
use rustc_hash::FxHashMap;

/// Sums each event over CPUs, threads and intervals. Uses the file's own sums over intervals if it has
/// them. Events keep their order.
pub fn totals(counters: &Counters) -> Vec<Counter> {
    let has_sums = counters.rows.iter().any(|row| row.time_ns.is_none());
    let mut totals: Vec<Counter> = vec![];
    let mut places: FxHashMap<(&str, &str, &str, u32), usize> = FxHashMap::default();
    // An event that was requested twice stays two counters.
    let mut seen: FxHashMap<(Option<u64>, &str, &str, &str), u32> = FxHashMap::default();
    for row in &counters.rows {
        if has_sums && row.time_ns.is_some() {
            continue;
        }
        let time = seen.entry((row.time_ns, &row.of, &row.name, &row.modifiers)).or_default();
        let key = (row.name.as_str(), row.modifiers.as_str(), row.unit.as_str(), *time);
        *time += 1;
        match places.get(&key) {
            Some(&place) => add(&mut totals[place], row),
            None => {
                places.insert(key, totals.len());
                totals.push(Counter { of: String::new(), time_ns: None, ..row.clone() });
            }
        }
    }
    totals
}

/// Adds the counts of another CPU, thread or interval.
fn add(sum: &mut Counter, row: &Counter) {
    // Metrics and parts describe a single row.
    sum.metrics.clear();
    sum.parts.clear();
    sum.spread = match (sum.value(), row.value()) {
        (Some(a), Some(b)) => combined([(a, sum.spread), (b, row.spread)]),
        (None, Some(_)) => row.spread,
        _ => sum.spread,
    };
    let enabled = |of: &Counter| match (of.run_ns, of.counted) {
        (Some(run), Some(counted)) if counted > 0.0 => Some(run as f64 / counted),
        _ => None,
    };
    let all = enabled(sum).unwrap_or(0.0) + enabled(row).unwrap_or(0.0);
    let run = |of: &Counter| of.run_ns.unwrap_or(0);
    if sum.run_ns.is_some() || row.run_ns.is_some() {
        let ran = run(sum).saturating_add(run(row));
        sum.counted = if all > 0.0 { Some((ran as f64 / all).min(1.0)) } else { sum.counted };
        sum.run_ns = Some(ran);
    }
    sum.reading = match (sum.reading, row.reading) {
        (Reading::Value(a), Reading::Value(b)) => Reading::Value(a + b),
        (value @ Reading::Value(_), _) | (_, value @ Reading::Value(_)) => value,
        (Reading::NotCounted, _) | (_, Reading::NotCounted) => Reading::NotCounted,
        (Reading::NotSupported, Reading::NotSupported) => Reading::NotSupported,
    };
}

/// Relative standard error of a sum of independent values.
fn combined(values: [(f64, Option<f64>); 2]) -> Option<f64> {
    let [(a, of_a), (b, of_b)] = values;
    let error = (a * of_a?).hypot(b * of_b?);
    if a + b == 0.0 { Some(0.0) } else { Some((error / (a + b)).abs()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(of: &str, time_ns: Option<u64>, reading: Reading) -> Counter {
        let (of, name) = (of.to_owned(), "cycles".to_owned());
        Counter { of, time_ns, reading, name, ..Counter::default() }
    }

    fn sums(rows: Vec<Counter>) -> Vec<Reading> {
        let counters = Counters { rows, ..Counters::default() };
        totals(&counters).iter().map(|row| row.reading).collect()
    }

    #[test]
    fn cpus_and_intervals_are_summed() {
        let value = Reading::Value;
        let rows = vec![
            row("CPU0", Some(1), value(10.0)),
            row("CPU1", Some(1), value(5.0)),
            row("CPU0", Some(2), Reading::NotCounted),
            row("CPU1", Some(2), value(2.0)),
        ];
        assert_eq!(sums(rows.clone()), [value(17.0)]);
        // The file has its own sum over intervals.
        let with_sums = [rows, vec![row("", None, value(17.5))]].concat();
        assert_eq!(sums(with_sums), [value(17.5)]);
        // Requested twice.
        let twice = vec![row("", None, value(3.0)), row("", None, value(4.0))];
        assert_eq!(sums(twice), [value(3.0), value(4.0)]);
        assert_eq!(sums(vec![row("", None, Reading::NotSupported)]), [Reading::NotSupported]);
    }

    #[test]
    fn sums_have_combined_standard_errors() {
        assert_eq!(combined([(30.0, Some(0.1)), (40.0, Some(0.1))]), Some(5.0 / 70.0));
        assert_eq!(combined([(30.0, Some(0.1)), (40.0, None)]), None);
        assert_eq!(combined([(0.0, Some(0.0)), (0.0, Some(0.0))]), Some(0.0));
    }
}
