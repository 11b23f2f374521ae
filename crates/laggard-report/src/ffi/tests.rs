//! Reports of a synthetic run: every section, and escaping of names.

use super::*;
use laggard_core::ffi::figures;
use laggard_core::model::ffi::{
    Binding, Category, Launch, Library, Overhead, Profile, Python, Skipped,
};
use laggard_core::model::timings::{Batch, Counter};
use laggard_core::stats::ratio::Interval;

/// Process launches in which a statement takes this long, including the loop.
fn launches(ns: f64) -> Vec<Launch> {
    let launch = |number: u32| {
        let wall_ns = (ns * (1.0 + 0.002 * f64::from(number)) * 1e4) as u64;
        let batch = Batch { calls: 10_000, wall_ns, user_ns: wall_ns, ..Batch::default() };
        Launch { first_ns: 900.0 + f64::from(number), batches: vec![batch; 5] }
    };
    (0..5).map(launch).collect()
}

fn cell(category: usize, profile: usize, who: Who, ns: f64) -> Cell {
    let counter =
        Counter { name: "instructions".into(), per_call: ns * 10.0, source: "callgrind".into() };
    Cell {
        category,
        python: 0,
        profile,
        who,
        statement: "f()".into(),
        calls: 1,
        note: String::new(),
        launches: launches(ns),
        counters: if category < 2 { vec![counter] } else { vec![] },
        trouble: None,
    }
}

fn category(name: &str, size: Option<u64>) -> Category {
    Category {
        name: name.into(),
        group: "group".into(),
        about: format!("about {name}"),
        calls: 1,
        size,
    }
}

fn made_up() -> Ffi {
    let binding =
        |name: &str| Binding { name: name.into(), about: "a way".into(), is_users: false };
    let profile = |name: &str| Profile {
        name: name.into(),
        c_flags: "-O3".into(),
        rust_flags: "opt-level=3".into(),
    };
    let mut cells = vec![];
    for (at, scale) in [(0, 1.0), (1, 3.0)] {
        cells.push(cell(at, 0, Who::Loop, 5.0));
        for (profile, more) in [(0, 1.0), (1, 1.001)] {
            cells.push(cell(at, profile, Who::Null, 25.0));
            cells.push(cell(at, profile, Who::Binding(0), 5.0 + 15.0 * scale * more));
            // 10 % slower with frame pointers.
            let more = if profile == 1 { 1.1 } else { 1.0 };
            cells.push(cell(at, profile, Who::Binding(1), 5.0 + 90.0 * scale * more));
        }
    }
    cells.push(cell(0, 0, Who::C, 1.4));
    for (at, size) in [(2, 1.0), (3, 1000.0), (4, 100_000.0)] {
        cells.push(cell(at, 0, Who::Loop, 5.0));
        cells.push(cell(at, 0, Who::C, size));
        cells.push(cell(at, 0, Who::Binding(0), size + 20.0));
        cells.push(cell(at, 0, Who::Binding(1), size + 400.0));
    }
    for cell in &mut cells {
        if cell.who == Who::Binding(1) && cell.category == 1 {
            cell.note = "encodes in Python".into();
        }
    }
    let overhead = |profile, method: &str| Overhead {
        profile,
        method: method.into(),
        workload: "callback_100 through capi".into(),
        ratio: Some(Interval { middle: 1.02, low: 0.99, high: 1.05 }),
        whole: 1.3,
        n: 4,
        samples: 700,
        complete: Some(0.999),
        bytes: Some(1_500_000),
        why_not: String::new(),
    };
    let none = |profile| Overhead {
        ratio: None,
        why_not: "there are no branch records".into(),
        ..overhead(profile, "lbr")
    };
    Ffi {
        command: vec!["laggard".into(), "ffi".into()],
        tool: "laggard 0".into(),
        started_unix: 1_800_000_000.0,
        facts: vec![("cpu".into(), "a processor".into())],
        pythons: vec![Python {
            name: "3.11".into(),
            path: "/usr/bin/python3".into(),
            facts: vec![("version".into(), "3.11.7".into())],
        }],
        profiles: vec![profile("fast"), profile("instrumented")],
        bindings: vec![binding("capi"), binding("<b>ctypes</b>\u{1b}[31m")],
        builds: vec![Build {
            binding: 0,
            version: "1.2".into(),
            commands: vec!["cc -O3 bench_capi.c".into()],
            directory: "/cache/capi".into(),
            libraries: vec![Library {
                name: "bench_capi.so".into(),
                frame_setups: (2, 144),
                of_callers: (2, 139),
                debug_info: "line tables only".into(),
            }],
            ..Build::default()
        }],
        skipped: vec![Skipped {
            binding: "pybind11".into(),
            python: 0,
            profile: None,
            why: "there is no C++ compiler".into(),
            hint: "install one".into(),
        }],
        categories: vec![
            category("noop", None),
            category("str_length", None),
            category("sum_double", Some(1)),
            category("sum_double", Some(1000)),
            category("sum_double", Some(100_000)),
        ],
        cells,
        overheads: vec![overhead(0, "agent"), none(0), overhead(1, "fp"), none(1)],
        warnings: vec!["something is odd".into()],
    }
}

