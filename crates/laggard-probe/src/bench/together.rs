//! Times many short statements against each other in shared processes, over several process
//! launches.
//!
//! For calls that take nanoseconds, two processes of one program differ by more than the
//! differences of interest, because their memory layouts differ. Statements of one process share
//! its layout, so each interpreter has a single process. The layout stays the same for the life of
//! a process, so everything is measured again in several process launches. The process launch is
//! the unit of repetition: the spread of a difference comes from the process launches, not from the
//! many batches within one.

use super::compare::{Verdict, compare};
use super::counters::{self, Counted, Counters, HARDWARE};
use super::counts;
use super::groups::Group;
use super::order::Order;
use super::pin::{Aside, Cpus};
use super::plan::{Limits, Plan, Runs, SidePlan};
use super::runner::Runner;
use super::size::{self, Clocks, Size};
use super::trouble::Trouble;
use super::value::Value;
use super::worker::{Statement, Worker};
use crate::error::Error;
use crate::host;
use crate::host::event;
use laggard_core::model::ffi::Launch;
use laggard_core::model::timings::{Batch, Counter};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Minimum number of rounds in a process launch, regardless of time.
const FEWEST_ROUNDS: u32 = 5;
/// Minimum length of a batch that determines the time of a call, in nanoseconds.
const LONG_ENOUGH: u64 = 200_000;
/// Empty batches before the first call, which warm up the code around it.
const AROUND: u32 = 3;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Together {
    /// Interpreters; each has one process per process launch.
    pub interpreters: Vec<Interpreter>,
    /// The cases. Statements of a case are compared with each other.
    pub cases: Vec<CaseTogether>,
    /// Number of process launches.
    pub launches: u32,
    /// How long to measure.
    pub effort: Effort,
    /// CPUs to run on; if empty, all processes share the last CPU.
    pub cpus: Vec<usize>,
    /// Seed of the random order.
    pub seed: u64,
    /// Maximum time of set-up code or a batch.
    pub timeout: Duration,
}

/// A Python interpreter.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    /// Path of the program.
    pub python: PathBuf,
    /// Additional environment variables.
    pub env: Vec<(OsString, OsString)>,
}

/// Statements that do the same in different ways.
#[derive(Clone, Debug, Default)]
pub struct CaseTogether {
    /// Name of the case.
    pub name: String,
    /// The statements. Results are compared with that of the first statement that has a `check`.
    pub statements: Vec<StatementTogether>,
    /// Whether to count instructions.
    pub is_counted: bool,
}

/// One statement.
#[derive(Clone, Debug, Default)]
pub struct StatementTogether {
    /// Name of the statement.
    pub name: String,
    /// Index in [`Together::interpreters`].
    pub interpreter: usize,
    /// Set-up code, run once per process launch.
    pub setup: String,
    /// The timed code.
    pub code: String,
    /// Set-up code that replaces `setup` when instructions are counted, because valgrind may not be
    /// able to decode all instructions of this CPU.
    pub simulated_setup: Option<String>,
    /// Expression that is compared with the other statements of the case. `None` compares nothing;
    /// an empty string compares the value of the statement.
    pub check: Option<String>,
}

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effort {
    /// Total time for everything, approximately.
    Time(Duration),
    /// Calls of every statement over all process launches, approximately.
    Calls(u64),
}

/// Measurements of one statement.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Batches, by process launch.
    pub launches: Vec<Launch>,
    /// Event counts per call.
    pub counters: Vec<Counter>,
    /// Why it was not measured, or not measured to the end.
    pub trouble: Option<String>,
}

/// All measurements.
#[derive(Clone, Debug, Default)]
pub struct MeasuredTogether {
    /// Measurements of every statement of every case, in the order of the plan.
    pub cases: Vec<Vec<Times>>,
    /// Facts that each interpreter reports.
    pub interpreters: Vec<Vec<(String, String)>>,
    /// Facts about the machine.
    pub facts: Vec<(String, String)>,
}

/// Progress of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct StepTogether<'a> {
    /// Index of the process launch; `None` while instructions are counted.
    pub launch: Option<u32>,
    /// Number of cases done in this process launch.
    pub done: usize,
    /// Name of the case.
    pub name: &'a str,
}

