//! Real interpreters and commands timed against each other: order of batches, measurements, and
//! errors of sides that crash, hang, print, fail or return another result.
//!
//! No test depends on how long anything takes.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{has, pythons, words};
use laggard_core::culprit::called;
use laggard_core::model::counts::Counts;
use laggard_core::model::timings::{Batch, Timings};
use laggard_probe::bench::{
    CasePlan, Limits, Period, Plan, ResultCheck, Rounds, Runs, SidePlan, Stage, Trouble, WarmUp,
    count_calls, count_side, measure, trace_side,
};
use laggard_probe::{Error, calls};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const ROUNDS: u32 = 12;

fn python() -> PathBuf {
    pythons().remove(0)
}

fn statement(name: &str, code: &str, setup: &str) -> SidePlan {
    let runs = Runs::Statement { code: code.into(), setup: setup.into(), prepare: String::new() };
    SidePlan { python: Some(python()), ..SidePlan::new(name, runs) }
}

fn command(name: &str, program: &str, rest: &[&str]) -> SidePlan {
    SidePlan::new(name, Runs::Command { words: words(program, rest), prepare: None })
}

/// A few rounds, regardless of time.
fn plan(sides: Vec<SidePlan>) -> Plan {
    let limits = Limits {
        time: Duration::from_millis(500),
        rounds: Rounds::Exactly(ROUNDS),
        warm_up: WarmUp::Rounds(2),
        ..Limits::default()
    };
    Plan { sides, limits, seed: 7, ..Plan::default() }
}

fn run(plan: &Plan) -> Timings {
    measure(plan, &mut |_| ()).unwrap_or_else(|error| panic!("{error}"))
}

fn statements(a: &str, b: &str, setup: &str) -> Plan {
    plan(vec![statement("A", a, setup), statement("B", b, setup)])
}

/// The error message of a plan.
fn wrong(plan: &Plan) -> String {
    measure(plan, &mut |_| ()).unwrap_err().to_string()
}

fn fact<'a>(facts: &'a [(String, String)], name: &str) -> Option<&'a str> {
    facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Whether a process has this text in its command line or environment.
fn is_running(marker: &str) -> bool {
    let has_it = |path: PathBuf| {
        std::fs::read(path).is_ok_and(|text| String::from_utf8_lossy(&text).contains(marker))
    };
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let is_process = entry.file_name().to_string_lossy().bytes().all(|c| c.is_ascii_digit());
        let is_us = entry.file_name().to_string_lossy() == std::process::id().to_string();
        is_process
            && !is_us
            && (has_it(entry.path().join("environ")) || has_it(entry.path().join("cmdline")))
    })
}

/// Adds a marker to the environment of all sides, to identify their processes.
fn mark(plan: &mut Plan, marker: &str) {
    for side in &mut plan.sides {
        side.env.push(("LAGGARD_TEST_MARK".into(), marker.into()));
    }
}

