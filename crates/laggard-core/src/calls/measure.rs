//! Measures of call traces.

use crate::model::calls::{CallRow, Calls};

/// What a call trace measured, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Duration of calls.
    Time,
    /// Instructions, without durations.
    Instructions,
    /// Number of calls only.
    Calls,
}

impl Measure {
    /// The measure of a call trace; `None` without calls.
    pub fn of(calls: &Calls) -> Option<Measure> {
        let is_timed = |row: &CallRow| row.total_ns > 0 || row.histogram.iter().any(|c| c.1 > 0);
        if calls.rows.is_empty() {
            None
        } else if calls.rows.iter().any(is_timed) {
            Some(Measure::Time)
        } else if calls.rows.iter().any(|row| row.instructions.is_some()) {
            Some(Measure::Instructions)
        } else {
            Some(Measure::Calls)
        }
    }

    /// The id in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Measure::Time => "time",
            Measure::Instructions => "instructions",
            Measure::Calls => "calls",
        }
    }
}
