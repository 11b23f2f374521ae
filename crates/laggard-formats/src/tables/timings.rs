//! Tables of a benchmark.

use super::array::{FLAG, NUMBER, REAL, flags, numbers, reals, word, words};
use super::{Maker, Table};
use arrow_array::ArrayRef;
use laggard_core::model::timings::{Batch, Series, Timings};
use std::sync::Arc;

/// Returns all tables.
pub(super) fn tables(timings: &Arc<Timings>) -> Vec<Table> {
    vec![batches(timings), series(timings)]
}

/// The measurements of one side in one case.
struct OfSide<'a> {
    case: usize,
    side: usize,
    series: &'a Series,
}

fn sides(timings: &Timings) -> impl Iterator<Item = OfSide<'_>> {
    timings.cases.iter().enumerate().flat_map(|(case, of)| {
        of.series.iter().enumerate().map(move |(side, series)| OfSide { case, side, series })
    })
}

/// A batch with its side and case.
struct OfBatch<'a> {
    of: OfSide<'a>,
    batch: &'a Batch,
    is_warm_up: bool,
}

fn all(timings: &Timings) -> impl Iterator<Item = OfBatch<'_>> {
    sides(timings).flat_map(|OfSide { case, side, series }| {
        let of = move |batch, is_warm_up| OfBatch {
            of: OfSide { case, side, series },
            batch,
            is_warm_up,
        };
        let warm_up = series.warm_up.iter().map(move |batch| of(batch, true));
        warm_up.chain(series.batches.iter().map(move |batch| of(batch, false)))
    })
}

fn case_name(timings: &Timings, case: usize) -> Option<String> {
    let case = timings.cases.get(case)?;
    let parameters = case.parameters.iter().map(|(name, value)| format!("{name}={value}"));
    let name = std::iter::once(case.name.clone()).filter(|name| !name.is_empty());
    Some(name.chain(parameters).collect::<Vec<_>>().join(" "))
}

fn side_name(timings: &Timings, side: usize) -> Option<String> {
    timings.sides.get(side).map(|side| side.name.clone())
}

fn batches(timings: &Arc<Timings>) -> Table {
    let each =
        |get: fn(&Batch) -> u64| move |t: &Timings| numbers(all(t).map(|of| get(of.batch) as i64));
    let per_call = |get: fn(&Batch) -> u64| {
        move |t: &Timings| reals(all(t).map(|of| Some(of.batch.per_call(get(of.batch)))))
    };
    let about = "one batch: consecutive calls of one side, timed together";
    Maker::new(timings, "batches", about, |t| all(t).count())
        .column("case", word(), "case and its parameters; empty if there is only one case", |t| {
            words(all(t).map(|of| case_name(t, of.of.case)))
        })
        .column("side", word(), "side", |t| words(all(t).map(|of| side_name(t, of.of.side))))
        .column("round", NUMBER, "round", each(|batch| u64::from(batch.round)))
        .column("place", NUMBER, "position in the round", each(|batch| u64::from(batch.place)))
        .column("is_warm_up", FLAG, "whether the batch is a warm-up", |t| {
            flags(all(t).map(|of| of.is_warm_up))
        })
        .column("start_ns", NUMBER, "start, since the first batch", each(|batch| batch.start_ns))
        .column("calls", NUMBER, "number of calls", each(|batch| batch.calls))
        .column("wall_ns", NUMBER, "wall time of all calls", each(|batch| batch.wall_ns))
        .column("user_ns", NUMBER, "CPU time in user mode", each(|batch| batch.user_ns))
        .column("system_ns", NUMBER, "CPU time in kernel mode", each(|batch| batch.system_ns))
        .column("call_ns", REAL, "wall time per call", per_call(|batch| batch.wall_ns))
        .column(
            "call_cpu_ns",
            REAL,
            "CPU time per call",
            per_call(|batch| batch.user_ns + batch.system_ns),
        )
        .column(
            "minor_faults",
            NUMBER,
            "minor page faults (without disk access)",
            each(|b| b.minor_faults),
        )
        .column(
            "major_faults",
            NUMBER,
            "major page faults (with disk access)",
            each(|batch| batch.major_faults),
        )
        .table()
}

fn series(timings: &Arc<Timings>) -> Table {
    let about = "one side in one case";
    let number = |get: fn(&Series) -> u64| -> Box<dyn Fn(&Timings) -> ArrayRef + Send + Sync> {
        Box::new(move |t: &Timings| numbers(sides(t).map(|of| get(of.series) as i64)))
    };
    Maker::new(timings, "series", about, |t| sides(t).count())
        .column("case", word(), "case and its parameters; empty if there is only one case", |t| {
            words(sides(t).map(|of| case_name(t, of.case)))
        })
        .column("side", word(), "side", |t| words(sides(t).map(|of| side_name(t, of.side))))
        .column("runs", word(), "command or code that was timed", |t| {
            let runs = |of: OfSide| match of.series.runs.as_str() {
                "" => t.sides.get(of.side).map(|side| side.runs.clone()),
                own => Some(own.to_owned()),
            };
            words(sides(t).map(runs))
        })
        .column("batches", NUMBER, "batches without warm-up", number(|s| s.batches.len() as u64))
        .column(
            "peak_memory",
            NUMBER,
            "peak resident memory in bytes; 0 if unknown",
            number(|s| s.peak_memory),
        )
        .column(
            "threads",
            NUMBER,
            "number of threads; 0 if unknown",
            number(|s| u64::from(s.threads)),
        )
        .table()
}
