//! Results of benchmarks: our own, and those of hyperfine, pyperf and pytest-benchmark.
//!
//! You give JSON, plain or compressed, you get [`Timings`]. What another harness does not keep, or
//! keeps in a way that says less than it seems to, is in `warnings`. A file that is cut or has a
//! value that cannot be is an error that says where.

mod detect;
mod hyperfine;
mod ours;
mod pyperf;
mod pytest_benchmark;
mod value;

pub use detect::{Kind, kind_of};

use super::{HEAD_FOR_DETECTION, looks_like};
use crate::error::Error;
use crate::source::Source;
use laggard_core::model::timings::{Batch, Side, Timings};
use std::path::Path;

/// Name and version of our own files.
pub const SCHEMA: &str = "laggard.bench/1";

/// Larger texts are not read: no harness writes them, and a small compressed file may unfold to one.
const LARGEST: u64 = 1 << 30;

/// What results a file has, by its head; none when it is of another kind.
pub fn kind_of_file(path: &Path) -> Result<Option<Kind>, Error> {
    Ok(kind_of(&Source::open(path)?.head()))
}

/// Reads results of any kind.
pub fn read(source: Source) -> Result<Timings, Error> {
    let (path, text) = source.whole(LARGEST)?;
    match parse(&text) {
        Some(Ok(timings)) => Ok(timings),
        Some(Err(what)) => Err(Error::BadBench { path, what }),
        None => {
            let head = &text[..text.len().min(HEAD_FOR_DETECTION)];
            let looks_like = looks_like(head, &detect::top_keys(head));
            Err(Error::NotABench { path, looks_like })
        }
    }
}

/// Reads results from a text; none when it is of another kind, and what is wrong with it when it is
/// damaged.
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

/// What the sides are called that have no name: `A`, `B`, … `Z`, and then by number.
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

/// What comes next of results that were measured one after the other.
#[derive(Default)]
struct Next {
    /// Counted on from side to side: a round that only one side has is paired with none.
    round: u32,
    start_ns: u64,
}

/// Batches of times that were written as seconds of one call. Those that no clock can have measured
/// are left out, and how many is said.
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

/// That times were left out.
fn lost_times(lost: usize, of: &str) -> String {
    let (times, are) = if lost == 1 { ("time", "is") } else { ("times", "are") };
    format!("{lost} {times} of {of} {are} no time that a clock can measure, and left out")
}
