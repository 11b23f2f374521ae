//! Analysis of hand-written profiles.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use laggard_core::model::NONE;
use laggard_core::model::profile::{Children, FrameKind, Profile, Unit, state};
use laggard_core::profile::{
    By, Cost, Filter, Tree, View, callees, callers, fold_interpreter, frame_label, join_workers,
    library_tree, quality, short_path, top_down, totals,
};
use laggard_samples::profile::{PERIOD_NS, Sketch, matrix_product};

/// `name, of, own samples, total samples` of each row.
fn rows(view: &View, by: By) -> Vec<(String, String, u64, u64)> {
    let table = totals(view, by);
    let row = |row: laggard_core::profile::Row| {
        assert_eq!(row.own.weight, row.own.samples * PERIOD_NS);
        (row.name, row.of, row.own.samples, row.total.samples)
    };
    table.rows.into_iter().map(row).collect()
}

fn check(profile: &Profile, by: By, expected: &[(&str, &str, u64, u64)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|&(name, of, own, total)| (name.into(), of.into(), own, total))
        .collect();
    assert_eq!(rows(&View::whole(profile), by), expected, "by {}", by.word());
}

/// The tree as text, one line per node.
fn drawn(tree: &Tree) -> Vec<String> {
    tree.walk(0.0)
        .into_iter()
        .map(|(depth, node)| {
            let node = &tree.nodes[node as usize];
            format!("{:depth$}{} {}/{}", "", node.name, node.own.samples, node.total.samples)
        })
        .collect()
}

fn small() -> Profile {
    Sketch::default()
        .samples(3, "app!main;run (/x/lib/python3.12/site-packages/p/a.py:3);liba.so!f (f.c:7);liba.so!f (f.c:9)")
        .samples(2, "app!main;run (/x/lib/python3.12/site-packages/p/a.py:5);libb.so!0x10")
        .samples(1, "app!main;run (/x/lib/python3.12/site-packages/p/a.py:5);libb.so!0x20")
        .thread(7, 8, "other", "helper")
        .samples(4, "app!main;inline app!g;app!main")
        .samples(1, "")
        .done()
}

#[test]
fn a_function_counts_once_in_a_stack() {
    check(
        &small(),
        By::Function,
        &[
            // The one of `helper`, followed by the one of the other program.
            ("main", "app", 4, 4),
            ("[libb.so]", "libb.so", 3, 3),
            ("f", "liba.so", 3, 3),
            ("[no stack]", "", 1, 1),
            ("main", "app", 0, 6),
            ("run (p/a.py)", "[Python]", 0, 6),
            ("g (inlined)", "app", 0, 4),
        ],
    );
}

#[test]
fn other_tables() {
    let profile = small();
    check(
        &profile,
        By::Library,
        &[
            ("app", "", 4, 10),
            ("liba.so", "", 3, 3),
            ("libb.so", "", 3, 3),
            ("[no stack]", "", 1, 1),
        ],
    );
    check(
        &profile,
        By::Line,
        &[
            ("[app]", "main", 4, 10),
            ("[libb.so]", "", 3, 3),
            ("f.c:9", "f", 3, 3),
            ("[no stack]", "", 1, 1),
            ("[app]", "g", 0, 4),
            ("f.c:7", "f", 0, 3),
            ("p/a.py:3", "run", 0, 3),
            ("p/a.py:5", "run", 0, 3),
        ],
    );
    check(
        &profile,
        By::PythonLine,
        &[
            ("[no Python frame]", "", 4, 4),
            ("p/a.py:3", "run", 3, 3),
            ("p/a.py:5", "run", 3, 3),
            ("[no stack]", "", 1, 1),
        ],
    );
    check(
        &profile,
        By::Thread,
        &[("python3 (100)", "python3 (100)", 6, 6), ("helper (8)", "other (7)", 5, 5)],
    );
    check(&profile, By::Process, &[("python3 (100)", "", 6, 6), ("other (7)", "", 5, 5)]);
    check(&profile, By::Event, &[("task-clock", "", 11, 11)]);
}

