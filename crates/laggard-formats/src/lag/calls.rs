//! Converts call traces to Arrow streams and back.

use super::rows::{Rows, parsed};
use super::tables::{Columns, Wrong, batch, json_batch, numbers};
use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_schema::ArrowError;
use laggard_core::model::NONE;
use laggard_core::model::calls::{
    ArgumentRow, CallQuality, CallRow, Calls, FailureRow, Function, InstructionRow,
};
use laggard_core::model::profile::Profile;
use serde_json::{Value, json};

/// Streams of a call trace, in addition to those of its profile. A list inside a row becomes a
/// separate table that refers to the row.
pub(super) fn batches(calls: &Calls) -> Result<Vec<RecordBatch>, ArrowError> {
    macro_rules! table {
        ($name:literal, $rows:expr, $($column:ident: $kind:ty = $of:expr),*) => {
            batch($name, vec![
                $((stringify!($column), numbers::<$kind>($rows.iter().map($of).collect())),)*
            ])?
        };
    }
    let histograms: Vec<(u32, u64, u64)> = (0u32..)
        .zip(&calls.rows)
        .flat_map(|(row, call)| call.histogram.iter().map(move |&(low, n)| (row, low, n)))
        .collect();
    let values: Vec<(u32, i64)> = (0u32..)
        .zip(&calls.arguments)
        .flat_map(|(row, argument)| argument.values.iter().map(move |&value| (row, value)))
        .collect();
    let weights: Vec<(u32, u64)> = (0u32..)
        .zip(&calls.rows)
        .filter_map(|(row, call)| Some((row, call.instructions?)))
        .collect();
    let q = &calls.quality;
    let quality = json!({"too_deep": q.too_deep, "table_full": q.table_full, "not_wrapped": q.not_wrapped, "cost_ns": q.cost_ns});
    Ok(vec![
        table!("functions", calls.functions, name: UInt32Type = |f| f.name,
            module: UInt32Type = |f| f.module),
        table!("calls", calls.rows, function: UInt32Type = |r| r.function,
            caller: UInt32Type = |r| r.caller, thread: UInt32Type = |r| r.thread,
            count: UInt64Type = |r| r.count, unfinished: UInt64Type = |r| r.unfinished,
            total_ns: UInt64Type = |r| r.total_ns, self_ns: UInt64Type = |r| r.self_ns,
            min_ns: UInt64Type = |r| r.min_ns, max_ns: UInt64Type = |r| r.max_ns),
        table!("histograms", histograms, row: UInt32Type = |h| h.0, low_ns: UInt64Type = |h| h.1,
            count: UInt64Type = |h| h.2),
        table!("arguments", calls.arguments, function: UInt32Type = |a| a.function,
            count: UInt64Type = |a| a.count, total_ns: UInt64Type = |a| a.total_ns),
        table!("argument_values", values, row: UInt32Type = |v| v.0, value: Int64Type = |v| v.1),
        table!("call_instructions", weights, row: UInt32Type = |w| w.0,
            instructions: UInt64Type = |w| w.1),
        table!("function_instructions", calls.instructions, function: UInt32Type = |r| r.function,
            own: UInt64Type = |r| r.own),
        table!("failures", calls.failures, function: UInt32Type = |r| r.function,
            thread: UInt32Type = |r| r.thread, error: UInt32Type = |r| r.error,
            count: UInt64Type = |r| r.count),
        json_batch("call_quality", &quality.to_string())?,
    ])
}

/// A call trace that is being read. Its profile is read separately.
#[derive(Default)]
pub(super) struct CallRows(Calls);

