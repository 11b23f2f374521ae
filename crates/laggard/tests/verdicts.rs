//! Judges on evidence that was recorded once (`cargo xtask bench verdicts --part planted --keep`), so that what they make
//! of it is the same on every machine.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The verdict on a file that was kept.
fn judged(path: &Path) -> Value {
    let mut why = Command::new(env!("CARGO_BIN_EXE_laggard"));
    let output = why.args(["why", "--json", "--from"]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What is planted in which pair.
fn planted() -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(root().join("subjects/culprits/planted.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let kinds = |pair: &toml::Value| {
        let kinds = pair["kinds"].as_array().unwrap().iter();
        kinds.map(|kind| kind.as_str().unwrap().to_owned()).collect()
    };
    table.iter().map(|(name, pair)| (name.clone(), kinds(pair))).collect()
}

#[test]
fn what_is_planted_is_named_first_and_the_innocent_are_not_accused() {
    for (name, kinds) in planted() {
        let path = root().join("fixtures/culprits").join(format!("{name}.json"));
        let verdict = judged(&path);
        let culprits = verdict["culprits"].as_array().unwrap();
        if kinds.is_empty() {
            assert_eq!((culprits.len(), &verdict["lags"]), (0, &Value::Bool(false)), "{name}");
            continue;
        }
        let first = &culprits[0];
        assert!(kinds.iter().any(|kind| first["kind"] == kind.as_str()), "{name}: {first}");
        assert!(first["explains"].as_f64().unwrap() >= 0.5, "{name}: {first}");
        assert!(!first["facts"].as_array().unwrap().is_empty(), "{name}: {first}");
        assert!(!first["advice"].as_str().unwrap().is_empty(), "{name}: {first}");
        let explained: f64 = culprits.iter().map(|one| one["explains"].as_f64().unwrap()).sum();
        let open = verdict["not_explained"].as_f64().unwrap();
        assert!((explained + open - 1.0).abs() < 1e-6, "{name}: shares add up");
    }
}

/// What is written can be judged again, with the same result.
#[test]
fn a_verdict_is_kept_with_its_evidence() {
    let directory = tempfile::tempdir().unwrap();
    let first = judged(&root().join("fixtures/culprits/branch-misses.json"));
    let path = directory.path().join("again.json");
    std::fs::write(&path, first.to_string()).unwrap();
    let again = judged(&path);
    for key in ["verdict", "ratio", "n", "culprits", "not_explained", "slices", "sides"] {
        assert_eq!(first[key], again[key], "{key}");
    }
}

/// Two runs that differ in how long they are in one Python function.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn recordings_are_judged() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for (name, n) in [("a.lag", "3000000"), ("b.lag", "12000000")] {
        let mut record = Command::new(env!("CARGO_BIN_EXE_laggard"));
        record.args(["record", "-q", "-o"]).arg(at(name));
        record.args(["--", "python3", "-c", &format!("for n in range({n}): n * n")]);
        assert!(record.status().unwrap().success());
    }
    let mut why = Command::new(env!("CARGO_BIN_EXE_laggard"));
    let output = why.args(["why", "--json", "--from"]).args([at("a.lag"), at("b.lag")]).output();
    let verdict: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert!(verdict["ratio"].is_null() && verdict["single_ratio"].as_f64().unwrap() > 1.0);
    assert_eq!(verdict["culprits"][0]["kind"], "interpreter", "{}", verdict["culprits"]);
}

#[test]
fn what_cannot_be_judged_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let check = |text: &str, said: &str| {
        let path = directory.path().join("kept.json");
        std::fs::write(&path, text).unwrap();
        let mut why = Command::new(env!("CARGO_BIN_EXE_laggard"));
        let output = why.args(["why", "--from"]).arg(&path).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(said), "{error}");
    };
    check("", "is not a verdict of laggard why");
    check("{\"schema\": \"laggard.why/1\"", "is not a verdict of laggard why");
    check(
        "{\"schema\": \"laggard.bench/1\", \"lags\": true, \"n\": 1, \"sides\": []}",
        "is not a verdict",
    );
    let whole = std::fs::read_to_string(root().join("fixtures/culprits/copy.json")).unwrap();
    check(&whole[..whole.len() / 2], "is not a verdict of laggard why");
}