#[test]
fn filters_select_samples_and_report_missing_values() {
    let profile = small();
    let kept = |filter: Filter| View::new(&profile, &filter).map(|view| view.whole.samples);
    let some = |text: &str| Some(text.to_owned());
    let none = Filter::default;
    assert_eq!(kept(none()), Ok(11));
    assert_eq!(kept(Filter { library: some("LIBA"), ..none() }), Ok(3));
    assert_eq!(kept(Filter { thread: some("help"), ..none() }), Ok(5));
    assert_eq!(kept(Filter { thread: some("100"), ..none() }), Ok(6));
    assert_eq!(kept(Filter { process: some("7"), ..none() }), Ok(5));
    assert_eq!(kept(Filter { event: some("task"), ..none() }), Ok(11));
    let from_to = Filter { from_ns: Some(2 * PERIOD_NS), to_ns: Some(4 * PERIOD_NS), ..none() };
    assert_eq!(kept(from_to), Ok(2));
    let missing = |filter: Filter| {
        let missing = View::new(&profile, &filter).unwrap_err();
        (missing.to_string(), missing.there)
    };
    let (what, there) = missing(Filter { library: some("blas"), ..none() });
    assert_eq!(what, "no library matches \"blas\" in the samples");
    assert_eq!(there, ["app", "liba.so", "libb.so"]);
    assert_eq!(missing(Filter { event: some("cycles"), ..none() }).1, ["task-clock"]);
    assert_eq!(missing(Filter { thread: some("x"), ..none() }).1, ["helper", "python3"]);
}

#[test]
fn the_event_with_most_samples_is_the_default() {
    let profile = Sketch::default()
        .samples(2, "app!main")
        .event("cycles", Unit::Count)
        .samples(3, "app!other")
        .done();
    let view = View::whole(&profile);
    assert_eq!((view.event_name(), view.is_time(), view.whole.samples), ("cycles", false, 3));
    assert_eq!(totals(&view, By::Event).rows.len(), 2);
}

#[test]
fn call_trees() {
    let profile = Sketch::default()
        .samples(3, "app!main;app!a;app!b")
        .samples(2, "app!main;app!a")
        .samples(4, "app!main;app!c;app!a;app!a;app!d")
        .done();
    let view = View::whole(&profile);
    assert_eq!(
        drawn(&top_down(&view)),
        ["main 0/9", " a 2/5", "  b 3/3", " c 0/4", "  a 0/4", "   a 0/4", "    d 4/4"]
    );
    assert_eq!(drawn(&callees(&view, "a").unwrap()), ["a 2/9", " a 0/4", "  d 4/4", " b 3/3"]);
    assert_eq!(
        drawn(&callers(&view, "a").unwrap()),
        ["a 0/9", " main 5/5", " c 0/4", "  main 4/4"]
    );
    assert_eq!(callers(&view, "nothing").unwrap_err().there[0], "d");
    let tree = top_down(&view);
    let (kept, hidden) = tree.children(1, 0.5);
    assert_eq!((kept.len(), hidden.nodes), (1, 1));
    assert_eq!(hidden.cost, Cost { samples: 4, weight: 4 * PERIOD_NS });
}

#[test]
fn a_library_tree_starts_at_its_caller() {
    let profile = matrix_product();
    let filter = Filter { library: Some("openblas".into()), ..Filter::default() };
    let view = View::new(&profile, &filter).unwrap();
    assert_eq!(view.start_up.samples, 2);
    assert_eq!(
        drawn(&library_tree(&view)),
        [
            "start_thread 0/44",
            " blas_thread_server 0/44",
            "  inner_thread 0/44",
            "   dgemm_kernel_HASWELL 38/38",
            "   dgemm_oncopy_HASWELL 6/6",
            "product (app.py:7) 0/24",
            " cblas_dgemm64_ 0/24",
            "  dgemm_thread_nn 0/24",
            "   exec_blas 0/24",
            "    inner_thread 0/24",
            "     dgemm_kernel_HASWELL 20/20",
            "     dgemm_oncopy_HASWELL 4/4",
        ]
    );
    let with = View::new(&profile, &Filter { start_up: true, ..filter }).unwrap();
    assert_eq!((with.whole.samples, with.start_up.samples), (70, 0));
}

