//! `laggard compare` of recordings: the largest difference comes first, differences add up, and
//! functions of one side only are listed.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test fails by panicking

mod common;

use common::Place;
use serde_json::Value;
use std::process::Command;

/// Burns CPU time in known functions. The first argument is the work of `slow`; a second one enables
/// `extra`.
const PROGRAM: &str = r#"
#include <stdlib.h>
volatile unsigned long sink;
#define WORK(name) __attribute__((noinline)) void name(long n) { \
    for (long i = 0; i < n * 4000000; i++) sink += i; }
WORK(steady) WORK(slow) WORK(extra)
__attribute__((noinline)) void caller(long n) { slow(n); sink++; }
int main(int argc, char **argv) {
    steady(60);
    caller(atol(argv[1]));
    if (argc > 2) extra(60);
}
"#;

/// A working directory with the program under two names.
fn place() -> Place {
    let place = Place::with(&[]);
    std::fs::write(place.path("app.c"), PROGRAM).unwrap();
    let mut cc = Command::new("cc");
    cc.current_dir(place.path("")).args(["-O1", "-g", "-o", "app", "app.c"]);
    assert!(cc.status().unwrap().success());
    std::fs::copy(place.path("app"), place.path("app-2.1")).unwrap();
    place
}

fn record(place: &Place, output: &str, words: &[&str]) {
    let mut args = vec!["record", "-q", "-o", output, "--"];
    args.extend(words);
    let ran = place.run(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

fn json(place: &Place, args: &[&str]) -> Value {
    serde_json::from_str(&place.data(args)).unwrap()
}

fn sum_of_self_gaps(found: &Value, rows: &str) -> f64 {
    let rows = found[rows].as_array().unwrap();
    rows.iter().map(|row| row["self"]["gap"].as_f64().unwrap()).sum()
}

#[test]
fn ranks_differences_that_add_up() {
    let place = place();
    record(&place, "a.lag", &["./app", "60"]);
    record(&place, "b.lag", &["./app-2.1", "240", "more"]);
    let found = json(&place, &["compare", "--json", "--all", "a.lag", "b.lag"]);
    assert_eq!(found["schema"], "laggard.compare-profile/1");
    assert_eq!((&found["scale"], &found["unit"]), (&"time".into(), &"ns".into()));
    let rows = found["findings"].as_array().unwrap();
    assert_eq!(rows[0]["name"], "slow");
    assert_eq!(rows[0]["aligned_by"], "library");
    assert_eq!(rows[0]["names_b"][0]["library"], "app-2.1");
    assert_eq!(rows[0]["self"]["verdict"], "single sample");
    assert!((2.5..6.0).contains(&rows[0]["self"]["ratio"].as_f64().unwrap()), "{}", rows[0]);
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(row("extra")["only_in"], "B");
    assert!(row("extra")["missed_by_chance"].as_f64().unwrap() < 1e-6);
    assert!((2.5..6.0).contains(&row("caller")["total"]["ratio"].as_f64().unwrap()));
    let gap = found["whole"]["gap"].as_f64().unwrap();
    assert_eq!(sum_of_self_gaps(&found, "findings"), gap);
    assert_eq!(sum_of_self_gaps(&found, "libraries"), gap);
    let text = place.data(&["compare", "a.lag", "b.lag"]);
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("B takes ") && first.contains("x the CPU time of A"), "{text}");
    assert!(text.contains("in slow (app)"), "{text}");
    let only = place.data(&["compare", "--only", "b", "a.lag", "b.lag"]);
    assert!(only.contains("Only in B") && only.contains("extra"), "{only}");
    assert!(!only.contains("steady") && !only.contains("Only in A"), "{only}");
    let call =
        json(&place, &["compare", "--json", "--calls", "10,5", "--fn", "slow", "a.lag", "b.lag"]);
    let per_call = |side: &str| call["findings"][0]["self"][side].as_f64().unwrap();
    let whole = |side: &str| rows[0]["self"][side].as_f64().unwrap();
    assert_eq!((per_call("a"), per_call("b")), (whole("a") / 10.0, whole("b") / 5.0));
}

#[test]
fn several_recordings_allow_verdicts_and_fail_above() {
    let place = place();
    for run in 1..=3 {
        record(&place, &format!("a{run}.lag"), &["./app", "60"]);
        record(&place, &format!("b{run}.lag"), &["./app", "300"]);
    }
    let a = ["--a", "a1.lag", "a2.lag", "a3.lag"];
    let b = ["--b", "b1.lag", "b2.lag", "b3.lag"];
    let with = |first: &[&'static str], a: &[&'static str], b: &[&'static str]| {
        [&["compare"], first, a, b].concat()
    };
    let found = json(&place, &with(&["--json"], &a, &b));
    assert_eq!(found["interval_from"], "recordings");
    assert_eq!(found["findings"][0]["name"], "slow");
    assert_eq!(found["findings"][0]["self"]["verdict"], "slower");
    assert_eq!(found["whole"]["verdict"], "slower");
    assert_eq!(place.run(&with(&["--fail-above", "5%"], &a, &b)).code, Some(1));
    let back = ["--b", "a1.lag", "a2.lag", "a3.lag"];
    let same = place.run(&with(&["--fail-above", "5%"], &a, &back));
    assert_eq!(same.code, Some(0), "{}{}", same.stdout, same.stderr);
    let one = place.run(&["compare", "--fail-above", "5%", "a1.lag", "b1.lag"]);
    assert_eq!(one.code, Some(2));
    assert!(one.stderr.contains("at least two recordings per side"), "{}", one.stderr);
}

#[test]
fn aligns_python_functions_between_scripts() {
    let place = Place::with(&[]);
    let program = |loops: u32| {
        format!(
            "def burn():\n    return sum(i * i for i in range({loops}))\ndef main():\n    for _ in range(20): burn()\nmain()\n"
        )
    };
    std::fs::write(place.path("before.py"), program(60_000)).unwrap();
    std::fs::write(place.path("after.py"), program(240_000)).unwrap();
    if Command::new("python3").arg("-c").arg("").status().is_err() {
        eprintln!("skipped: Python is not installed");
        return;
    }
    record(&place, "a.lag", &["python3", "before.py"]);
    record(&place, "b.lag", &["python3", "after.py"]);
    let found = json(&place, &["compare", "--json", "--all", "--fn", "burn", "a.lag", "b.lag"]);
    let rows = found["findings"].as_array().unwrap();
    let row = rows.iter().find(|row| row["only_in"].is_null()).unwrap();
    assert_eq!((&row["kind"], &row["aligned_by"]), (&"python".into(), &"file".into()));
    assert!(row["total"]["ratio"].as_f64().unwrap() > 2.0, "{row}");
}