/// Waits a moment, because an ended process may still be listed.
fn assert_nothing_left(marker: &str) {
    for _ in 0..50 {
        if !is_running(marker) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("a process marked {marker} is still running");
}

#[test]
fn sides_take_turns_in_random_order() {
    let side = |name| statement(name, "sum(x)", "x = list(range(100))");
    let mut plan = plan(vec![side("A"), side("B"), side("C")]);
    plan.limits.rounds = Rounds::Exactly(40);
    let timings = run(&plan);
    assert_eq!(timings.cases.len(), 1);
    let series = &timings.cases[0].series;
    assert_eq!(series.len(), 3);
    let mut places = std::collections::BTreeSet::new();
    for round in 0..40 {
        let batches: Vec<Batch> = series.iter().map(|series| series.batches[round]).collect();
        assert!(batches.iter().all(|batch| batch.round == round as u32));
        let mut in_turn = batches.clone();
        in_turn.sort_by_key(|batch| batch.place);
        assert!(in_turn.iter().zip(0..).all(|(batch, place)| batch.place == place));
        for pair in in_turn.windows(2) {
            let end = pair[0].start_ns + pair[0].wall_ns;
            assert!(end <= pair[1].start_ns, "batches overlap: {in_turn:?}");
        }
        places.insert(batches.iter().map(|batch| batch.place).collect::<Vec<u32>>());
    }
    assert_eq!(places.len(), 6, "all orders of three sides occur");
    let again = run(&plan);
    let order = |timings: &Timings| -> Vec<u32> {
        timings.cases[0].series[0].batches.iter().map(|batch| batch.place).collect()
    };
    assert_eq!(order(&timings), order(&again), "the same seed gives the same order");
}

#[test]
fn measurements_and_facts_are_reported() {
    let plan = statements("sum(x)", "x.count(3)", "x = list(range(1000))");
    let mut plan = Plan { check: ResultCheck::Skip, ..plan };
    plan.sides[1].threads = Some(3);
    plan.sides[1].env.push(("MY_OPTION".into(), "on".into()));
    let timings = run(&plan);
    assert!(timings.tool.starts_with("laggard "));
    assert!(timings.started_unix > 1.7e9);
    assert!(fact(&timings.facts, "kernel").is_some());
    let names: Vec<&str> = timings.sides.iter().map(|side| side.name.as_str()).collect();
    assert_eq!(names, ["A", "B"]);
    assert_eq!(timings.sides[1].runs, "x.count(3)");
    assert_eq!(fact(&timings.sides[1].facts, "env MY_OPTION"), Some("on"));
    assert_eq!(fact(&timings.sides[1].facts, "requested threads"), Some("3"));
    for side in &timings.sides {
        assert!(fact(&side.facts, "version").unwrap().starts_with('3'));
        assert!(fact(&side.facts, "implementation").is_some());
        assert!(fact(&side.facts, "python").unwrap().starts_with('/'));
    }
    for series in &timings.cases[0].series {
        assert_eq!(series.batches.len(), ROUNDS as usize);
        assert!(series.warm_up.len() > 2);
        assert!(series.peak_memory > 1 << 20);
        assert!(series.threads >= 1);
        let calls = series.batches[0].calls;
        assert!(calls > 1, "short calls are batched");
        assert!(series.batches.iter().all(|batch| batch.calls == calls && batch.wall_ns > 0));
        let cpu: u64 = series.batches.iter().map(|batch| batch.user_ns + batch.system_ns).sum();
        assert!(cpu > 0);
    }
}

#[test]
fn a_side_with_three_times_the_work_takes_longer() {
    let timings = run(&statements("sum(x)", "sum(x); sum(x); sum(x)", "x = list(range(1000))"));
    let median = |side: usize| {
        let mut times = timings.cases[0].series[side].wall();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    assert!(median(1) / median(0) > 1.0);
    let calls = |side: usize| timings.cases[0].series[side].batches[0].calls;
    assert!(calls(0) > calls(1), "batches take about the same time");
}

#[test]
fn statements_see_the_names_of_their_set_up_code() {
    let setups = [
        // Local variables, and functions that use each other and recurse.
        ("f(5)", "n = 1\ndef f(k):\n    return n if k < 2 else k * f(k - 1)"),
        // Only valid in a module.
        ("sqrt(16.0)", "from math import *"),
        ("y", "text = '''a\n b'''\nassert len(text) == 4\ny = len(text)"),
        ("total = 0\nfor i in range(10):\n    if i % 2:\n        total += i\ntotal", ""),
        ("k = k + 1", "k = 0"),
        ("", ""),
    ];
    for (code, setup) in setups {
        run(&Plan { limits: short(), ..statements(code, code, setup) });
    }
}

fn short() -> Limits {
    Limits { rounds: Rounds::Exactly(2), ..plan(vec![]).limits }
}

#[test]
fn a_statement_may_print_close_its_input_and_change_directory() {
    let code = "print('x' * 1000); import os, sys; sys.stdin.close(); os.chdir('/'); os.closerange(3, 100)";
    let timings = run(&statements(code, "print(1, flush=True)", ""));
    assert_eq!(timings.cases[0].series[0].batches.len(), ROUNDS as usize);
    // Patching the clock does not affect the measurement.
    let code = "import time; time.perf_counter_ns = lambda: 0";
    assert!(run(&statements(code, code, "")).cases[0].series[0].wall()[0] > 0.0);
}

#[test]
fn every_interpreter_can_be_a_side() {
    let sides: Vec<SidePlan> = pythons()
        .iter()
        .chain(&pythons())
        .enumerate()
        .map(|(number, python)| SidePlan {
            python: Some(python.clone()),
            ..statement(&format!("side {number}"), "x = [n * n for n in range(100)]", "")
        })
        .collect();
    let timings = run(&plan(sides.clone()));
    assert_eq!(timings.sides.len(), sides.len());
    assert!(timings.warnings.is_empty(), "{:?}", timings.warnings);
}

#[test]
fn sides_have_their_own_environment_and_directory() {
    let mut plan = plan(vec![
        statement("A", "os.environ.get('WHO'), os.getcwd()", "import os"),
        statement("B", "'me', '/usr'", ""),
    ]);
    plan.sides[0].env.push(("WHO".into(), "me".into()));
    plan.sides[0].directory = Some("/usr".into());
    let timings = run(&plan);
    assert_eq!(fact(&timings.sides[0].facts, "directory"), Some("/usr"));
    plan.sides[0].directory = Some("/nowhere".into());
    let error = wrong(&plan);
    assert!(error.starts_with("side A cannot start /"), "{error}");
    assert!(error.contains("entering its directory"), "{error}");
}

#[test]
fn a_crash_is_reported_with_side_and_standard_error() {
    let check = |code: &str, expected: &str| {
        let mut plan = statements("1", code, "import os, sys, signal");
        mark(&mut plan, "crash");
        let error = wrong(&plan);
        assert!(error.starts_with(expected), "{code}: {error}");
        error
    };
    let code = "sys.stderr.write('last words\\n'); os.kill(os.getpid(), signal.SIGSEGV)";
    let error = check(code, "side B was killed by signal 11 (SIGSEGV); standard error:\n");
    assert!(error.contains("last words"), "{error}");
    check("os._exit(3)", "side B exited with status 3 in its first call");
    check("os.kill(os.getpid(), 9)", "side B was killed by signal 9 (SIGKILL)");
    check(
        "os.closerange(3, 1000)",
        "side B exited with status 1 in its first call; standard error:
",
    );
    check("sys.exit('enough')", "side B failed in its statement: SystemExit: enough");
    check("1 / 0", "side B failed in its statement: ZeroDivisionError: division by zero");
    assert_nothing_left("LAGGARD_TEST_MARK=crash");
}

#[test]
fn a_crash_during_the_measurement_is_reported() {
    let code = "n += 1\nif n > 2000: os._exit(4)";
    let error = wrong(&statements("1", code, "import os\nn = 0"));
    assert_eq!(error, "side B exited with status 4 before a call finished");
}

#[test]
fn a_hanging_side_is_killed_with_its_children() {
    let setup = "import subprocess, time";
    let code = "subprocess.Popen(['sleep', '600']); time.sleep(600)";
    let mut plan = statements("1", code, setup);
    plan.limits.timeout = Duration::from_millis(1500);
    mark(&mut plan, "hang");
    assert_eq!(wrong(&plan), "side B did not finish a call within 1.5 s");
    assert_nothing_left("LAGGARD_TEST_MARK=hang");
    plan.sides[0] = statement("A", "1", "import time; time.sleep(600)");
    assert_eq!(wrong(&plan), "side A did not finish its set-up within 1.5 s");
}

#[test]
fn invalid_python_is_reported_with_its_text() {
    let check = |code: &str, setup: &str, expected: &[&str]| {
        let mut plan = statements("1", "1", "");
        plan.sides[1] = statement("B", code, setup);
        let error = wrong(&plan);
        assert!(expected.iter().all(|part| error.contains(part)), "{code}: {error}");
    };
    check("1 +", "", &["side B contains invalid Python code: SyntaxError: ", "'1 +'"]);
    check("return 3", "", &["side B contains invalid Python code", "'return' outside function"]);
    check("break", "", &["side B contains invalid Python code", "'break' outside loop"]);
    check("1", "x ==", &["side B contains invalid Python code", "'x =='"]);
    check(
        "1",
        "import no_such_module",
        &["side B failed in its set-up", "No module named 'no_such_module'"],
    );
    check("unknown", "", &["side B failed in its statement: NameError", "'unknown'"]);
}

#[test]
fn missing_programs_cpus_and_sides_are_reported() {
    let mut plan = statements("1", "1", "");
    plan.sides[1].python = Some("/nowhere/python".into());
    assert_eq!(wrong(&plan), "side B cannot start: program not found: /nowhere/python");
    plan.sides[1] = command("B", "no-such-program", &[]);
    assert_eq!(wrong(&plan), "side B cannot start: program not found: no-such-program");
    plan.sides[1] = statement("B", "1", "");
    plan.sides[1].cpus = vec![100_000];
    assert_eq!(wrong(&plan), "side B cannot run on CPU 100000: no such CPU");
    plan.sides[1].cpus = vec![1000];
    let error = wrong(&plan);
    assert!(error.contains("setting its CPU affinity"), "{error}");
    plan.sides[1] = statement("A", "1", "");
    assert_eq!(wrong(&plan), "two sides are named A");
    plan.sides.clear();
    assert_eq!(wrong(&plan), "no side to measure");
    // A program that is not a Python interpreter.
    plan.sides = vec![statement("A", "1", "")];
    plan.sides[0].python = Some("/bin/false".into());
    assert_eq!(wrong(&plan), "side A exited with status 1 before it was ready");
}

#[test]
fn different_results_are_an_error() {
    let check = |a: &str, b: &str, expected: Option<&str>| {
        let plan = Plan { limits: short(), ..statements(a, b, "") };
        let found = measure(&plan, &mut |_| ()).err().map(|error| error.to_string());
        assert_eq!(found.as_deref(), expected, "{a} and {b}");
    };
    check("[1, 2.0, 'x']", "(1, 2.0, 'x')", None);
    check("1.0", "1.0 + 1e-13", None);
    check("float('nan')", "float('nan')", None);
    check("2 ** 200", "2 ** 200", None);
    check("{1: 2, 'a': [3]}", "{'a': [3], 1: 2}", None);
    check("{3, 1, 2}", "{1, 2, 3}", None);
    let say = "sides A and B give different results";
    check("1", "2", Some(&format!("{say}: 1 and 2")));
    check("y = 1.5", "y = 2.5", Some(&format!("{say}: 1.5 and 2.5")));
    check("[1, [2, 3]]", "[1, [2, 4]]", Some(&format!("{say} at [1][1]: 3 and 4")));
    check("{'a': 1}", "{'a': 2}", Some(&format!("{say} at [\"a\"]: 1 and 2")));
    let array = "__import__('array').array";
    let (a, b) = (format!("{array}('f', [1, 2])"), format!("{array}('d', [1, 2.00001])"));
    check(&a, &b, None);
    check(&format!("{array}('i', [1, -2])"), "[1, -3]", Some(&format!("{say} at [1]: -2 and -3")));
    let plan = statements("1", "2", "");
    run(&Plan { check: ResultCheck::Skip, limits: short(), ..plan.clone() });
    let error = measure(&plan, &mut |_| ()).unwrap_err();
    let Error::Differ(found) = error else { panic!("{error}") };
    assert_eq!(found.sides, ("A".into(), "B".into()));
}

#[test]
fn a_tolerance_can_be_given() {
    let plan = Plan { limits: short(), ..statements("1.0", "1.01", "") };
    assert!(wrong(&plan).contains("1.0 and 1.01"));
    run(&Plan { tolerance: Some(0.1), ..plan });
}

#[test]
fn incomparable_results_are_reported_once() {
    let plan = Plan { limits: short(), ..statements("object()", "object()", "") };
    let warnings: Vec<String> = run(&plan).notices().collect();
    let expected = "side A returns a value of type object, so results were not compared";
    assert_eq!(warnings.iter().filter(|warning| *warning == expected).count(), 1, "{warnings:?}");
}

#[test]
fn arrays_are_compared_element_by_element() {
    let pythons: Vec<PathBuf> = pythons().into_iter().filter(|path| has(path, "numpy")).collect();
    for python in pythons {
        let check = |a: &str, b: &str, expected: Option<&str>| {
            let mut plan =
                statements(a, b, "import numpy as np\nx = np.arange(12.0).reshape(3, 4)");
            plan.limits = short();
            for side in &mut plan.sides {
                side.python = Some(python.clone());
            }
            match (measure(&plan, &mut |_| ()), expected) {
                (Ok(timings), None) => {
                    assert!(fact(&timings.sides[0].facts, "numpy").is_some());
                    let warned = timings.warnings.iter().any(|text| text.contains("not compared"));
                    assert!(!warned, "{a} and {b}: {:?}", timings.warnings);
                }
                (Err(error), Some(expected)) => assert_eq!(error.to_string(), expected),
                (Ok(_), Some(expected)) => panic!("{a} and {b} are the same, not: {expected}"),
                (Err(error), None) => panic!("{a} and {b}: {error}"),
            }
        };
        check("x + 1", "1 + x", None);
        check("x.T", "x.T.copy()", None);
        check("x", "x.tolist()", None);
        check("x.astype('f4') * np.float32(1.000001)", "x", None);
        check("x.astype('f2')", "x", None);
        check("x > 3", "x > 3", None);
        check("x + 1j", "1j + x", None);
        check("x.sum()", "float(x.sum())", None);
        check("np.float32(x.sum())", "x.sum()", None);
        check("x[:0]", "x[:0]", None);
        let say = "sides A and B give different results";
        check("x", "x + (x == 6)", Some(&format!("{say} at [1, 2]: 6.0 and 7.0")));
        check("x", "x.T", Some(&format!("{say}: shape [3, 4] and shape [4, 3]")));
        check("x.astype('i4')", "x.astype('i8') - 1", Some(&format!("{say} at [0, 0]: 0 and -1")));
    }
}

#[test]
fn parameters_make_cases() {
    let case = |n: &str| CasePlan {
        name: format!("n={n}"),
        parameters: vec![("n".into(), n.into()), ("kind".into(), "float32".into())],
        own: None,
    };
    let mut plan = statements("x", "[n, kind]", "x = [n, 'float32']");
    plan.cases = vec![case("1"), case("10")];
    plan.sides.truncate(2);
    let timings = run(&plan);
    assert_eq!(timings.cases.len(), 2);
    assert_eq!(timings.cases[1].name, "n=10");
    assert_eq!(timings.cases[1].parameters[0], ("n".into(), "10".into()));
    let first = timings.cases[1].series[0].batches[0].start_ns;
    assert!(first > timings.cases[0].series[0].batches[0].start_ns, "all cases share one clock");
    // Parameters in the words of a command.
    let mut plan = self::plan(vec![command("A", "test", &["{n}", "-lt", "5"])]);
    plan.cases = vec![case("1")];
    run(&plan);
    plan.cases = vec![case("10")];
    let said = "case n=10 n=10 kind=float32: side A exited with status 1 instead of 0";
    assert_eq!(wrong(&plan), said);
    plan.sides[0].ignore_failure = true;
    run(&plan);
}

#[test]
fn commands_are_prepared_and_run_once_per_call() {
    let room = tempfile::tempdir().unwrap();
    let script = "test -e ready && rm ready && echo called >> calls";
    let mut plan = plan(vec![command("A", "sh", &["-c", script]), command("B", "true", &[])]);
    plan.sides[0].directory = Some(room.path().into());
    let Runs::Command { prepare, .. } = &mut plan.sides[0].runs else { panic!() };
    *prepare = Some(words("touch", &["ready"]));
    let timings = run(&plan);
    let series = &timings.cases[0].series;
    assert!(series.iter().all(|series| series.batches.len() == ROUNDS as usize));
    assert!(series[0].batches.iter().all(|batch| batch.calls == 1));
    let calls = std::fs::read_to_string(room.path().join("calls")).unwrap().lines().count();
    assert_eq!(
        calls,
        1 + series[0].warm_up.len() + ROUNDS as usize,
        "the first call and all timed calls"
    );
    assert_eq!(fact(&timings.sides[0].facts, "wall time"), Some("includes process start-up"));
    assert!(fact(&timings.facts, "empty process start").is_some());
    plan.sides[0].runs = Runs::Command {
        words: words("true", &[]),
        prepare: Some(words("sh", &["-c", "echo no room >&2; exit 5"])),
    };
    assert_eq!(
        wrong(&plan),
        "side A exited with status 5 in its preparation command; standard error:\n  no room"
    );
}

#[test]
fn commands_that_fail_hang_or_leave_children_are_handled() {
    let check = |script: &str, expected: Option<&str>| {
        let mut plan = plan(vec![command("A", "true", &[]), command("B", "sh", &["-c", script])]);
        plan.limits.timeout = Duration::from_millis(1000);
        mark(&mut plan, "left");
        let error = measure(&plan, &mut |_| ()).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), expected, "{script}");
        assert_nothing_left("LAGGARD_TEST_MARK=left");
    };
    check(
        "echo out; echo why >&2; exit 3",
        Some("side B exited with status 3 instead of 0; standard error:\n  why"),
    );
    check("kill -6 $$", Some("side B was killed by signal 6 (SIGABRT)"));
    check("sleep 600 & sleep 600", Some("side B did not finish a call within 1 s"));
    check("sleep 600 & true", None);
}

