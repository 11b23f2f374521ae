use super::*;
use laggard_core::compare::timings::compare;
use laggard_core::culprit::{Role, Seen, Work, judge};
use laggard_core::model::timings::{Batch, Case, Series, Side};

/// Rounds of one call each with about the given time.
fn series(ns: u64) -> Series {
    let batch = |round: u32| {
        let wall_ns = ns + u64::from(round * 7 % 5);
        Batch { round, calls: 1, wall_ns, user_ns: wall_ns, ..Batch::default() }
    };
    Series { batches: (0..50).map(batch).collect(), threads: 1, ..Series::default() }
}

fn timings(b_ns: u64) -> Timings {
    let side =
        |name: &str, runs: &str| Side { name: name.into(), runs: runs.into(), facts: vec![] };
    Timings {
        tool: "laggard 0.1.0".into(),
        sides: vec![side("A", "a.sum()"), side("B", "<script>alert(1)</script>")],
        cases: vec![Case { series: vec![series(1000), series(b_ns)], ..Case::default() }],
        ..Timings::default()
    }
}

fn seen(work: &[(Role, &str, f64)]) -> Seen {
    let user_ns = work.iter().map(|(_, _, ns)| ns).sum();
    let work = work.iter().map(|&(role, name, ns)| Work {
        role,
        name: name.into(),
        library: "lib<b>.so".into(),
        caller: "to_contiguous, array.rs:77".into(),
        ns,
        samples: 100,
        ..Work::default()
    });
    let path = vec!["statement (<statement>:1)".into(), "kernel".into()];
    Seen {
        wall_ns: user_ns,
        user_ns,
        threads: 1,
        rounds: 50,
        work: work.collect(),
        path,
        ..Seen::default()
    }
}

fn check(show: impl Fn(&WhyReport) -> String) -> String {
    let timings = timings(2000);
    let comparisons = compare(&timings, 1);
    let a = seen(&[(Role::Compute, "kernel", 1000.0)]);
    let b = seen(&[(Role::Compute, "kernel", 1100.0), (Role::Copy, "memcpy", 900.0)]);
    let pair = Pair { a: &a, b: &b };
    let judgement = judge(&pair);
    show(&WhyReport {
        timings: &timings,
        lag: Lag::of(&comparisons[0]),
        is_exchanged: false,
        pair: Some(pair),
        judgement: Some(&judgement),
        notes: &["a note".into()],
    })
}

#[test]
fn the_verdict_comes_first_and_shares_add_up() {
    insta::assert_snapshot!(check(|report| text(report, &Style::default())));
}

#[test]
fn json_and_markdown() {
    insta::assert_snapshot!(check(json));
    insta::assert_snapshot!(check(markdown));
}

#[test]
fn names_are_escaped_in_html() {
    let page = check(|report| page(report, Beyond::default()));
    assert!(page.starts_with("<!doctype html>"));
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert(1)"));
    assert!(page.contains("lib&lt;b&gt;.so") && page.contains("90 % copy"));
}

#[test]
fn no_culprit_is_named_without_a_lag() {
    for b_ns in [500, 1000] {
        let timings = timings(b_ns);
        let comparisons = compare(&timings, 1);
        let report = WhyReport {
            timings: &timings,
            lag: Lag::of(&comparisons[0]),
            is_exchanged: false,
            pair: None,
            judgement: None,
            notes: &[],
        };
        assert!(text(&report, &Style::default()).starts_with("no lag detected: "));
        assert!(json(&report).contains("\"culprits\": []"));
    }
}

#[test]
fn a_noisy_measurement_is_inconclusive() {
    let timings = timings(1000);
    for (within, expected) in [(0.02, "no lag detected: "), (0.9, "inconclusive: ")] {
        let verdict = Verdict::NoDetectableDifference { within };
        let report = WhyReport {
            timings: &timings,
            lag: Lag::Measured { ratio: None, verdict, n: 9 },
            is_exchanged: false,
            pair: None,
            judgement: None,
            notes: &[],
        };
        assert!(text(&report, &Style::default()).starts_with(expected), "{within}");
    }
}

#[test]
fn csv_lists_the_slices() {
    let lines = check(csv);
    assert_eq!(lines.lines().next(), Some("what,of,a_ns,b_ns,gap_ns"));
    assert!(lines.contains("\nmemcpy,lib<b>.so,0,900,900\n"), "{lines}");
}
