//! Reports of synthetic call traces that contain a hostile name.

use super::{CallsReport, Shown, csv, json, markdown, text};
use crate::table::Style;
use insta::assert_snapshot;
use laggard_core::calls::{By, Filter, View, arguments, python_lines, totals, tree};
use laggard_core::model::calls::Calls;
use laggard_samples::calls::{CallSketch, counts, inside, products, products_from_python};

fn with(
    calls: &Calls,
    filter: &Filter,
    shown: impl Fn(&View) -> Shown,
    show: impl Fn(&CallsReport) -> String,
) -> String {
    let view = View::new(calls, filter).expect("filter matches");
    show(&CallsReport {
        path: "run.lag",
        view: &view,
        filter,
        losses: &["the file is damaged".to_owned()],
        shown: &shown(&view),
        top: Some(6),
        is_verbose: false,
    })
}

fn plain(report: &CallsReport) -> String {
    text(report, &Style::default())
}

fn all(view: &View) -> Shown {
    let tables = By::ALL.map(|by| totals(view, by)).into();
    Shown::Whole(tables, python_lines(view), arguments(view))
}

fn callers(view: &View, function: &str) -> Shown {
    let of = view.calls_of(function).expect("function exists");
    Shown::Callers(function.into(), totals(&of, By::Caller), python_lines(&of))
}

#[test]
fn the_whole_report() {
    let calls = products();
    let show = |form: fn(&CallsReport) -> String| with(&calls, &Filter::default(), all, form);
    assert_snapshot!("text", show(plain));
    assert_snapshot!("markdown", show(markdown));
    assert_snapshot!("json", show(json));
    assert_snapshot!("csv", show(csv));
}

#[test]
fn other_views() {
    let calls = products();
    let filter = Filter { library: Some("openblas".into()), ..Filter::default() };
    let both = |shown: &dyn Fn(&View) -> Shown| {
        with(&calls, &filter, shown, plain) + &with(&calls, &filter, shown, csv)
    };
    fn dgemm<'a>(view: &View<'a>) -> View<'a> {
        view.calls_of("cblas_dgemm64_").expect("function exists")
    }
    let all = [
        both(&|view| Shown::Tree(tree(view))),
        both(&|view| Shown::Arguments(arguments(view))),
        both(&|view| callers(view, "cblas_dgemm64_")),
        both(&|view| Shown::Histogram("cblas_dgemm64_".into(), dgemm(view).whole)),
    ];
    assert_snapshot!("views", all.join("\n"));
}

#[test]
fn hostile_names_are_escaped() {
    let calls = products();
    for form in [plain, markdown] {
        let text = with(&calls, &Filter::default(), |v| Shown::Table(totals(v, By::Thread)), form);
        assert!(text.contains("worker") && !text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn library_names_are_shortened() {
    for (library, expected) in [
        ("libscipy_openblas64_-32a4b2a6.so", "libscipy_openblas64_"),
        ("_multiarray_umath.cpython-311-x86_64-linux-gnu.so", "_multiarray_umath"),
        ("_rust.abi3.so", "_rust"),
        ("libc.so.6", "libc"),
        ("libz-ng.so.2", "libz-ng"),
        ("[unknown]", "[unknown]"),
    ] {
        assert_eq!(super::tables::short(library), expected);
    }
}

#[test]
fn empty_traces_report_no_calls() {
    let calls = Calls::default();
    let text = with(&calls, &Filter::default(), all, plain);
    assert!(text.contains("no calls"), "{text}");
}

#[test]
fn many_buckets_are_merged_by_octave() {
    let durations: Vec<(u64, u64)> = (10..70).map(|i| (1u64 << (i / 2), i)).collect();
    let calls = CallSketch::default().calls("app!main", "libx.so!f", &durations, 1.0).done();
    let shown = |view: &View| Shown::Histogram("f".into(), view.whole.clone());
    let lines = with(&calls, &Filter::default(), shown, plain);
    assert!(!lines.contains("octave"), "one bucket per octave is not merged: {lines}");
    let durations: Vec<(u64, u64)> = (10..500).map(|i| (i * i, 1)).collect();
    let calls = CallSketch::default().calls("app!main", "libx.so!f", &durations, 1.0).done();
    assert_snapshot!("octaves", with(&calls, &Filter::default(), shown, plain));
}

/// Asserts that a report of calls without times contains no words and units of time.
fn assert_timeless(text: &str) {
    // The duration of the program is always known.
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("duration"));
    for line in lines {
        for word in [" ns", "µs", " ms", " self time", "total", "median", "p99", "mean"] {
            assert!(!line.contains(word), "{word:?} in {line:?}");
        }
    }
}

#[test]
fn instructions_replace_times() {
    let calls = inside(10_000);
    let plainly = |shown: &dyn Fn(&View) -> Shown| {
        let text = with(&calls, &Filter::default(), shown, plain);
        assert_timeless(&text);
        text
    };
    let views = [
        plainly(&all),
        plainly(&|view| callers(view, "cblas_dgemm")),
        plainly(&|view| Shown::Tree(tree(view))),
        plainly(&|view| Shown::Histogram("cblas_dgemm".into(), view.whole.clone())),
    ];
    assert_snapshot!("instructions_text", views.join("\n"));
    assert_snapshot!("instructions_json", with(&calls, &Filter::default(), all, json));
    assert_snapshot!("instructions_csv", with(&calls, &Filter::default(), all, csv));
}

#[test]
fn counts_have_shares_of_calls() {
    let calls = counts();
    let text = with(&calls, &Filter::default(), all, plain);
    assert_timeless(&text);
    assert!(!text.contains("instructions"), "{text}");
    let tree = with(&calls, &Filter::default(), |view| Shown::Tree(tree(view)), plain);
    assert_timeless(&tree);
    assert_snapshot!("counts_text", text + "\n" + &tree);
    assert_snapshot!("counts_csv", with(&calls, &Filter::default(), all, csv));
}

#[test]
fn python_lines_are_marked_as_estimates() {
    let calls = products_from_python();
    let show = |shown: &dyn Fn(&View) -> Shown, form: fn(&CallsReport) -> String| {
        with(&calls, &Filter::default(), shown, form)
    };
    let lines = |view: &View| Shown::PythonLines(python_lines(view));
    let text = show(&lines, plain) + "\n" + &show(&|view| callers(view, "cblas_dgemm64_"), plain);
    assert_snapshot!("python_lines_text", text);
    assert_snapshot!("python_lines_json", show(&lines, json));
    assert_snapshot!("python_lines_csv", show(&lines, csv));
    assert!(show(&all, plain).contains("Calls by Python line"));
    let none = with(&products(), &Filter::default(), lines, plain);
    assert!(none.contains("no recorded stack has Python frames"), "{none}");
}
