//! Exact counts of calls inside a library, with callgrind and with uprobes.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

mod common;

use common::{subject, words};
use laggard_core::model::calls::Calls;
use laggard_probe::Error;
use laggard_probe::inside::{Options, Way, callgrind, count, uprobes};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

static BUILT: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let here = tempfile::tempdir().unwrap();
    let (library, program) = (here.path().join("libinside.so"), here.path().join("inside_main"));
    let cc = |out: &PathBuf, rest: &[&std::ffi::OsStr]| {
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-g", "-pthread", "-fcf-protection=none", "-o"]).arg(out).args(rest);
        assert!(cc.status().unwrap().success());
    };
    cc(&library, &["-fPIC".as_ref(), "-shared".as_ref(), subject("inside_lib.c").as_os_str()]);
    let origin = "-Wl,-rpath,$ORIGIN".as_ref();
    cc(&program, &[subject("inside_main.c").as_os_str(), library.as_os_str(), origin]);
    here
});

fn command(rest: &[&str]) -> Vec<OsString> {
    words(BUILT.path().join("inside_main"), rest)
}

fn options(functions: &[&str]) -> Options {
    Options {
        libraries: vec!["libinside".into()],
        functions: functions.iter().map(|&name| name.to_owned()).collect(),
        quiet: true,
        ..Options::default()
    }
}

/// Calls as `caller > function xCOUNT`, summed over call sites and processes.
fn edges(calls: &Calls) -> Vec<String> {
    let texts = &calls.profile.texts;
    let mut sums = std::collections::BTreeMap::new();
    for row in &calls.rows {
        let name = texts.get(calls.functions[row.function as usize].name);
        let caller = texts.get(calls.profile.frames[row.caller as usize].function);
        *sums.entry(format!("{caller} > {name}")).or_insert(0) += row.count;
    }
    sums.into_iter().map(|(edge, count)| format!("{edge} x{count}")).collect()
}

fn has_valgrind() -> bool {
    match callgrind::is_available() {
        Ok(()) => true,
        Err(why) => {
            eprintln!("skipped: {why}");
            false
        }
    }
}

fn has_uprobes() -> bool {
    match uprobes::is_available() {
        Ok(()) => true,
        Err(why) => {
            eprintln!("skipped: {why}");
            false
        }
    }
}

/// The calls of `inside_work(rounds)`, made this many times.
fn expected(rounds: u64, times: u64) -> Vec<String> {
    [
        ("inside_middle > inside_leaf", 3 * rounds),
        ("inside_walk > inside_leaf", 4),
        ("inside_walk > inside_walk", 4),
        ("inside_work > inside_middle", rounds),
        ("inside_work > inside_walk", 1),
    ]
    .map(|(edge, count)| format!("{edge} x{}", count * times))
    .into()
}

#[test]
fn callgrind_counts_every_call() {
    if !has_valgrind() {
        return;
    }
    let inner = options(&["inside_leaf", "inside_middle", "inside_wal?"]);
    let (calls, ended) = count(&command(&["1000"]), &inner).unwrap();
    assert_eq!(ended.code(), 0);
    assert_eq!(edges(&calls), expected(1000, 1));
    let about = &calls.profile.about;
    assert_eq!(about.facts[0].1, "callgrind, because uprobes do not report callers");
    assert!(calls.rows.iter().all(|row| row.instructions.is_some() && row.total_ns == 0));
    // `inside_leaf` is two instructions.
    let leaf = calls
        .functions
        .iter()
        .position(|f| calls.profile.texts.get(f.name) == "inside_leaf")
        .unwrap();
    let own = calls.instructions.iter().find(|row| row.function as usize == leaf).unwrap();
    assert_eq!(own.own, 2 * 3004);
    assert!(calls.profile.quality.warnings[0].contains("simulated"));
    // Calls can be filtered by caller.
    let from = Options { from: vec!["inside_main".into()], ..options(&[]) };
    let (calls, _) = callgrind::count(&command(&["7"]), &from).unwrap();
    assert_eq!(edges(&calls), ["main > inside_work x1"]);
    let frame = calls.profile.frames[calls.rows[0].caller as usize];
    assert!(frame.address != 0 && frame.line != 0);
}

#[test]
fn callgrind_counts_processes_and_threads() {
    if !has_valgrind() {
        return;
    }
    let inner = options(&["inside_leaf", "inside_middle", "inside_wal?"]);
    let (calls, _) = callgrind::count(&command(&["10", "fork"]), &inner).unwrap();
    assert_eq!(calls.profile.threads.len(), 2);
    assert_eq!(edges(&calls), expected(10, 2));
    let (calls, _) = callgrind::count(&command(&["10", "threads"]), &inner).unwrap();
    assert_eq!(edges(&calls), expected(10, 4));
    let (_, ended) = callgrind::count(&command(&["10", "fail"]), &inner).unwrap();
    assert_eq!(ended.code(), 7);
}

