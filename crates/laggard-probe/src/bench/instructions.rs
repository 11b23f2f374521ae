//! Instructions of a call, counted by valgrind's callgrind.
//!
//! A statement is run twice, with different numbers of calls: the difference is what calls take,
//! without the interpreter's start and the set-up. A call of a command is a whole process.

use super::command::Command;
use super::pin::Cpus;
use super::plan::{CasePlan, Plan, Runs, SidePlan};
use super::runner::Runner;
use super::trouble::Trouble;
use super::worker::Worker;
use crate::program::{self, Refusal};
use laggard_core::model::timings::Counter;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::Path;

/// How much slower a program may get.
const SLOWER: u32 = 100;
/// Calls are repeated for about so long, had they been run as usual, in nanoseconds.
const ENOUGH: f64 = 5e6;
/// No call needs to be repeated more often.
const MOST: f64 = 500.0;

/// Counts the instructions of a call that takes so many nanoseconds.
pub(super) fn count(
    plan: &Plan,
    side: &SidePlan,
    case: &CasePlan,
    cpus: Option<Cpus>,
    call_ns: f64,
) -> Result<Counter, Trouble> {
    let mut plan = plan.clone();
    plan.limits.timeout = plan.limits.timeout.saturating_mul(SLOWER);
    let valgrind =
        program::find(OsStr::new("valgrind")).ok_or_else(|| Refusal::Missing("valgrind".into()))?;
    let per_call = match &side.runs {
        Runs::Statement { code, setup } => {
            let calls = (ENOUGH / call_ns.max(1.0)).clamp(1.0, MOST) as u64;
            let count = |calls| {
                in_room(&valgrind, &|under| {
                    let mut worker = Worker::start(&plan, side, cpus, under)?;
                    worker.set_up(&plan, code, setup, case)?;
                    worker.run(calls, 0)?;
                    worker.finish()
                })
            };
            (count(2 * calls)? - count(calls)?) / calls as f64
        }
        Runs::Command { words, .. } => in_room(&valgrind, &|under| {
            let words: Vec<OsString> = under.iter().chain(words).cloned().collect();
            Command::new(&plan, side, case, (&words, None), cpus)?.run(1, 0).map(|_| ())
        })?,
    };
    Ok(Counter { name: "instructions".into(), per_call, source: "callgrind".into() })
}

/// Runs something with these words before its own, and says how many instructions it had.
fn in_room(
    valgrind: &Path,
    run: &dyn Fn(&[OsString]) -> Result<(), Trouble>,
) -> Result<f64, Trouble> {
    let room = tempfile::tempdir().map_err(Trouble::Wire)?;
    // Valgrind gives `%` a meaning.
    let path = room.path().to_string_lossy().replace('%', "%%");
    run(&[
        valgrind.into(),
        "--tool=callgrind".into(),
        // An interpreter may be a script that finds the right one.
        "--trace-children=yes".into(),
        "--quiet".into(),
        format!("--callgrind-out-file={path}/counts.%p").into(),
        "--".into(),
    ])?;
    let files = std::fs::read_dir(room.path()).map_err(Trouble::Wire)?;
    let counts = files.flatten().filter_map(|file| total(&file.path()));
    let all: f64 = counts.sum();
    if all > 0.0 { Ok(all) } else { Err(Trouble::Plan("left no counts".into())) }
}

/// What a file says was counted in all.
fn total(path: &Path) -> Option<f64> {
    let lines = BufReader::new(std::fs::File::open(path).ok()?).split(b'\n');
    let line = lines.map_while(Result::ok).find(|line| line.starts_with(b"totals: "))?;
    std::str::from_utf8(&line).ok()?.strip_prefix("totals: ")?.trim().parse().ok()
}
