//! Reports of handwritten ranks, one of which is a straggler.

use super::{RanksReport, csv, json, markdown, text};
use crate::table::Style;
use insta::assert_snapshot;
use laggard_core::trace::ranks::{CollectiveSkew, RankRow, Ranks};
use laggard_core::trace::summary::Spread;

fn ranks(last_in: [u64; 4]) -> Ranks {
    let matched = last_in.iter().sum();
    let row = |(i, last_in): (usize, u64)| {
        let late = i64::from(last_in > 20) * 41_000_000;
        RankRow {
            path: format!("traces/rank{i}.json.gz"),
            rank: Some(i as i64),
            kernels: 22_756,
            span_ns: 1_200_000_000,
            busy_ns: 1_010_000_000,
            compute_ns: 812_000_000 + late,
            exposed_communication_ns: 150_000_000 - late,
            idle_ns: 190_000_000,
            host_bound_ns: 120_000_000,
            step_ns: Some(Spread::of(&mut [642_000_000, 655_000_000 + late, 640_000_000])),
            last_in,
            matched,
        }
    };
    Ranks {
        rows: last_in.into_iter().enumerate().map(row).collect(),
        collectives: vec![CollectiveSkew {
            operation: "all\u{1b}reduce".into(),
            count: matched,
            start_skew_ns: Spread::of(&mut [410_000, 620_000, 1_900_000]),
            wait_ns: Spread::of(&mut [400_000, 600_000, 1_700_000]),
            straggler: (3, last_in[3]),
        }],
    }
}

#[test]
fn a_straggler_is_named_with_its_evidence() {
    let ranks = ranks([5, 6, 8, 41]);
    let report = RanksReport { ranks: &ranks, top: None };
    assert_snapshot!(text(&report, &Style::default()), @r#"
    Ranks
      rank  file            span  busy  compute  exposed  idle  host-bound  step  last in  matched
                              ms     %       ms       ms    ms          ms    ms        n        n
         0  rank0.json.gz  1,200  84.2      812      150   190         120   642        5       60
         1  rank1.json.gz  1,200  84.2      812      150   190         120   642        6       60
         2  rank2.json.gz  1,200  84.2      812      150   190         120   642        8       60
         3  rank3.json.gz  1,200  84.2      853      109   190         120   642       41       60
      exposed: communication not overlapped by compute; step: median; matched: collectives matched
      across ranks; last in: those in which this rank arrived last

    Steps
      rank  median  p25–p75  min…max  steps
                ms       ms       ms      n
         0     642  642–655  640…655      3
         1     642  642–655  640…655      3
         2     642  642–655  640…655      3
         3     642  642–696  640…696      3

    Stragglers
      rank 3 arrived last in 41 of 60 collectives (68.3 %; expected without a straggler: 25.0 %)
      rank 3 has the longest compute time, 853 ms in 22,756 kernels: 1.05x that of rank 0, the shortest
      (812 ms in 22,756 kernels)

    Start skew of collectives
      operation        count  skew    p25–p75  wait    p25–p75  most often last  times
                           n    µs         µs    µs         µs                       n
      all\u{1b}reduce     60   620  620–1,900   600  600–1,700  rank 3              41
      skew: first to last start, depends on synchronized host clocks; wait: longest minus shortest
      duration, needs no common clock
    "#);
    assert_snapshot!(markdown(&report));
    assert_snapshot!(json(&RanksReport { top: Some(1), ..report }));
    assert_snapshot!(csv(&RanksReport { top: Some(2), ..report }), @r#"
    rank,file,kernels,span_ns,busy_ns,compute_ns,exposed_communication_ns,idle_ns,host_bound_ns,steps,step_median_ns,last_in,matched
    0,traces/rank0.json.gz,22756,1200000000,1010000000,812000000,150000000,190000000,120000000,3,642000000,5,60
    1,traces/rank1.json.gz,22756,1200000000,1010000000,812000000,150000000,190000000,120000000,3,642000000,6,60
    "#);
}

#[test]
fn no_straggler_is_reported_without_evidence() {
    let ranks = ranks([12, 17, 15, 16]);
    let text = text(&RanksReport { ranks: &ranks, top: Some(2) }, &Style::default());
    assert!(text.contains("no straggler; rank 1 arrived last"), "{text}");
    assert!(text.contains("(2 more rows)"), "{text}");
}

#[test]
fn ranks_without_numbers_collectives_or_steps() {
    let row = |path: &str| RankRow { path: path.into(), ..RankRow::default() };
    let ranks = Ranks { rows: vec![row("a\n.json"), row("b.json")], collectives: vec![] };
    assert_snapshot!(text(&RanksReport { ranks: &ranks, top: None }, &Style::default()), @r#"
    Ranks
      file      span  busy  compute  exposed  idle  host-bound
                  ns     %       ns       ns    ns          ns
      a\n.json     0   0.0        0        0     0           0
      b.json       0   0.0        0        0     0           0
      exposed: communication not overlapped by compute

    Stragglers
      no collectives matched across ranks
    "#);
    let none = Ranks::default();
    assert_snapshot!(text(&RanksReport { ranks: &none, top: None }, &Style::default()), @r#"
    Ranks
      no ranks
    "#);
}
