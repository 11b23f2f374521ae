//! Runs the transcripts in `tests/cmd`.
//!
//! They run in a copy of the fixtures. `TRYCMD=overwrite cargo test --release -p laggard --test cli`
//! updates them; `...` stands for any lines.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use laggard_core::compare::timings::compare;
use laggard_formats::lag;
use laggard_report::bench::{BenchReport, json};
use laggard_samples::{bench, calls, profile};
use std::path::Path;

#[test]
fn transcripts_match() {
    let root = tempfile::tempdir().unwrap();
    // A subdirectory, so that the cache directory does not appear in listings.
    let here = root.path().join("here");
    common::copy(&common::fixtures(), &here);
    std::fs::create_dir(here.join("nothing")).unwrap();
    std::fs::write(here.join("notes.json"), "{\"mine\": 1}\n").unwrap();
    let rules = [
        ("broken.toml", "[[rule]\n"),
        ("no-class.toml", "[[rule]]\nprefix = [\"void\"]\n"),
        ("mine.toml", "[[rule]]\nclass = \"Mine\"\ngroup = \"Ours\"\nprefix = [\"nvjet\"]\n"),
        ("nothing-known.toml", "[[rule]]\nclass = \"Other\"\nprefix = [\"nvjet\"]\n"),
    ];
    for (name, text) in rules {
        std::fs::write(here.join(name), text).unwrap();
    }
    let calls = [
        ("products", calls::products()),
        ("elsewhere", calls::products_elsewhere()),
        ("inside", calls::inside(10_000)),
        ("python", calls::products_from_python()),
    ];
    for (name, calls) in calls {
        lag::write_calls(&here.join(format!("runs/{name}.lag")), &calls).unwrap();
    }
    for (name, more) in [
        ("older-1", 0),
        ("older-2", 3),
        ("older-3", 6),
        ("oldest-1", 80),
        ("oldest-2", 86),
        ("oldest-3", 83),
    ] {
        let path = here.join(format!("runs/{name}.lag"));
        lag::write_profile(&path, &profile::older_kernel(more)).unwrap();
    }
    let benches = [
        ("two-sides", bench::two_sides()),
        ("before", bench::three_cases()),
        ("after", bench::three_cases_later()),
        ("scan", bench::scan()),
    ];
    for (name, timings) in benches {
        let comparisons = compare(&timings, 1);
        let report = BenchReport { timings: &timings, comparisons: &comparisons, top: None };
        std::fs::write(here.join(format!("bench/{name}.json")), json(&report)).unwrap();
    }
    std::env::set_current_dir(&here).unwrap();
    let transcripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd");
    let index = transcripts.join("index.trycmd");
    let all = transcripts.join("*.trycmd");
    // On a slow machine, a load could take long enough for an index and its message.
    cases(root.path(), "1h").case(&all).skip(&index).run();
    cases(root.path(), "0").case(&index).run();
}

/// Transcripts in an environment of their own, with this loading time from which an index is
/// written.
fn cases(root: &Path, index_after: &str) -> trycmd::TestCases {
    let cases = trycmd::TestCases::new();
    cases
        .env("HOME", root.to_str().unwrap())
        .env("XDG_CACHE_HOME", root.join("cache").to_str().unwrap())
        .env("LAGGARD_INDEX_AFTER", index_after)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100");
    cases
}
