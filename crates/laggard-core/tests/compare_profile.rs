//! Comparison of hand-written profiles: alignment, differences, and functions of one side.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use laggard_core::compare::align::{AlignedBy, Alignment, align};
use laggard_core::compare::diff_tree::diff_tree;
use laggard_core::compare::profile::{
    Finding, GapVerdict, ProfileComparison, Scale, Spread, compare,
};
use laggard_core::model::NONE;
use laggard_core::model::profile::{Profile, Unit};
use laggard_core::profile::{Filter, View};
use laggard_samples::profile::{PERIOD_NS, Sketch, matrix_product};
use proptest::prelude::*;

/// A profile of stacks, each with its number of samples.
fn sketch(stacks: &[(usize, &str)]) -> Profile {
    let mut sketch = Sketch::default();
    for (count, stack) in stacks {
        sketch.samples(*count, stack);
    }
    sketch.done()
}

fn compared(a: &Profile, b: &Profile) -> ProfileComparison {
    compare(&[View::whole(a)], &[View::whole(b)], Scale::Time)
}

fn find<'a>(comparison: &'a ProfileComparison, name: &str) -> &'a Finding {
    let is_named = |finding: &&Finding| comparison.function(finding).name == name;
    comparison.functions.iter().find(is_named).unwrap_or_else(|| panic!("no {name}"))
}

/// `name by n_a n_b` for every function, ordered by name.
fn aligned(a: &[(usize, &str)], b: &[(usize, &str)]) -> Vec<String> {
    let (a, b) = (sketch(a), sketch(b));
    let comparison = compared(&a, &b);
    let mut rows: Vec<String> = comparison
        .functions
        .iter()
        .map(|finding| {
            let function = comparison.function(finding);
            let [a, b] = finding.own.samples;
            format!("{} {} {a} {b}", function.name, function.by.word())
        })
        .collect();
    rows.sort();
    rows
}

fn check(a: &[(usize, &str)], b: &[(usize, &str)], expected: &[&str]) {
    assert_eq!(aligned(a, b), expected);
}

#[test]
fn self_differences_add_up_to_the_overall_difference() {
    let a = matrix_product();
    let b = sketch(&[(7, "app!main;libc.so.6!memcpy"), (3, "app!main"), (2, "")]);
    let comparison = compared(&a, &b);
    for findings in [&comparison.functions, &comparison.libraries] {
        let sum: f64 = findings.iter().map(|finding| finding.own.gap()).sum();
        assert_eq!(sum, comparison.whole.gap());
    }
    assert_eq!(comparison.whole.amounts, [83e6, 12e6]);
}

#[test]
fn recursion_counts_once() {
    let a = sketch(&[(2, "app!main;app!walk;app!walk;app!walk")]);
    let comparison = compared(&a, &a);
    let walk = find(&comparison, "walk");
    assert_eq!((walk.own.samples, walk.total.samples), ([2, 2], [2, 2]));
    assert_eq!(walk.total.gap(), 0.0);
}

#[test]
fn builds_of_a_library_match() {
    check(
        &[
            (1, "libopenblas64_p-r0-0cf96a72.3.23.dev.so!dgemm_nn"),
            (2, "_multiarray_umath.cpython-311-x86_64-linux-gnu.so!add"),
            (3, "libpython3.11.so.1.0!PyDict_GetItem"),
            (4, "libfoo-2.31.so!0x10"),
        ],
        &[
            (5, "libopenblas.so.0!dgemm_nn"),
            (6, "_multiarray_umath.cpython-313-x86_64-linux-gnu.so!add"),
            (7, "python3.13!PyDict_GetItem"),
            (8, "libfoo.so.2!0x999"),
        ],
        &[
            "PyDict_GetItem library 3 7",
            "[libfoo-2.31.so] library 4 8",
            "add library 2 6",
            "dgemm_nn library 1 5",
        ],
    );
}

#[test]
fn exact_names_match_first() {
    check(
        &[(1, "libx-1.so!f"), (2, "libx-2.so!f")],
        &[(3, "libx-1.so!f"), (4, "libx-3.so!f")],
        &["f library 2 4", "f name 1 3"],
    );
}

