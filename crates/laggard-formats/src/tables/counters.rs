//! Table of `perf stat` counters.

use super::array::{NUMBER, REAL, maybe_numbers, reals, word, words};
use super::{Maker, Table};
use laggard_core::model::counters::Counters;
use std::sync::Arc;

/// Returns all tables.
pub(super) fn tables(counters: &Arc<Counters>) -> Vec<Table> {
    let about = "one counter, for the whole run or for one CPU, thread or interval";
    let table = Maker::new(counters, "counters", about, |c| c.rows.len())
        .column("name", word(), "name of the counter", |c| {
            words(c.rows.iter().map(|row| Some(&row.name)))
        })
        .column("modifiers", word(), "modifiers: `u` counts user code only", |c| {
            words(c.rows.iter().map(|row| Some(&row.modifiers)))
        })
        .column("value", REAL, "value; null if not counted", |c| {
            reals(c.rows.iter().map(|row| row.value()))
        })
        .column("unit", word(), "unit; empty for a plain count", |c| {
            words(c.rows.iter().map(|row| Some(&row.unit)))
        })
        .column("reading", word(), "`counted`, `not counted` or `not supported`", |c| {
            words(c.rows.iter().map(|row| Some(row.reading.word())))
        })
        .column("run_ns", NUMBER, "time during which the counter was active", |c| {
            maybe_numbers(c.rows.iter().map(|row| row.run_ns.map(|ns| ns as i64)))
        })
        .column("counted", REAL, "share of the run during which the counter was active", |c| {
            reals(c.rows.iter().map(|row| row.counted))
        })
        .column("spread", REAL, "relative standard error of the mean over runs", |c| {
            reals(c.rows.iter().map(|row| row.spread))
        })
        .column("of", word(), "CPU, core, thread or cgroup; empty for all", |c| {
            words(c.rows.iter().map(|row| Some(&row.of)))
        })
        .column("time_ns", NUMBER, "end of the interval, since the start of the run", |c| {
            maybe_numbers(c.rows.iter().map(|row| row.time_ns.map(|ns| ns as i64)))
        })
        .table();
    vec![table]
}
