//! Comparison of counters with a known difference.

use super::{CompareCounters, Given, csv, json, markdown, text};
use crate::counters::tests::{row, sample};
use crate::table::Style;
use insta::assert_snapshot;
use laggard_core::compare::counters::compare;
use laggard_core::model::counters::{Counters, Reading};

fn with(a: &Counters, b: &Counters, show: impl Fn(&CompareCounters) -> String) -> String {
    let comparison = compare(a, b);
    let (a, b) = (Given { path: "a.csv", counters: a }, Given { path: "b.csv", counters: b });
    show(&CompareCounters { a, b, comparison: &comparison, top: None })
}

fn shown(a: &Counters, b: &Counters) -> String {
    with(a, b, |all| text(all, &Style::default()))
}

/// A quarter more cycles for the same instructions, and an additional event.
fn later() -> Counters {
    let mut later = sample();
    later.rows[1].reading = Reading::Value(8_000_000.0);
    later.rows.push(row("page-faults", Some(7.0), "", 1.0));
    later
}

#[test]
fn all_formats() {
    let (a, b) = (sample(), later());
    assert_snapshot!("text", shown(&a, &b));
    assert_snapshot!("markdown", with(&a, &b, markdown));
    assert_snapshot!("json", with(&a, &b, json));
    assert_snapshot!("csv", with(&a, &b, csv));
}

#[test]
fn single_runs_have_no_verdict() {
    let (mut a, mut b) = (sample(), later());
    for side in [&mut a, &mut b] {
        side.runs = None;
        side.rows.iter_mut().for_each(|row| row.spread = None);
    }
    assert_snapshot!("single_text", shown(&a, &b));
    let other = Counters { rows: vec![row("page-faults", Some(7.0), "", 1.0)], ..sample() };
    assert!(shown(&a, &other).starts_with("no counter has a value in both files"));
}