#[test]
fn callgrind_follows_the_program_that_a_script_executes() {
    if !has_valgrind() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script");
    let program = BUILT.path().join("inside_main");
    std::fs::write(&path, format!("#!/bin/sh\nexec {} 10\n", program.display())).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let (calls, _) = callgrind::count(&words(&path, &[]), &options(&["inside_middle"])).unwrap();
    assert_eq!(edges(&calls), ["inside_work > inside_middle x10"]);
    // A program that executes another one is followed only with `children`.
    let line = format!("exec {} 10", program.display());
    let shell = words("/bin/sh", &["-c", &line]);
    let error = callgrind::count(&shell, &options(&[])).unwrap_err().to_string();
    assert!(error.contains("the program executed another program"), "{error}");
    let all = Options { children: true, ..options(&["inside_middle"]) };
    let (calls, _) = callgrind::count(&shell, &all).unwrap();
    assert_eq!(edges(&calls), ["inside_work > inside_middle x10"]);
}

/// The BLAS kernels that a line of NumPy reaches on the simulated CPU.
#[test]
fn callgrind_reports_the_kernel_variants_that_ran() {
    if !has_valgrind() {
        return;
    }
    for python in common::pythons().iter().filter(|python| common::has(python, "numpy")) {
        let code = "import numpy as np\na = np.ones((64, 64), np.float32)\n\
                    for _ in range(20): a @ a.copy()";
        let mut options = options(&["*cblas_sgemm*", "sgemm_kernel_*"]);
        options.libraries = vec!["openblas".into()];
        let (calls, ended) = callgrind::count(&words(python, &["-c", code]), &options).unwrap();
        assert_eq!(ended.code(), 0);
        if calls.rows.is_empty() {
            eprintln!("skipped: {} has another BLAS", python.display());
            continue;
        }
        let entered = edges(&calls).into_iter().filter(|edge| edge.contains("cblas_sgemm"));
        let entered: Vec<String> = entered.collect();
        assert!(entered.len() == 1 && entered[0].ends_with("x20"), "{entered:?}");
        let facts = &calls.profile.about.facts;
        let kernels = facts.iter().find(|fact| fact.0 == "kernel variants that ran").unwrap();
        assert!(!kernels.1.contains("SKYLAKEX"), "{kernels:?}");
        eprintln!("{kernels:?} {:?}", calls.profile.quality.warnings);
    }
}

#[test]
fn an_undecodable_instruction_is_reported() {
    if !has_valgrind() {
        return;
    }
    match callgrind::count(&command(&["1", "evex"]), &options(&[])) {
        Err(Error::Instruction { bytes, .. }) => assert!(bytes.starts_with("0x62"), "{bytes}"),
        Ok((_, ended)) => assert_eq!(ended.code(), 0, "this valgrind can decode it"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn uprobes_count_every_entry() {
    if !has_uprobes() {
        return;
    }
    let counts = |rest: &[&str], options: &Options| {
        let (calls, ended) = uprobes::count(&command(rest), options).unwrap();
        assert_eq!(ended.code(), 0);
        edges(&calls)
    };
    let fast = Options { callers: false, ..options(&["inside_middle", "inside_work"]) };
    assert_eq!(counts(&["1000"], &fast), [" > inside_middle x1000", " > inside_work x1"]);
    assert_eq!(counts(&["10", "threads"], &fast), [" > inside_middle x40", " > inside_work x4"]);
    assert_eq!(counts(&["10", "fork"], &fast), [" > inside_middle x10", " > inside_work x1"]);
    let children = Options { children: true, ..fast.clone() };
    assert_eq!(counts(&["10", "fork"], &children), [" > inside_middle x20", " > inside_work x2"]);
    let slow = Options { slow_probes: true, ..options(&["inside_leaf"]) };
    assert_eq!(counts(&["1000"], &slow), [" > inside_leaf x3004"]);

    let (calls, _) = count(&command(&["10"]), &fast).unwrap();
    assert!(calls.profile.about.facts[0].1.starts_with("uprobes: "));
}

#[test]
fn slow_or_too_many_uprobes_are_rejected() {
    if !has_uprobes() {
        return;
    }
    let error =
        |options: &Options| uprobes::count(&command(&["1"]), options).unwrap_err().to_string();
    assert!(error(&options(&["inside_leaf"])).contains("about 20 µs per call"));
    assert!(error(&options(&["no_such"])).contains("no function matches no_such"));
    let few = Options { most_probes: 1, ..options(&["inside_middle", "inside_work"]) };
    assert_eq!(error(&few), "2 functions match, but at most 1 can be counted with uprobes");
    let nowhere = Options { libraries: vec!["openblas".into()], ..options(&[]) };
    assert!(error(&nowhere).contains("give the absolute path"));
    // Skipped functions are reported.
    let mixed = options(&["inside_leaf", "inside_middle"]);
    let (calls, _) = uprobes::count(&command(&["5"]), &mixed).unwrap();
    assert_eq!(edges(&calls), [" > inside_middle x5"]);
    assert_eq!(calls.quality.not_wrapped[0].0, "inside_leaf");
    if has_valgrind() {
        let asked = Options { way: Some(Way::Callgrind), ..mixed };
        let (calls, _) = count(&command(&["5"]), &asked).unwrap();
        assert!(edges(&calls).contains(&"inside_middle > inside_leaf x15".to_owned()));
    }
}