/// Measures all cases in every process launch. A statement that fails is skipped from then on, with
/// the reason. Returns an error only if an interpreter does not start.
pub fn measure_together(
    plan: &Together,
    progress: &mut dyn FnMut(StepTogether),
) -> Result<MeasuredTogether, Error> {
    measure_with(plan, &HARDWARE, progress)
}

pub(super) fn measure_with(
    plan: &Together,
    events: &[counters::Event],
    progress: &mut dyn FnMut(StepTogether),
) -> Result<MeasuredTogether, Error> {
    let _group = Group::reserve();
    let shared = if plan.cpus.is_empty() {
        Cpus::of_this_thread().ok().and_then(|cpus| cpus.last()).into_iter().collect()
    } else {
        plan.cpus.clone()
    };
    let cpus = Cpus::of(&shared)
        .map_err(|cpu| Error::Nothing(format!("cannot run on CPU {cpu}: no such CPU")))?;
    let _aside = Aside::step(&shared);
    let mut facts = host::facts();
    let list: Vec<String> = shared.iter().map(usize::to_string).collect();
    facts.push(("cpus".into(), list.join(",")));
    let blank = |case: &CaseTogether| vec![Cell::default(); case.statements.len()];
    let mut session = Session {
        plan,
        limits: Plan {
            limits: Limits { timeout: plan.timeout, ..Limits::default() },
            seed: plan.seed,
            ..Plan::default()
        },
        cpus,
        events,
        facts,
        abouts: vec![vec![]; plan.interpreters.len()],
        hosts: vec![],
        cells: plan.cases.iter().map(blank).collect(),
        order: Order::new(plan.seed),
        origin: Instant::now(),
    };
    session.launch_all(progress)?;
    Ok(session.finish())
}

/// Position of a statement: indices of case and statement.
type At = (usize, usize);

/// Everything known about a statement so far.
#[derive(Clone, Default)]
struct Cell {
    times: Times,
    counted: Counted,
    /// Time of a call, once known.
    call_ns: Option<f64>,
}

/// A running interpreter.
struct Host {
    worker: Worker,
    counters: Option<Counters>,
    clocks: Clocks,
}

struct Session<'a> {
    plan: &'a Together,
    limits: Plan,
    cpus: Cpus,
    events: &'a [counters::Event],
    facts: Vec<(String, String)>,
    abouts: Vec<Vec<(String, String)>>,
    /// One per interpreter; `None` until it is started.
    hosts: Vec<Option<Host>>,
    cells: Vec<Vec<Cell>>,
    order: Order,
    origin: Instant,
}

