//! Verdicts on recorded evidence (`cargo xtask bench verdicts --part planted --keep`), which are the same on every
//! machine.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The verdict on a file of evidence.
fn judged(path: &Path) -> Value {
    let mut why = Command::new(env!("CARGO_BIN_EXE_laggard"));
    let output = why.args(["why", "--json", "--from"]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The planted causes of each pair.
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
fn names_planted_causes_and_no_others() {
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
        assert!((explained + open - 1.0).abs() < 1e-6, "{name}: shares must add up to 1");
    }
}

/// Evidence of real differences leads to the function that an expert would name.
#[test]
fn names_the_place_of_real_differences() {
    let text = std::fs::read_to_string(root().join("subjects/real/pairs.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let words = |pair: &toml::Value, key: &str| -> Vec<String> {
        let words = pair[key].as_array().unwrap().iter();
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let (mut places, mut kinds, mut wrong) = (0, 0, vec![]);
    let pairs = table["pair"].as_array().unwrap();
    for pair in pairs {
        let name = pair["name"].as_str().unwrap();
        let verdict = judged(&root().join("fixtures/real").join(format!("{name}.json.gz")));
        let culprits = verdict["culprits"].as_array().unwrap();
        let first = &culprits[0];
        let (at, kind) = (first["at"].as_str().unwrap(), first["kind"].as_str().unwrap());
        if words(pair, "place").iter().any(|place| at.contains(place.as_str())) {
            places += 1;
        } else {
            wrong.push(format!("{name}: {at}"));
        }
        kinds += usize::from(words(pair, "kind").iter().any(|accepted| accepted == kind));
        let explained: f64 = culprits.iter().map(|one| one["explains"].as_f64().unwrap()).sum();
        let open = verdict["not_explained"].as_f64().unwrap();
        assert!((explained + open - 1.0).abs() < 1e-6, "{name}: shares must add up to 1");
    }
    assert!(places + 1 >= pairs.len(), "{wrong:?}");
    assert!(kinds + 1 >= pairs.len(), "{kinds}");
}

#[test]
fn saved_verdicts_are_reproducible() {
    let directory = tempfile::tempdir().unwrap();
    let first = judged(&root().join("fixtures/culprits/branch-misses.json"));
    let path = directory.path().join("again.json");
    std::fs::write(&path, first.to_string()).unwrap();
    let again = judged(&path);
    for key in ["verdict", "ratio", "n", "culprits", "not_explained", "slices", "sides"] {
        assert_eq!(first[key], again[key], "{key}");
    }
}

/// The runs differ in the time of one Python loop.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn explains_recordings() {
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
fn rejects_invalid_verdict_files() {
    let directory = tempfile::tempdir().unwrap();
    let check = |text: &str, expected: &str| {
        let path = directory.path().join("kept.json");
        std::fs::write(&path, text).unwrap();
        let mut why = Command::new(env!("CARGO_BIN_EXE_laggard"));
        let output = why.args(["why", "--from"]).arg(&path).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(expected), "{error}");
    };
    check("", "is not a result of laggard why");
    check("{\"schema\": \"laggard.why/1\"", "is not a result of laggard why");
    check(
        "{\"schema\": \"laggard.bench/1\", \"lags\": true, \"n\": 1, \"sides\": []}",
        "is not a result of laggard why",
    );
    let whole = std::fs::read_to_string(root().join("fixtures/culprits/copy.json")).unwrap();
    check(&whole[..whole.len() / 2], "is not a result of laggard why");
}
