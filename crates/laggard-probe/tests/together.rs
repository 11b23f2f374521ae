//! Statements that share a process: measurements, and errors of statements that fail, crash, hang
//! or return another result. No test depends on how long anything takes.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::pythons;
use laggard_probe::Error;
use laggard_probe::bench::{
    CaseTogether, Effort, Interpreter, MeasuredTogether, StatementTogether, Together,
    measure_together,
};
use std::time::Duration;

fn statement(code: &str) -> StatementTogether {
    StatementTogether {
        name: code.to_owned(),
        code: code.to_owned(),
        check: Some(String::new()),
        ..StatementTogether::default()
    }
}

fn case(statements: Vec<StatementTogether>) -> CaseTogether {
    CaseTogether { name: "case".into(), statements, is_counted: false }
}

fn plan(cases: Vec<CaseTogether>) -> Together {
    Together {
        interpreters: vec![Interpreter { python: pythons().remove(0), env: vec![] }],
        cases,
        launches: 2,
        effort: Effort::Time(Duration::from_millis(50)),
        cpus: vec![],
        seed: 3,
        timeout: Duration::from_secs(20),
    }
}

fn run(plan: &Together) -> MeasuredTogether {
    measure_together(plan, &mut |_| ()).unwrap_or_else(|error| panic!("{error}"))
}

fn has_valgrind() -> bool {
    let asked = std::process::Command::new("valgrind").arg("--version").output();
    asked.is_ok_and(|said| said.status.success())
}

fn trouble(measured: &MeasuredTogether, case: usize, statement: usize) -> &str {
    measured.cases[case][statement].trouble.as_deref().unwrap_or("")
}

#[test]
fn statements_take_turns_in_every_process_launch() {
    let plan = plan(vec![
        case(vec![statement("1 + 1"), statement("2"), statement("5 - 3")]),
        case(vec![statement("'a'.upper()")]),
    ]);
    let measured = run(&plan);
    assert_eq!(measured.cases.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1]);
    for times in measured.cases.iter().flatten() {
        assert_eq!(times.trouble, None);
        assert_eq!(times.launches.len(), 2);
        for launch in &times.launches {
            assert!(launch.batches.len() >= 5, "{launch:?}");
            assert!(launch.batches.iter().all(|batch| batch.calls > 0 && batch.wall_ns > 0));
        }
    }
    // In every round, each statement runs once, one after the other.
    let mut orders = std::collections::BTreeSet::new();
    for round in 0..5 {
        let of = |statement: usize| measured.cases[0][statement].launches[0].batches[round];
        let mut batches = [of(0), of(1), of(2)];
        assert!(batches.iter().all(|batch| batch.round == round as u32));
        orders.insert(batches.map(|batch| batch.place));
        batches.sort_by_key(|batch| batch.place);
        for pair in batches.windows(2) {
            assert!(pair[0].start_ns + pair[0].wall_ns <= pair[1].start_ns, "{batches:?}");
        }
    }
    assert!(orders.len() > 1, "{orders:?}");
    assert!(measured.interpreters[0].iter().any(|(name, _)| name == "version"));
}

#[test]
fn statements_share_one_process_per_process_launch() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let setup = format!("import os; open({:?}, 'a').write(str(os.getpid()) + '\\n')", file.path());
    let with = |code: &str| StatementTogether { setup: setup.clone(), ..statement(code) };
    run(&plan(vec![case(vec![with("1"), with("1")]), case(vec![with("2")])]));
    let text = std::fs::read_to_string(file.path()).unwrap();
    let mut pids: Vec<&str> = text.lines().collect();
    assert_eq!(pids.len(), 6, "three set-ups in each of two process launches");
    pids.dedup();
    assert_eq!(pids.len(), 2, "one process per process launch: {text}");
}

#[test]
fn a_statement_with_another_result_is_skipped_with_a_reason() {
    let unchecked = StatementTogether { check: None, ..statement("None") };
    let checked = StatementTogether { check: Some("[x, 1]".into()), ..statement("y = x") };
    let checked = StatementTogether { setup: "x = 4".into(), ..checked };
    let other = StatementTogether { setup: "x = 5".into(), ..checked.clone() };
    let measured = run(&plan(vec![
        case(vec![unchecked, statement("6 * 7"), statement("41"), statement("42.0")]),
        case(vec![checked.clone(), other, checked]),
    ]));
    assert_eq!(trouble(&measured, 0, 0), "");
    assert_eq!(trouble(&measured, 0, 2), "returns 41 where 6 * 7 returns 42");
    assert_eq!(trouble(&measured, 0, 3), "");
    assert_eq!(trouble(&measured, 1, 1), "returns 5 at [0] where y = x returns 4");
    assert!(measured.cases[0][2].launches.is_empty());
    assert_eq!(measured.cases[0][3].launches.len(), 2);
}