#[test]
fn a_statement_can_be_timed_against_a_command() {
    let timings = run(&plan(vec![statement("A", "sum(range(10))", ""), command("B", "true", &[])]));
    assert!(timings.cases[0].series[0].batches[0].calls > 1);
    assert_eq!(timings.cases[0].series[1].batches[0].calls, 1);
}

#[test]
fn one_side_is_measured_alone() {
    let mut plan = plan(vec![statement("A", "sum(range(100))", "")]);
    plan.limits.rounds = Rounds::AsNeeded { min: 5, max: 20 };
    plan.limits.precision = 1e9;
    let timings = run(&plan);
    assert_eq!(
        timings.cases[0].series[0].batches.len(),
        5,
        "the precision goal is reached at once"
    );
    assert!(timings.warnings.is_empty(), "{:?}", timings.warnings);
}

#[test]
fn calls_longer_than_the_time_limit_are_measured_once() {
    let mut plan = statements("time.sleep(0.2)", "time.sleep(0.2)", "import time");
    plan.limits = Limits { time: Duration::from_millis(100), ..Limits::default() };
    let timings = run(&plan);
    assert_eq!(timings.cases[0].series[1].batches.len(), 1);
    let warned = timings.warnings.iter().any(|text| text.starts_with("only 1 round measured"));
    assert!(warned, "{:?}", timings.warnings);
}

