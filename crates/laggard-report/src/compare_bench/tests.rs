//! Comparison of two benchmarks with known changes.

use super::{CompareBench, Given, csv, gate_line, json, markdown, text};
use crate::table::Style;
use insta::assert_snapshot;
use laggard_core::compare::gate::gate;
use laggard_core::compare::runs::compare_runs;
use laggard_core::compare::timings::compare;
use laggard_core::model::timings::Timings;
use laggard_samples::bench;

fn with(
    a: &Timings,
    b: &Timings,
    limit: Option<f64>,
    show: impl Fn(&CompareBench) -> String,
) -> String {
    let comparison = compare_runs(a, b, 1);
    show(&CompareBench {
        before: Given { path: "a.json", timings: a, comparisons: &compare(a, 1) },
        after: Given { path: "b.json", timings: b, comparisons: &compare(b, 1) },
        comparison: &comparison,
        limit,
        top: None,
    })
}

#[test]
fn all_formats() {
    let (a, b) = (bench::three_cases(), bench::three_cases_later());
    let limit = Some(0.05);
    assert_snapshot!("text", with(&a, &b, limit, |all| text(all, &Style::default())));
    assert_snapshot!("markdown", with(&a, &b, limit, markdown));
    assert_snapshot!("json", with(&a, &b, limit, json));
    assert_snapshot!("csv", with(&a, &b, limit, csv));
}

#[test]
fn times_are_compared_without_a_reference_side() {
    let mut later = bench::one_side();
    for batch in &mut later.cases[0].series[0].batches {
        batch.wall_ns = batch.wall_ns * 11 / 10;
    }
    let shown = with(&bench::one_side(), &later, None, |all| text(all, &Style::default()));
    assert_snapshot!("one_side_text", shown);
}

#[test]
fn no_common_cases_and_no_change() {
    let show = |all: &CompareBench| text(all, &Style::default());
    let shown = with(&bench::scan(), &bench::three_cases(), None, show);
    assert!(shown.starts_with("the files have no case in common"), "{shown}");
    let shown = with(&bench::two_sides(), &bench::two_sides(), Some(0.05), show);
    assert!(shown.starts_with("no detectable change"), "{shown}");
    assert!(
        shown.contains("--fail-above: no case became slower by more than 5.0 % (1 case compared)"),
        "{shown}"
    );
}

/// The gate must fail only for cases that became slower relative to the reference side.
#[test]
fn the_gate_compares_ratios() {
    let (a, b) = (bench::three_cases(), bench::three_cases_later());
    let tripped = |limit: f64| gate(&a, &b, limit, 1).is_tripped();
    assert!(tripped(0.05) && !tripped(0.15));
    assert!(!gate(&b, &a, 0.05, 1).is_tripped(), "faster does not fail");
    assert_eq!(
        gate_line(&gate(&a, &b, 0.05, 1), &b),
        "1 of 2 cases became slower by more than 5.0 %: broadcast_add"
    );
}