#[test]
fn workers_are_joined_to_their_caller() {
    let mut profile = matrix_product();
    let before = totals(&View::whole(&profile), By::Function);
    assert_eq!(join_workers(&mut profile), 44);
    assert_eq!(join_workers(&mut profile), 0, "already joined");
    let filter = Filter { library: Some("openblas".into()), ..Filter::default() };
    let tree = library_tree(&View::new(&profile, &filter).unwrap());
    assert_eq!(tree.nodes[1].name, "product (app.py:7)");
    assert_eq!(tree.nodes[1].total.samples, 68, "all samples belong to one line");
    assert!(tree.nodes.iter().any(|n| n.kind == FrameKind::Mark && n.name == "worker thread"));
    let own = |name: &str, table: &laggard_core::profile::Totals| {
        table.rows.iter().find(|row| row.name == name).unwrap().own
    };
    let after = totals(&View::whole(&profile), By::Function);
    assert_eq!(own("dgemm_kernel_HASWELL", &before), own("dgemm_kernel_HASWELL", &after));
    assert_eq!(quality(&profile).joined, 44);
    for (number, node) in profile.stacks.iter().enumerate() {
        assert!(node.parent == NONE || (node.parent as usize) < number);
    }
}

#[test]
fn only_near_calls_of_the_same_process_and_kind_are_joined() {
    let worker = "libc.so.6!clone;libgomp.so.1!gomp_thread_start;libx.so!loop";
    let caller = "app!main;libx.so!work;libgomp.so.1!GOMP_parallel_loop_static;libx.so!loop";
    let check = |pid: u32, time: u64, caller: &str, worker: &str, expected: u64| {
        let mut sketch = Sketch::default();
        sketch.at(10 * PERIOD_NS).samples(1, caller);
        sketch.thread(pid, 999, "python3", "w").at(time).samples(1, worker);
        let mut profile = sketch.done();
        assert_eq!(join_workers(&mut profile), expected, "{pid} {time} {caller} {worker}");
        let joined = profile.samples.iter().filter(|s| s.state & state::JOINED != 0).count();
        assert_eq!(joined as u64, expected);
    };
    check(100, 13 * PERIOD_NS, caller, worker, 1);
    check(100, 7 * PERIOD_NS, caller, worker, 1);
    check(100, 14 * PERIOD_NS, caller, worker, 0);
    check(101, 10 * PERIOD_NS, caller, worker, 0);
    check(100, 10 * PERIOD_NS, "app!main;libopenblas.so!exec_blas", worker, 0);
    check(100, 10 * PERIOD_NS, caller, &format!("{worker};f (a.py:1)"), 0);
    check(100, 10 * PERIOD_NS, "", worker, 0);
}

#[test]
fn quality_reports_losses() {
    let profile = matrix_product();
    let summary = quality(&profile);
    assert_eq!((summary.samples, summary.complete, summary.late), (83, 82, 1));
    assert_eq!((summary.cut[0].library.as_str(), summary.cut[0].count), ("libc.so.6", 1));
    assert_eq!(summary.cpu_ns, Some(85_000_000));
    assert_eq!(summary.kernel_share, Some(2.0 / 85.0));
    assert_eq!(quality(&Profile::default()).kernel_share, None);
    assert_eq!(summary.named, (82, 82));
}

