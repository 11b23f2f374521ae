//! Times sides against each other.
//!
//! The input is a [`Plan`], the output is [`Timings`]: every batch as it was measured. A statement
//! has a process of its own, a command has one per call. Sides take turns in random order, so that
//! disturbances of the machine affect all of them. Nothing else runs during a call: no output, no
//! timers, no other side. This module decides only whether there are enough measurements; it does
//! not judge them.

mod allocations;
mod alone;
mod call_counts;
mod case;
mod changes;
mod command;
mod compare;
mod counters;
mod counts;
mod groups;
mod here;
mod order;
mod pin;
mod plan;
mod process;
mod progress;
mod runner;
mod said;
mod script;
mod side;
mod size;
mod spawn;
mod together;
mod trouble;
mod value;
mod watch;
mod wire;
mod worker;

pub use alone::{Repeat, alone};
pub use call_counts::count_calls;
pub use command::prepare_once;
pub use counters::counts_instructions;
pub use counts::count_side;
pub use groups::{Interrupts, was_interrupted};
pub use here::{Here, measure_here};
pub use plan::{CasePlan, Limits, Own, Plan, ResultCheck, Rounds, Runs, SidePlan, WarmUp};
pub use progress::{Progress, Stage};
pub use together::{
    CaseTogether, Effort, Interpreter, MeasuredTogether, StatementTogether, StepTogether, Times,
    Together, measure_together,
};
pub use trouble::{Differ, Trouble};
pub use watch::{Period, Traced, drop_preparation, record_side, trace_side};

use crate::error::Error;
use crate::host;
use crate::host::event;
use case::{Field, named};
use command::Command;
use compare::{Verdict, Which, compare};
use counters::{Counters, HARDWARE};
use groups::Group;
use laggard_core::model::timings::{Case, Remark, Side, Timings, Unmeasured};
use laggard_core::stats::summary::Summary;
use order::Order;
use pin::{Aside, Cpus};
use progress::Teller;
use runner::{About, Runner};
use std::time::{Duration, Instant, SystemTime};
use worker::{Statement, Worker};

/// Measures all cases of all sides, one case after the other.
///
/// `progress` is called between rounds, at most a few times per second. An error names the side,
/// and the case if it has a name. If only some cases fail, they are listed in the result; an error
/// is returned only if every case fails. No started process is left behind when this function
/// returns or is interrupted. With [`Interrupts`], an interrupted measurement returns the rounds so
/// far.
pub fn measure(plan: &Plan, progress: &mut dyn FnMut(&Progress)) -> Result<Timings, Error> {
    measure_with(plan, &HARDWARE, progress)
}

fn measure_with(
    plan: &Plan,
    events: &[counters::Event],
    progress: &mut dyn FnMut(&Progress),
) -> Result<Timings, Error> {
    check_plan(plan)?;
    // Signal handlers are installed once, not for every process.
    let _group = Group::reserve();
    let taken: Vec<usize> =
        plan.fields().flatten().flat_map(|side| side.cpus.iter().copied()).collect();
    let aside = Aside::step(&taken);
    let mut timings = begin(plan);
    let lone = [CasePlan::default()];
    let cases = if plan.cases.is_empty() { &lone[..] } else { &plan.cases };
    let labels: Vec<String> = cases.iter().map(CasePlan::label).collect();
    let mut teller = Teller::new(cases.len(), progress);
    let mut left = plan.limits.time;
    let mut origin = None;
    let mut failed = vec![];
    for (number, case) in cases.iter().enumerate() {
        let budget = left / (cases.len() - number) as u32;
        teller.case(number, &labels[number], budget);
        let run = Run {
            plan: &plan.of(case),
            case,
            events,
            aside: aside.as_ref(),
            order: Order::new(plan.seed.wrapping_add(number as u64)),
        };
        match run.measure(budget, &mut origin, &mut timings, &mut teller) {
            Ok(took) => left = left.saturating_sub(took),
            // Its processes were killed.
            Err(_) if was_interrupted() => {}
            Err(error) => failed.push((&labels[number], error)),
        }
        if was_interrupted() {
            let rest = cases.len() - timings.cases.len() - failed.len();
            note_interrupt(rest, &mut timings)?;
            break;
        }
    }
    if timings.cases.is_empty() {
        // Report a failure rather than a case that is not supported.
        let worst = failed.iter().position(|(_, error)| cannot(error).is_none()).unwrap_or(0);
        let (case, error) = failed.swap_remove(worst);
        return Err(match cannot(&error) {
            Some(why) => Error::Cannot { case: case.clone(), why: why.to_owned() },
            None if case.is_empty() => error,
            None => {
                let of = failed.len() + 1;
                Error::Case { case: case.clone(), of, error: Box::new(error) }
            }
        });
    }
    let unmeasured = |(case, error): (&String, Error)| Unmeasured {
        case: case.clone(),
        is_skipped: cannot(&error).is_some(),
        why: cannot(&error).map_or_else(|| error.to_string(), str::to_owned),
    };
    timings.unmeasured = failed.into_iter().map(unmeasured).collect();
    Ok(timings)
}

