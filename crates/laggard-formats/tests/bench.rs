//! Benchmark results: files of real harnesses, our own files, and invalid ones.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use laggard_core::compare::timings::compare;
use laggard_core::model::timings::{Case, Timings};
use laggard_core::stats::summary::Summary;
use laggard_formats::read::bench::{Kind, kind_of_file, parse, read};
use laggard_formats::{Error, Source, gzip};
use laggard_report::bench::{BenchReport, json as bench_json};
use laggard_samples::bench;
use proptest::prelude::*;
use std::path::PathBuf;

const FIXTURES: &[(&str, Kind)] = &[
    ("hyperfine.json", Kind::Hyperfine),
    ("hyperfine-1.15.json", Kind::Hyperfine),
    ("hyperfine-parameters.json", Kind::Hyperfine),
    ("pyperf.json", Kind::Pyperf),
    ("pytest-benchmark.json", Kind::PytestBenchmark),
    ("pytest-benchmark-again.json", Kind::PytestBenchmark),
    ("pytest-benchmark-stats.json", Kind::PytestBenchmark),
];

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bench").join(name)
}

fn load(name: &str) -> Timings {
    read(Source::open(&fixture(name)).unwrap()).unwrap()
}

fn medians(case: &Case) -> Vec<f64> {
    case.series.iter().map(|series| Summary::of(&series.wall()).median).collect()
}

fn json(timings: &Timings) -> String {
    let comparisons = compare(timings, 1);
    bench_json(&BenchReport { timings, comparisons: &comparisons, top: None })
}

fn failure(text: &str) -> String {
    parse(text.as_bytes()).unwrap().unwrap_err()
}

#[test]
fn detects_files_of_real_harnesses_by_content() {
    for (name, kind) in FIXTURES {
        assert_eq!(kind_of_file(&fixture(name)).unwrap(), Some(*kind), "{name}");
    }
    for other in ["../decode.json", "../bare-array.json", "../profiles/inside.callgrind"] {
        assert_eq!(kind_of_file(&fixture(other)).unwrap(), None, "{other}");
    }
    let error = read(Source::open(&fixture("../not-traces/speedscope.json")).unwrap()).unwrap_err();
    assert!(
        matches!(error, Error::NotABench { ref looks_like, .. } if looks_like == "a speedscope profile")
    );
}

#[test]
fn hyperfine_commands_become_sides() {
    let timings = load("hyperfine.json");
    let runs: Vec<&str> = timings.sides.iter().map(|side| side.runs.as_str()).collect();
    assert_eq!(runs, ["seq 100000", "seq 200000"]);
    let [case] = &timings.cases[..] else { panic!("{} cases", timings.cases.len()) };
    // As computed by hyperfine in the same file.
    assert_eq!(medians(case)[0], 3_827_463.5);
    let [a, b] = &case.series[..] else { panic!() };
    assert_eq!((a.batches.len(), a.peak_memory), (12, 3_076_096));
    assert_eq!((a.batches[0].wall_ns, a.batches[0].user_ns), (3_722_623, 2_310_833));
    assert!(b.batches[0].start_ns >= a.batches[11].start_ns + a.batches[11].wall_ns);
    assert!(timings.warnings.iter().any(|text| text.contains("one after the other")));
}

#[test]
fn hyperfine_parameters_become_cases() {
    let timings = load("hyperfine-parameters.json");
    let runs: Vec<&str> = timings.sides.iter().map(|side| side.runs.as_str()).collect();
    assert_eq!(runs, ["seq {n}", "seq -f %g {n}"]);
    let parameters: Vec<&str> =
        timings.cases.iter().map(|case| case.parameters[0].1.as_str()).collect();
    assert_eq!(parameters, ["1000", "10000", "100000"]);
    assert!(timings.cases.iter().all(|case| case.series.len() == 2));
}

#[test]
fn warns_about_failed_runs() {
    let warnings = load("hyperfine-1.15.json").warnings;
    assert!(warnings.contains(&"5 of 5 runs of \"seq oops\" failed".to_owned()), "{warnings:?}");
}

#[test]
fn pyperf_benchmarks_become_cases() {
    let timings = load("pyperf.json");
    let names: Vec<&str> = timings.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!((names, timings.sides.len()), (vec!["sum", "sorted"], 1));
    assert_eq!(timings.tool, "pyperf 2.10.0");
    assert!(timings.facts.iter().any(|(name, value)| name == "CPUs" && value == "2"));
    let series = &timings.cases[0].series[0];
    assert_eq!((series.batches.len(), series.warm_up.len()), (12, 3));
    assert_eq!((series.batches[0].calls, series.warm_up[0].calls), (1000, 1000));
    assert!(series.peak_memory > 10_000_000 && timings.started_unix > 1.7e9);
    assert_eq!(timings.cases[1].series[0].batches[0].calls, 256);
}

#[test]
fn pytest_benchmark_tests_become_cases_with_parameters() {
    let timings = load("pytest-benchmark.json");
    let cases: Vec<(&str, Vec<(String, String)>)> =
        timings.cases.iter().map(|case| (case.name.as_str(), case.parameters.clone())).collect();
    let n = |n: &str| vec![("n".to_owned(), n.to_owned())];
    assert_eq!(
        cases,
        [
            ("test_sums.py::test_sum", n("10")),
            ("test_sums.py::test_sum", n("1000")),
            ("test_sums.py::test_sorted", vec![]),
        ]
    );
    assert_eq!(timings.warnings, [""; 0]);
    assert!(timings.cases.iter().all(|case| case.series[0].batches.len() == 20));
}