#[test]
fn clones_are_merged() {
    check(
        &[(1, "libx.so!f.constprop.0"), (2, "libx.so!g"), (1, "libx.so!h::h0123456789abcdef")],
        &[
            (3, "libx.so!f.isra.0"),
            (4, "libx.so!g"),
            (5, "libx.so!g.cold"),
            (6, "libx.so!h::hfedcba9876543210"),
        ],
        &["f.constprop.0 clone 1 3", "g clone 2 9", "h::h0123456789abcdef clone 1 6"],
    );
}

#[test]
fn a_function_in_another_library_is_moved() {
    check(
        &[(1, "libopenblas.so!cblas_ddot"), (2, "old!work")],
        &[(3, "libmkl_rt.so!cblas_ddot"), (4, "new!work")],
        &["cblas_ddot moved 1 3", "work moved 2 4"],
    );
    let (a, b) = (sketch(&[(1, "old!work")]), sketch(&[(1, "new!work")]));
    let comparison = compared(&a, &b);
    let work = comparison.function(find(&comparison, "work"));
    assert_eq!([&work.names[0][0].library, &work.names[1][0].library], ["old", "new"]);
}

#[test]
fn variants_for_other_cpus_are_linked() {
    let a = sketch(&[(9, "libopenblas.so!dgemm_kernel_SKYLAKEX"), (1, "libopenblas.so!f")]);
    let b = sketch(&[(20, "libopenblas.so!dgemm_kernel_NEHALEM"), (1, "libopenblas.so!f")]);
    let comparison = compared(&a, &b);
    let (in_a, in_b) =
        (find(&comparison, "dgemm_kernel_SKYLAKEX"), find(&comparison, "dgemm_kernel_NEHALEM"));
    assert_eq!((in_a.only_in, in_b.only_in), (Some(0), Some(1)));
    assert_eq!(comparison.function(in_a).variant_of, Some(in_b.number));
    assert_eq!(comparison.function(in_b).variant_of, Some(in_a.number));
    assert_eq!(comparison.function(find(&comparison, "f")).variant_of, None);
}

#[test]
fn python_functions_match_across_directories_and_scripts() {
    check(
        &[
            (1, "<module> (/home/a/dot.py:1);run (/home/a/dot.py:5)"),
            (2, "<module> (/home/a/dot.py:1);load (/home/a/lib/data.py:7)"),
            (3, "<module> (/home/a/dot.py:2);sum (/usr/lib/python3.11/statistics.py:40)"),
        ],
        &[
            (4, "<module> (/home/b/copy.py:9);run (/home/b/copy.py:6)"),
            (5, "<module> (/home/b/copy.py:9);load (/home/b/lib/data.py:8)"),
            (6, "<module> (/home/b/copy.py:9);sum (/opt/lib/python3.13/statistics.py:44)"),
        ],
        &[
            "<module> (/home/a/dot.py) file 0 0",
            "load (/home/a/lib/data.py) file 2 5",
            "run (/home/a/dot.py) file 1 4",
            "sum (statistics.py) name 3 6",
        ],
    );
}

#[test]
fn imports_are_not_the_main_script() {
    let import =
        "_find_and_load (<frozen importlib._bootstrap>:1007);<module> (/usr/lib/site.py:9)";
    check(
        &[(9, import), (2, "<module> (/home/a/dot.py:1);run (/home/a/dot.py:5)")],
        &[
            (9, import),
            (
                3,
                "_run_code (<frozen runpy>:88);<module> (/home/a/copy.py:1);run (/home/a/copy.py:5)",
            ),
        ],
        &[
            "<module> (/home/a/dot.py) file 0 0",
            "<module> (/usr/lib/site.py) name 9 9",
            "_find_and_load (<frozen importlib._bootstrap>) name 0 0",
            "_run_code (<frozen runpy>) name 0 0",
            "run (/home/a/dot.py) file 2 3",
        ],
    );
}

