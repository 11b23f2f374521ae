//! Reports of a handwritten trace with hostile names, of an empty trace and of a trace without a
//! GPU.

mod sample;

use super::{TraceReport, csv, json, markdown, text};
use crate::table::Style;
use insta::assert_snapshot;
use laggard_core::trace::By;
use laggard_core::trace::Stack;
use laggard_core::trace::summary::{
    About, Breakdown, CountTime, Group, Links, Spread, Step, Steps, Summary, Totals,
};
use sample::{breakdown, summary};

fn report(summary: &Summary) -> TraceReport<'_> {
    TraceReport {
        path: "traces/rank0.json.gz",
        summary,
        breakdown: None,
        phase: None,
        unclassified: None,
        stacks: None,
        top: Some(3),
    }
}

fn no_gpu() -> Summary {
    let duration_ns = Spread::of(&mut [5_200_000, 4_900_000, 31_000_000]);
    let step = |(name, start_ns, duration_ns): (&str, i64, i64)| Step {
        name: name.into(),
        start_ns,
        duration_ns,
        ..Step::default()
    };
    let rows = [
        ("ProfilerStep#0", 0, 31_000_000),
        ("ProfilerStep#1", 31_100_000, 5_200_000),
        ("ProfilerStep#2", 36_400_000, 4_900_000),
    ];
    Summary {
        about: About { shapes: true, stacks: true, ..About::default() },
        totals: Totals {
            events: 4_321,
            bytes: 1_234_567,
            span_ns: 41_300_000,
            ops: CountTime { count: 2_100, time_ns: 88_000_000 },
            python: CountTime { count: 2_000, time_ns: 410_000_000 },
            ..Totals::default()
        },
        breakdowns: [By::Class, By::Kernel, By::Phase, By::Op, By::Python]
            .map(|by| breakdown(by, vec![]))
            .to_vec(),
        steps: Some(Steps {
            marker: "ProfilerStep".into(),
            duration_ns,
            gpu_ns: Spread::of(&mut [0, 0, 0]),
            rows: rows.into_iter().map(step).collect(),
        }),
        ..Summary::default()
    }
}

#[test]
fn text_of_a_whole_report() {
    assert_snapshot!(text(&report(&summary()), &Style::default()));
}

#[test]
fn text_fits_a_narrow_terminal() {
    let style = Style { color: false, width: Some(90) };
    let text = text(&TraceReport { top: None, ..report(&summary()) }, &style);
    for line in text.lines() {
        assert!(crate::escape::columns(line) <= 90, "{line}");
    }
}

#[test]
fn markdown_of_a_whole_report() {
    assert_snapshot!(markdown(&report(&summary())));
}

#[test]
fn json_of_a_whole_report() {
    assert_snapshot!(json(&TraceReport { top: Some(2), ..report(&summary()) }));
}

#[test]
fn hostile_names_are_escaped_in_text_and_markdown() {
    let mut summary = summary();
    let nasty = "\u{1b}[2J\u{202e}\r\u{9b}x";
    summary.about.gpus.push((nasty.into(), 2));
    summary.about.backend = Some(nasty.into());
    summary.about.properties.push((format!("{nasty}_version"), nasty.into()));
    summary.losses[0].explanation = nasty.into();
    summary.devices[0].device = nasty.into();
    summary.devices[0].name = nasty.into();
    summary.devices[0].streams[0].stream = nasty.into();
    summary.copies[0].kind = nasty.into();
    summary.work[0].op = nasty.into();
    summary.work[0].shape = nasty.into();
    summary.work[0].dtype = nasty.into();
    summary.collectives[0].operation = nasty.into();
    summary.collectives[0].dtype = nasty.into();
    for breakdown in &mut summary.breakdowns {
        breakdown.rows[0].name = nasty.into();
    }
    if let Some(steps) = &mut summary.steps {
        steps.marker = nasty.into();
        steps.rows[0].name = nasty.into();
    }
    let stacks = [Stack { op: nasty.into(), frames: vec![nasty.into()], ..Stack::default() }];
    let whole = TraceReport { path: nasty, phase: Some(nasty), top: None, ..report(&summary) };
    let asked = TraceReport {
        breakdown: summary.breakdowns.first(),
        unclassified: summary.breakdowns.get(1),
        stacks: Some(&stacks),
        ..whole
    };
    for report in [whole, asked] {
        for text in [text(&report, &Style::default()), markdown(&report)] {
            let hidden = text.find(|c: char| c != '\n' && (c.is_control() || c == '\u{202e}'));
            assert_eq!(hidden, None, "{text:?}");
        }
    }
}