/// Adds a warning about the cases that were not measured. Fails if there is no result to report.
fn note_interrupt(rest: usize, timings: &mut Timings) -> Result<(), Error> {
    if timings.cases.is_empty() {
        return Err(Error::Interrupted);
    }
    if rest > 0 {
        let cases = if rest == 1 { "1 case".into() } else { format!("{rest} cases") };
        timings.warnings.push(format!("interrupted: {cases} not measured"));
    }
    Ok(())
}

/// The reason why a side does not support a case, if that is the error.
fn cannot(error: &Error) -> Option<&str> {
    match error {
        Error::Side { trouble, .. } => trouble.cannot(),
        _ => None,
    }
}

/// The measurement of one case.
struct Run<'a> {
    /// The plan with the settings of this case.
    plan: &'a Plan,
    case: &'a CasePlan,
    events: &'a [counters::Event],
    aside: Option<&'a Aside>,
    order: Order,
}

impl Run<'_> {
    /// Measures the case and returns how long that took, without set-up.
    fn measure(
        mut self,
        budget: Duration,
        origin: &mut Option<Instant>,
        timings: &mut Timings,
        teller: &mut Teller,
    ) -> Result<Duration, Error> {
        let Run { plan, case, aside, .. } = self;
        let started = Instant::now();
        let (mut runners, counters) = start(plan, case, aside, self.events, timings)?;
        let set_up = started.elapsed();
        teller.stage(Stage::Check);
        check_results(plan, &mut runners, &mut timings.remarks)?;
        let began = Instant::now();
        let origin = *origin.get_or_insert(began);
        let field = Field::new(plan, case, runners, counters, origin);
        let (mut measured, abouts, warnings) = field.measure(budget, &mut self.order, teller)?;
        let took = began.elapsed();
        timings.warnings.extend(warnings);
        if plan.allocations && allocations::are_cheap(set_up, took) && !was_interrupted() {
            teller.stage(Stage::Allocations);
            let plan = allocations::limited(plan, set_up);
            count_allocations(&plan, case, aside, &mut measured, &mut timings.facts);
        }
        if plan.instructions && !was_interrupted() {
            teller.stage(Stage::Instructions);
            count_instructions(plan, case, aside, &mut measured, &mut timings.warnings);
        }
        add_facts(&mut timings.sides, &mut measured, abouts);
        if case.own.is_some() {
            let each = measured.series.iter_mut().zip(&plan.sides).zip(&timings.sides);
            for ((series, side), known) in each {
                series.runs = side.runs.text();
                let mut facts = side::facts(side);
                facts.retain(|fact| !known.facts.contains(fact));
                series.facts.extend(facts);
            }
        }
        timings.cases.push(measured);
        Ok(took)
    }
}

