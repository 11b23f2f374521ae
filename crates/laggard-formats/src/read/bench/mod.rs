//! Reads benchmark results of laggard, hyperfine, pyperf and pytest-benchmark.
//!
//! You give JSON, plain or compressed, you get [`Timings`]. `warnings` contains the limits of the
//! results of other harnesses. A truncated file or an invalid value is an error with its location.

mod detect;
mod hyperfine;
mod ours;
mod pyperf;
mod pytest_benchmark;
mod value;

pub(super) use detect::top_keys;
pub use detect::{Kind, kind_of};

use super::{HEAD_FOR_DETECTION, looks_like};
use crate::error::Error;
use crate::source::Source;
use laggard_core::model::timings::{Batch, Side, Timings};
use std::path::Path;

/// Name and version of laggard's format.
pub const SCHEMA: &str = "laggard.bench/1";

/// Maximum size. No harness writes larger files, but a small compressed file can expand to one.
const LARGEST: u64 = 1 << 30;

/// Detects the format of a file from its head; `None` if it has no benchmark results.
pub fn kind_of_file(path: &Path) -> Result<Option<Kind>, Error> {
    Ok(kind_of(&Source::open(path)?.head()))
}

/// Reads results in any supported format.
pub fn read(source: Source) -> Result<Timings, Error> {
    let (path, text) = source.whole(LARGEST)?;
    match parse(&text) {
        Some(Ok(timings)) => Ok(timings),
        Some(Err(what)) => Err(Error::BadBench { path, what }),
        None => {
            let head = &text[..text.len().min(HEAD_FOR_DETECTION)];
            let looks_like = looks_like(head, &top_keys(head));
            Err(Error::NotABench { path, looks_like })
        }
    }
}

/// Parses results. `None` if the text has no benchmark results; the inner error describes damage.
pub fn parse(text: &[u8]) -> Option<Result<Timings, String>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let kind = kind_of(&text[..text.len().min(HEAD_FOR_DETECTION)])?;
    if kind == Kind::Laggard {
        return Some(ours::parse(text));
    }
    Some(serde_json::from_slice(text).map_err(|error| value::not_json(&error)).and_then(|file| {
        match kind {
            Kind::Hyperfine => hyperfine::timings(&file),
            Kind::Pyperf => pyperf::timings(&file),
            Kind::Laggard | Kind::PytestBenchmark => pytest_benchmark::timings(&file),
        }
    }))
}

/// Name of a side without a name: `A`, `B`, … `Z`, then numbered.
fn letter(side: usize) -> String {
    match u8::try_from(side) {
        Ok(side) if side < 26 => char::from(b'A' + side).to_string(),
        _ => format!("side {}", side + 1),
    }
}

/// The only side of results that compare nothing.
fn only_side(runs: &str, facts: Vec<(String, String)>) -> Side {
    Side { name: letter(0), runs: runs.to_owned(), facts }
}

/// Position of the next batch in results that were measured sequentially.
#[derive(Default)]
struct Next {
    /// Continues across sides: a round of only one side is paired with no other.
    round: u32,
    start_ns: u64,
}

/// Converts times in seconds per call to batches. Invalid times are skipped and counted.
fn batches(seconds: &[(f64, u64)], next: &mut Next) -> (Vec<Batch>, usize) {
    let mut batches = Vec::with_capacity(seconds.len());
    for &(seconds, calls) in seconds {
        let Some(wall_ns) = value::nanoseconds(seconds * calls as f64) else { continue };
        batches.push(Batch {
            round: next.round,
            start_ns: next.start_ns,
            calls,
            wall_ns,
            ..Batch::default()
        });
        next.round = next.round.saturating_add(1);
        next.start_ns = next.start_ns.saturating_add(wall_ns);
    }
    let lost = seconds.len() - batches.len();
    (batches, lost)
}

/// Warning about skipped times.
fn lost_times(lost: usize, of: &str) -> String {
    let (times, were) = if lost == 1 { ("time", "was") } else { ("times", "were") };
    format!("{lost} invalid {times} of {of} {were} skipped")
}