#[test]
fn progress_is_reported_by_stage() {
    let mut stages = vec![];
    let plan = statements("1", "1", "");
    measure(&plan, &mut |progress| {
        if stages.last() != Some(&progress.stage) {
            stages.push(progress.stage);
        }
        assert_eq!((progress.case, progress.cases), (0, 1));
    })
    .unwrap();
    assert_eq!(stages, [Stage::SetUp, Stage::Check, Stage::WarmUp, Stage::Sampling]);
}

#[test]
fn sides_run_on_their_cpus() {
    let before = allowed();
    let mut plan = plan(vec![
        statement("A", "sorted(os.sched_getaffinity(0))", "import os"),
        statement("B", "[0]", ""),
    ]);
    plan.sides[0].cpus = vec![0];
    let timings = run(&plan);
    assert_eq!(fact(&timings.sides[0].facts, "cpus"), Some("0"));
    assert_eq!(allowed(), before, "the affinity of the driver is restored");
}

/// The CPUs of this thread, as Linux lists them.
fn allowed() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    status.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap().to_owned()
}

#[test]
fn spinning_threads_do_not_disturb_the_other_side() {
    let setup = "import threading\n\
        state = {'n': 0, 'go': True}\n\
        def spin():\n    while state['go']: state['n'] += 1\n\
        threading.Thread(target=spin, daemon=True).start()";
    let mut plan = statements("1", "1", "");
    plan.sides[1] = statement("B", "1", setup);
    let timings = run(&plan);
    assert_eq!(timings.cases[0].series[0].threads, 1);
    assert_eq!(timings.cases[0].series[1].threads, 2);
}