impl Session<'_> {
    fn launch_all(&mut self, progress: &mut dyn FnMut(StepTogether)) -> Result<(), Error> {
        let plan = self.plan;
        let cases = plan.cases.len();
        let began = Instant::now();
        for launch in 0..plan.launches {
            self.hosts.clear();
            self.hosts.resize_with(plan.interpreters.len(), || None);
            // In random order, because the state of the machine changes over a process launch.
            for (done, case) in self.order.next(cases).into_iter().enumerate() {
                let name = &plan.cases[case].name;
                progress(StepTogether { launch: Some(launch), done, name });
                let left = (plan.launches - launch) as usize * cases - done;
                let until = match plan.effort {
                    Effort::Time(time) => {
                        let rest = time.saturating_sub(began.elapsed());
                        Some(Instant::now() + rest / left.max(1) as u32)
                    }
                    Effort::Calls(_) => None,
                };
                self.case_until_done(launch, case, until)?;
            }
        }
        for (about, host) in self.abouts.iter_mut().zip(&mut self.hosts) {
            if let Some(known) = host.as_mut().and_then(|host| host.worker.about().ok()) {
                *about = known.facts;
            }
        }
        self.hosts.clear();
        if plan.cases.iter().any(|case| case.is_counted) && !self.has_instructions() {
            self.count(progress);
        }
        Ok(())
    }

    /// Measures a case in one process launch. If a statement fails, it is dropped and the others
    /// start over.
    fn case_until_done(
        &mut self,
        launch: u32,
        case: usize,
        until: Option<Instant>,
    ) -> Result<(), Error> {
        loop {
            for interpreter in 0..self.plan.interpreters.len() {
                self.ensure_host(interpreter)?;
            }
            let Err((at, trouble)) = self.case(launch, case, until) else { return Ok(()) };
            self.fail(at, &trouble);
        }
    }

    fn fail(&mut self, (case, statement): At, why: &dyn std::fmt::Display) {
        let times = &mut self.cells[case][statement].times;
        times.trouble.get_or_insert(why.to_string());
        let interpreter = self.plan.cases[case].statements[statement].interpreter;
        let host = &mut self.hosts[interpreter];
        if host.as_ref().is_some_and(|host| !host.worker.is_alive()) {
            *host = None;
        }
    }

    fn side(&self, interpreter: usize) -> SidePlan {
        let Interpreter { python, env } = &self.plan.interpreters[interpreter];
        SidePlan {
            python: Some(python.clone()),
            env: env.clone(),
            ..SidePlan::new(python.to_string_lossy(), Runs::statement(""))
        }
    }

    fn ensure_host(&mut self, interpreter: usize) -> Result<(), Error> {
        if self.hosts[interpreter].is_some() {
            return Ok(());
        }
        let side = self.side(interpreter);
        let start = || {
            let mut worker = Worker::start(&self.limits, &side, Some(self.cpus), &[])?;
            let counters = Counters::open(self.events, worker.pid());
            // An empty statement, which measures the overhead around all others.
            worker.add(&Statement { code: "pass", ..Statement::default() }, &[], false)?;
            let clocks = Clocks::of(&mut worker)?;
            let mut counters = match counters {
                Ok(counters) => Ok(counters),
                Err(error) => Err(event::refused(&error).why().unwrap_or("refused").to_owned()),
            };
            if let Ok(counters) = &mut counters {
                counters.calibrate(&mut || worker.run(0, 0).map(|_| ()))?;
            }
            worker.clear()?;
            Ok((worker, counters, clocks))
        };
        let started: Result<_, Trouble> = start();
        let (worker, counters, clocks) =
            started.map_err(|trouble| Error::Side { side: side.name.clone(), trouble })?;
        if let Err(why) = &counters {
            const NAME: &str = "hardware counters";
            if self.facts.iter().all(|(name, _)| name != NAME) {
                self.facts.push((NAME.into(), format!("not available: {why}")));
            }
        }
        self.hosts[interpreter] = Some(Host { worker, counters: counters.ok(), clocks });
        Ok(())
    }

    /// The interpreter of a statement, with this statement selected.
    fn host(&mut self, (case, statement): At, number: usize) -> Result<&mut Host, Trouble> {
        let interpreter = self.plan.cases[case].statements[statement].interpreter;
        let host = self.hosts[interpreter].as_mut();
        let host = host.ok_or_else(|| Trouble::Plan("has already ended".into()))?;
        host.worker.choose(number);
        Ok(host)
    }

    fn case(
        &mut self,
        launch: u32,
        case: usize,
        until: Option<Instant>,
    ) -> Result<(), (At, Trouble)> {
        let plan = &self.plan.cases[case];
        let is_live = |(_, cell): &(usize, &Cell)| cell.times.trouble.is_none();
        let live: Vec<usize> =
            self.cells[case].iter().enumerate().filter(is_live).map(|(at, _)| at).collect();
        for host in self.hosts.iter_mut().flatten() {
            let cleared = host.worker.clear();
            cleared.map_err(|trouble| ((case, live.first().copied().unwrap_or(0)), trouble))?;
        }
        // Indices of the statements in their workers.
        let mut numbers = vec![];
        for &at in &live {
            let StatementTogether { setup, code, .. } = &plan.statements[at];
            let check = plan.statements[at].check.as_deref().unwrap_or("");
            let statement = Statement { code, setup, prepare: "", check };
            let added =
                self.host((case, at), 0).and_then(|host| host.worker.add(&statement, &[], false));
            numbers.push((at, added.map_err(|trouble| ((case, at), trouble))?));
        }
        let firsts = self.first_calls(case, &numbers)?;
        if launch == 0 {
            self.check(case, &numbers)?;
        }
        self.time_calls(case, &numbers)?;
        let batches = self.rounds(case, &numbers, until)?;
        for ((&at, first_ns), batches) in live.iter().zip(firsts).zip(batches) {
            let cell = &mut self.cells[case][at];
            cell.times.launches.push(Launch { first_ns, batches });
        }
        Ok(())
    }

    /// Time of the very first call of every statement.
    fn first_calls(
        &mut self,
        case: usize,
        numbers: &[(usize, usize)],
    ) -> Result<Vec<f64>, (At, Trouble)> {
        let mut firsts = vec![];
        for &(at, number) in numbers {
            let mut first = || {
                let host = self.host((case, at), number)?;
                for _ in 0..AROUND {
                    host.worker.run(0, 0)?;
                }
                let batch = host.worker.run(1, 0)?;
                Ok(batch.wall_ns.saturating_sub(host.clocks.wall) as f64)
            };
            firsts.push(first().map_err(|trouble| ((case, at), trouble))?);
        }
        Ok(firsts)
    }

    /// Compares the results of the statements. A statement with another result fails.
    fn check(&mut self, case: usize, numbers: &[(usize, usize)]) -> Result<(), (At, Trouble)> {
        let plan = &self.plan.cases[case];
        let mut reference: Option<(&str, Value)> = None;
        for &(at, number) in numbers.iter().filter(|(at, _)| plan.statements[*at].check.is_some()) {
            let failed = |trouble| ((case, at), trouble);
            let value = self.host((case, at), number).and_then(|host| host.worker.value());
            let value = value.map_err(failed)?;
            let Some((name, reference)) = &reference else {
                reference = Some((&plan.statements[at].name, value));
                continue;
            };
            match compare(reference, &value, None) {
                Verdict::Same => {}
                Verdict::Differ(found) => {
                    let place = if found.at.is_empty() {
                        String::new()
                    } else {
                        format!(" at {}", found.at)
                    };
                    return Err(failed(Trouble::Plan(format!(
                        "returns {}{place} where {name} returns {}",
                        found.second, found.first
                    ))));
                }
                Verdict::Unknown(_, what) => {
                    let words = format!("cannot be compared with {name}: the result is {what}");
                    return Err(failed(Trouble::Plan(words)));
                }
            }
        }
        Ok(())
    }

    /// Measures the time of a call, once per statement.
    fn time_calls(&mut self, case: usize, numbers: &[(usize, usize)]) -> Result<(), (At, Trouble)> {
        for &(at, number) in numbers {
            if self.cells[case][at].call_ns.is_some() {
                continue;
            }
            let mut time = || {
                let worker = &mut self.host((case, at), number)?.worker;
                let mut calls = 1;
                loop {
                    let batch = worker.run(calls, 0)?;
                    if batch.wall_ns >= LONG_ENOUGH {
                        return Ok(batch.per_call(batch.wall_ns));
                    }
                    calls *= 2;
                }
            };
            let ns = time().map_err(|trouble| ((case, at), trouble))?;
            self.cells[case][at].call_ns = Some(ns);
        }
        Ok(())
    }

    /// Runs batches of all statements in turn, in random order.
    fn rounds(
        &mut self,
        case: usize,
        numbers: &[(usize, usize)],
        until: Option<Instant>,
    ) -> Result<Vec<Vec<Batch>>, (At, Trouble)> {
        let calls: Vec<(f64, bool)> = numbers
            .iter()
            .map(|&(at, _)| (self.cells[case][at].call_ns.unwrap_or(1.0), true))
            .collect();
        let clock = self.hosts.iter().flatten().map(|host| host.clocks.wall).max().unwrap_or(0);
        let sizes = size::sizes(&calls, clock);
        let each = match self.plan.effort {
            Effort::Calls(calls) => Some((calls / u64::from(self.plan.launches.max(1))).max(1)),
            Effort::Time(_) => None,
        };
        let mut batches = vec![vec![]; numbers.len()];
        for round in 0.. {
            let is_enough = match (until, each) {
                (Some(until), _) => round >= FEWEST_ROUNDS && Instant::now() >= until,
                (None, Some(each)) => {
                    let is_done =
                        |(size, batches): (&Size, &Vec<Batch>)| left(*size, batches, each) == 0;
                    sizes.iter().zip(&batches).all(is_done)
                }
                (None, None) => true,
            };
            if is_enough {
                break;
            }
            for (place, turn) in (0..).zip(self.order.next(numbers.len())) {
                let (at, number) = numbers[turn];
                let Size { calls, lead } = sizes[turn];
                let calls = each.map_or(calls, |each| left(sizes[turn], &batches[turn], each));
                if calls == 0 {
                    continue;
                }
                let start_ns = self.origin.elapsed().as_nanos() as u64;
                let mut run = || {
                    let host = self.host((case, at), number)?;
                    if let Some(counters) = &mut host.counters {
                        counters.before();
                    }
                    let batch = host.worker.run(calls, lead)?;
                    let counted = host.counters.as_mut().map(|counters| {
                        counters.after(calls + lead);
                        counters.take()
                    });
                    Ok((host.clocks.taken_off(batch), counted))
                };
                let (batch, counted) = run().map_err(|trouble| ((case, at), trouble))?;
                batches[turn].push(Batch { round, place, start_ns, ..batch });
                if let Some(counted) = counted {
                    self.cells[case][at].counted.add(counted);
                }
            }
        }
        Ok(batches)
    }

    fn has_instructions(&self) -> bool {
        let has = |cell: &Cell| cell.counted.per_call().any(|of| of.name == "instructions");
        self.cells.iter().flatten().any(has)
    }

    /// Counts the instructions of every statement on a simulated CPU. The first failure is added as
    /// a fact.
    fn count(&mut self, progress: &mut dyn FnMut(StepTogether)) {
        let plan = self.plan;
        for interpreter in 0..plan.interpreters.len() {
            let side = self.side(interpreter);
            let mut counting = match counts::Counting::start(&self.limits, &side, Some(self.cpus)) {
                Ok(counting) => counting,
                Err(trouble) => {
                    self.facts.push(("instructions".into(), format!("not counted: {trouble}")));
                    return;
                }
            };
            for (number, case) in plan.cases.iter().enumerate().filter(|(_, case)| case.is_counted)
            {
                progress(StepTogether { launch: None, done: number, name: &case.name });
                for (at, statement) in case.statements.iter().enumerate() {
                    let cell = &mut self.cells[number][at];
                    if statement.interpreter != interpreter || cell.times.trouble.is_some() {
                        continue;
                    }
                    let StatementTogether { setup, code, simulated_setup, .. } = statement;
                    let setup = simulated_setup.as_ref().unwrap_or(setup);
                    let of = Statement { code, setup, ..Statement::default() };
                    match counting.count(&of, cell.call_ns.unwrap_or(1e3)) {
                        Ok(counter) => cell.times.counters.push(counter),
                        Err(trouble) => {
                            let words = format!("not counted for {}: {trouble}", statement.name);
                            if self.facts.iter().all(|(name, _)| name != "instructions") {
                                self.facts.push(("instructions".into(), words));
                            }
                            if !counting.goes_on() {
                                return;
                            }
                        }
                    }
                }
            }
        }
    }

    fn finish(self) -> MeasuredTogether {
        let finished = |cell: Cell| {
            let mut times = cell.times;
            times.counters.extend(cell.counted.per_call());
            times
        };
        let cases = self.cells.into_iter();
        MeasuredTogether {
            cases: cases.map(|case| case.into_iter().map(finished).collect()).collect(),
            interpreters: self.abouts,
            facts: self.facts,
        }
    }
}

/// Number of calls in the next batch, out of `wanted` calls in all.
fn left(size: Size, batches: &[Batch], wanted: u64) -> u64 {
    let so_far: u64 = batches.iter().map(|batch| batch.calls).sum();
    wanted.saturating_sub(so_far).min(size.calls)
}