#[test]
fn a_missing_function_may_be_chance() {
    let a = sketch(&[(100, "app!main"), (2, "app!main;app!rare"), (20, "app!main;app!often")]);
    let b = sketch(&[(100, "app!main")]);
    let comparison = compared(&a, &b);
    let (rare, often) = (find(&comparison, "rare"), find(&comparison, "often"));
    assert!((rare.missed.unwrap() - 0.25).abs() < 1e-9 && rare.could_be_chance());
    assert!(often.missed.unwrap() < 1e-5 && !often.could_be_chance());
    let only: Vec<&str> = comparison
        .only_in(0)
        .into_iter()
        .map(|finding| comparison.function(finding).name.as_str())
        .collect();
    assert_eq!(only, ["often", "rare"]);
    assert!(comparison.only_in(1).is_empty());
    assert_eq!(find(&comparison, "main").missed, None);
    // A side with samples, none of which pass the filter, does not have the function.
    let kept = |profile, library: Option<&str>| {
        let nothing = library.is_none().then_some(u64::MAX);
        let library = library.map(str::to_owned);
        View::new(profile, &Filter { library, from_ns: nothing, ..Filter::default() }).unwrap()
    };
    let narrowed = compare(&[kept(&a, Some("app"))], &[kept(&b, None)], Scale::Time);
    assert!(!find(&narrowed, "often").could_be_chance());
}

#[test]
fn single_recordings_have_a_sampling_error_and_no_verdict() {
    let a = sketch(&[(100, "app!f"), (900, "app!g")]);
    let b = sketch(&[(400, "app!f"), (600, "app!g")]);
    let comparison = compared(&a, &b);
    assert_eq!(comparison.spread, Spread::Sampling);
    let f = find(&comparison, "f");
    assert_eq!(f.own.verdict, GapVerdict::SingleSample);
    let interval = f.own.interval.unwrap();
    // About two standard deviations for 100 and 400 of 1000 samples.
    assert_eq!(interval.middle, 300.0 * PERIOD_NS as f64);
    let half = (interval.high - interval.middle) / PERIOD_NS as f64;
    assert!((33.0..38.0).contains(&half), "{half}");
    assert_eq!(comparison.whole.interval, None);
    // The number of samples that pass a filter is random too.
    let only = |library: &str| Filter { library: Some(library.into()), ..Filter::default() };
    let both = sketch(&[(100, "app!main;libx.so!f"), (900, "app!main")]);
    let view = || View::new(&both, &only("libx")).unwrap();
    let narrowed = compare(&[view()], &[view()], Scale::Time);
    assert!(narrowed.whole.interval.is_some_and(|range| range.high > 20.0 * PERIOD_NS as f64));
}

#[test]
fn repeated_recordings_have_verdicts() {
    let runs = |counts: &[usize]| -> Vec<Profile> {
        counts.iter().map(|n| sketch(&[(*n, "app!f"), (500 + n % 7, "app!g")])).collect()
    };
    let (a, b) = (runs(&[200, 205, 198, 202]), runs(&[300, 304, 297, 302]));
    let views =
        |runs: &'static [Profile]| -> Vec<View<'static>> { runs.iter().map(View::whole).collect() };
    let (a, b) = (views(Box::leak(a.into())), views(Box::leak(b.into())));
    let comparison = compare(&a, &b, Scale::of(&a, &b));
    assert_eq!(comparison.spread, Spread::Recordings);
    assert_eq!(find(&comparison, "f").own.verdict, GapVerdict::Slower);
    assert_eq!(find(&comparison, "g").own.verdict, GapVerdict::NoDetectableDifference);
    assert_eq!(comparison.whole.verdict, GapVerdict::Slower);
    assert_eq!(find(&comparison, "f").own.samples, [805, 1203]);
    let back = compare(&b, &a, Scale::Time);
    assert_eq!(find(&back, "f").own.verdict, GapVerdict::Faster);
}

