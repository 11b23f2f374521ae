//! Calls by library, function, caller and thread.

use super::{Caller, Measure, Tally, View};
use crate::model::calls::CallRow;
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Grouping of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Called library.
    Library,
    /// Called function.
    Function,
    /// Call site and called function.
    Caller,
    /// Thread.
    Thread,
}

impl By {
    /// All groupings.
    pub const ALL: [By; 4] = [By::Library, By::Function, By::Caller, By::Thread];

    /// The id on the command line and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            By::Library => "library",
            By::Function => "function",
            By::Caller => "caller",
            By::Thread => "thread",
        }
    }
}

/// A row of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Name of the group; for rows by caller, the called function.
    pub name: String,
    /// Parent of the group: the library of a function, the process of a thread.
    pub of: String,
    /// Call site, for rows by caller.
    pub caller: Option<Caller>,
    /// Statistics of its calls.
    pub tally: Tally,
}

/// A table of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Grouping of the rows.
    pub by: By,
    /// Measure of the call trace.
    pub measure: Measure,
    /// All calls, the base of shares.
    pub whole: Tally,
    /// Rows by decreasing self time, self instructions or calls.
    pub rows: Vec<Row>,
}

/// Base of the shares in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareOf {
    /// Self time.
    SelfTime,
    /// Self instructions.
    OwnInstructions,
    /// Instructions with callees, for the calls to one function.
    Instructions,
    /// Calls.
    Calls,
}

impl Totals {
    /// Base of shares: a quantity that adds up over the rows.
    pub fn share_of(&self) -> ShareOf {
        let is_one = |rows: &[Row]| {
            rows.windows(2).all(|w| (&w[0].name, &w[0].of) == (&w[1].name, &w[1].of))
        };
        match self.measure {
            Measure::Time => ShareOf::SelfTime,
            Measure::Calls => ShareOf::Calls,
            Measure::Instructions => {
                let known = |row: &Row| row.tally.own_instructions.is_some();
                if self.rows.iter().all(known) && self.whole.own_instructions.is_some() {
                    ShareOf::OwnInstructions
                } else if self.by == By::Caller && is_one(&self.rows) {
                    ShareOf::Instructions
                } else {
                    ShareOf::Calls
                }
            }
        }
    }

    /// The share of a row.
    pub fn share(&self, tally: &Tally) -> f64 {
        match self.share_of() {
            ShareOf::SelfTime => tally.share_of(&self.whole),
            ShareOf::OwnInstructions => tally.share_of_own(&self.whole).unwrap_or(0.0),
            ShareOf::Instructions => tally.share_of_instructions(&self.whole).unwrap_or(0.0),
            ShareOf::Calls => tally.share_of_calls(&self.whole),
        }
    }
}

/// Sums up a view.
pub fn totals(view: &View, by: By) -> Totals {
    let row = |name: &str, of: &str, caller: Option<Caller>| Row {
        name: name.to_owned(),
        of: of.to_owned(),
        caller,
        tally: Tally::default(),
    };
    let mut rows = match by {
        By::Library => {
            group(view, |call| view.function(call).1, |library, _| row(library, "", None))
        }
        By::Function => group(
            view,
            |call| view.function(call),
            |(function, library), _| row(function, library, None),
        ),
        By::Caller => group(
            view,
            |call| (view.function(call), view.caller(call)),
            |((function, library), caller), _| row(function, library, Some(caller.clone())),
        ),
        By::Thread => group(
            view,
            |call| call.thread,
            |_, call| {
                let (thread, process) = view.thread(call);
                row(&thread, &process, None)
            },
        ),
    };
    rows.sort_by(|a, b| {
        let key = |row: &Row| {
            let Tally { self_ns, total_ns, own_instructions, instructions, count, .. } = row.tally;
            (self_ns, total_ns, own_instructions, instructions, count)
        };
        key(b)
            .cmp(&key(a))
            .then_with(|| (&a.name, &a.of, &a.caller).cmp(&(&b.name, &b.of, &b.caller)))
    });
    Totals { by, measure: view.measure, whole: view.whole.clone(), rows }
}

fn group<K: Hash + Eq>(
    view: &View,
    key: impl Fn(&CallRow) -> K,
    row: impl Fn(&K, &CallRow) -> Row,
) -> Vec<Row> {
    let mut numbers: FxHashMap<K, usize> = FxHashMap::default();
    let mut rows: Vec<Row> = vec![];
    let mut calls: Vec<Vec<&CallRow>> = vec![];
    for call in &view.rows {
        let number = *numbers.entry(key(call)).or_insert_with_key(|key| {
            rows.push(row(key, call));
            calls.push(vec![]);
            rows.len() - 1
        });
        rows[number].tally.add(call);
        calls[number].push(call);
    }
    for (row, calls) in rows.iter_mut().zip(calls) {
        // Self instructions are not recorded by caller.
        if row.caller.is_none() {
            row.tally.own_instructions = view.own_of(calls);
        }
    }
    rows
}