#[test]
fn a_failing_or_crashing_statement_does_not_affect_others() {
    let crash = "__import__('os').kill(__import__('os').getpid(), 11)";
    let measured = run(&plan(vec![
        case(vec![statement("1"), statement("1 / 0"), statement("1")]),
        case(vec![statement("2"), statement(crash), statement("2")]),
        case(vec![statement("3"), statement("3 3"), statement("3")]),
    ]));
    assert!(trouble(&measured, 0, 1).contains("ZeroDivisionError"), "{measured:?}");
    assert!(trouble(&measured, 1, 1).starts_with("was killed by signal 11"), "{measured:?}");
    assert!(trouble(&measured, 2, 1).starts_with("contains invalid Python code"), "{measured:?}");
    for case in &measured.cases {
        for statement in [0, 2] {
            assert_eq!(case[statement].trouble, None);
            assert_eq!(case[statement].launches.len(), 2);
        }
    }
}

#[test]
fn a_hanging_statement_is_aborted() {
    let mut plan =
        plan(vec![case(vec![statement("1"), statement("__import__('time').sleep(60)")])]);
    plan.timeout = Duration::from_secs(1);
    let measured = run(&plan);
    assert_eq!(trouble(&measured, 0, 1), "did not finish a call within 1 s");
    assert_eq!(measured.cases[0][0].launches.len(), 2);
}

#[test]
fn the_requested_number_of_calls_is_made() {
    let mut plan = plan(vec![case(vec![statement("1"), statement("sum(range(1000))")])]);
    plan.cases[0].statements[1].check = None;
    plan.effort = Effort::Calls(10_000);
    for times in &run(&plan).cases[0] {
        let batches = times.launches.iter().flat_map(|launch| &launch.batches);
        assert_eq!(batches.map(|batch| batch.calls).sum::<u64>(), 10_000);
    }
}

#[test]
fn several_interpreters_are_measured_in_the_same_rounds() {
    let all = pythons();
    let interpreters: Vec<Interpreter> =
        all.iter().map(|python| Interpreter { python: python.clone(), env: vec![] }).collect();
    let of = |interpreter| StatementTogether { interpreter, ..statement("1 + 1") };
    let statements = (0..interpreters.len()).map(of).collect();
    let plan = Together { interpreters, ..plan(vec![case(statements)]) };
    let measured = run(&plan);
    let mut versions: Vec<&str> = vec![];
    for (times, facts) in measured.cases[0].iter().zip(&measured.interpreters) {
        assert_eq!(times.launches.len(), 2);
        versions.extend(facts.iter().find(|(name, _)| name == "version").map(|(_, v)| &**v));
    }
    assert_eq!(versions.len(), all.len());
    versions.dedup();
    assert_eq!(versions.len(), all.len(), "each interpreter is used");
}

#[test]
fn an_interpreter_that_does_not_start_is_an_error() {
    let mut plan = plan(vec![case(vec![statement("1")])]);
    plan.interpreters[0].python = "/nonexistent/python".into();
    let error = measure_together(&plan, &mut |_| ()).unwrap_err();
    assert!(matches!(error, Error::Side { .. }), "{error}");
    plan.interpreters[0].python = pythons().remove(0);
    plan.cpus = vec![100_000];
    let error = measure_together(&plan, &mut |_| ()).unwrap_err();
    assert_eq!(error.to_string(), "cannot run on CPU 100000: no such CPU");
}

#[test]
fn instructions_are_counted_per_statement() {
    if !has_valgrind() {
        return;
    }
    let counted = |statements| CaseTogether { is_counted: true, ..case(statements) };
    let with = |code: &str, times: u32| StatementTogether {
        setup: format!("x = list(range({times}))"),
        check: None,
        ..statement(code)
    };
    let measured = run(&plan(vec![
        counted(vec![with("pass", 1), with("sum(x)", 1000), with("sum(x)", 2000)]),
        case(vec![statement("1")]),
    ]));
    let instructions = |case: usize, statement: usize| {
        let counters = &measured.cases[case][statement].counters;
        counters.iter().find(|counter| counter.name == "instructions").map(|of| of.per_call)
    };
    let [none, one, two] = [0, 1, 2].map(|statement| instructions(0, statement).unwrap());
    assert!(none < 200.0, "{none}");
    assert!(one > 3000.0, "{one}");
    let twice = (two - none) / (one - none);
    assert!((1.9..2.1).contains(&twice), "{none} {one} {two}");
    // Hardware counters count all cases.
    let is_by_callgrind = measured.cases[0][0].counters[0].source == "callgrind";
    assert!(!is_by_callgrind || instructions(1, 0).is_none(), "instructions were not requested");
}

#[test]
fn simulation_uses_its_own_set_up_code() {
    if !has_valgrind() || laggard_probe::bench::counts_instructions() {
        return;
    }
    let own = StatementTogether {
        setup: "n = 1".into(),
        simulated_setup: Some("n = 10000".into()),
        check: None,
        ..statement("sum(range(n))")
    };
    let measured = run(&plan(vec![CaseTogether { is_counted: true, ..case(vec![own]) }]));
    let counters = &measured.cases[0][0].counters;
    assert!(counters[0].per_call > 50_000.0, "{counters:?}");
}