#[test]
fn many_rare_functions_do_not_hide_a_difference() {
    let run = |slow: usize, seed: usize| {
        let mut sketch = Sketch::default();
        sketch.samples(slow, "app!slow").samples(1000, "app!rest");
        for i in 0..300 {
            sketch.samples(1, &format!("app!rare{}", i * (seed + 2)));
        }
        sketch.done()
    };
    let a: Vec<Profile> = [400, 405, 398].into_iter().zip(0..).map(|(n, i)| run(n, i)).collect();
    let b: Vec<Profile> = [500, 504, 497].into_iter().zip(3..).map(|(n, i)| run(n, i)).collect();
    let (a, b): (Vec<View>, Vec<View>) =
        (a.iter().map(View::whole).collect(), b.iter().map(View::whole).collect());
    let comparison = compare(&a, &b, Scale::Time);
    assert_eq!(find(&comparison, "slow").own.verdict, GapVerdict::Slower);
    assert_eq!(find(&comparison, "rare0").own.verdict, GapVerdict::TooFewSamples);
}

#[test]
fn scales() {
    let a = sketch(&[(10, "app!f"), (30, "app!g")]);
    let b = sketch(&[(30, "app!f"), (30, "app!g")]);
    let with = |scale: Scale| {
        let comparison = compare(&[View::whole(&a)], &[View::whole(&b)], scale);
        (find(&comparison, "f").own.amounts, comparison.whole.amounts)
    };
    assert_eq!(with(Scale::Samples), ([10.0, 30.0], [40.0, 60.0]));
    assert_eq!(with(Scale::Share), ([0.25, 0.5], [1.0, 1.0]));
    assert_eq!(with(Scale::PerCall([10.0, 5.0])), ([1e6, 6e6], [4e6, 12e6]));
    let mut cycles = Sketch::default();
    let cycles = cycles.event("cycles", Unit::Count).samples(5, "app!f").done();
    let (time, other) = ([View::whole(&a)], [View::whole(&cycles)]);
    assert_eq!(Scale::of(&time, &time), Scale::Time);
    assert_eq!(Scale::of(&time, &other), Scale::Share);
    assert_eq!(Scale::of(&other, &other), Scale::Weight);
}

#[test]
fn functions_are_kept_by_name() {
    let a =
        sketch(&[(3, "<module> (app.py:1);libx.so!dot"), (2, "<module> (app.py:1);libx.so!add")]);
    let kept = |asked: &str| {
        let mut comparison = compared(&a, &a);
        let found = comparison.keep_functions(asked);
        (found, comparison.functions.len())
    };
    assert_eq!(kept("dot"), (true, 1));
    assert_eq!(kept("*d*"), (true, 3));
    assert_eq!(kept("<module>"), (true, 1));
    assert_eq!(kept("nowhere"), (false, 3));
}

#[test]
fn a_side_without_samples_is_compared() {
    let (a, b) = (matrix_product(), Sketch::default().done());
    let comparison = compared(&a, &b);
    assert!(comparison.functions.iter().all(|finding| finding.only_in == Some(0)));
    assert!(comparison.functions.iter().all(Finding::could_be_chance));
    let share = compare(&[View::whole(&b)], &[View::whole(&b)], Scale::Share);
    assert_eq!((share.functions.len(), share.whole.gap()), (0, 0.0));
    assert_eq!(compare(&[], &[], Scale::Time).whole.amounts, [0.0, 0.0]);
}

#[test]
fn the_tree_has_the_stacks_of_both_sides() {
    let a = sketch(&[(3, "app!main;libx-1.so!f;libx-1.so!g"), (1, "app!main"), (2, "")]);
    let b = sketch(&[(5, "app!main;libx-2.so!f"), (4, "app!main;libx-2.so!h")]);
    let views = ([View::whole(&a)], [View::whole(&b)]);
    let alignment = align(&views.0, &views.1);
    let tree = diff_tree(&views.0, &views.1, &alignment, Scale::Samples);
    let drawn: Vec<(u32, &str, [f64; 2])> = tree
        .nodes
        .iter()
        .map(|node| {
            let name = tree.names.get(node.function as usize).map_or("all", |f| &f.name);
            (node.parent, name, node.own)
        })
        .collect();
    assert_eq!(
        drawn,
        [
            (NONE, "all", [2.0, 0.0]),
            (0, "main", [1.0, 0.0]),
            (1, "f", [0.0, 5.0]),
            (2, "g", [3.0, 0.0]),
            (1, "h", [0.0, 4.0]),
        ]
    );
    assert_eq!(tree.totals()[..3], [[6.0, 9.0], [4.0, 9.0], [3.0, 5.0]]);
}

