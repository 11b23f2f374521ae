//! Many short statements, timed against each other in one process, and in one process after another.
//!
//! Where calls take nanoseconds, two processes of one program differ by more than what is looked for:
//! their memory lies elsewhere. Statements that share a process share that too, so each interpreter
//! has one; and as it stays the same for as long as the process lives, everything is measured again
//! in several launches. A launch is the unit that repeats: what statements of several launches differ
//! by is known from the launches, not from the many batches within one.

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

/// No fewer rounds in a launch, whatever time they take.
const FEWEST_ROUNDS: u32 = 5;
/// A batch of this length tells how long a call takes, in nanoseconds.
const LONG_ENOUGH: u64 = 200_000;
/// Batches of no calls before the first call, by which all that is around it gets warm.
const AROUND: u32 = 3;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Together {
    /// Whoever runs statements; each has a process in every launch.
    pub interpreters: Vec<Interpreter>,
    /// What is measured against each other.
    pub cases: Vec<CaseTogether>,
    /// How often everything is started anew.
    pub launches: u32,
    /// How long.
    pub effort: Effort,
    /// Processors to run on; none is one that all share, the last.
    pub cpus: Vec<usize>,
    /// Makes the order repeatable.
    pub seed: u64,
    /// Longest that a set-up or a batch may take.
    pub timeout: Duration,
}

/// An interpreter.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    /// The program.
    pub python: PathBuf,
    /// Variables of its environment, beside ours.
    pub env: Vec<(OsString, OsString)>,
}

/// Statements that do the same in different ways.
#[derive(Clone, Debug, Default)]
pub struct CaseTogether {
    /// What it is called.
    pub name: String,
    /// The statements. What is compared is held against the first of them that is.
    pub statements: Vec<StatementTogether>,
    /// Whether instructions are counted.
    pub is_counted: bool,
}

/// A statement.
#[derive(Clone, Debug, Default)]
pub struct StatementTogether {
    /// What it is called.
    pub name: String,
    /// Place in [`Together::interpreters`].
    pub interpreter: usize,
    /// What runs before, once in every launch.
    pub setup: String,
    /// What is timed.
    pub code: String,
    /// The set-up in its place where instructions are counted on a simulated processor, which may not
    /// know all instructions of this one.
    pub simulated_setup: Option<String>,
    /// What is compared with other statements of the case; none is nothing, an empty text what the
    /// statement gives.
    pub check: Option<String>,
}

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effort {
    /// All together, for about so long.
    Time(Duration),
    /// Every statement about so often, over all launches.
    Calls(u64),
}

/// What was measured of a statement.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Launch by launch.
    pub launches: Vec<Launch>,
    /// What else was counted, for a call.
    pub counters: Vec<Counter>,
    /// Why it was not measured, or not all the time.
    pub trouble: Option<String>,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct MeasuredTogether {
    /// In the order of the plan: every statement of every case.
    pub cases: Vec<Vec<Times>>,
    /// What each interpreter says of itself.
    pub interpreters: Vec<Vec<(String, String)>>,
    /// The machine.
    pub facts: Vec<(String, String)>,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct StepTogether<'a> {
    /// The launch, from 0; none while instructions are counted.
    pub launch: Option<u32>,
    /// Cases done in this launch.
    pub done: usize,
    /// The case.
    pub name: &'a str,
}

/// Measures all cases, launch after launch. A statement that fails is left out from then on, with the
/// reason; an error is that an interpreter does not start at all.
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
        .map_err(|cpu| Error::Nothing(format!("cannot run on CPU {cpu}: there is none")))?;
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

/// A statement's place: case and number.
type At = (usize, usize);

/// All that is known of a statement so far.
#[derive(Clone, Default)]
struct Cell {
    times: Times,
    counted: Counted,
    /// What a call takes, once known.
    call_ns: Option<f64>,
}

/// An interpreter that runs.
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
    /// One for every interpreter; none while it has to be started.
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
            // In another order each time: what comes early finds the machine as it is early.
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

    /// Measures a case in a launch; a statement that fails is left out and the others begin again.
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
            // A statement that is nothing, for what is around all others.
            worker.add(&Statement { code: "pass", setup: "", check: "" }, &[], false)?;
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
                self.facts.push((NAME.into(), format!("none: {why}")));
            }
        }
        self.hosts[interpreter] = Some(Host { worker, counters: counters.ok(), clocks });
        Ok(())
    }

    /// The interpreter of a statement, with the statement chosen.
    fn host(&mut self, (case, statement): At, number: u64) -> Result<&mut Host, Trouble> {
        let interpreter = self.plan.cases[case].statements[statement].interpreter;
        let host = self.hosts[interpreter].as_mut();
        let host = host.ok_or_else(|| Trouble::Plan("has ended already".into()))?;
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
        // Numbers of the statements in their workers.
        let mut numbers = vec![];
        for &at in &live {
            let StatementTogether { setup, code, .. } = &plan.statements[at];
            let check = plan.statements[at].check.as_deref().unwrap_or("");
            let statement = Statement { code, setup, check };
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

    /// What the very first call of every statement takes.
    fn first_calls(
        &mut self,
        case: usize,
        numbers: &[(usize, u64)],
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

    /// Whether statements do the same. One that does not fails.
    fn check(&mut self, case: usize, numbers: &[(usize, u64)]) -> Result<(), (At, Trouble)> {
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
                        "gives {}{place} where {name} gives {}",
                        found.second, found.first
                    ))));
                }
                Verdict::Unknown(_, what) => {
                    let words = format!("cannot be compared with {name}: there is {what}");
                    return Err(failed(Trouble::Plan(words)));
                }
            }
        }
        Ok(())
    }

    /// Finds how long calls take, once.
    fn time_calls(&mut self, case: usize, numbers: &[(usize, u64)]) -> Result<(), (At, Trouble)> {
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

    /// Batches of all statements in turn, in random order.
    fn rounds(
        &mut self,
        case: usize,
        numbers: &[(usize, u64)],
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

    /// Counts instructions of every statement on a simulated processor. What cannot be counted is
    /// said once.
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
                    let of = Statement { code, setup, check: "" };
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

/// Calls of the next batch where so many are wanted in all.
fn left(size: Size, batches: &[Batch], wanted: u64) -> u64 {
    let so_far: u64 = batches.iter().map(|batch| batch.calls).sum();
    wanted.saturating_sub(so_far).min(size.calls)
}
