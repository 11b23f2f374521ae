//! Tests of the search for divergence points.

use super::*;
use crate::model::NONE;
use crate::model::call_counts::{CallCounts, CountedFunction};
use crate::model::profile::FrameKind;
use proptest::prelude::*;

/// A stack below the statement and its time. `c:` marks native functions.
type Row<'a> = (&'a str, f64);

fn frame(name: &str) -> StackFrame {
    match name.strip_prefix("c:") {
        Some(name) => StackFrame {
            kind: FrameKind::Native,
            name: name.into(),
            file: "libfast.so".into(),
            line: 0,
        },
        None => StackFrame {
            kind: FrameKind::Python,
            name: name.into(),
            file: "package/module.py".into(),
            line: 7,
        },
    }
}

fn statement() -> StackFrame {
    StackFrame {
        kind: FrameKind::Python,
        name: "statement".into(),
        file: "<statement>".into(),
        line: 1,
    }
}

fn stacks(rows: &[(Vec<&str>, f64)]) -> Stacks {
    let mut stacks = Stacks { frames: vec![statement()], nodes: vec![(NONE, 0)], spent: vec![] };
    for (names, ns) in rows {
        let mut node = 0;
        for name in names {
            stacks.frames.push(frame(name));
            stacks.nodes.push((node, stacks.frames.len() as u32 - 1));
            node = stacks.nodes.len() as u32 - 1;
        }
        stacks.spent.push(Spent { node, work: 0, ns: *ns, samples: *ns as u64 });
    }
    stacks
}

fn split<'a>(rows: &[Row<'a>]) -> Vec<(Vec<&'a str>, f64)> {
    rows.iter().map(|&(path, ns)| (path.split(' ').collect(), ns)).collect()
}

/// Counts from edges `caller callee count`; the statement is `-`.
fn counts(edges: &[(&str, &str, u64)]) -> CallCounts {
    let mut found = CallCounts { calls: 1, ..CallCounts::default() };
    let mut number = |name: &str| {
        let known = found.functions.iter().position(|function| function.name == name);
        known.unwrap_or_else(|| {
            let (name, file) = (name.to_owned(), "package/module.py".to_owned());
            found.functions.push(CountedFunction { name, file, ..CountedFunction::default() });
            found.functions.len() - 1
        })
    };
    let rows: Vec<(i64, u32, u64)> = edges
        .iter()
        .map(|&(caller, callee, count)| {
            let caller = if caller == "-" { -1 } else { number(caller) as i64 };
            (caller, number(callee) as u32, count)
        })
        .collect();
    found.edges = rows;
    found
}

fn find(a: &Stacks, b: &Stacks) -> Divergence {
    diverge([a, b].map(|stacks| SideStacks { stacks, counts: None }), true)
}

/// Asserts the function of each point, in order. Returns the points.
fn check(a: &[Row], b: &[Row], counted: Option<&[CallCounts; 2]>, expected: &[&str]) -> Divergence {
    let (a, b) = (stacks(&split(a)), stacks(&split(b)));
    let of = |side: usize| counted.map(|counted| &counted[side]);
    let sides =
        [SideStacks { stacks: &a, counts: of(0) }, SideStacks { stacks: &b, counts: of(1) }];
    let found = diverge(sides, true);
    let name = |point: &Point| {
        point.place.function.as_ref().map_or("statement".to_owned(), |f| f.name.clone())
    };
    assert_eq!(found.points.iter().map(name).collect::<Vec<_>>(), expected);
    found
}

