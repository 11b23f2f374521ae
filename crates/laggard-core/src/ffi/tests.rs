//! Figures of synthetic measurements with known results.

use super::*;
use crate::model::ffi::{Binding, Category, Cell, Ffi, Launch, Profile, Python};

const LOOP: f64 = 5.0;

/// Process launches in which a call takes this long, with a slight increase per launch.
fn launches(ns: f64, calls: u64) -> Vec<Launch> {
    let launch = |number: u32| {
        let wall = (ns + LOOP) * (1.0 + 0.001 * f64::from(number)) * calls as f64 * 1000.0;
        let batch = Batch {
            calls: 1000,
            wall_ns: wall as u64,
            user_ns: wall as u64 / 2,
            ..Batch::default()
        };
        Launch { first_ns: 1000.0, batches: vec![batch; 5] }
    };
    (0..5).map(launch).collect()
}

fn cell(who: Who, profile: usize, ns: f64) -> Cell {
    Cell {
        category: 0,
        python: 0,
        profile,
        who,
        statement: String::new(),
        calls: 1,
        note: String::new(),
        launches: launches(ns, 1),
        counters: vec![],
        trouble: None,
    }
}

fn run(cells: Vec<Cell>) -> Ffi {
    let binding = |name: &str| Binding { name: name.into(), ..Binding::default() };
    let profile = |name: &str| Profile { name: name.into(), ..Profile::default() };
    Ffi {
        pythons: vec![Python::default()],
        profiles: vec![profile("fast"), profile("instrumented")],
        bindings: vec![binding("capi"), binding("ctypes"), binding("pyo3")],
        categories: vec![Category { name: "noop".into(), calls: 1, ..Category::default() }],
        cells,
        ..Ffi::default()
    }
}

fn near(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 0.01
}

#[test]
fn loop_is_subtracted_and_floor_has_ratio_one() {
    let ffi = run(vec![
        cell(Who::Loop, 0, 0.0),
        cell(Who::Null, 0, 20.0),
        cell(Who::Binding(0), 0, 15.0),
        cell(Who::Binding(1), 0, 90.0),
        cell(Who::Binding(2), 0, 30.0),
    ]);
    let found = figures(&ffi);
    assert_eq!(found.floor, Some(0));
    let net = |at: usize| found.cells[at].net.map_or(0.0, |net| net.middle);
    assert!(near(net(2), 15.0) && near(net(3), 90.0), "{} {}", net(2), net(3));
    let ratio = |at: usize| found.cells[at].ratio.map_or(0.0, |ratio| ratio.middle);
    assert!(near(ratio(2), 1.0) && near(ratio(3), 6.0) && near(ratio(1), 20.0 / 15.0));
    let ranks: Vec<_> = found.cells.iter().map(|figure| figure.rank).collect();
    assert_eq!(ranks, [None, None, Some(1), Some(3), Some(2)]);
    assert!(near(found.cells[3].best_ns, 90.0), "{}", found.cells[3].best_ns);
    assert!(near(found.cells[3].cpu_ns, 45.0), "{}", found.cells[3].cpu_ns);
    let order: Vec<usize> = found.standings.iter().map(|standing| standing.binding).collect();
    assert_eq!(order, [0, 2, 1]);
}

#[test]
fn times_are_per_call_for_statements_with_many_calls() {
    let mut many = cell(Who::Binding(0), 0, 0.0);
    (many.calls, many.launches) = (100, launches(15.0, 100));
    let found = figures(&run(vec![cell(Who::Loop, 0, 0.0), many]));
    assert!(found.cells[1].net.is_some_and(|net| near(net.middle, 15.0)), "{:?}", found.cells[1]);
}

#[test]
fn cost_must_exceed_the_null_control() {
    let costs = |null: f64, slower: f64| {
        let ffi = run(vec![
            cell(Who::Loop, 0, 0.0),
            cell(Who::Null, 0, 20.0),
            cell(Who::Null, 1, null),
            cell(Who::Binding(0), 0, 15.0),
            cell(Who::Binding(0), 1, slower),
        ]);
        let found = figures(&ffi).differences;
        found.into_iter().map(|difference| difference.cost).collect::<Vec<_>>()
    };
    let found = costs(20.0, 16.0);
    assert!(matches!(found[..], [Cost::None { .. }, Cost::Slower]), "{found:?}");
    let found = costs(20.0, 14.0);
    assert!(matches!(found[..], [Cost::None { .. }, Cost::Faster]), "{found:?}");
    // The null control differs by as much.
    let found = costs(22.0, 16.0);
    assert!(matches!(found[..], [Cost::None { .. }, Cost::None { .. }]), "{found:?}");
    let found = costs(20.0, 15.0);
    assert!(matches!(found[..], [_, Cost::None { within }] if within < 0.01), "{found:?}");
}

#[test]
fn failed_cells_have_no_figures() {
    let mut failed = cell(Who::Binding(0), 0, 1.0);
    failed.launches.clear();
    let found = figures(&run(vec![cell(Who::Loop, 0, 0.0), failed, cell(Who::Binding(1), 0, 9.0)]));
    assert_eq!((found.cells[1].net, found.cells[1].ratio), (None, None));
    // The next measured binding becomes the floor.
    assert_eq!(found.floor, Some(1));
    assert_eq!(figures(&Ffi::default()), Figures::default());
}
