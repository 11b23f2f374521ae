//! Reports of counters with known values, in every format.

use super::{CountersReport, csv, json, markdown, text};
use crate::table::Style;
use insta::assert_snapshot;
use laggard_core::model::counters::{Counter, Counters, Reading, Seconds};

/// A row of `perf stat`.
pub(crate) fn row(name: &str, value: Option<f64>, unit: &str, counted: f64) -> Counter {
    Counter {
        name: name.into(),
        reading: value.map_or(Reading::NotSupported, Reading::Value),
        unit: unit.into(),
        run_ns: Some(2_000_000),
        counted: Some(counted),
        ..Counter::default()
    }
}

/// Two milliseconds on a hybrid CPU without cache counters.
pub(crate) fn sample() -> Counters {
    let core = |pmu: &str, value: f64, counted: f64| Counter {
        pmu: pmu.into(),
        ..row("cycles", Some(value), "", counted)
    };
    let parts = vec![core("cpu_core", 6e6, 1.0), core("cpu_atom", 4e5, 1.0)];
    let mut rows = vec![
        row("task-clock", Some(2.0), "msec", 1.0),
        Counter { parts, ..row("cycles", Some(6_400_000.0), "", 1.0) },
        row("instructions", Some(9_600_000.0), "", 0.5),
        row("branches", Some(1_200_000.0), "", 0.5),
        row("branch-misses", Some(12_000.0), "", 0.5),
        row("cache-misses", None, "", 0.0),
    ];
    for row in &mut rows {
        row.spread = row.value().map(|_| 0.004);
    }
    Counters {
        tool: "perf stat".into(),
        command: "python bench.py".into(),
        started: "Tue Nov 17 22:28:19 2026".into(),
        runs: Some(5),
        elapsed: Some(Seconds { value: 0.0025, spread: Some(0.01) }),
        rows,
        warnings: vec!["not supported by this machine: cache-misses".into()],
        ..Counters::default()
    }
}

fn with(counters: &Counters, show: impl Fn(&CountersReport) -> String) -> String {
    show(&CountersReport { counters, top: None })
}

fn shown(counters: &Counters) -> String {
    with(counters, |report| text(report, &Style::default()))
}

#[test]
fn all_formats() {
    let counters = sample();
    assert_snapshot!("text", shown(&counters));
    assert_snapshot!("markdown", with(&counters, markdown));
    assert_snapshot!("json", with(&counters, json));
    assert_snapshot!("csv", with(&counters, csv));
}

#[test]
fn cpus_and_intervals_have_rows() {
    let one = |of: &str, time: u64, value: f64| Counter {
        of: of.into(),
        time_ns: Some(time * 100_000_000),
        ..row("page-faults", Some(value), "", 1.0)
    };
    let rows = vec![one("CPU0", 1, 3.0), one("CPU1", 1, 4.0), one("CPU0", 2, 5.0)];
    assert_snapshot!("single_text", shown(&Counters { rows, ..Counters::default() }));
}

#[test]
fn names_are_escaped() {
    let hostile = "a\u{1b}[31m|<b>\n# no\u{202e}";
    let rows = vec![Counter { of: hostile.into(), ..row(hostile, Some(1.0), hostile, 1.0) }];
    let counters = Counters { rows, command: hostile.into(), ..Counters::default() };
    for shown in [shown(&counters), with(&counters, markdown)] {
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
        assert!(!shown.lines().any(|line| line.starts_with("# no")), "{shown}");
    }
    assert!(!with(&counters, markdown).contains(" <b>"));
}