/// Aligned functions of a side.
fn numbers(alignment: &Alignment, side: usize, view: &View) -> Vec<u32> {
    (0..view.profile.frames.len() as u32)
        .map(|frame| alignment.function(side, 0, view, frame))
        .collect()
}

proptest! {
    /// For any names: self differences add up, every frame has a function, and swapping the sides gives
    /// the same alignment.
    #[test]
    fn alignment_is_complete_and_symmetric(
        a in prop::collection::vec((1usize..4, 0usize..LIBRARIES.len(), 0usize..NAMES.len()), 0..12),
        b in prop::collection::vec((1usize..4, 0usize..LIBRARIES.len(), 0usize..NAMES.len()), 0..12),
    ) {
        let side = |rows: &[(usize, usize, usize)]| {
            let mut sketch = Sketch::default();
            for (count, library, name) in rows {
                let frame = format!("{}!{}", LIBRARIES[*library], NAMES[*name]);
                sketch.samples(*count, &format!("app!main;{frame}"));
            }
            sketch.done()
        };
        let (a, b) = (side(&a), side(&b));
        let comparison = compared(&a, &b);
        let sum: f64 = comparison.functions.iter().map(|finding| finding.own.gap()).sum();
        prop_assert_eq!(sum, comparison.whole.gap());
        let views = (View::whole(&a), View::whole(&b));
        let count = comparison.alignment.functions.len() as u32;
        for (side, view) in [(0, &views.0), (1, &views.1)] {
            prop_assert!(numbers(&comparison.alignment, side, view).iter().all(|n| *n < count));
        }
        let back = compared(&b, &a);
        let by = |comparison: &ProfileComparison, by: AlignedBy| {
            comparison.alignment.functions.iter().filter(|function| function.by == by).count()
        };
        for kind in [AlignedBy::Name, AlignedBy::Library, AlignedBy::Clone, AlignedBy::Moved] {
            prop_assert_eq!(by(&comparison, kind), by(&back, kind));
        }
    }
}

const LIBRARIES: [&str; 6] = [
    "libx.so.1",
    "libx-2.0.so",
    "liby.so",
    "libopenblas64_p-r0-0cf96a72.so",
    "libopenblas.so.0",
    "-.so",
];
const NAMES: [&str; 7] =
    ["f", "f.cold", "f.part.0", "g_HASWELL", "g_NEHALEM", "0x12", "h::h0123456789abcdef"];

#[test]
fn unnamed_functions_match_only_within_a_build() {
    let recorded = |id: &str, stacks: &[(usize, &str)]| {
        let mut profile = sketch(stacks);
        let id = profile.texts.add(id);
        profile.modules.iter_mut().for_each(|module| module.id = id);
        profile
    };
    let rows = |b: &str| {
        let a = recorded("1a", &[(1, "libx.so![libx.so+0x40]"), (2, "libx.so![libx.so+0x80]")]);
        let b = recorded(b, &[(3, "libx.so![libx.so+0x40]"), (4, "libx.so![libx.so+0xc0]")]);
        let comparison = compared(&a, &b);
        let mut rows: Vec<_> = comparison
            .functions
            .iter()
            .map(|finding| (comparison.function(finding).name.clone(), finding.own.samples))
            .collect();
        rows.sort();
        rows
    };
    let [x, y, z] = ["[libx.so+0x40]", "[libx.so+0x80]", "[libx.so+0xc0]"].map(str::to_owned);
    assert_eq!(rows("1a"), [(x, [1, 3]), (y, [2, 0]), (z, [0, 4])]);
    assert_eq!(rows("2b"), [("[libx.so]".to_owned(), [3, 7])]);
}
