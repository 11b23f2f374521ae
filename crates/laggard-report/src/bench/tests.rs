//! Reports of results with known medians, in every format.

use super::{BenchReport, brief, csv, json, markdown, text, words};
use crate::table::Style;
use insta::assert_snapshot;
use laggard_core::compare::timings::{Verdict, compare};
use laggard_core::model::timings::{Counter, Timings};
use laggard_core::stats::ratio::Interval;
use laggard_samples::bench;

fn with(timings: &Timings, show: impl Fn(&BenchReport) -> String) -> String {
    let comparisons = compare(timings, 1);
    show(&BenchReport { timings, comparisons: &comparisons, top: None })
}

fn shown(timings: &Timings) -> String {
    with(timings, |report| text(report, &Style::default()))
}

#[test]
fn one_case_of_two_sides() {
    let timings = bench::two_sides();
    assert_snapshot!("two_sides_text", shown(&timings));
    assert_snapshot!("two_sides_markdown", with(&timings, markdown));
    assert_snapshot!("two_sides_json", with(&timings, json));
    assert_snapshot!("two_sides_csv", with(&timings, csv));
}

#[test]
fn allocations_have_a_column() {
    let mut timings = bench::two_sides();
    for series in &mut timings.cases[0].series {
        series.counters = vec![Counter {
            name: "allocations".into(),
            per_call: 2.5,
            source: "calls agent".into(),
        }];
    }
    let text = shown(&timings);
    assert!(text.contains("  allocations\n") && text.contains("  4,100         2.50\n"), "{text}");
    let rows = with(&timings, csv);
    assert!(rows.contains(",99000,,2.5,50000000,"), "{rows}");
    assert!(rows.contains(",156420,3,2.5,62500000,"), "{rows}");
}

/// The default output of `bench` fits on a screen and starts with the verdict. The details of sides
/// and the machine are in the complete report.
#[test]
fn the_short_report_has_a_line_per_side() {
    let brief = |timings: &Timings| with(timings, |report| brief(report, &Style::default()));
    assert_snapshot!("two_sides_brief", brief(&bench::two_sides()));
    assert_snapshot!("scan_brief", brief(&bench::scan()));
    assert_snapshot!("one_side_brief", brief(&bench::one_side()));
    assert_snapshot!("three_cases_brief", brief(&bench::three_cases()));
    let mut three = bench::two_sides();
    three.sides.push(three.sides[1].clone());
    three.sides[2].name = "C".into();
    let series = three.cases[0].series[0].clone();
    three.cases[0].series.push(series);
    assert_snapshot!("three_sides_brief", brief(&three));
    assert_eq!(brief(&Timings::default()), "nothing was measured\n");
    let hostile = brief(&bench::hostile());
    assert!(!hostile.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']), "{hostile}");
    // Many warnings do not hide the verdict.
    let mut loud = bench::two_sides();
    loud.warnings = (0..9).map(|number| format!("warning {number}")).collect();
    assert!(brief(&loud).contains("(6 more warnings; use -v)\n"), "{}", brief(&loud));
    assert!(brief(&loud).lines().count() < 12, "{}", brief(&loud));
}

#[test]
fn several_cases_share_one_table() {
    let timings = bench::three_cases();
    assert_snapshot!("three_cases_text", shown(&timings));
    assert_snapshot!("three_cases_markdown", with(&timings, markdown));
    assert_snapshot!("three_cases_csv", with(&timings, csv));
}

#[test]
fn a_scan_is_plotted() {
    assert_snapshot!("scan_text", shown(&bench::scan()));
}

#[test]
fn one_side_and_three_sides() {
    assert_snapshot!("one_side_text", shown(&bench::one_side()));
    let mut three = bench::two_sides();
    let mut side = three.sides[1].clone();
    side.name = "C".into();
    three.sides.push(side);
    let series = three.cases[0].series[0].clone();
    three.cases[0].series.push(series);
    assert_snapshot!("three_sides_text", shown(&three));
}

#[test]
fn empty_results_and_single_samples() {
    assert_eq!(shown(&Timings::default()).lines().next(), Some("nothing was measured"));
    let mut single = bench::two_sides();
    for series in &mut single.cases[0].series {
        series.batches.truncate(1);
    }
    assert_snapshot!("single_text", shown(&single));
    single.sides.truncate(1);
    single.cases[0].series.truncate(1);
    let text = shown(&single);
    assert!(text.contains(" per call (single sample)\n"), "{text}");
}

/// A benchmark name must not control the terminal or fake a table row.
#[test]
fn names_are_escaped() {
    let timings = bench::hostile();
    let (text, markdown) = (shown(&timings), with(&timings, markdown));
    for shown in [&text, &markdown] {
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']), "{shown}");
        assert!(!shown.lines().any(|line| line.starts_with("# no")), "{shown}");
    }
    assert!(!markdown.contains("<script>") && !markdown.contains("<b>"), "{markdown}");
    assert_snapshot!("hostile_text", text);
}

#[test]
fn a_wide_interval_is_not_reported_as_equality() {
    let say = |within: f64| {
        let ratio = Interval { middle: 1.0, low: 1.0 - within, high: 1.0 + within };
        words::sentence_of(["A", "B"], Verdict::NoDetectableDifference { within }, Some(ratio), 40)
    };
    assert!(say(0.02).starts_with("no detectable difference between A and B (±2"));
    assert!(say(0.4).starts_with("measurement too noisy to compare A and B (±40"), "{}", say(0.4));
}