#[test]
fn cpu_time_without_samples_is_attributed_to_its_place() {
    const MS: u64 = 1_000_000;
    let mut profile = matrix_product();
    let sampled = quality(&profile).sampled_ns.unwrap_or(0);
    assert_eq!(sampled, 83 * MS);
    (profile.about.user_ns, profile.about.system_ns) = (200 * MS, 100 * MS);
    let places = |children: Children, profile: &mut Profile| {
        profile.quality.children = Some(children);
        let parts = quality(profile).unsampled.unwrap_or_default();
        [parts.children_ns, parts.kernel_ns, parts.other_ns].map(|ns| ns / MS)
    };
    let own = Children { user_ns: 90 * MS, system_ns: 20 * MS, ..Children::default() };
    assert_eq!(places(own.clone(), &mut profile), [190, 20, 7], "children are not followed");
    let followed = Children { are_followed: true, followed: 3, ..own.clone() };
    assert_eq!(places(followed.clone(), &mut profile), [0, 100, 117], "all are followed");
    let excluded = Children { excluded: vec![(0, 0, 1)], ..followed };
    assert_eq!(places(excluded.clone(), &mut profile), [190, 20, 7], "one is not followed");
    let replaced = Children { user_ns: 0, system_ns: 0, ..excluded };
    assert_eq!(places(replaced, &mut profile), [217, 0, 0], "the program executed another one");
    let killed = Children { user_ns: 0, system_ns: 0, ..own };
    assert_eq!(places(killed, &mut profile), [0, 100, 117], "the program reported nothing");
    profile.quality.children = None;
    assert_eq!(quality(&profile).unsampled, None);
}

#[test]
fn empty_profiles_are_accepted() {
    let profile = Profile::default();
    let view = View::whole(&profile);
    for by in By::ALL {
        assert_eq!(totals(&view, by).rows, []);
    }
    assert_eq!(top_down(&view).nodes.len(), 1);
    assert_eq!(Cost::default().share_of(view.whole), 0.0);
    assert!(callers(&view, "f").is_err());
}

#[test]
fn labels() {
    let profile = Sketch::default()
        .samples(1, "[kernel]!0x5;liba.so!0x1f;liba.so!f (f.c:1);g (/opt/app.py:12)")
        .done();
    let labels: Vec<String> =
        profile.frames.iter().map(|frame| frame_label(&profile, frame)).collect();
    assert_eq!(labels, ["[kernel+0x5]", "[liba.so+0x1f]", "f", "g (/opt/app.py:12)"]);
    assert_eq!(short_path("/usr/lib/python3.12/json/decoder.py"), "json/decoder.py");
    assert_eq!(short_path("/v/lib/python3.12/site-packages/numpy/a.py"), "numpy/a.py");
    assert_eq!(short_path("<frozen importlib._bootstrap>"), "<frozen importlib._bootstrap>");
    assert_eq!(short_path("/lib/python3."), "/lib/python3.");
}

#[test]
fn interpreter_frames_are_folded_and_their_time_is_kept() {
    let mut profile = Sketch::default()
        .samples(3, "libc.so.6!_start;libpython3.12.so!Py_RunMain;f (a.py:3);libpython3.12.so!_PyObject_Vectorcall;liba.so!kernel")
        .samples(2, "libc.so.6!_start;libpython3.12.so!Py_RunMain;f (a.py:3);libpython3.12.so!_PyEval_EvalFrameDefault")
        .samples(1, "libc.so.6!_start;libpython3.12.so!Py_RunMain;f (a.py:3);libpython3.12.so!list_sort;libpython3.12.so!PyObject_CallOneArg;g (a.py:9)")
        .samples(1, "libc.so.6!_start;app!main;app!works")
        .done();
    fold_interpreter(&mut profile);
    let lines = drawn(&top_down(&View::whole(&profile)));
    let expected = [
        "f (a.py) 0/6",
        " kernel 3/3",
        " _PyEval_EvalFrameDefault 2/2",
        " list_sort 0/1",
        "  g (a.py) 1/1",
        "main 0/1",
        " works 1/1",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn label_of_an_unnamed_function_is_no_symbol() {
    let mut sketch = Sketch::default();
    sketch.samples(3, "libx.so!f").samples(2, "libx.so![libx.so+0x40]").samples(1, "libx.so!0x48");
    assert_eq!(quality(&sketch.done()).named, (3, 6));
}
