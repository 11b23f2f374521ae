//! What a record of calls measured.

use crate::model::calls::{CallRow, Calls};

/// What calls are weighed by, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// How long they took.
    Time,
    /// How many instructions they ran; there are no times.
    Instructions,
    /// Nothing: they were counted.
    Calls,
}

impl Measure {
    /// What a record has of its calls; none when it has no calls.
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

    /// As it is written in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Measure::Time => "time",
            Measure::Instructions => "instructions",
            Measure::Calls => "calls",
        }
    }
}