#[test]
fn allocations_exclude_start_and_set_up() {
    // Small objects come from Python's own allocator, large ones from malloc.
    let setup = "kept = [bytes(100000) for _ in range(50)]";
    let mut plan = plan(vec![
        statement("A", "1.5 + len(kept)", setup),
        statement("B", "bytes(100000)", setup),
        statement("C", "[bytes(100000) for _ in kept]", setup),
        command("D", "true", &[]),
    ]);
    plan.check = ResultCheck::Skip;
    plan.allocations = true;
    let timings = run(&plan);
    assert_eq!(fact(&timings.facts, "allocations"), None);
    let counted: Vec<Option<f64>> = timings.cases[0]
        .series
        .iter()
        .map(|series| {
            let counter = series.counters.iter().find(|counter| counter.name == "allocations")?;
            assert_eq!(counter.source, "calls agent");
            Some(counter.per_call)
        })
        .collect();
    assert!(counted[0].unwrap() < 0.1, "{counted:?}");
    assert!((0.99..1.1).contains(&counted[1].unwrap()), "{counted:?}");
    // The list itself is reallocated occasionally.
    assert!((50.0..60.0).contains(&counted[2].unwrap()), "{counted:?}");
    assert_eq!(counted[3], None, "a command is not run again");
}

#[test]
fn a_failure_to_count_allocations_is_not_fatal() {
    let setup = "import os\nif 'LD_AUDIT' in os.environ: raise OSError('not with an agent')";
    let mut plan = plan(vec![statement("A", "pass", setup), statement("B", "pass", setup)]);
    plan.allocations = true;
    let timings = run(&plan);
    let why = fact(&timings.facts, "allocations").unwrap();
    assert!(why.starts_with("not counted: ") && why.contains("not with an agent"), "{why}");
    assert!(timings.cases[0].series.iter().all(|series| series.batches.len() == ROUNDS as usize));
    assert!(timings.warnings.iter().all(|warning| !warning.contains("allocations")));
}

