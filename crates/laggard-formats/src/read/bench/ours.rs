//! Reads `laggard.bench/1`: measured values in columns.
//!
//! Differences in the file are not read. They are computed again from the measured values.

use super::SCHEMA;
use super::value::not_json;
use laggard_core::model::timings::{Batch, Case, Counter, Series, Side, Timings, Unmeasured};
use serde::Deserialize;

/// Maximum value: above any real batch, and small enough that sums do not overflow.
const LARGEST: u64 = 1 << 60;

/// Parses a file.
pub(super) fn parse(text: &[u8]) -> Result<Timings, String> {
    // Other versions can have other fields, so the version is checked first.
    let Version { schema } = serde_json::from_slice(text).map_err(|error| not_json(&error))?;
    if schema != SCHEMA {
        return Err(format!("its format is {schema:?}, but this version reads {SCHEMA}"));
    }
    let file: File = serde_json::from_slice(text).map_err(|error| not_json(&error))?;
    if file.sides.is_empty() {
        return Err("the list of sides is empty".into());
    }
    let sides = file.sides.len();
    let cases = file.cases.into_iter().enumerate().map(|(at, case)| {
        let series: Result<Vec<Series>, String> =
            case.series.into_iter().map(SeriesShape::series).collect();
        let series = series.map_err(|what| format!("case {} has {what}", at + 1))?;
        if series.len() != sides {
            return Err(format!(
                "case {} has {} series, but the number of sides is {sides}",
                at + 1,
                series.len()
            ));
        }
        Ok(Case { name: case.name, parameters: pairs(case.parameters), series })
    });
    Ok(Timings {
        cases: cases.collect::<Result<_, String>>()?,
        command: file.command,
        tool: file.tool,
        started_unix: file.started_unix.unwrap_or(0.0),
        facts: pairs(file.facts),
        sides: file
            .sides
            .into_iter()
            .map(|side| Side { name: side.name, runs: side.runs, facts: pairs(side.facts) })
            .collect(),
        unmeasured: file
            .unmeasured
            .into_iter()
            .map(|of| Unmeasured { case: of.case, is_skipped: of.outcome == SKIPPED, why: of.why })
            .collect(),
        warnings: file.warnings,
        remarks: vec![],
    })
}

#[derive(Deserialize)]
struct Version {
    schema: String,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    started_unix: Option<f64>,
    #[serde(default)]
    facts: Vec<Pair>,
    sides: Vec<SideShape>,
    cases: Vec<CaseShape>,
    #[serde(default)]
    unmeasured: Vec<UnmeasuredShape>,
    #[serde(default)]
    warnings: Vec<String>,
}

/// Outcome of a case that a side does not support.
const SKIPPED: &str = "skipped";

#[derive(Deserialize)]
struct UnmeasuredShape {
    case: String,
    outcome: String,
    #[serde(default)]
    why: String,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct SideShape {
    name: String,
    #[serde(default)]
    runs: String,
    #[serde(default)]
    facts: Vec<Pair>,
}

#[derive(Deserialize)]
struct CaseShape {
    #[serde(default)]
    name: String,
    #[serde(default)]
    parameters: Vec<Pair>,
    series: Vec<SeriesShape>,
}

#[derive(Deserialize)]
struct SeriesShape {
    #[serde(default)]
    runs: String,
    #[serde(default)]
    facts: Vec<Pair>,
    batches: Columns,
    #[serde(default)]
    warm_up: Columns,
    #[serde(default)]
    peak_memory_bytes: Option<u64>,
    #[serde(default)]
    threads: Option<u32>,
    #[serde(default)]
    counters: Vec<CounterShape>,
}

#[derive(Deserialize)]
struct CounterShape {
    name: String,
    /// Null if it is not a number.
    per_call: Option<f64>,
    #[serde(default)]
    source: String,
}

/// Batches, one list per column. A missing column is all 0; missing rounds are numbered.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Columns {
    round: Vec<u64>,
    place: Vec<u64>,
    start_ns: Vec<u64>,
    calls: Vec<u64>,
    wall_ns: Vec<u64>,
    user_ns: Vec<u64>,
    system_ns: Vec<u64>,
    minor_faults: Vec<u64>,
    major_faults: Vec<u64>,
    waits: Vec<u64>,
    preemptions: Vec<u64>,
    queued_ns: Vec<u64>,
}

impl SeriesShape {
    fn series(self) -> Result<Series, String> {
        let counter = |counter: CounterShape| Counter {
            name: counter.name,
            per_call: counter.per_call.unwrap_or(f64::NAN),
            source: counter.source,
        };
        Ok(Series {
            runs: self.runs,
            facts: pairs(self.facts),
            batches: self.batches.batches()?,
            warm_up: self.warm_up.batches()?,
            peak_memory: self.peak_memory_bytes.unwrap_or(0),
            threads: self.threads.unwrap_or(0),
            counters: self.counters.into_iter().map(counter).collect(),
        })
    }
}

impl Columns {
    fn batches(&self) -> Result<Vec<Batch>, String> {
        let n = self.wall_ns.len();
        let columns = [
            ("round", &self.round),
            ("place", &self.place),
            ("start_ns", &self.start_ns),
            ("calls", &self.calls),
            ("user_ns", &self.user_ns),
            ("system_ns", &self.system_ns),
            ("minor_faults", &self.minor_faults),
            ("major_faults", &self.major_faults),
            ("waits", &self.waits),
            ("preemptions", &self.preemptions),
            ("queued_ns", &self.queued_ns),
        ];
        for (name, column) in columns {
            if !column.is_empty() && column.len() != n {
                return Err(format!(
                    "columns of different lengths ({name}: {}, wall_ns: {n})",
                    column.len()
                ));
            }
            if column.iter().any(|&value| value > LARGEST) {
                return Err(format!("a value of {name} that is too large"));
            }
        }
        if self.calls.contains(&0) {
            return Err("a batch with zero calls".into());
        }
        if self.wall_ns.iter().any(|&value| value > LARGEST) {
            return Err("a value of wall_ns that is too large".into());
        }
        let small = |column: &[u64], at: usize, usual: usize| {
            column.get(at).map_or(usual as u32, |&value| u32::try_from(value).unwrap_or(u32::MAX))
        };
        let value = |column: &[u64], at: usize| column.get(at).copied().unwrap_or(0);
        let batch = |at: usize| Batch {
            round: small(&self.round, at, at),
            place: small(&self.place, at, 0),
            start_ns: value(&self.start_ns, at),
            calls: value(&self.calls, at).max(1),
            wall_ns: value(&self.wall_ns, at),
            user_ns: value(&self.user_ns, at),
            system_ns: value(&self.system_ns, at),
            minor_faults: value(&self.minor_faults, at),
            major_faults: value(&self.major_faults, at),
            waits: value(&self.waits, at),
            preemptions: value(&self.preemptions, at),
            queued_ns: value(&self.queued_ns, at),
        };
        Ok((0..n).map(batch).collect())
    }
}

fn pairs(pairs: Vec<Pair>) -> Vec<(String, String)> {
    pairs.into_iter().map(|pair| (pair.name, pair.value)).collect()
}
