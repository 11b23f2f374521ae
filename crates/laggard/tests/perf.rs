//! `laggard record --backend perf` and `laggard dump` with real programs. Skipped if this machine
//! lacks what they need.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::print_stderr)] // tests panic on failure and print skips

use laggard_core::model::profile::Profile;
use laggard_formats::lag::{Run, read_run};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn laggard(words: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_laggard"));
    command.args(words).current_dir(directory).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn profile(path: &Path) -> Profile {
    match read_run(path).unwrap() {
        (Run::Profile(profile), losses) if losses.is_empty() => profile,
        _ => panic!("{} is not a complete profile", path.display()),
    }
}

/// Whether perf can record on this machine. Prints a notice if not.
fn has_perf() -> bool {
    let mut trial = Command::new("perf");
    trial.args(["record", "-q", "-e", "cpu-clock", "-o", "/dev/null", "--", "true"]);
    let works = trial.output().is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("skipped: perf is not installed or not permitted");
    }
    works
}

const LOOP: &str = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; exit 7";

#[test]
fn records_with_perf() {
    if !has_perf() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let words = ["record", "--backend", "perf", "-o", "run.lag", "--", "sh", "-c", LOOP];
    let output = laggard(&words, directory.path());
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(stderr(&output).contains("recording with perf"), "{}", stderr(&output));
    let profile = profile(&directory.path().join("run.lag"));
    assert!(!profile.samples.is_empty());
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "perf.data was not removed: {left:?}");
}

#[test]
fn perf_failures_have_hints() {
    if !has_perf() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let check = |words: &[&str], expected: &str| {
        let output = laggard(words, directory.path());
        assert_eq!(output.status.code(), Some(125), "{words:?}");
        let said = stderr(&output);
        assert!(said.contains(expected) && !said.contains("panicked"), "{words:?}: {said}");
    };
    check(&["record", "--backend", "perf", "--event", "nosuch", "--", "true"], "perf list");
    check(&["record", "--pid", "2147483646"], "process 2147483646 does not exist");
    check(&["record", "--backend", "perf", "--gil", "--", "true"], "cannot be combined");
}

#[test]
fn records_a_running_process() {
    if !has_perf() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let mut busy = Running(busy);
    let pid = busy.0.id().to_string();
    let words = ["record", "--pid", &pid, "--duration", "300ms", "-o", "run.lag"];
    let output = laggard(&words, directory.path());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(busy.0.try_wait().unwrap(), None, "the process must keep running");
    let profile = profile(&directory.path().join("run.lag"));
    assert!(profile.threads.iter().all(|thread| thread.pid == busy.0.id()));
    assert!(!profile.samples.is_empty());
    assert_eq!(profile.about.command, ["sh", "-c", "while :; do :; done"]);
}

#[test]
fn perf_follows_children_unless_disabled() {
    if !has_perf() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // The first sample is that of the other shell.
    let line = format!("sh -c '{LOOP}'; {LOOP}");
    let record = |more: &[&str]| {
        let words = [&["record", "--force", "--backend", "perf", "-o", "run.lag"], more].concat();
        let output = laggard(&[&words[..], &["--", "sh", "-c", &line]].concat(), directory.path());
        assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
        let profile = profile(&directory.path().join("run.lag"));
        let pid = |sample: &laggard_core::model::profile::Sample| {
            profile.threads[sample.thread as usize].pid
        };
        profile.samples.iter().map(pid).collect::<std::collections::BTreeSet<u32>>().len()
    };
    assert_eq!(record(&[]), 2);
    assert_eq!(record(&["--no-children"]), 1);
}

/// A child process that is killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SCRIPT: &str = "
import threading, time
def spins_in_here():
    while True: pass
def sleeps_in_here():
    print('ready', flush=True)
    time.sleep(600)
threading.Thread(target=spins_in_here, daemon=True, name='spins by name').start()
sleeps_in_here()
";

/// All installed CPython interpreters of supported versions.
fn pythons() -> Vec<PathBuf> {
    let mut found = vec![];
    let pyenv = Command::new("pyenv").arg("root").output().ok();
    let root = pyenv.filter(|output| output.status.success());
    if let Some(root) = root {
        let root = PathBuf::from(String::from_utf8_lossy(&root.stdout).trim());
        for version in std::fs::read_dir(root.join("versions")).into_iter().flatten().flatten() {
            found.push(version.path().join("bin/python"));
        }
    }
    found.push("/usr/bin/python3".into());
    let is_known = |python: &PathBuf| {
        let code = "import sys; sys.exit(not (3, 9) <= sys.version_info < (3, 15))";
        let output = Command::new(python).args(["-c", code]).output();
        output.is_ok_and(|output| output.status.success())
    };
    found.retain(is_known);
    found
}

#[test]
fn dump_shows_all_threads_for_every_python_version() {
    let pythons = pythons();
    if pythons.is_empty() {
        eprintln!("skipped: Python is not installed");
    }
    for python in pythons {
        let mut command = Command::new(&python);
        let mut running =
            Running(command.args(["-c", SCRIPT]).stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid = running.0.id().to_string();
        let output = laggard(&["dump", "--pid", &pid, "--json"], Path::new("."));
        if stderr(&output).contains("cannot read the memory of process") {
            eprintln!("skipped: {}", stderr(&output));
            return;
        }
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["schema"], "laggard.dump/1");
        let threads = json["threads"].as_array().unwrap();
        let names = |thread: &serde_json::Value| -> Vec<String> {
            let frames = thread["frames"].as_array().unwrap();
            frames.iter().map(|f| f["function"].as_str().unwrap().to_owned()).collect()
        };
        let place = python.display();
        assert_eq!(threads.len(), 2, "{place}: {json}");
        assert_eq!(names(&threads[0]), ["sleeps_in_here", "<module>"], "{place}");
        assert!([6, 7].contains(&threads[0]["frames"][0]["line"].as_u64().unwrap()), "{place}");
        assert_eq!(names(&threads[1])[0], "spins_in_here", "{place}");
        assert_eq!(threads[1]["name"], "spins by name", "{place}");
        assert!(threads.iter().all(|thread| thread["tid"] != 0), "{place}");
        let text = laggard(&["dump", "--pid", &pid], Path::new("."));
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        assert!(text.contains("sleeps_in_here (<string>:"), "{place}: {text}");
    }
}

#[test]
fn dump_reports_a_program_without_python() {
    let running = Running(Command::new("sleep").arg("600").spawn().unwrap());
    let pid = running.0.id().to_string();
    let output = laggard(&["dump", "--pid", &pid], Path::new("."));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("not a Python process"), "{text}{}", stderr(&output));
    assert_eq!(laggard(&["dump", "--pid", "2147483646"], Path::new(".")).status.code(), Some(2));
}
