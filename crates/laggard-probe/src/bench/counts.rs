//! Counts what a call does, on the simulated CPU of valgrind's callgrind.
//!
//! The worker of a statement starts without instrumentation, which takes one second instead of ten.
//! It requests two dumps from callgrind, one around no calls and one around some; the difference is
//! the cost of the calls. A call of a command is a whole process.

use super::case::named;
use super::command::Command;
use super::groups::Group;
use super::pin::Cpus;
use super::plan::{CasePlan, Plan, Runs, SidePlan};
use super::runner::Runner;
use super::trouble::Trouble;
use super::worker::{Statement, Worker};
use crate::error::Error;
use crate::program::{self, Refusal};
use laggard_core::culprit::is_idle_loop;
use laggard_core::model::counts::{Counts, FunctionCounts, Simulated};
use laggard_core::model::timings::Counter;
use laggard_formats::Source;
use laggard_formats::read::callgrind::{self, Graph};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

/// Factor by which timeouts are extended.
const SLOWER: u32 = 100;
/// Assumed maximum slowdown: the simulator runs vectorized code of several threads on one thread.
const SLOWEST: f64 = 3000.0;
/// Calls are repeated to fill about this native run time, in nanoseconds.
const ENOUGH: f64 = 5e6;
/// Maximum number of repetitions.
const MOST: f64 = 5000.0;
/// The same limits if many statements are counted in one process.
const ENOUGH_OF_MANY: f64 = 2e5;
const MOST_OF_MANY: f64 = 500.0;
/// Maximum number of times that a crashed process is restarted for the remaining statements.
const STARTS: u32 = 4;
/// Instrumentation is off until the worker turns it on.
const LATER: [&str; 2] = ["--instr-atstart=no", "--"];
/// Uncounted calls that warm up the simulated caches, as a share of the counted calls.
const WARM: f64 = 0.3;

/// Valgrind runs one thread at a time. Threads of BLAS and OpenMP would only wait for each other, which
/// takes long and executes instructions that are not work.
const ONE_THREAD: [&str; 4] =
    ["OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "MKL_NUM_THREADS=1", "BLIS_NUM_THREADS=1"];

/// Counts instructions, cache misses and branch misses of a side's call, by function. `call_ns` is
/// the native time of a call. Counts instructions only if the call is too slow for the simulation
/// of caches and branches. Gives up after `limit`.
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
    // A short call runs at least twice.
    let is_short = 2.0 * call_ns * f64::from(SLOWER) < limit.as_nanos() as f64;
    let simulated: &[&str] = if is_short { &["--cache-sim=yes", "--branch-sim=yes"] } else { &[] };
    super::side::cpus(own)
        .and_then(|cpus| simulate(&plan, own, case, cpus, call_ns, simulated))
        .map_err(|trouble| named(&plan, side, trouble))
}

/// Counts the instructions of a call. `call_ns` is the native time of a call.
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
    Ok(instructions_of(counts.whole.instructions))
}

