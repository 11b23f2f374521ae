//! Compares `laggard report` of perf recordings with `perf report`.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::print_stderr)] // tests panic on failure and print skips

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Two processes that burn CPU time in known functions, one of them recursive.
const PROGRAM: &str = "
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
volatile double sink;
__attribute__((noinline)) double leaf(int n) {
  double s = 0; for (int i = 1; i < n; i++) s += 1.0 / i; return s; }
__attribute__((noinline)) double again(int depth, int n) {
  double s = leaf(n); if (depth > 0) s += again(depth - 1, n) * 2; return s + 1; }
__attribute__((noinline)) double middle(int n) { double s = leaf(n) * 2; return s + again(3, n / 2); }
__attribute__((noinline)) double outer(int n) { double s = middle(n); return s + 1; }
static inline double squared(double x) { double s = 0; for (int i = 0; i < 20000; i++) s += x * i; return s; }
__attribute__((noinline)) double inlines(int n) { double s = squared(n); return s + squared(n + 1); }
int main(int argc, char **argv) {
  int child = fork();
  for (volatile int i = 0; i < 150; i++) sink += outer(100000 + i) + (child ? 0 : inlines(i));
  if (child) wait(0);
  return 0; }
";

fn works(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

fn recorded(directory: &Path, flags: &[&str]) -> Option<PathBuf> {
    let (source, program) = (directory.join("p.c"), directory.join("program"));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-g", "-fno-omit-frame-pointer", "-o"]).arg(&program).arg(&source);
    if !works(&mut compile) {
        eprintln!("skipped: no C compiler found");
        return None;
    }
    let data = directory.join("perf.data");
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-e", "cpu-clock:u", "-F", "1999"]).args(flags).arg("-o");
    record.arg(&data).arg("--").arg(&program);
    if !works(&mut record) {
        eprintln!("skipped: perf cannot record on this machine");
        return None;
    }
    Some(data)
}

/// Total and self percentages and self samples, by function.
type Rows = BTreeMap<String, (f64, f64, u64)>;

/// Normalizes symbol names: perf prints symbol versions and may choose another alias.
fn plain(name: &str) -> String {
    name.split('@').next().unwrap_or_default().trim_start_matches('_').to_owned()
}

fn ours(data: &Path, flags: &[&str]) -> Rows {
    let mut report = Command::new(env!("CARGO_BIN_EXE_laggard"));
    report.args(["report", "--by", "function", "--all", "--json"]).args(flags).arg(data);
    let output = report.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = file["tables"]["function"]["rows"].as_array().unwrap();
    let percent = |row: &Value, key: &str| 100.0 * row[key].as_f64().unwrap();
    rows.iter()
        .map(|row| {
            let name = plain(row["name"].as_str().unwrap());
            let own = row["self_samples"].as_u64().unwrap();
            (name, (percent(row, "total_share"), percent(row, "self_share"), own))
        })
        .collect()
}

fn perfs(data: &Path, flags: &[&str]) -> Rows {
    let mut report = Command::new("perf");
    report.args([
        "report",
        "--stdio",
        "--no-inline",
        "-g",
        "none",
        "-t",
        ";",
        "--percent-limit",
        "0",
    ]);
    report.args(flags).arg("-i").arg(data);
    let has_children = flags.contains(&"--children");
    let fields =
        if has_children { "overhead_children,overhead,sample,sym" } else { "overhead,sample,sym" };
    report.args(["-F", fields]);
    let text = String::from_utf8_lossy(&report.output().unwrap().stdout).into_owned();
    let mut rows = Rows::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && line.contains(';')) {
        let words: Vec<&str> = line.split(';').map(str::trim).collect();
        let percent = |word: &str| word.trim_end_matches('%').parse::<f64>().unwrap();
        let (total, rest) = match has_children {
            true => (percent(words[0]), &words[1..]),
            false => (f64::NAN, &words[..]),
        };
        let name = rest[2].split_once("] ").map_or(rest[2], |(_, name)| name);
        rows.insert(plain(name), (total, percent(rest[0]), rest[1].parse().unwrap()));
    }
    rows
}

#[test]
fn agrees_with_perf_report_in_each_call_graph_mode() {
    let modes: [&[&str]; 4] = [
        &[],
        &["--call-graph", "fp"],
        &["--call-graph", "dwarf,16384"],
        &["--call-graph", "dwarf,16384", "-z"],
    ];
    for mode in modes {
        let directory = tempfile::tempdir().unwrap();
        let Some(data) = recorded(directory.path(), mode) else { return };
        let has_stacks = !mode.is_empty();
        let ours = ours(&data, &["--no-inline"]);
        let perfs = perfs(&data, &[if has_stacks { "--children" } else { "--no-children" }]);
        for name in ["leaf", "again", "middle", "outer", "inlines", "main"] {
            // Without a call graph, only innermost functions are sampled.
            let Some(&(total, own, samples)) = perfs.get(name) else {
                assert!(!has_stacks, "{mode:?}: perf does not know {name}");
                continue;
            };
            let Some(&(our_total, our_own, our_samples)) = ours.get(name) else {
                panic!("{mode:?}: {name} is missing: {ours:?}");
            };
            assert_eq!(our_samples, samples, "{mode:?}: samples in {name} itself");
            // perf rounds to 0.01 %.
            assert!((our_own - own).abs() < 0.0051, "{mode:?}: {name}: self {our_own} and {own}");
            if has_stacks {
                let off = (our_total - total).abs();
                assert!(off < 0.0051, "{mode:?}: {name}: total {our_total} and {total}");
            }
        }
        // Library functions too, if both tools use the same name.
        for (name, (_, own, _)) in &perfs {
            if let Some((_, our_own, _)) = ours.get(name) {
                assert!((our_own - own).abs() < 0.0051, "{mode:?}: {name}: {our_own} and {own}");
            }
        }
    }
}

#[test]
fn symbolizes_a_deleted_program_from_the_build_id_cache() {
    let directory = tempfile::tempdir().unwrap();
    let Some(data) = recorded(directory.path(), &["--call-graph", "fp"]) else { return };
    let mut keep = Command::new("perf");
    keep.args(["buildid-cache", "--add"]).arg(directory.path().join("program"));
    keep.env("HOME", directory.path());
    if !works(&mut keep) {
        eprintln!("skipped: perf cannot use its build-id cache");
        return;
    }
    std::fs::remove_file(directory.path().join("program")).unwrap();
    let names = |home: &Path| {
        let mut report = Command::new(env!("CARGO_BIN_EXE_laggard"));
        report.args(["report", "--by", "function", "--all", "--format", "csv"]).arg(&data);
        String::from_utf8(report.env("HOME", home).output().unwrap().stdout).unwrap()
    };
    assert!(!names(Path::new("/nowhere")).contains("leaf,"), "the program was deleted");
    let cached = names(directory.path());
    assert!(cached.contains("leaf,program"), "{cached}");
}

#[test]
fn reports_inlined_functions_unless_disabled() {
    let directory = tempfile::tempdir().unwrap();
    let Some(data) = recorded(directory.path(), &["--call-graph", "dwarf,16384"]) else { return };
    let with = ours(&data, &[]);
    let without = ours(&data, &["--no-inline"]);
    assert!(with.keys().any(|name| name.starts_with("squared")), "{with:?}");
    assert!(!without.keys().any(|name| name.contains("squared")));
    let (before, after) = (with["inlines"], without["inlines"]);
    assert!((before.0 - after.0).abs() < 1e-9, "total time must not change");
    assert!(after.1 > before.1, "self time must include inlined functions");
}