fn shown(show: impl Fn(&FfiReport) -> String, ffi: &Ffi, is_whole: bool) -> String {
    let figures = figures(ffi);
    show(&FfiReport { ffi, figures: &figures, is_whole })
}

#[test]
fn all_formats() {
    let ffi = made_up();
    let style = Style::default();
    insta::assert_snapshot!("text", shown(|of| text(of, &style), &ffi, false));
    insta::assert_snapshot!("markdown", shown(markdown, &ffi, false));
    insta::assert_snapshot!("csv", shown(csv, &ffi, false));
    insta::assert_snapshot!("json", shown(json, &ffi, false));
}

#[test]
fn many_categories_are_abbreviated_without_all() {
    let mut ffi = made_up();
    for number in 0..3 {
        ffi.categories.push(category(&format!("more_{number}"), None));
        let at = ffi.categories.len() - 1;
        ffi.cells.extend([cell(at, 0, Who::Loop, 5.0), cell(at, 0, Who::Binding(0), 20.0)]);
    }
    let style = Style::default();
    let heading = "noop: about noop";
    assert!(!shown(|of| text(of, &style), &ffi, false).contains(heading));
    assert!(shown(|of| text(of, &style), &ffi, true).contains(heading));
    assert!(shown(markdown, &ffi, false).contains(heading), "a file has everything");
}

#[test]
fn names_are_escaped() {
    let ffi = made_up();
    let page = shown(page, &ffi, false);
    assert!(!page.contains("<b>ctypes"), "names are escaped");
    assert!(page.contains("&lt;b&gt;ctypes&lt;/b&gt;"));
    assert_eq!(page.matches("<polyline").count(), 2, "a line a binding");
    assert_eq!(page.matches("<rect").count(), 4, "a bar for each of two in two categories");
    assert!(!shown(|of| text(of, &Style::default()), &ffi, true).contains('\u{1b}'));
}

#[test]
fn comparison_of_interpreters() {
    let mut ffi = made_up();
    let second: Vec<Cell> =
        ffi.cells.iter().map(|cell| Cell { python: 1, ..cell.clone() }).collect();
    ffi.cells.extend(second);
    ffi.pythons.push(Python { name: "3.13".into(), ..Python::default() });
    let text = shown(|of| text(of, &Style::default()), &ffi, false);
    let section = text.split("Comparison of Python versions").nth(1).unwrap_or_default();
    let section: Vec<&str> =
        section.lines().take_while(|line| !line.starts_with("Controls")).collect();
    insta::assert_snapshot!("pythons", section.join("\n"));
}

#[test]
fn empty_run() {
    let text = shown(|of| text(of, &Style::default()), &Ffi::default(), true);
    assert!(text.starts_with("nothing was measured"), "{text}");
    assert!(shown(page, &Ffi::default(), true).contains("nothing was measured"));
}