fn simulate(
    plan: &Plan,
    side: &SidePlan,
    case: &CasePlan,
    cpus: Option<Cpus>,
    call_ns: f64,
    flags: &[&str],
) -> Result<Counts, Trouble> {
    let room = tempfile::tempdir().map_err(Trouble::Wire)?;
    let mut under = simulator(room.path(), flags)?;
    match &side.runs {
        Runs::Statement { code, setup, prepare } => {
            let statement = Statement { code, setup, prepare, check: "" };
            under.extend(LATER.map(OsString::from));
            let enough = ENOUGH.min(plan.limits.timeout.as_nanos() as f64 / SLOWEST);
            let most = if prepare.is_empty() { MOST } else { 1.0 };
            let calls = (enough / call_ns.max(1.0)).clamp(1.0, most).ceil();
            let mut worker = Worker::start(plan, side, cpus, &under)?;
            worker.set_up(plan, &statement, case)?;
            let warm = if flags.is_empty() { 0.0 } else { (calls * WARM).ceil() };
            worker.count(calls as u64, warm as u64)?;
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

/// The valgrind command line prefix; counts are written to files in `room`.
fn simulator(room: &Path, flags: &[&str]) -> Result<Vec<OsString>, Trouble> {
    let find =
        |name: &str| program::find(OsStr::new(name)).ok_or_else(|| Refusal::Missing(name.into()));
    let (env, valgrind) = (find("env")?, find("valgrind")?);
    // Valgrind expands `%` in file names.
    let path = room.to_string_lossy().replace('%', "%%");
    let mut words: Vec<OsString> = vec![env.into()];
    words.extend(ONE_THREAD.map(OsString::from));
    words.extend([valgrind.into(), "--tool=callgrind".into()]);
    // The interpreter may be a wrapper script.
    words.extend(
        ["--trace-children=yes", "--quiet", "--demangle=no", "--vgdb=no"].map(OsString::from),
    );
    words.extend(flags.iter().map(OsString::from));
    words.push(format!("--callgrind-out-file={path}/counts.%p").into());
    Ok(words)
}

/// Counts the instructions of many statements in one simulated process, because its start takes
/// seconds.
pub(super) struct Counting<'a> {
    plan: Plan,
    side: &'a SidePlan,
    cpus: Option<Cpus>,
    room: tempfile::TempDir,
    worker: Worker,
    /// Number of dumps that the worker has written.
    dumps: u32,
    /// Remaining restarts: an instruction that valgrind cannot decode ends the process.
    starts: u32,
}

impl<'a> Counting<'a> {
    pub(super) fn start(
        plan: &Plan,
        side: &'a SidePlan,
        cpus: Option<Cpus>,
    ) -> Result<Counting<'a>, Trouble> {
        let mut plan = plan.clone();
        plan.limits.timeout = plan.limits.timeout.saturating_mul(SLOWER);
        let room = tempfile::tempdir().map_err(Trouble::Wire)?;
        let worker = Self::worker(&plan, side, cpus, room.path())?;
        Ok(Counting { plan, side, cpus, room, worker, dumps: 0, starts: STARTS })
    }

    fn worker(
        plan: &Plan,
        side: &SidePlan,
        cpus: Option<Cpus>,
        room: &Path,
    ) -> Result<Worker, Trouble> {
        let mut under = simulator(room, &[])?;
        under.extend(LATER.map(OsString::from));
        Worker::start(plan, side, cpus, &under)
    }

    /// Counts the instructions of a call. `call_ns` is the native time of a call.
    pub(super) fn count(
        &mut self,
        statement: &Statement,
        call_ns: f64,
    ) -> Result<Counter, Trouble> {
        if !self.worker.is_alive() {
            self.worker = Self::worker(&self.plan, self.side, self.cpus, self.room.path())?;
            self.dumps = 0;
        }
        let calls = (ENOUGH_OF_MANY / call_ns.max(1.0)).clamp(1.0, MOST_OF_MANY).ceil();
        self.worker.clear()?;
        self.worker.add(statement, &[], false)?;
        self.worker.count(calls as u64, (calls * WARM).ceil() as u64)?;
        let mut counted = 0.0;
        for sign in [-1.0, 1.0] {
            self.dumps += 1;
            counted += sign * self.total()?;
        }
        Ok(instructions_of(counted / calls))
    }

    /// Whether counting can continue after a failure.
    pub(super) fn goes_on(&mut self) -> bool {
        if self.worker.is_alive() {
            return true;
        }
        self.starts = self.starts.saturating_sub(1);
        self.starts > 0
    }

    /// Total of the last dump, which is then removed.
    fn total(&self) -> Result<f64, Trouble> {
        let ending = format!(".{}", self.dumps);
        let files = std::fs::read_dir(self.room.path()).map_err(Trouble::Wire)?.flatten();
        let mut sum = None;
        for file in files.filter(|file| file.file_name().to_string_lossy().ends_with(&ending)) {
            let text = std::fs::read(file.path()).map_err(Trouble::Wire)?;
            std::fs::remove_file(file.path()).map_err(Trouble::Wire)?;
            let text = String::from_utf8_lossy(&text);
            let total = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
            let total = total.and_then(|total| total.trim().parse::<f64>().ok());
            sum = total.map(|total| total + sum.unwrap_or(0.0)).or(sum);
        }
        sum.ok_or_else(|| Trouble::Plan("wrote no callgrind counts".into()))
    }
}

fn instructions_of(per_call: f64) -> Counter {
    Counter { name: "instructions".into(), per_call, source: "callgrind".into() }
}

/// Reads the dumps whose names are wanted.
fn graphs(room: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Graph>, Trouble> {
    let files = std::fs::read_dir(room).map_err(Trouble::Wire)?.flatten();
    let wanted = files.filter(|file| file.file_name().to_str().is_some_and(&is_wanted));
    // A process that executed another program leaves an empty file.
    let full = wanted.filter(|file| file.metadata().is_ok_and(|data| data.len() > 0));
    full.map(|file| {
        let read = Source::open(&file.path()).and_then(callgrind::read);
        read.map_err(|error| {
            Trouble::Plan(format!("wrote callgrind counts that cannot be read: {error}"))
        })
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
            let name = laggard_symbols::demangle(&name).into_owned();
            // Threads that wait for work execute any number of instructions.
            if is_idle_loop(&name) {
                continue;
            }
            counts.whole.add(&own);
            if own.instructions > 0.0 {
                counts.functions.push(FunctionCounts { name, library, own });
            }
        }
        if counts.functions.is_empty() {
            return Err(Trouble::Plan("wrote no callgrind counts".into()));
        }
        Ok(counts)
    }
}
