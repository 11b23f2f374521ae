//! Tables of a call trace.

use super::array::{NUMBER, coded, maybe_numbers, numbers, word, words};
use super::{Maker, Table};
use arrow_array::ArrayRef;
use laggard_core::model::calls::{ArgumentRow, CallRow, Calls};
use laggard_core::profile::{file_name, frame_label};
use std::sync::Arc;

/// Returns all tables.
pub(super) fn tables(calls: &Arc<Calls>) -> Vec<Table> {
    vec![rows(calls), arguments(calls), failures(calls)]
}

/// Names of all functions.
fn functions(calls: &Calls) -> Vec<String> {
    let texts = &calls.profile.texts;
    calls.functions.iter().map(|function| texts.get(function.name).to_owned()).collect()
}

/// Libraries of all functions.
fn libraries(calls: &Calls) -> Vec<String> {
    let library = |module: u32| {
        let module = calls.profile.modules.get(module as usize);
        module.map_or("", |module| file_name(calls.profile.texts.get(module.path))).to_owned()
    };
    calls.functions.iter().map(|function| library(function.module)).collect()
}

fn rows(calls: &Arc<Calls>) -> Table {
    let each = |get: fn(&CallRow) -> u64| {
        move |c: &Calls| numbers(c.rows.iter().map(|row| get(row) as i64))
    };
    /// A text column, looked up by a field of each row.
    fn text(
        texts: fn(&Calls) -> Vec<String>,
        by: fn(&CallRow) -> u32,
    ) -> impl Fn(&Calls) -> ArrayRef {
        move |c| coded(c.rows.iter().map(|row| by(row) as usize), &texts(c))
    }
    let about = "all calls of one function by one caller on one thread";
    Maker::new(calls, "calls", about, |c| c.rows.len())
        .column("function", word(), "function", text(functions, |row| row.function))
        .column("library", word(), "library of the function", text(libraries, |row| row.function))
        .column(
            "caller",
            word(),
            "caller",
            text(
                |c| c.profile.frames.iter().map(|frame| frame_label(&c.profile, frame)).collect(),
                |row| row.caller,
            ),
        )
        .column(
            "caller_library",
            word(),
            "library of the caller",
            text(
                |c| {
                    let library = |frame| file_name(c.profile.module_path(frame)).to_owned();
                    c.profile.frames.iter().map(library).collect()
                },
                |row| row.caller,
            ),
        )
        .column(
            "thread",
            word(),
            "thread name",
            text(
                |c| {
                    let name = |thread: &laggard_core::model::profile::Thread| {
                        c.profile.texts.get(thread.name).to_owned()
                    };
                    c.profile.threads.iter().map(name).collect()
                },
                |row| row.thread,
            ),
        )
        .column("tid", NUMBER, "thread id", |c| {
            let tid =
                |row: &CallRow| Some(i64::from(c.profile.threads.get(row.thread as usize)?.tid));
            maybe_numbers(c.rows.iter().map(tid))
        })
        .column("count", NUMBER, "calls started", each(|row| row.count))
        .column("unfinished", NUMBER, "calls that did not return", each(|row| row.unfinished))
        .column("total_ns", NUMBER, "total time of calls that returned", each(|row| row.total_ns))
        .column(
            "self_ns",
            NUMBER,
            "self time: total time without traced callees",
            each(|row| row.self_ns),
        )
        .column("min_ns", NUMBER, "shortest call", each(|row| row.min_ns))
        .column("max_ns", NUMBER, "longest call", each(|row| row.max_ns))
        .column("instructions", NUMBER, "instructions, if counted", |c| {
            maybe_numbers(c.rows.iter().map(|row| row.instructions.map(|count| count as i64)))
        })
        .table()
}

fn arguments(calls: &Arc<Calls>) -> Table {
    let each = |get: fn(&ArgumentRow) -> u64| {
        move |c: &Calls| numbers(c.arguments.iter().map(|row| get(row) as i64))
    };
    let about = "all calls of one function with the same leading integer arguments";
    Maker::new(calls, "arguments", about, |c| c.arguments.len())
        .column("function", word(), "function", |c| {
            coded(c.arguments.iter().map(|row| row.function as usize), &functions(c))
        })
        .column("library", word(), "library of the function", |c| {
            coded(c.arguments.iter().map(|row| row.function as usize), &libraries(c))
        })
        .column("values", word(), "arguments, separated by commas", |c| {
            let text = |row: &ArgumentRow| {
                row.values.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
            };
            words(c.arguments.iter().map(|row| Some(text(row))))
        })
        .column("count", NUMBER, "number of calls", each(|row| row.count))
        .column("total_ns", NUMBER, "total time of these calls", each(|row| row.total_ns))
        .table()
}

fn failures(calls: &Arc<Calls>) -> Table {
    let about = "all calls of one function that failed with the same error";
    Maker::new(calls, "failures", about, |c| c.failures.len())
        .column("function", word(), "function", |c| {
            coded(c.failures.iter().map(|row| row.function as usize), &functions(c))
        })
        .column("error", word(), "error: `ENOENT`, …", |c| {
            words(c.failures.iter().map(|row| Some(c.profile.texts.get(row.error))))
        })
        .column("count", NUMBER, "number of calls", |c| {
            numbers(c.failures.iter().map(|row| row.count as i64))
        })
        .table()
}