#[test]
fn the_place_is_the_deepest_function_of_both_sides() {
    let found = check(
        &[("join fast c:merge", 100.0), ("join setup", 10.0)],
        &[("join slow c:hash", 900.0), ("join setup", 10.0)],
        None,
        &["join"],
    );
    assert_eq!(found.points[0].cause, Cause::OtherPath);
    let names = |side: usize| {
        found.points[0].callees[side].iter().map(|callee| callee.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!((names(0), names(1)), (vec!["fast", "setup"], vec!["slow", "setup"]));
}

#[test]
fn a_function_that_b_calls_more_often_is_named_at_its_caller() {
    let counted = [
        counts(&[("-", "build", 1), ("build", "check", 1)]),
        counts(&[("-", "build", 1), ("build", "check", 5000)]),
    ];
    let found = check(
        &[("build check", 20.0), ("build", 80.0)],
        &[("build check", 900.0), ("build", 80.0)],
        Some(&counted),
        &["build"],
    );
    assert_eq!(
        found.points[0].cause,
        Cause::MoreCalls { name: "check".into(), calls: [1.0, 5000.0] }
    );
}

#[test]
fn functions_of_threads_that_were_not_counted_can_be_the_place() {
    let counted = || counts(&[("-", "main", 1)]);
    check(
        &[("work fast", 100.0), ("main", 10.0)],
        &[("work slow", 900.0), ("main", 10.0)],
        Some(&[counted(), counted()]),
        &["work"],
    );
}

#[test]
fn a_function_that_only_b_calls_here_is_not_common_because_a_calls_it_elsewhere() {
    let counted = [
        counts(&[("-", "load", 1), ("-", "save", 1), ("save", "check", 9)]),
        counts(&[("-", "load", 1), ("-", "save", 1), ("save", "check", 9), ("load", "check", 9)]),
    ];
    let found = check(
        &[("load", 100.0), ("save check", 90.0)],
        &[("load check", 900.0), ("load", 100.0), ("save check", 90.0)],
        Some(&counted),
        &["load"],
    );
    assert_eq!(found.points[0].cause, Cause::OtherPath);
    assert_eq!(found.points[0].callees[1][0].calls, Some(9.0));
}

#[test]
fn two_causes_are_two_points() {
    let found = check(
        &[("main load read", 50.0), ("main save write", 50.0)],
        &[("main load parse", 550.0), ("main save format", 400.0)],
        None,
        &["main"],
    );
    assert_eq!(found.points[0].ns, [100.0, 950.0]);
    let found = check(
        &[("main load read", 50.0), ("main save write", 50.0)],
        &[("main load parse", 850.0), ("main save format", 150.0)],
        None,
        &["load", "save"],
    );
    assert_eq!(
        found.points.iter().map(|point| point.ns).collect::<Vec<_>>(),
        [[50.0, 850.0], [50.0, 150.0]]
    );
}

#[test]
fn time_of_comprehensions_belongs_to_their_function() {
    assert_eq!(stacks::enclosing_function("C.f.<locals>.<genexpr>"), "C.f");
    assert_eq!(stacks::enclosing_function("f.<locals>.<listcomp>.<locals>.<genexpr>"), "f");
    assert_eq!(stacks::enclosing_function("f.<locals>.g"), "f.<locals>.g");
    assert_eq!(stacks::enclosing_function("<genexpr>"), "<genexpr>");
}

#[test]
fn the_loop_that_calls_a_callable_is_no_place() {
    let side = |name: &str, ns: f64| {
        let mut found = stacks(&split(&[(name, ns)]));
        found.frames[0].name = "_repeat".into();
        found.frames[0].file = "/lib/python3.13/site-packages/laggard/recording.py".into();
        found
    };
    let (a, b) = (side("c:sum", 100.0), side("slow_loop", 900.0));
    let sides = [&a, &b].map(|stacks| SideStacks { stacks, counts: None });
    let found = diverge(sides, false);
    assert_eq!(found.points[0].label(), "slow_loop (package/module.py:7)");
    assert_eq!(found.points[0].cause, Cause::Slower);
}

#[test]
fn recursion_does_not_hide_the_place() {
    check(
        &[("walk walk walk visit", 100.0)],
        &[("walk walk walk slow_visit", 900.0)],
        None,
        &["walk"],
    );
}

#[test]
fn a_function_with_many_callers_is_the_place_if_this_caller_calls_it_equally_often() {
    let edges = |others: u64| {
        counts(&[
            ("-", "load", 1),
            ("load", "new", 1),
            ("new", "convert", 1 + others),
            ("-", "log", 1),
            ("log", "new", others),
        ])
    };
    let found = check(
        &[("load new convert fast", 100.0), ("log new convert", 1.0)],
        &[("load new convert slow", 900.0), ("log new convert", 9.0)],
        Some(&[edges(3), edges(30)]),
        &["convert"],
    );
    let steps: Vec<&str> = found.points[0].path.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(steps, ["load", "new"]);
}

#[test]
fn shared_wrappers_and_native_code_above_a_function_are_no_recursion() {
    let a = "decorate.<locals>.wrapper load decorate.<locals>.wrapper parse fast";
    let b = "decorate.<locals>.wrapper load decorate.<locals>.wrapper parse slow";
    let found = check(&[(a, 100.0)], &[(b, 900.0)], None, &["parse"]);
    let steps: Vec<&str> = found.points[0].path.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(steps, ["load"]);
}

#[test]
fn a_function_that_calls_itself_through_others_is_the_place_below_its_innermost_call() {
    let found = check(
        &[("compose mapping compose fast", 100.0), ("compose mapping compose mapping", 50.0)],
        &[("compose mapping compose slow", 900.0), ("compose mapping compose mapping", 50.0)],
        None,
        &["compose"],
    );
    assert_eq!(found.points[0].cause, Cause::OtherPath);
}

#[test]
fn places_where_b_is_faster_come_last() {
    let found = check(
        &[("main load read", 100.0), ("main save write", 300.0)],
        &[("main load parse", 1000.0), ("main save format", 100.0)],
        None,
        &["load", "save"],
    );
    let faster: Vec<bool> = found.points.iter().map(Point::is_faster).collect();
    assert_eq!(faster, [false, true]);
}

#[test]
fn differences_within_the_error_of_sampling_are_not_called_faster() {
    check(
        &[("main load read", 100.0), ("main save write", 24.0)],
        &[("main load parse", 200.0), ("main save write", 18.0)],
        None,
        &["load"],
    );
}

#[test]
fn methods_of_python_before_3_11_have_the_qualified_names_of_counted_functions() {
    let counted = |name: &str| {
        let mut counted = counts(&[("-", name, 1)]);
        counted.functions[0].lines = [5, 9];
        counted
    };
    let found = check(
        &[("join fast", 100.0)],
        &[("Index.join slow", 900.0)],
        Some(&[counted("Index.join"), counted("Index.join")]),
        &["Index.join"],
    );
    assert_eq!(found.points[0].ns, [100.0, 900.0]);
}

#[test]
fn damaged_stacks_are_searched_without_a_panic() {
    let broken = Stacks {
        frames: vec![statement(), frame("f")],
        nodes: vec![(1, 1), (0, 0), (9, 1)],
        spent: vec![
            Spent { node: 7, work: 3, ns: 10.0, samples: 1 },
            Spent { node: 1, work: 0, ns: 5.0, samples: 1 },
        ],
    };
    find(&Stacks::default(), &broken);
    find(&broken, &broken);
}

/// Paths of a small program: `main` calls up to three functions, each of which calls others.
fn paths() -> impl Strategy<Value = Vec<(Vec<&'static str>, f64)>> {
    let names = prop::sample::select(vec!["f", "g", "h", "i", "c:sort", "c:copy"]);
    let path = prop::collection::vec(names, 0..4).prop_map(|mut path| {
        path.insert(0, "main");
        path
    });
    prop::collection::vec((path, 1.0..1000.0f64), 1..12)
}

proptest! {
    #[test]
    fn each_path_belongs_to_at_most_one_point_and_times_add_up(a in paths(), b in paths()) {
        let (a, b) = (stacks(&a), stacks(&b));
        let found = find(&a, &b);
        for (side, given) in [&a, &b].into_iter().enumerate() {
            let mut sums = vec![0.0; found.points.len()];
            for (spent, point) in given.spent.iter().zip(&found.of_spent[side]) {
                if let Some(point) = point {
                    sums[*point] += spent.ns;
                }
            }
            for (sum, point) in sums.iter().zip(&found.points) {
                prop_assert!((sum - point.ns[side]).abs() < 1e-6);
            }
        }
        let lag = |stacks: &Stacks| stacks.spent.iter().map(|spent| spent.ns).sum::<f64>();
        prop_assert_eq!(found.points.is_empty(), lag(&b) <= lag(&a));
    }

    #[test]
    fn a_tree_against_itself_has_no_divergence(a in paths()) {
        let a = stacks(&a);
        prop_assert!(find(&a, &a).points.is_empty());
    }

    #[test]
    fn only_one_direction_has_points(a in paths(), b in paths()) {
        let (a, b) = (stacks(&a), stacks(&b));
        prop_assert!(find(&a, &b).points.is_empty() || find(&b, &a).points.is_empty());
    }

    #[test]
    fn a_wrapper_on_one_side_does_not_move_the_place(ns in 200.0..1000.0f64, at in 0usize..3) {
        let a = stacks(&split(&[("main join fast", 100.0)]));
        let mut path = vec!["main", "join", "slow"];
        let plain = find(&a, &stacks(&[(path.clone(), ns)]));
        path.insert(at, "decorate.<locals>.wrapper");
        let wrapped = find(&a, &stacks(&[(path, ns)]));
        prop_assert_eq!(plain.points[0].label(), "join (package/module.py:7)");
        prop_assert_eq!(wrapped.points[0].label(), plain.points[0].label());
        prop_assert_eq!(&wrapped.points[0].cause, &plain.points[0].cause);
    }

    #[test]
    fn half_of_the_samples_have_the_same_place(of_b in prop::collection::vec(any::<bool>(), 400)) {
        // 400 samples of B and 100 of A, split into two halves.
        let b = |half: bool| {
            let mine = of_b.iter().zip(0..).filter(|(chosen, _)| **chosen == half);
            let (slow, load): (Vec<_>, Vec<_>) = mine.partition(|(_, at)| at % 5 > 0);
            let rows = [("main join slow", slow.len() as f64), ("main load", load.len() as f64)];
            stacks(&split(&rows))
        };
        let a = stacks(&split(&[("main join fast", 30.0), ("main load", 20.0)]));
        for half in [false, true] {
            prop_assert_eq!(find(&a, &b(half)).points[0].label(), "join (package/module.py:7)");
        }
    }

    #[test]
    fn swapping_the_sides_mirrors_the_points(ns in prop::collection::vec(10.0..1000.0f64, 4)) {
        let a = stacks(&split(&[("main load read", ns[0]), ("main save write", ns[1])]));
        let b = stacks(&split(&[("main load parse", ns[2]), ("main save format", ns[3])]));
        let (there, back) = (find(&a, &b), find(&b, &a));
        for (point, other) in there.points.iter().flat_map(|x| back.points.iter().map(move |y| (x, y))) {
            if point.place.function == other.place.function {
                prop_assert_eq!(point.ns, [other.ns[1], other.ns[0]]);
            }
        }
        // A lag has one direction; only the other one has points.
        prop_assert!(there.points.is_empty() != back.points.is_empty());
    }

    #[test]
    fn noise_in_times_does_not_move_the_place(noise in prop::collection::vec(0.8..1.25f64, 6)) {
        let rows = |scale: &[f64]| [
            stacks(&split(&[("main join fast", 100.0 * scale[0]), ("main load", 60.0 * scale[1])])),
            stacks(&split(&[("main join slow", 700.0 * scale[2]), ("main load", 60.0 * scale[3])])),
        ];
        let [a, b] = rows(&noise);
        prop_assert_eq!(find(&a, &b).points[0].label(), "join (package/module.py:7)");
    }
}