fn check_plan(plan: &Plan) -> Result<(), Error> {
    let names = |sides: &[SidePlan]| -> Vec<String> {
        sides.iter().map(|side| side.name.clone()).collect()
    };
    let first = plan.fields().next().map_or(vec![], names);
    if first.is_empty() {
        return Err(Error::Nothing("no side to measure".into()));
    }
    for (number, name) in first.iter().enumerate() {
        if first[..number].contains(name) {
            return Err(Error::Nothing(format!("two sides are named {name}")));
        }
    }
    if plan.fields().any(|sides| names(sides) != first) {
        return Err(Error::Nothing("all cases must have the same sides".into()));
    }
    Ok(())
}

/// The facts known before anything has run.
fn begin(plan: &Plan) -> Timings {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut facts = host::facts();
    let mut has = |what: &str, is_needed: fn(&SidePlan) -> bool, words: &[&str]| {
        if plan.fields().flatten().any(is_needed)
            && let Some(cost) = command::cost_of_start(plan, words)
        {
            let ms = cost.as_secs_f64() * 1e3;
            facts.push((what.into(), format!("at least {ms:.2} ms")));
        }
    };
    let is_command = |side: &SidePlan| matches!(side.runs, Runs::Command { .. });
    has("empty process start", is_command, &["true"]);
    has("empty shell start", |side| side.runs.shell_line().is_some(), &["sh", "-c", ":"]);
    Timings {
        tool: concat!("laggard ", env!("CARGO_PKG_VERSION")).into(),
        started_unix: unix.as_secs_f64(),
        facts,
        sides: sides(plan),
        ..Timings::default()
    }
}

/// The sides, with the facts that are the same in all cases.
fn sides(plan: &Plan) -> Vec<Side> {
    let mut fields = plan.fields();
    let mut shared: Vec<Side> = vec![];
    if let Some(first) = fields.next() {
        shared.extend(first.iter().map(|side| Side {
            name: side.name.clone(),
            runs: side.runs.text(),
            facts: side::facts(side),
        }));
    }
    for field in fields {
        for (shared, side) in shared.iter_mut().zip(field) {
            if shared.runs != side.runs.text() {
                shared.runs.clear();
            }
            let facts = side::facts(side);
            shared.facts.retain(|fact| facts.contains(fact));
        }
    }
    shared
}

type Started = (Vec<Box<dyn Runner>>, Vec<Option<Counters>>);

/// Starts every side of a case and runs its set-up code, one after the other.
fn start(
    plan: &Plan,
    case: &CasePlan,
    aside: Option<&Aside>,
    events: &[counters::Event],
    timings: &mut Timings,
) -> Result<Started, Error> {
    let (mut runners, mut counters) = (vec![], vec![]);
    for (number, side) in plan.sides.iter().enumerate() {
        let mut count = |pid| {
            let opened = plan.counters.then(|| Counters::open(events, pid))?;
            opened.inspect_err(|error| say_not_counted(timings, error)).ok()
        };
        let started = start_one(plan, side, case, aside, &mut count);
        let (runner, counted) = started.map_err(|trouble| named(plan, number, trouble))?;
        runners.push(runner);
        counters.push(counted);
    }
    Ok((runners, counters))
}

fn start_one(
    plan: &Plan,
    side: &SidePlan,
    case: &CasePlan,
    aside: Option<&Aside>,
    count: &mut dyn FnMut(Option<i32>) -> Option<Counters>,
) -> Result<(Box<dyn Runner>, Option<Counters>), Trouble> {
    let cpus = cpus(side, aside)?;
    match &side.runs {
        Runs::Statement { code, setup, prepare } => {
            let statement = Statement { code, setup, prepare, check: "" };
            let mut worker = Worker::start(plan, side, cpus, &[])?;
            // Opened before the set-up code runs, so that its threads are counted.
            let counters = count(worker.pid());
            worker.set_up(plan, &statement, case)?;
            worker.rest();
            Ok((Box::new(worker), counters))
        }
        Runs::Command { words, prepare } => {
            let words = (&words[..], prepare.as_deref());
            // The counters include all processes that this thread starts, and thus a preparation
            // command.
            let counters = if prepare.is_none() { count(None) } else { None };
            Ok((Box::new(Command::new(plan, side, case, words, cpus)?), counters))
        }
    }
}

