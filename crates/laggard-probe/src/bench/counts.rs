//! What a call does, counted by valgrind's callgrind on its simulated processor.
//!
//! A statement's worker starts without being simulated, which takes a second in place of ten. It
//! asks callgrind for counts twice, once around no call and once around some: the difference is what
//! calls take. A call of a command is a whole process.

use super::case::named;
use super::command::Command;
use super::groups::Group;
use super::pin::Cpus;
use super::plan::{CasePlan, Plan, Runs, SidePlan};
use super::runner::Runner;
use super::trouble::Trouble;
use super::worker::Worker;
use crate::error::Error;
use crate::program::{self, Refusal};
use laggard_core::model::counts::{Counts, FunctionCounts, Simulated};
use laggard_core::model::timings::Counter;
use laggard_formats::Source;
use laggard_formats::read::callgrind::{self, Graph};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

/// How much slower a program may get.
const SLOWER: u32 = 100;
/// Calls are repeated for about so long, had they been run as usual, in nanoseconds.
const ENOUGH: f64 = 5e6;
/// No call needs to be repeated more often.
const MOST: f64 = 5000.0;
/// Calls before, by which simulated caches get warm, of those that count.
const WARM: f64 = 0.3;

/// Counts what a call of a side does that takes so many nanoseconds: instructions, misses of caches
/// and of jumps, by function. Gives up after a time.
pub fn count_side(
    plan: &Plan,
    side: usize,
    case: &CasePlan,
    call_ns: f64,
    limit: Duration,
) -> Result<Counts, Error> {
    let _group = Group::reserve();
    let mut plan = plan.clone();
    plan.limits.timeout = limit;
    let own = &plan.sides[side];
    let simulated = ["--cache-sim=yes", "--branch-sim=yes"];
    super::side::cpus(own)
        .and_then(|cpus| simulate(&plan, own, case, cpus, call_ns, &simulated))
        .map_err(|trouble| named(&plan, side, trouble))
}

/// Counts the instructions of a call that takes so many nanoseconds.
pub(super) fn instructions(
    plan: &Plan,
    side: &SidePlan,
    case: &CasePlan,
    cpus: Option<Cpus>,
    call_ns: f64,
) -> Result<Counter, Trouble> {
    let mut plan = plan.clone();
    plan.limits.timeout = plan.limits.timeout.saturating_mul(SLOWER);
    let counts = simulate(&plan, side, case, cpus, call_ns, &[])?;
    Ok(Counter {
        name: "instructions".into(),
        per_call: counts.whole.instructions,
        source: "callgrind".into(),
    })
}

fn simulate(
    plan: &Plan,
    side: &SidePlan,
    case: &CasePlan,
    cpus: Option<Cpus>,
    call_ns: f64,
    flags: &[&str],
) -> Result<Counts, Trouble> {
    let valgrind =
        program::find(OsStr::new("valgrind")).ok_or_else(|| Refusal::Missing("valgrind".into()))?;
    let room = tempfile::tempdir().map_err(Trouble::Wire)?;
    // Valgrind gives `%` a meaning.
    let path = room.path().to_string_lossy().replace('%', "%%");
    let mut under: Vec<OsString> = vec![valgrind.into(), "--tool=callgrind".into()];
    // An interpreter may be a script that finds the right one.
    under.extend(["--trace-children=yes", "--quiet", "--demangle=no"].map(OsString::from));
    under.extend(flags.iter().map(OsString::from));
    under.push(format!("--callgrind-out-file={path}/counts.%p").into());
    match &side.runs {
        Runs::Statement { code, setup } => {
            under.extend(["--instr-atstart=no", "--"].map(OsString::from));
            let calls = (ENOUGH / call_ns.max(1.0)).clamp(1.0, MOST).ceil();
            let mut worker = Worker::start(plan, side, cpus, &under)?;
            worker.set_up(plan, code, setup, case)?;
            worker.count(calls as u64, (calls * WARM).ceil() as u64)?;
            let mut sum = Sum::default();
            for (ending, sign) in [(".1", -1.0), (".2", 1.0)] {
                graphs(room.path(), |name| name.ends_with(ending))?
                    .iter()
                    .for_each(|graph| sum.add(graph, sign));
            }
            sum.counts(calls)
        }
        Runs::Command { words, .. } => {
            under.push("--".into());
            let words: Vec<OsString> = under.iter().chain(words).cloned().collect();
            Command::new(plan, side, case, (&words, None), cpus)?.run(1, 0)?;
            let mut sum = Sum::default();
            graphs(room.path(), |_| true)?.iter().for_each(|graph| sum.add(graph, 1.0));
            sum.counts(1.0)
        }
    }
}

/// Files that were left, by their names.
fn graphs(room: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Graph>, Trouble> {
    let files = std::fs::read_dir(room).map_err(Trouble::Wire)?.flatten();
    let wanted = files.filter(|file| file.file_name().to_str().is_some_and(&is_wanted));
    // A process that became another program left an empty one.
    let full = wanted.filter(|file| file.metadata().is_ok_and(|data| data.len() > 0));
    full.map(|file| {
        let read = Source::open(&file.path()).and_then(callgrind::read);
        read.map_err(|error| Trouble::Plan(format!("left counts that cannot be read: {error}")))
    })
    .collect()
}

/// Counts by library and function.
#[derive(Default)]
struct Sum(BTreeMap<(String, String), Simulated>);

impl Sum {
    fn add(&mut self, graph: &Graph, sign: f64) {
        let at = |names: &[&str]| -> Vec<usize> {
            let is_one =
                |(at, event): (usize, &String)| names.contains(&event.as_str()).then_some(at);
            graph.events.iter().enumerate().filter_map(is_one).collect()
        };
        let instructions = at(&["Ir"]);
        let branches = at(&["Bc", "Bi"]);
        let branch_misses = at(&["Bcm", "Bim"]);
        let accesses = at(&["Dr", "Dw"]);
        let cache_misses = at(&["D1mr", "D1mw"]);
        let memory_accesses = at(&["DLmr", "DLmw"]);
        for (number, function) in (0..).zip(&graph.functions) {
            let own = graph.own(number);
            let sum = |events: &[usize]| {
                sign * events.iter().filter_map(|at| own.get(*at)).sum::<u64>() as f64
            };
            let own = Simulated {
                instructions: sum(&instructions),
                branches: sum(&branches),
                branch_misses: sum(&branch_misses),
                accesses: sum(&accesses),
                cache_misses: sum(&cache_misses),
                memory_accesses: sum(&memory_accesses),
            };
            let text = |text| graph.texts.get(text).to_owned();
            self.0.entry((text(function.object), text(function.name))).or_default().add(&own);
        }
    }

    fn counts(self, calls: f64) -> Result<Counts, Trouble> {
        let mut counts = Counts::default();
        for ((library, name), own) in self.0 {
            let own = own.divided(calls);
            counts.whole.add(&own);
            if own.instructions > 0.0 {
                let name = laggard_symbols::demangle(&name).into_owned();
                counts.functions.push(FunctionCounts { name, library, own });
            }
        }
        if counts.functions.is_empty() {
            return Err(Trouble::Plan("left no counts".into()));
        }
        Ok(counts)
    }
}
