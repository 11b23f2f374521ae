//! Analysis of synthetic call traces.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use laggard_core::calls::{
    By, Filter, Measure, NO_PYTHON, ShareOf, View, arguments, compare, python_lines, totals, tree,
};
use laggard_core::model::NONE;
use laggard_core::model::calls::Calls;
use laggard_samples::calls::{
    CallSketch, counts, inside, products, products_elsewhere, products_from_python,
};

/// `name, of, calls, self time` of each row.
fn check(calls: &Calls, by: By, expected: &[(&str, &str, u64, u64)]) {
    let table = totals(&View::whole(calls), by);
    let rows: Vec<_> = table
        .rows
        .iter()
        .map(|row| (row.name.as_str(), row.of.as_str(), row.tally.count, row.tally.self_ns))
        .collect();
    assert_eq!(rows, expected, "by {}", by.word());
    let sum: u64 = table.rows.iter().map(|row| row.tally.self_ns).sum();
    assert_eq!(sum, table.whole.self_ns, "self time adds up");
}

#[test]
fn totals_by_every_grouping() {
    const BLAS: &str = "libopenblas64_p.so";
    let calls = products();
    check(
        &calls,
        By::Library,
        &[(BLAS, "", 1121, 67_222_650), ("libgomp.so.1", "", 100, 17_500_000)],
    );
    check(
        &calls,
        By::Function,
        &[
            ("cblas_dgemm64_", BLAS, 121, 67_062_500),
            ("GOMP_parallel", "libgomp.so.1", 100, 17_500_000),
            ("cblas_ddot64_", BLAS, 1000, 160_150),
        ],
    );
}

#[test]
fn callers_are_call_sites() {
    let calls = products();
    let table = totals(&View::whole(&calls), By::Caller);
    let callers: Vec<_> = table
        .rows
        .iter()
        .map(|row| {
            let caller = row.caller.clone().unwrap();
            (caller.library, caller.function, caller.place, row.name.clone())
        })
        .collect();
    let row = |library: &str, function: &str, place: &str, name: &str| {
        (library.to_owned(), function.to_owned(), place.to_owned(), name.to_owned())
    };
    let numpy = "_multiarray_umath.so";
    assert_eq!(
        callers,
        [
            row(numpy, "cblas_matrixproduct", "cblasfuncs.c:412", "cblas_dgemm64_"),
            row("libopenblas64_p.so", "exec_blas", "blas_server.c:77", "GOMP_parallel"),
            row(numpy, "[_multiarray_umath.so+0x1f00]", "", "cblas_ddot64_"),
        ]
    );
}

#[test]
fn filters_report_available_values() {
    let calls = products();
    let count = |filter: Filter| View::new(&calls, &filter).map(|view| view.whole.count);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(count(Filter { library: text("BLAS"), ..Filter::default() }).unwrap(), 1121);
    assert_eq!(count(Filter { function: text("cblas_*"), ..Filter::default() }).unwrap(), 1121);
    assert_eq!(count(Filter { thread: text("101"), ..Filter::default() }).unwrap(), 21);
    assert_eq!(count(Filter { process: text("python"), ..Filter::default() }).unwrap(), 1221);
    let missing = count(Filter { function: text("sgemm"), ..Filter::default() }).unwrap_err();
    assert_eq!(missing.there, ["cblas_dgemm64_", "GOMP_parallel", "cblas_ddot64_"]);
    let view = View::whole(&calls);
    assert_eq!(view.calls_of("dgemm").unwrap().whole.count, 121);
    assert_eq!(view.calls_by("exec_blas").unwrap().whole.count, 100);
    assert_eq!(view.calls_by("nobody").unwrap_err().what, "caller");
}

#[test]
fn a_tree_adds_up() {
    let calls = products();
    let view = View::whole(&calls);
    let rows = tree(&view);
    for depth in 0..3 {
        let level = rows.iter().filter(|row| row.depth == depth);
        assert_eq!(level.map(|row| row.tally.self_ns).sum::<u64>(), view.whole.self_ns);
    }
    assert_eq!(rows[0].name, "_multiarray_umath.so");
    assert_eq!(rows[2].name, "cblas_dgemm64_");
}

#[test]
fn argument_values_are_listed() {
    let calls = products();
    let view = View::new(&calls, &Filter { function: Some("ddot".into()), ..Filter::default() });
    assert!(arguments(&view.unwrap()).is_empty());
    let all = arguments(&View::whole(&calls));
    assert_eq!((all[0].values[3], all[0].count), (500, 100));
}