/// The CPUs of a side: its own, or those this thread used before it moved aside.
fn cpus(side: &SidePlan, aside: Option<&Aside>) -> Result<Option<Cpus>, Trouble> {
    Ok(side::cpus(side)?.or(aside.map(Aside::before)))
}

/// Adds a fact, once, that hardware counters are not available.
fn say_not_counted(timings: &mut Timings, error: &std::io::Error) {
    const NAME: &str = "hardware counters";
    if timings.facts.iter().all(|(name, _)| name != NAME) {
        let refused = event::refused(error);
        let why = refused.why().unwrap_or("refused");
        timings.facts.push((NAME.into(), format!("not available: {why}")));
    }
}

/// Runs every side once, compares its result with that of the first side, and checks whether it
/// changes its own input.
fn check_results(
    plan: &Plan,
    runners: &mut [Box<dyn Runner>],
    remarks: &mut Vec<Remark>,
) -> Result<(), Error> {
    let mut reference = None;
    // A remark about several cases is made once.
    let mut add = |remark: Remark| {
        if !remarks.contains(&remark) {
            remarks.push(remark);
        }
    };
    for (number, runner) in runners.iter_mut().enumerate() {
        let is_compared = plan.check != ResultCheck::Skip && plan.sides.len() > 1;
        let mut call = || {
            runner.watch()?;
            let value = if is_compared { Some(runner.value()?) } else { None };
            if !is_compared {
                runner.run(1, 0)?;
            }
            Ok((value, runner.changes()?))
        };
        let called = call();
        runner.rest();
        let (value, changes) = called.map_err(|trouble| named(plan, number, trouble))?;
        for change in changes {
            add(Remark::OfSide { side: number, text: change.text() });
        }
        let Some(value) = value else { continue };
        let Some(reference) = &reference else {
            reference = Some(value);
            continue;
        };
        match compare(reference, &value, plan.tolerance) {
            Verdict::Same => {}
            Verdict::Differ(found) => {
                if plan.check == ResultCheck::Require || !found.is_alike {
                    let name = |side: usize| plan.sides[side].name.clone();
                    return Err(Error::Differ(Box::new(Differ {
                        sides: (name(0), name(number)),
                        at: found.at,
                        values: (found.first, found.second),
                    })));
                }
                add(Remark::DifferentResults {
                    sides: [0, number],
                    at: found.at,
                    values: [found.first, found.second],
                });
            }
            Verdict::Unknown(which, what) => {
                let side = if which == Which::First { 0 } else { number };
                if matches!(plan.sides[number].runs, Runs::Statement { .. }) {
                    let text = format!("returns {what}, so results were not compared");
                    add(Remark::OfSide { side, text });
                }
            }
        }
    }
    Ok(())
}

/// Counts the allocations of every side. The first failure is added as a fact.
fn count_allocations(
    plan: &Plan,
    case: &CasePlan,
    aside: Option<&Aside>,
    measured: &mut Case,
    facts: &mut Vec<(String, String)>,
) {
    const NAME: &str = "allocations";
    for (number, series) in measured.series.iter_mut().enumerate() {
        let call_ns = Summary::of(&series.wall()).median;
        let counted = cpus(&plan.sides[number], aside)
            .map_err(|trouble| named(plan, number, trouble))
            .and_then(|cpus| allocations::count(plan, number, case, cpus, call_ns));
        match counted {
            Ok(counter) => series.counters.extend(counter),
            Err(_) if was_interrupted() => return,
            Err(error) if facts.iter().all(|(name, _)| name != NAME) => {
                facts.push((NAME.into(), format!("not counted: {error}")));
            }
            Err(_) => {}
        }
    }
}