#[test]
fn instructions_exclude_start_and_set_up() {
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|said| said.status.success()) {
        return;
    }
    let side = statement("A", "[n * n for n in range(100)]", "");
    let mut plan = plan(vec![side, command("B", "true", &[])]);
    plan.instructions = true;
    let timings = run(&plan);
    let counted: Vec<f64> = timings.cases[0]
        .series
        .iter()
        .map(|series| {
            let counter = series.counters.iter().find(|counter| counter.source == "callgrind");
            let counter = counter.unwrap_or_else(|| panic!("{:?}", timings.warnings));
            assert_eq!(counter.name, "instructions");
            counter.per_call
        })
        .collect();
    assert!(
        (500.0..100_000.0).contains(&counted[0]),
        "start-up, with millions of instructions, is excluded: {counted:?}"
    );
    assert!(counted[1] > 10_000.0, "{counted:?}");
}

/// The same loop over twice as many elements: exactly twice the instructions per function.
#[test]
fn instructions_are_counted_by_function() {
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|said| said.status.success()) {
        return;
    }
    let setup = "x = [float(n) for n in range(2000)]; y = x * 2";
    let plan = plan(vec![statement("A", "sum(x)", setup), statement("B", "sum(y)", setup)]);
    let count = |side| {
        let limit = Duration::from_secs(60);
        count_side(&plan, side, &CasePlan::default(), 1e6, limit).unwrap()
    };
    let (a, b) = (count(0), count(1));
    let own = |counts: &Counts| {
        let sum = counts
            .functions
            .iter()
            .max_by(|x, y| x.own.instructions.total_cmp(&y.own.instructions));
        sum.unwrap().clone()
    };
    let (of_a, of_b) = (own(&a), own(&b));
    assert_eq!(of_a.name, of_b.name);
    let more = of_b.own.instructions / of_a.own.instructions;
    assert!((1.9..2.1).contains(&more), "{of_a:?} {of_b:?}");
    assert!(of_b.own.accesses > 4000.0, "every element is loaded: {of_b:?}");
    assert!(a.whole.instructions < 1e6, "start-up and set-up are excluded: {:?}", a.whole);
}

fn prepared(name: &str, code: &str, setup: &str, prepare: &str) -> SidePlan {
    let mut side = statement(name, code, setup);
    if let Runs::Statement { prepare: own, .. } = &mut side.runs {
        *own = prepare.into();
    }
    side
}

#[test]
fn a_preparation_runs_before_every_call() {
    for python in pythons() {
        // `pop` fails on an empty list.
        let side = SidePlan { python: Some(python), ..prepared("A", "x.pop()", "", "x = [0]") };
        let plan = plan(vec![side]);
        let timings = run(&plan);
        let batches = &timings.cases[0].series[0].batches;
        assert!(batches.iter().all(|batch| batch.calls == 1), "{batches:?}");
        assert_eq!(timings.remarks, []);
    }
}

#[test]
fn a_failing_preparation_is_reported() {
    let error = wrong(&plan(vec![prepared("A", "pass", "", "1 / 0")]));
    assert!(error.contains("side A failed in its preparation: ZeroDivisionError"), "{error}");
}

#[test]
fn counted_and_traced_calls_exclude_the_preparation() {
    let setup = "import ctypes; labs = ctypes.CDLL(None).labs
def f(): labs(-1)
def g(): labs(-2); labs(-3)";
    for python in pythons() {
        let side = SidePlan { python: Some(python), ..prepared("A", "g()", setup, "f()") };
        let plan = plan(vec![side]);
        let counts = count_calls(&plan, 0, &CasePlan::default(), period(60.0)).unwrap();
        let names: Vec<&str> =
            counts.functions.iter().filter_map(|of| of.name.rsplit('.').next()).collect();
        assert!(names.contains(&"g") && !names.contains(&"f"), "{names:?}");
        let options = calls::Options { functions: vec!["labs".into()], ..Default::default() };
        let traced = trace_side(&plan, 0, &CasePlan::default(), period(0.1), &options).unwrap();
        let called = called(&traced.counts, traced.calls);
        let [only] = &called[..] else { panic!("{called:?}") };
        assert!(only.name == "labs" && (only.count - 2.0).abs() < 1e-6, "{only:?}");
    }
}

