//! Merging of the per-core-type counters of hybrid CPUs.
//!
//! On hybrid CPUs `cycles` becomes `cpu_core/cycles/` and `cpu_atom/cycles/`. For a single program, each
//! counts only while the program runs on its core type, and perf scales each to the whole run. Their sum
//! is too large. If the shares of time add up to 1, the unscaled counts are summed. Otherwise (the whole
//! system was counted, or counters were multiplexed) the scaled counts are summed.

use super::combined;
use crate::model::counters::{Counter, Reading};
use rustc_hash::FxHashMap;

/// Sum of time shares for one program that moves between core types.
const ONE_WHOLE: std::ops::RangeInclusive<f64> = 0.95..=1.02;
/// Maximum relative difference between the total times of the parts.
const SAME_TIME: f64 = 0.02;

/// Merges counters that differ only in the PMU. Merged counters keep the originals in `parts`. Returns
/// the rows, and the number of merged counters weighted by time.
pub fn merge_cores(rows: Vec<Counter>) -> (Vec<Counter>, usize) {
    type Key = (Option<u64>, String, String, String, String);
    let mut merged: Vec<Counter> = Vec::with_capacity(rows.len());
    let mut places: FxHashMap<Key, usize> = FxHashMap::default();
    for row in rows {
        let key = (
            row.time_ns,
            row.of.clone(),
            row.name.clone(),
            row.modifiers.clone(),
            row.unit.clone(),
        );
        let place = places.get(&key).copied().filter(|_| !row.pmu.is_empty());
        let fits = |of: &Counter| !of.pmu.is_empty() && of.pmu != row.pmu;
        match place.and_then(|place| merged.get_mut(place)) {
            // The PMU is present already: the event was requested twice.
            Some(sum) if sum.parts.is_empty() && fits(sum) => {
                let first = Counter { parts: vec![], ..sum.clone() };
                sum.parts = vec![first, row];
            }
            Some(sum) if !sum.parts.is_empty() && sum.parts.iter().all(fits) => {
                sum.parts.push(row);
            }
            _ => {
                places.insert(key, merged.len());
                merged.push(row);
            }
        }
    }
    let mut weighed = 0;
    for sum in merged.iter_mut().filter(|sum| !sum.parts.is_empty()) {
        weighed += usize::from(add_up(sum));
    }
    (merged, weighed)
}

/// Sums the parts of a counter; returns whether they were weighted by time.
fn add_up(sum: &mut Counter) -> bool {
    let parts = &sum.parts;
    let is_one_program = is_one_program(parts);
    let weight = |part: &Counter| if is_one_program { part.counted.unwrap_or(1.0) } else { 1.0 };
    let values: Vec<(f64, Option<f64>)> =
        parts.iter().filter_map(|part| Some((part.value()? * weight(part), part.spread))).collect();
    let total = values.iter().copied().reduce(|a, b| (a.0 + b.0, combined([a, b])));
    sum.pmu.clear();
    sum.metrics.clear();
    sum.spread = total.and_then(|total| total.1);
    let is_known = |part: &Counter| part.reading != Reading::NotSupported;
    sum.reading = match total {
        Some((value, _)) => Reading::Value(value),
        None if parts.iter().any(is_known) => Reading::NotCounted,
        None => Reading::NotSupported,
    };
    let ran = parts.iter().filter_map(|part| part.run_ns).reduce(u64::saturating_add);
    let shares = || parts.iter().filter(|part| part.value().is_some()).filter_map(|p| p.counted);
    sum.run_ns = ran;
    sum.counted = match is_one_program {
        true => Some(shares().sum::<f64>().min(1.0)),
        // The sum is as reliable as its least reliable part.
        false => shares().reduce(f64::min),
    };
    let several =
        parts.iter().filter(|part| part.value().is_some_and(|value| value != 0.0)).count();
    is_one_program && several > 1
}

fn is_one_program(parts: &[Counter]) -> bool {
    let shares: f64 = parts.iter().filter_map(|part| part.counted).sum();
    // The total time of a part that never ran is unknown.
    let wholes = parts.iter().filter_map(|part| match (part.run_ns, part.counted) {
        (Some(run), Some(counted)) if run > 0 && counted > 0.0 => Some(run as f64 / counted),
        _ => None,
    });
    let (low, high) = wholes
        .fold((f64::MAX, 0.0), |(low, high): (f64, f64), whole| (low.min(whole), high.max(whole)));
    ONE_WHOLE.contains(&shares) && (high == 0.0 || high - low <= SAME_TIME * high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(pmu: &str, reading: Reading, run_ns: u64, counted: f64) -> Counter {
        let (name, pmu) = ("cycles".to_owned(), pmu.to_owned());
        let (run_ns, counted) = (Some(run_ns), Some(counted));
        Counter { name, pmu, reading, run_ns, counted, ..Counter::default() }
    }

    fn check(rows: [Counter; 2], expected: Reading, weighed: usize) {
        let parts = rows.to_vec();
        let (merged, n) = merge_cores(rows.into());
        assert_eq!((merged.len(), merged[0].reading, n), (1, expected, weighed));
        assert_eq!(merged[0].parts, parts);
    }

    #[test]
    fn core_types_are_merged() {
        let value = Reading::Value;
        // Whole system: each counts all the time on its own cores.
        check(
            [part("cpu_core", value(300.0), 8000, 1.0), part("cpu_atom", value(100.0), 4000, 1.0)],
            value(400.0),
            0,
        );
        // One program, a quarter of its time on efficiency cores.
        check(
            [part("cpu_core", value(300.0), 750, 0.75), part("cpu_atom", value(100.0), 250, 0.25)],
            value(250.0),
            1,
        );
        check(
            [
                part("cpu_core", value(300.0), 900, 1.0),
                part("cpu_atom", Reading::NotCounted, 0, 0.0),
            ],
            value(300.0),
            0,
        );
        // Multiplexed counters with different numbers of cores.
        check(
            [part("cpu_core", value(300.0), 8000, 0.5), part("cpu_atom", value(100.0), 4000, 0.5)],
            value(400.0),
            0,
        );
        let none = |pmu| part(pmu, Reading::NotSupported, 0, 1.0);
        check([none("cpu_core"), none("cpu_atom")], Reading::NotSupported, 0);
    }

    #[test]
    fn the_same_pmu_twice_is_not_merged() {
        let row = part("cpu", Reading::Value(7.0), 10, 1.0);
        assert_eq!(merge_cores(vec![row.clone(), row]).0.len(), 2);
    }
}
