//! Comparison of a benchmark with an earlier one.

use crate::noise::{Noise, Random};
use crate::verdicts::bench;
use laggard_core::compare::runs::{Compared, Place, compare_runs};
use laggard_core::compare::timings::Verdict;
use laggard_core::model::timings::Timings;

/// A benchmark with the given ratio of B to A, on a machine slower by the factor `machine`.
fn run(ratio: f64, machine: f64, seed: u64) -> Timings {
    let (a, b) = Noise::Bursts.pair(100, &mut Random::new(seed));
    let scaled = |side: Vec<f64>, by: f64| side.into_iter().map(|x| x * by).collect();
    bench([(scaled(a, machine), scaled(b, machine * ratio))])
}

fn one_sided(mut timings: Timings) -> Timings {
    timings.sides.remove(0);
    timings.cases[0].series.remove(0);
    timings
}

#[test]
fn another_machine_is_not_a_change() {
    let found = compare_runs(&run(1.5, 1.0, 1), &run(1.5, 3.0, 2), 1);
    let change = &found.changes[0];
    assert_eq!((change.compared, change.n), (Compared::Ratios, 100));
    assert!(matches!(change.verdict, Verdict::NoDetectableDifference { within } if within < 0.03));
    let same = (0..100).filter(|seed| {
        let found = compare_runs(&run(1.5, 1.0, 2 * seed), &run(1.5, 3.0, 2 * seed + 1), *seed);
        matches!(found.changes[0].verdict, Verdict::NoDetectableDifference { .. })
    });
    assert!(same.count() >= 95);
}

#[test]
fn a_larger_ratio_is_slower() {
    let change = compare_runs(&run(1.5, 1.0, 1), &run(1.65, 3.0, 2), 1).changes[0].clone();
    assert_eq!(change.verdict, Verdict::Slower);
    assert!(change.change.unwrap().holds(1.1) && change.gap.unwrap().holds(0.15));
}

#[test]
fn a_single_side_is_compared_by_time() {
    let (before, after) = (one_sided(run(1.0, 1.0, 1)), one_sided(run(0.9, 1.0, 2)));
    let change = compare_runs(&before, &after, 1).changes[0].clone();
    assert_eq!((change.compared, change.verdict), (Compared::Times, Verdict::Faster));
    assert!(change.change.unwrap().holds(0.9) && change.gap.unwrap().holds(-10_000.0));
}

#[test]
fn unmatched_cases_are_listed() {
    let (mut before, mut after) = (run(1.0, 1.0, 1), run(1.0, 1.0, 2));
    before.cases.push(before.cases[0].clone());
    before.cases[1].name = "gone".into();
    after.cases.insert(0, after.cases[0].clone());
    after.cases[0].parameters = vec![("n".into(), "10".into())];
    let found = compare_runs(&before, &after, 1);
    assert_eq!(found.only_before, [Place { case: 1, side: 1 }]);
    assert_eq!(found.only_after, [Place { case: 0, side: 1 }]);
    assert_eq!((found.changes[0].before.case, found.changes[0].after.case), (0, 1));
}

/// With different reference sides, ratios are not comparable, so times are compared.
#[test]
fn sides_are_matched_by_name() {
    let (before, mut after) = (run(1.0, 1.0, 1), run(1.0, 1.0, 2));
    after.sides[0].name = "other".into();
    let found = compare_runs(&before, &after, 1);
    assert_eq!(found.changes.len(), 1);
    assert_eq!((found.changes[0].compared, found.changes[0].after.side), (Compared::Times, 1));
    assert_eq!(found.only_before, [Place { case: 0, side: 0 }]);
    assert_eq!(found.only_after, [Place { case: 0, side: 0 }]);
}