/// Remarks about sides that run a statement.
fn remarks(code: &str, setup: &str) -> Vec<(PathBuf, Vec<String>)> {
    let of = |python: PathBuf| {
        let side = SidePlan { python: Some(python.clone()), ..statement("A", code, setup) };
        (python, run(&plan(vec![side])).notices().collect())
    };
    pythons().into_iter().map(of).collect()
}

#[test]
fn statements_that_change_their_input_are_reported() {
    let check = |code: &str, setup: &str, expected: &str| {
        for (python, remarks) in remarks(code, setup) {
            let found = remarks.iter().any(|remark| remark.starts_with(expected));
            assert!(found, "{code} in {}: {remarks:?}", python.display());
        }
    };
    check("next(x)", "x = iter(range(10 ** 9))", "side A consumes its input: x (");
    check("next(x)", "x = (n for n in range(10 ** 9))", "side A consumes its input: x (generator)");
    check("x.append(1)", "x = []", "side A changes its input: the length of x (list)");
    // The first call sleeps. All others find the changed content.
    let slow = "import time; x = {0: 1}";
    let changed = "side A changes its input: a call with the original content of x (dict)";
    check("time.sleep(0.3 * x[0]); x[0] = 0", slow, changed);
    let array = "import time, array; x = array.array('d', [1.0])";
    let changed = "side A changes its input: a call with the original content of x (array)";
    check("time.sleep(0.3 * x[0]); x[0] = 0", array, changed);
    let cache = "import time
class C: pass
x = C()
x.n = 1";
    let found = "side A took ";
    check("time.sleep(0.3 * x.n); x.n = 0", cache, found);
}

#[test]
fn statements_that_keep_their_input_are_not_reported() {
    for (code, setup) in [
        ("sum(x)", "x = list(range(1000))"),
        ("y = sorted(x)", "x = [3, 1, 2]; y = None"),
        ("f.seek(0); f.read()", "import io; f = io.BytesIO(b'text')"),
        ("x.total()", "class C:\n def total(self): return 1\nx = C()"),
    ] {
        for (python, remarks) in remarks(code, setup) {
            assert_eq!(remarks, [""; 0], "{code} in {}", python.display());
        }
    }
}

#[test]
fn looking_for_changes_runs_no_code_of_the_variables() {
    let setup = "ran = []
class Lazy:
    def __len__(self): ran.append('len'); return 1
    def __iter__(self): ran.append('iter'); return iter(())
    def __hash__(self): ran.append('hash'); return 1
    def __getattr__(self, name): ran.append(name); return Lazy()
    def __next__(self): ran.append('next')
x = Lazy()
y = [Lazy(), {Lazy(): 1}]";
    for python in pythons() {
        // Fails if code of the class has run, except for the key of the dictionary.
        let side = statement("A", "assert set(ran) <= {'hash'}, ran", setup);
        run(&plan(vec![SidePlan { python: Some(python), ..side }]));
    }
}

#[test]
fn sides_with_different_results_are_measured_on_request() {
    let check = |a: &str, b: &str, expected: Result<&str, &str>| {
        let plan = Plan { check: ResultCheck::Report, ..statements(a, b, "x = [1, 2, 3]") };
        match (measure(&plan, &mut |_| ()), expected) {
            (Ok(timings), Ok(expected)) => {
                assert_eq!(timings.differences().collect::<Vec<_>>(), [expected], "{a}, {b}");
            }
            (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected),
            (found, _) => panic!("{a}, {b}: {found:?}"),
        }
    };
    check("sum(x)", "max(x)", Ok("sides A and B give different results: 6 and 3"));
    check("sum(x)", "sum(x) / 3", Ok("sides A and B give different results: 6 and 2.0"));
    let error = "sides A and B give different results: shape [3] and shape [2]";
    check("x[:]", "x[1:]", Err(error));
    let required = Plan { check: ResultCheck::Require, ..statements("1", "2", "") };
    assert_eq!(wrong(&required), "sides A and B give different results: 1 and 2");
}

/// A period for calls of unknown duration.
fn period(seconds: f64) -> Period {
    Period { time: Duration::from_secs_f64(seconds), call_ns: 0.0 }
}

#[test]
fn traced_calls_exclude_the_set_up_code() {
    let setup = "import ctypes; f = ctypes.CDLL(None).labs; [f(-n) for n in range(1000)]";
    let plan = plan(vec![statement("A", "f(-1); f(-2)", setup)]);
    let options = calls::Options { functions: vec!["labs".into()], ..calls::Options::default() };
    let traced = trace_side(&plan, 0, &CasePlan::default(), period(0.1), &options).unwrap();
    let called = called(&traced.counts, traced.calls);
    let [only] = &called[..] else { panic!("{called:?}") };
    assert_eq!((only.name.as_str(), only.count), ("labs", 2.0));
}

#[test]
fn traced_calls_exclude_those_of_the_worker() {
    let plan = plan(vec![statement("A", "os.getppid()", "import os")]);
    let options = calls::Options { libraries: vec!["*".into()], ..calls::Options::default() };
    let traced = trace_side(&plan, 0, &CasePlan::default(), period(0.1), &options).unwrap();
    let called = called(&traced.counts, traced.calls);
    let own = |name: &str| called.iter().any(|call| call.name == name && call.count > 0.001);
    assert!(own("getppid"), "{called:?}");
    for name in ["read", "write", "getrusage", "open64", "clock_gettime"] {
        assert!(!own(name), "{name}: {called:?}");
    }
}