#[test]
fn empty_trace_is_reported_as_empty() {
    let empty = Summary::default();
    assert_snapshot!(text(&report(&empty), &Style::default()), @r#"
    traces/rank0.json.gz
      no events in this trace
    "#);
    assert_eq!(csv(&report(&empty)), "name,class,count,time_ns,share,min_ns,median_ns,max_ns\r\n");
    let value: serde_json::Value = serde_json::from_str(&json(&report(&empty))).unwrap();
    assert_eq!(value["totals"]["events"]["count"], 0);
    assert_eq!(value["launches"]["latency_ns"]["median"], serde_json::Value::Null);
}

#[test]
fn trace_without_device_operations() {
    assert_snapshot!(text(&report(&no_gpu()), &Style::default()), @r#"
    traces/rank0.json.gz
      span      41.3 ms
      size      1.23 MB uncompressed, 4,321 events
      recorded  shapes and Python stacks

    Totals
      no device operations in this trace
      what                                    n   time
                                                    ms
      operators, including nested         2,100   88.0
      Python functions, including nested  2,000  410

    Steps (ProfilerStep)
      time per step  median    min…max  steps
                         ms         ms      n
      on the host      5.20  4.90…31.0      3

      step            start   host
                         ms     ms
      ProfilerStep#0    0    31.0
      ProfilerStep#1   31.1   5.20
      ProfilerStep#2   36.4   4.90
    "#);
}

#[test]
fn phase_without_device_operations() {
    let mut summary = no_gpu();
    summary.steps = None;
    let text = text(&TraceReport { phase: Some("decode"), ..report(&summary) }, &Style::default());
    assert!(text.contains("no device operations in phase decode"), "{text}");
}

#[test]
fn one_table_replaces_the_whole_report() {
    let summary = summary();
    let asked = TraceReport { breakdown: summary.breakdowns.get(1), ..report(&summary) };
    assert_snapshot!(text(&asked, &Style { color: false, width: Some(90) }), @r#"
    traces/rank0.json.gz

    Device time by kernel
      kernel                                      time  share   count  mean  median    min…max
                                                    ms      %       n    µs      µs         µs
      xmma gemm 128x128x64 bf16 tn n             520     56.1   6,144  84.7   81.0    40.5…324
      evil\nrow\u{1b}[31m | `code` <b>           318     34.3  12,004  26.5    9.00  4.50…36.0
      say "hi", \u{202e}fake                      80.1    8.6   1,536  52.1   52.1    26.1…208
      (1 more row: 9.87 ms, 1.1 %)
    "#);
    let value: serde_json::Value = serde_json::from_str(&json(&asked)).unwrap();
    let breakdowns = value["breakdowns"].as_object().unwrap();
    assert_eq!(breakdowns.keys().collect::<Vec<_>>(), ["kernel"]);
    assert_eq!(breakdowns["kernel"]["rows"].as_array().unwrap().len(), 3);
}

#[test]
fn stacks_are_listed_below_their_operator() {
    let summary = summary();
    let stacks = [Stack {
        op: "aten::mm".into(),
        count: 1_200,
        time_ns: 45_600_000,
        frames: vec!["train.py(10): main".into(), "model.py(55): for\nward".into()],
    }];
    let asked = TraceReport { stacks: Some(&stacks), phase: Some("prefill"), ..report(&summary) };
    assert_snapshot!(text(&asked, &Style::default()), @r#"
    traces/rank0.json.gz, phase prefill

    Device time by call stack
      45.6 ms (n = 1,200)  aten::mm
        train.py(10): main
        model.py(55): for\nward
    "#);
    assert_snapshot!(markdown(&asked), @r#"
    ## traces/rank0.json.gz, phase prefill

    ## Device time by call stack

    - 45.6 ms (n = 1,200)  aten::mm
      - train.py(10): main
      - model.py(55): for\\nward
    "#);
}

#[test]
fn csv_can_be_read_back() {
    let summary = summary();
    let asked = TraceReport { breakdown: summary.breakdowns.get(1), top: None, ..report(&summary) };
    let rows = parse_csv(&csv(&asked));
    assert_eq!(
        rows[0],
        ["name", "class", "count", "time_ns", "share", "min_ns", "median_ns", "max_ns"]
    );
    let kernels = &summary.breakdowns[1].rows;
    assert_eq!(rows.len(), kernels.len() + 1);
    for (row, kernel) in rows[1..].iter().zip(kernels) {
        assert_eq!((&row[0], &row[3]), (&kernel.name, &kernel.time_ns.to_string()));
        assert_eq!(row.len(), 8);
    }
}

#[test]
fn non_finite_numbers_are_null_in_json() {
    let mut summary = summary();
    summary.launches.mean_queue = f64::NAN;
    summary.work[0].flops_per_s = f64::INFINITY;
    let value: serde_json::Value = serde_json::from_str(&json(&report(&summary))).unwrap();
    assert!(value["launches"]["mean_queue"].is_null());
    assert!(value["work"][0]["flops_per_s"].is_null());
}

#[test]
fn extreme_values_do_not_panic() {
    let group = Group { count: u64::MAX, time_ns: i64::MIN, max_ns: i64::MAX, ..Group::default() };
    let total = CountTime { count: 0, time_ns: i64::MAX };
    let mut summary = summary();
    summary.breakdowns =
        vec![Breakdown { by: By::Class, rows: vec![group], distinct: u64::MAX, total }];
    summary.links = Links { rows: 1, launched: u64::MAX, ..Links::default() };
    summary.unclassified_share = f64::NAN;
    for width in [0, 1, 10, 1_000] {
        text(&report(&summary), &Style { color: true, width: Some(width) });
    }
    json(&report(&summary));
}

/// Parses CSV as RFC 4180 defines it.
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut quoted) = (vec![], vec![], String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\r' if !quoted && chars.peek() == Some(&'\n') => {
                chars.next();
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            _ => field.push(c),
        }
    }
    rows
}
