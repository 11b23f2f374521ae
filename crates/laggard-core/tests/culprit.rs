//! Evidence and judgements from hand-written recordings.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use laggard_core::culprit::{Kind, Pair, Role, Seen, add_work, judge, loading, times};
use laggard_core::model::code::Code;
use laggard_core::model::profile::Profile;
use laggard_core::model::timings::{Batch, Series};
use laggard_core::profile::fold_interpreter;
use laggard_samples::profile::Sketch;

const TIMED: &str = "python3.13!main;timed (<worker>:1);timed_statement (<statement>:1)";

/// Rounds of ten calls each, with the given time per call spent entirely on a CPU.
fn series(ns: u64, system_ns: u64) -> Series {
    let batch = |round| Batch {
        round,
        calls: 10,
        wall_ns: 10 * ns,
        user_ns: 10 * (ns - system_ns),
        system_ns: 10 * system_ns,
        minor_faults: 20,
        ..Batch::default()
    };
    Series { batches: (0..50).map(batch).collect(), threads: 1, ..Series::default() }
}

fn seen(profile: &mut Profile, series: &Series) -> Seen {
    let mut seen = times(series);
    let loading = loading(profile);
    fold_interpreter(profile);
    add_work(&mut seen, profile, &Code::default(), &loading);
    seen
}

#[test]
fn function_times_add_up_to_user_time() {
    let mut profile = Sketch::default()
        .samples(60, &format!("{TIMED};libwork.so!kernel (work.c:7)"))
        .samples(20, &format!("{TIMED};libwork.so!kernel (work.c:7);libc.so.6!__memmove_avx"))
        .samples(20, &format!("{TIMED};python3.13!_PyEval_EvalFrameDefault"))
        .done();
    let seen = seen(&mut profile, &series(1000, 200));
    assert_eq!((seen.wall_ns, seen.user_ns, seen.system_ns), (1000.0, 800.0, 200.0));
    assert_eq!((seen.faults, seen.rounds), (2.0, 50));
    let rows: Vec<_> = seen
        .work
        .iter()
        .map(|work| (work.name.as_str(), work.role, work.ns.round(), work.caller.as_str()))
        .collect();
    assert_eq!(
        rows,
        [
            ("kernel", Role::Compute, 480.0, "timed_statement (<statement>:1)"),
            (
                "_PyEval_EvalFrameDefault",
                Role::Interpreter,
                160.0,
                "timed_statement (<statement>:1)"
            ),
            ("__memmove_avx", Role::Copy, 160.0, "kernel, work.c:7"),
        ]
    );
}

#[test]
fn a_copy_is_reported_with_its_caller() {
    let kernel = format!("{TIMED};libwork.so!kernel (work.c:7)");
    let mut a = Sketch::default().samples(100, &kernel).done();
    let mut b = Sketch::default()
        .samples(100, &kernel)
        .samples(
            100,
            &format!("{TIMED};libwork.so!to_contiguous (array.c:77);libc.so.6!__memmove_avx"),
        )
        .done();
    let (a, b) = (seen(&mut a, &series(1000, 0)), seen(&mut b, &series(2000, 0)));
    let judgement = judge(&Pair { a: &a, b: &b });
    let culprit = &judgement.culprits[0];
    assert_eq!(culprit.finding.kind, Kind::Copy);
    assert!((culprit.explains - 1.0).abs() < 0.01, "{judgement:?}");
    assert_eq!(
        culprit.finding.at,
        "__memmove_avx, called from to_contiguous, array.c:77, in timed_statement (<statement>:1)"
    );
}

#[test]
fn imports_in_timed_code_are_start_up() {
    let import =
        format!("{TIMED};_find_and_load (<frozen importlib._bootstrap>:1);python3.13!dict_get");
    let mut b = Sketch::default()
        .samples(10, &format!("{TIMED};libwork.so!kernel"))
        .samples(90, &import)
        .done();
    let mut a = Sketch::default().samples(10, &format!("{TIMED};libwork.so!kernel")).done();
    let (a, b) = (seen(&mut a, &series(100, 0)), seen(&mut b, &series(1000, 0)));
    let judgement = judge(&Pair { a: &a, b: &b });
    assert_eq!(judgement.culprits[0].finding.kind, Kind::StartUp, "{judgement:?}");
}