/// Counts the instructions of every side. A failure is a warning.
fn count_instructions(
    plan: &Plan,
    case: &CasePlan,
    aside: Option<&Aside>,
    measured: &mut Case,
    warnings: &mut Vec<String>,
) {
    for (side, series) in plan.sides.iter().zip(&mut measured.series) {
        let call_ns = Summary::of(&series.wall()).median;
        let counted = cpus(side, aside)
            .and_then(|cpus| counts::instructions(plan, side, case, cpus, call_ns));
        match counted {
            Ok(counter) => series.counters.push(counter),
            Err(_) if was_interrupted() => return,
            Err(trouble) => warnings.push(format!(
                "instructions were not counted: side {} {trouble} (under callgrind)",
                side.name
            )),
        }
    }
}

/// Adds facts about the sides once. Facts that differ between cases are added to the case.
fn add_facts(sides: &mut [Side], case: &mut Case, abouts: Vec<About>) {
    for ((side, series), about) in sides.iter_mut().zip(&mut case.series).zip(abouts) {
        for (name, value) in about.facts {
            match side.facts.iter().find(|(known, _)| *known == name) {
                None => side.facts.push((name, value)),
                Some((_, known)) if *known != value => series.facts.push((name, value)),
                Some(_) => {}
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;
    use perf_event_open_sys::bindings as name;

    /// Software events, which every kernel counts.
    const SOFTWARE: [counters::Event; 2] = [
        ("task-clock", name::PERF_TYPE_SOFTWARE, name::PERF_COUNT_SW_TASK_CLOCK),
        ("page-faults", name::PERF_TYPE_SOFTWARE, name::PERF_COUNT_SW_PAGE_FAULTS),
    ];

    #[test]
    fn events_in_a_shared_process_are_counted_per_statement() {
        let statement = |code: &str| StatementTogether {
            name: code.into(),
            code: code.into(),
            ..StatementTogether::default()
        };
        let plan = Together {
            interpreters: vec![Interpreter { python: "python3".into(), env: vec![] }],
            cases: vec![CaseTogether {
                name: "case".into(),
                statements: vec![statement("pass"), statement("sum(range(1000))")],
                is_counted: false,
            }],
            launches: 1,
            effort: Effort::Calls(2000),
            cpus: vec![],
            seed: 1,
            timeout: std::time::Duration::from_secs(20),
        };
        let measured = together::measure_with(&plan, &SOFTWARE, &mut |_| ()).unwrap();
        if measured.facts.iter().any(|(name, _)| name == "hardware counters") {
            return;
        }
        let clock = |at: usize| {
            let counter = &measured.cases[0][at].counters[0];
            assert_eq!(counter.name, "task-clock");
            counter.per_call
        };
        assert!(clock(1) > 20.0 * clock(0), "{} and {}", clock(0), clock(1));
    }

    #[test]
    fn events_are_counted_per_call() {
        let limits = Limits { rounds: Rounds::Exactly(5), ..Limits::default() };
        let commands = Runs::Command { words: vec!["true".into()], prepare: None };
        let sides = vec![
            SidePlan::new("A", Runs::statement("sum(range(1000))")),
            SidePlan::new("B", Runs::statement("pass")),
            SidePlan::new("C", commands),
        ];
        let plan = Plan { sides, limits, ..Plan::default() };
        let timings = measure_with(&plan, &SOFTWARE, &mut |_| ()).unwrap();
        if let Some((_, why)) = timings.facts.iter().find(|(name, _)| name == "hardware counters") {
            assert!(why.starts_with("not available: "), "{why}");
            return;
        }
        let counted = |side: usize, at: usize| {
            let counters = &timings.cases[0].series[side].counters;
            assert_eq!(counters.len(), SOFTWARE.len());
            assert_eq!(
                (&*counters[at].name, &*counters[at].source),
                (SOFTWARE[at].0, "perf_event")
            );
            counters[at].per_call
        };
        assert!(counted(0, 0) > counted(1, 0), "the longer call uses more CPU time");
        assert!(counted(0, 1) < 1.0, "the worker's overhead is not counted: {}", counted(0, 1));
        assert!(counted(2, 1) > 10.0, "a new process has page faults");
    }
}