impl CallRows {
    /// Adds the rows of a stream. Streams of later versions are ignored.
    pub(super) fn take(
        &mut self,
        stream: &str,
        batch: &RecordBatch,
        rows: &mut Rows,
    ) -> Result<(), Wrong> {
        let c = Columns { stream, batch };
        let n = batch.num_rows();
        let small = |name: &str| c.get::<UInt32Type>(name);
        let large = |name: &str| c.get::<UInt64Type>(name);
        match stream {
            "functions" => {
                let (name, module) = (small("name")?, small("module")?);
                let function = |i: usize| Function { name: rows.text(name[i]), module: module[i] };
                self.0.functions.extend((0..n).map(function));
            }
            "calls" => {
                let (function, caller) = (small("function")?, small("caller")?);
                let (thread, count) = (small("thread")?, large("count")?);
                let (unfinished, total_ns) = (large("unfinished")?, large("total_ns")?);
                let (self_ns, min_ns, max_ns) =
                    (large("self_ns")?, large("min_ns")?, large("max_ns")?);
                self.0.rows.extend((0..n).map(|i| CallRow {
                    function: function[i],
                    caller: caller[i],
                    thread: thread[i],
                    count: count[i],
                    unfinished: unfinished[i],
                    total_ns: total_ns[i],
                    self_ns: self_ns[i],
                    min_ns: min_ns[i],
                    max_ns: max_ns[i],
                    histogram: vec![],
                    instructions: None,
                }));
            }
            "histograms" => {
                let (row, low, count) = (small("row")?, large("low_ns")?, large("count")?);
                for i in 0..n {
                    match self.0.rows.get_mut(row[i] as usize) {
                        Some(call) => call.histogram.push((low[i], count[i])),
                        None => rows.astray += 1,
                    }
                }
            }
            "arguments" => {
                let (function, count) = (small("function")?, large("count")?);
                let total_ns = large("total_ns")?;
                self.0.arguments.extend((0..n).map(|i| ArgumentRow {
                    function: function[i],
                    values: vec![],
                    count: count[i],
                    total_ns: total_ns[i],
                }));
            }
            "argument_values" => {
                let (row, value) = (small("row")?, c.get::<Int64Type>("value")?);
                for i in 0..n {
                    match self.0.arguments.get_mut(row[i] as usize) {
                        Some(argument) => argument.values.push(value[i]),
                        None => rows.astray += 1,
                    }
                }
            }
            "call_instructions" => {
                let (row, instructions) = (small("row")?, large("instructions")?);
                for i in 0..n {
                    match self.0.rows.get_mut(row[i] as usize) {
                        Some(call) => call.instructions = Some(instructions[i]),
                        None => rows.astray += 1,
                    }
                }
            }
            "function_instructions" => {
                let (function, own) = (small("function")?, large("own")?);
                let row = |i: usize| InstructionRow { function: function[i], own: own[i] };
                self.0.instructions.extend((0..n).map(row));
            }
            "failures" => {
                let (function, thread) = (small("function")?, small("thread")?);
                let (error, count) = (small("error")?, large("count")?);
                self.0.failures.extend((0..n).map(|i| FailureRow {
                    function: function[i],
                    thread: thread[i],
                    error: rows.text(error[i]),
                    count: count[i],
                }));
            }
            "call_quality" => self.0.quality = read_quality(&parsed(batch)?),
            _ => {}
        }
        Ok(())
    }

    /// Returns the call trace. Rows with invalid references are skipped and counted.
    pub(super) fn finish(mut self, profile: Profile, astray: &mut u64) -> Calls {
        let calls = &mut self.0;
        for function in &mut calls.functions {
            if function.module != NONE && function.module as usize >= profile.modules.len() {
                function.module = NONE;
                *astray += 1;
            }
        }
        let functions = calls.functions.len();
        let (frames, threads) = (profile.frames.len(), profile.threads.len());
        let all = |calls: &Calls| {
            calls.rows.len()
                + calls.arguments.len()
                + calls.failures.len()
                + calls.instructions.len()
        };
        let before = all(calls);
        let inside = |number: u32, len: usize| number == NONE || (number as usize) < len;
        calls.rows.retain(|row| {
            (row.function as usize) < functions
                && inside(row.caller, frames)
                && inside(row.thread, threads)
        });
        calls.arguments.retain(|row| (row.function as usize) < functions);
        calls.instructions.retain(|row| (row.function as usize) < functions);
        calls
            .failures
            .retain(|row| (row.function as usize) < functions && inside(row.thread, threads));
        *astray += (before - all(calls)) as u64;
        calls.profile = profile;
        self.0
    }
}

fn read_quality(v: &Value) -> CallQuality {
    let number = |key: &str| v[key].as_u64().unwrap_or(0);
    let pair = |p: &Value| Some((p[0].as_str()?.to_owned(), p[1].as_str()?.to_owned()));
    CallQuality {
        too_deep: number("too_deep"),
        table_full: number("table_full"),
        not_wrapped: v["not_wrapped"].as_array().into_iter().flatten().filter_map(pair).collect(),
        cost_ns: v["cost_ns"].as_f64().unwrap_or(0.0),
    }
}
