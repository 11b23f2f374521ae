//! The table of counters.

use super::array::{NUMBER, REAL, maybe_numbers, reals, word, words};
use super::{Maker, Table};
use laggard_core::model::counters::Counters;
use std::sync::Arc;

/// All tables.
pub(super) fn tables(counters: &Arc<Counters>) -> Vec<Table> {
    let about = "one counter: of the whole run, or of a processor, a thread or an interval of it";
    let table = Maker::new(counters, "counters", about, |c| c.rows.len())
        .column("name", word(), "what was counted", |c| {
            words(c.rows.iter().map(|row| Some(&row.name)))
        })
        .column("modifiers", word(), "its modifiers: `u` is user code only", |c| {
            words(c.rows.iter().map(|row| Some(&row.modifiers)))
        })
        .column("value", REAL, "what it came to; none where it was not counted", |c| {
            reals(c.rows.iter().map(|row| row.value()))
        })
        .column("unit", word(), "its unit; empty for a plain count", |c| {
            words(c.rows.iter().map(|row| Some(&row.unit)))
        })
        .column("reading", word(), "`counted`, `not counted` or `not supported`", |c| {
            words(c.rows.iter().map(|row| Some(row.reading.word())))
        })
        .column("run_ns", NUMBER, "time in which it was counted", |c| {
            maybe_numbers(c.rows.iter().map(|row| row.run_ns.map(|ns| ns as i64)))
        })
        .column("counted", REAL, "share of the time in which it was counted", |c| {
            reals(c.rows.iter().map(|row| row.counted))
        })
        .column("spread", REAL, "standard error of the mean over runs, as a share", |c| {
            reals(c.rows.iter().map(|row| row.spread))
        })
        .column("of", word(), "whom it is about; empty for all", |c| {
            words(c.rows.iter().map(|row| Some(&row.of)))
        })
        .column("time_ns", NUMBER, "end of the interval, since the start", |c| {
            maybe_numbers(c.rows.iter().map(|row| row.time_ns.map(|ns| ns as i64)))
        })
        .table();
    vec![table]
}