#[test]
fn functions_of_one_side_are_reported() {
    let (a, b) = (products(), products_elsewhere());
    let found = compare(&View::whole(&a), &View::whole(&b));
    let names: Vec<_> = found
        .rows
        .iter()
        .map(|row| (row.function.as_str(), row.library.as_str(), row.a.is_some(), row.b.is_some()))
        .collect();
    assert_eq!(
        names,
        [
            ("cblas_dgemm64_", "libblas.so.3", false, true),
            ("cblas_dgemm64_", "libopenblas64_p.so", true, false),
            ("GOMP_parallel", "libgomp.so.1", true, false),
            ("cblas_ddot64_", "libopenblas64_p.so", true, true),
            ("xerbla_", "libblas.so.3", false, true),
        ]
    );
    assert_eq!(found.measure, Measure::Time);
    assert_eq!(found.rows[0].gap(Measure::Time), 336_000_000);
    assert_eq!(found.rows[0].ratio(Measure::Time), None);
    assert_eq!(found.rows[3].count_ratio(), Some(2.0));
    assert_eq!(found.rows[3].medians_differ(), Some(true));
    assert_eq!(found.moved.len(), 1);
    assert_eq!(found.moved[0].function, "cblas_dgemm64_");
    assert!(found.gap() > 0 && found.ratio().unwrap() > 3.0);
}

#[test]
fn invalid_indexes_do_not_panic() {
    let mut calls = CallSketch::default().calls("app!main", "libx.so!f", &[(10, 1)], 1.0).done();
    let row = &mut calls.rows[0];
    (row.function, row.caller, row.thread) = (NONE, NONE, NONE);
    for by in By::ALL {
        assert_eq!(totals(&View::whole(&calls), by).rows.len(), 1);
    }
    assert_eq!(tree(&View::whole(&calls)).len(), 3);
}

#[test]
fn self_instructions_add_up_for_whole_functions() {
    let calls = inside(10_000);
    let view = View::whole(&calls);
    let table = totals(&view, By::Function);
    let rows: Vec<_> = table
        .rows
        .iter()
        .map(|row| (&*row.name, row.tally.own_instructions, row.tally.instructions))
        .collect();
    let expected = [
        ("dgemm_kernel", Some(1_200_000), Some(1_200_000)),
        ("dgemm_copy", Some(48_600), Some(48_600)),
        ("cblas_dgemm", Some(24_000), Some(1_272_600)),
    ];
    assert_eq!(rows, expected);
    assert_eq!(table.share_of(), ShareOf::OwnInstructions);
    let sum: f64 = table.rows.iter().map(|row| table.share(&row.tally)).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    // Self instructions are not recorded by caller.
    let by_main = view.calls_by("main").unwrap();
    assert_eq!((by_main.whole.count, by_main.whole.own_instructions), (100, None));
    let gemm = totals(&view.calls_of("cblas_dgemm").unwrap(), By::Caller);
    assert_eq!(gemm.share_of(), ShareOf::Instructions);
    let main = &gemm.rows[0].tally;
    assert_eq!(main.own_instructions, None);
    assert!((gemm.share(main) - 1_060_500.0 / 1_272_600.0).abs() < 1e-9);
    assert_eq!(totals(&view, By::Caller).share_of(), ShareOf::Calls);
}

#[test]
fn traces_are_compared_by_a_common_measure() {
    let (a, b, counted, timed) = (inside(10_000), inside(20_000), counts(), products());
    let check = |a: &Calls, b: &Calls, measure: Measure, is_mixed: bool, gap: i128| {
        let found = compare(&View::whole(a), &View::whole(b));
        assert_eq!((found.measure, found.is_mixed(), found.gap()), (measure, is_mixed, gap));
        found
    };
    let found = check(&a, &b, Measure::Instructions, false, 1_200_000);
    assert_eq!(found.rows[0].function, "dgemm_kernel");
    assert_eq!(found.rows[0].gap(Measure::Instructions), 1_200_000);
    assert_eq!(found.rows[0].ratio(Measure::Instructions), Some(2.0));
    assert_eq!(found.rows[0].per_call_ratio(), Some(2.0));
    assert!(found.rows[1..].iter().all(|row| row.gap(found.measure) == 0));
    check(&a, &counted, Measure::Calls, true, 0);
    check(&a, &timed, Measure::Calls, true, 1221 - 480);
    check(&counted, &counted, Measure::Calls, false, 0);
    // A side without calls has no measure.
    check(&Calls::default(), &a, Measure::Instructions, false, 1_272_600);
}

#[test]
fn recorded_stacks_give_python_lines() {
    let calls = products_from_python();
    let lines = python_lines(&View::whole(&calls));
    assert_eq!((lines.stacks, lines.unknown_calls), (7, 1));
    let rows: Vec<_> = lines
        .rows
        .iter()
        .map(|row| (&*row.place, &*row.caller, &*row.function, row.calls.round(), row.stacks))
        .collect();
    let expected = [
        ("/home/me/app.py:12", "forward", "cblas_dgemm64_", 600.0, 3),
        ("/home/me/app.py:21", "backward", "cblas_dgemm64_", 200.0, 1),
        (NO_PYTHON, "", "cblas_dgemm64_", 200.0, 1),
        ("/home/me/app.py:30", "<module>", "cblas_ddot64_", 90.0, 2),
    ];
    assert_eq!(rows, expected);
    let dot = View::whole(&calls).calls_of("cblas_ddot64_").unwrap();
    assert_eq!(python_lines(&dot).rows.len(), 1);
    assert!(python_lines(&View::whole(&products())).rows.is_empty());
}