#[test]
fn median_without_rounds_becomes_one_sample_with_warning() {
    let timings = load("pytest-benchmark-stats.json");
    assert!(timings.cases.iter().all(|case| case.series[0].batches.len() == 1));
    assert!(timings.warnings[0].starts_with("3 of 3 tests have no times per round"));
}

#[test]
fn rejects_invalid_results_with_reason() {
    let ours = |rest: &str| format!("{{\"schema\": \"laggard.bench/1\", {rest}}}");
    let with = |batches: &str| {
        ours(&format!(
            "\"sides\": [{{\"name\": \"A\"}}], \"cases\": [{{\"series\": [{{\"batches\": {{{batches}}}}}]}}]"
        ))
    };
    for (text, expected) in [
        (
            "{\"schema\": \"laggard.bench/9\"}".to_owned(),
            "its format is \"laggard.bench/9\", but this version reads laggard.bench/1",
        ),
        (ours("\"sides\": [], \"cases\": []"), "the list of sides is empty"),
        (ours("\"sides\": [{\"name\": \"A\"}]"), "missing field `cases` at line 1 column 55"),
        (
            ours("\"sides\": [{\"name\": \"A\"}], \"cases\": [{\"series\": []}]"),
            "case 1 has 0 series, but the number of sides is 1",
        ),
        (
            with("\"wall_ns\": [1, 2], \"calls\": [1]"),
            "case 1 has columns of different lengths (calls: 1, wall_ns: 2)",
        ),
        (with("\"wall_ns\": [1], \"calls\": [0]"), "case 1 has a batch with zero calls"),
        (
            with("\"wall_ns\": [18446744073709551615]"),
            "case 1 has a value of wall_ns that is too large",
        ),
        (
            "{\"schema\": \"laggard.bench/1\", \"sides\": [".to_owned(),
            "the JSON is truncated at line 1",
        ),
        ("{\"results\": [{\"command\": 1, \"mean\":".to_owned(), "the JSON is truncated at line 1"),
        (
            "{\"benchmarks\": [{\"runs\": []}]}".to_owned(),
            "no usable benchmarks: skipped benchmark \"\": it has no values",
        ),
        ("{\"machine_info\": 1, \"benchmarks\": [1, {}]}".to_owned(), "no benchmark has times"),
    ] {
        assert_eq!(failure(&text), expected, "{text}");
    }
    assert!(failure(&with("\"wall_ns\": [-1]")).starts_with("invalid value: integer `-1`"));
}

#[test]
fn skips_and_counts_implausible_times() {
    let text = r#"{"results": [{"command": "x", "mean": 1, "times": [1, -1, 1e300, null, 2]}]}"#;
    let timings = parse(text.as_bytes()).unwrap().unwrap();
    assert_eq!(medians(&timings.cases[0]), [1.5e9]);
    assert_eq!(timings.warnings[0], "3 invalid times of \"x\" were skipped");
}

/// A kept file must contain all measured values: it can become a baseline years later.
#[test]
fn round_trips_all_evidence() {
    for timings in [
        bench::two_sides(),
        bench::three_cases(),
        bench::scan(),
        bench::one_side(),
        bench::hostile(),
        Timings { sides: vec![Default::default()], ..Timings::default() },
    ] {
        let text = json(&timings);
        assert_eq!(parse(text.as_bytes()).unwrap().unwrap(), timings);
    }
}

#[test]
fn reads_compressed_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hyperfine.json.gz");
    std::fs::write(&path, gzip(&std::fs::read(fixture("hyperfine.json")).unwrap())).unwrap();
    assert_eq!(kind_of_file(&path).unwrap(), Some(Kind::Hyperfine));
    assert_eq!(read(Source::open(&path).unwrap()).unwrap(), load("hyperfine.json"));
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    assert!(read(Source::open(&path).unwrap()).is_err());
}

/// Texts of all formats.
fn texts() -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> =
        FIXTURES.iter().map(|(name, _)| std::fs::read(fixture(name)).unwrap()).collect();
    texts.push(json(&bench::two_sides()).into_bytes());
    texts
}

#[test]
fn rejects_truncated_file() {
    for text in texts() {
        let end = text.trim_ascii_end().len();
        for cut in 0..end {
            assert!(!matches!(parse(&text[..cut]), Some(Ok(_))), "{cut} of {end}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    /// Any damaged file is read or rejected, and the result can be summarized.
    #[test]
    fn damaged_file_does_not_panic(which in any::<prop::sample::Index>(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..20)) {
        let texts = texts();
        let mut text = which.get(&texts).clone();
        for (at, byte, kind) in changes {
            let at = at.index(text.len());
            match kind {
                0 => text[at] = byte,
                1 => text[at] = b"0123456789-e.,{}[]\"n"[byte as usize % 20],
                2 => { text.remove(at); }
                _ => {
                    let piece: Vec<u8> = text[at..].iter().take(byte as usize).copied().collect();
                    text.splice(at / 2..at / 2, piece);
                }
            }
        }
        if let Some(Ok(timings)) = parse(&text) {
            for series in timings.cases.iter().flat_map(|case| &case.series) {
                let (wall, cpu) = (Summary::of(&series.wall()), Summary::of(&series.cpu()));
                prop_assert!(wall.median >= 0.0 && cpu.median >= 0.0);
            }
            prop_assert!(timings.cases.iter().all(|case| case.series.len() == timings.sides.len()));
        }
    }
}