/// Run in another process by `no_processes_remain_when_the_driver_ends`.
#[test]
#[ignore = "runs forever"]
fn endless_benchmark() {
    let mut plan = statements("subprocess.run(['sleep', '600'])", "1", "import subprocess");
    plan.sides.push(command("C", "sleep", &["600"]));
    let marker: OsString = std::env::var_os("LAGGARD_TEST_MARK").unwrap();
    mark(&mut plan, marker.to_str().unwrap());
    run(&plan);
}

#[test]
fn no_processes_remain_when_the_driver_ends() {
    for signal in ["INT", "TERM"] {
        let marker = format!("driver-{signal}");
        let mut driver = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "endless_benchmark", "--ignored", "--nocapture"])
            .env("LAGGARD_TEST_MARK", &marker)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let sleeps = || {
            let found = Command::new("pgrep").args(["-f", "sleep 600"]).output().unwrap();
            String::from_utf8_lossy(&found.stdout).lines().any(|pid| {
                std::fs::read(format!("/proc/{pid}/environ"))
                    .is_ok_and(|text| String::from_utf8_lossy(&text).contains(&marker))
            })
        };
        for _ in 0..500 {
            if sleeps() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(sleeps(), "the statement is running");
        let kill = ["-s".to_owned(), signal.to_owned(), driver.id().to_string()];
        assert!(Command::new("kill").args(kill).status().unwrap().success());
        assert!(!driver.wait().unwrap().success());
        assert_nothing_left(&format!("LAGGARD_TEST_MARK={marker}"));
    }
}

#[test]
fn a_failure_includes_the_python_traceback() {
    let error = measure(&statements("1", "f()", "def f():\n    raise KeyError('k')"), &mut |_| ());
    match error.unwrap_err() {
        Error::Side { side, trouble: Trouble::Raised { last, traceback, .. } } => {
            assert_eq!((side.as_str(), last.as_str()), ("B", "KeyError: 'k'"));
            assert!(traceback.contains("in f"), "{traceback}");
            assert!(!traceback.contains("_laggard_work"), "{traceback}");
        }
        other => panic!("{other}"),
    }
}

/// A resumed generator is not called again, whether by `next`, by an exception or by `close`.
#[test]
fn calls_are_counted_exactly_in_every_python() {
    let setup = "
class C:
    def m(self): return sorted([2, 1])
def gen():
    try:
        yield 1
        yield 2
    except ValueError:
        yield 3
def f():
    c = C()
    for _ in range(3): c.m()
    g = gen()
    next(g), g.throw(ValueError), g.close()
    list(gen())
";
    for python in pythons() {
        let side = SidePlan { python: Some(python.clone()), ..statement("A", "f()", setup) };
        let (plan, case) = (plan(vec![side]), CasePlan::default());
        let counts = count_calls(&plan, 0, &case, period(60.0)).unwrap();
        let count = |name: &str| {
            let is_named = |&&(_, callee, _): &&(i64, u32, u64)| {
                counts.functions[callee as usize].name.rsplit('.').next() == Some(name)
            };
            counts.edges.iter().filter(is_named).map(|edge| edge.2).sum::<u64>() / counts.calls
        };
        assert_eq!(["f", "m", "gen", "sorted"].map(count), [1, 3, 2, 3], "{}", python.display());
    }
}

#[test]
fn calls_of_python_programs_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program.py");
    std::fs::write(
        &path,
        "import sys, colorsys
def f(n):
    return sorted([n])
if __name__ == '__main__':
    for n in range(int(sys.argv[1])): f(n)
    sys.exit(0)
",
    )
    .unwrap();
    let path = path.to_str().unwrap();
    let code = std::fs::read_to_string(path).unwrap();
    for python in pythons() {
        let python = python.to_str().unwrap();
        for words in [vec![path, "{n}"], vec!["-u", "-c", &code, "3"], vec!["-m", "program", "3"]] {
            let side = SidePlan {
                directory: Some(directory.path().into()),
                ..command("A", python, &words)
            };
            let case =
                CasePlan { parameters: vec![("n".into(), "3".into())], ..Default::default() };
            let counts = count_calls(&plan(vec![side]), 0, &case, period(60.0)).unwrap();
            let called = |name: &str| {
                let is_named = |&&(_, callee, _): &&(i64, u32, u64)| {
                    counts.functions[callee as usize].name == name
                };
                counts.edges.iter().filter(is_named).map(|edge| edge.2).sum::<u64>()
            };
            assert_eq!(
                (counts.calls, ["f", "sorted"].map(called)),
                (1, [3, 3]),
                "{python} {words:?}"
            );
        }
    }
}

#[test]
fn calls_of_other_commands_are_reported_as_not_counted() {
    let plan = plan(vec![command("A", "true", &[])]);
    let error = count_calls(&plan, 0, &CasePlan::default(), period(1.0)).unwrap_err();
    assert!(error.to_string().contains("it is not a Python program"), "{error}");
}
