//! `laggard why`: time two sides, sample both, look at their code, and name what makes B lag.

use crate::bench::SEED;
use crate::cli::{Format, Output, WhyArgs};
use crate::commands::bench::{explain, timed};
use crate::commands::inspect::{hot_modules, list_hottest, look_at};
use crate::compare_profile::pair;
use crate::failure;
use crate::output::Destination;
use crate::page::distributions;
use crate::printer::Printer;
use crate::profile::{is_run, load_run};
use crate::sides::sides;
use crate::suite;
use anyhow::{Context, ensure};
use laggard_core::compare::profile::Scale;
use laggard_core::compare::timings::compare;
use laggard_core::culprit::{
    Missing, Pair, Seen, add_counts, add_work, called, judge, loading, of_run, settle, times,
};
use laggard_core::model::code::Code;
use laggard_core::model::profile::Profile;
use laggard_core::model::timings::{Side, Timings};
use laggard_core::profile::{View, fold_interpreter, join_workers};
use laggard_formats::Source;
use laggard_formats::lag::Run;
use laggard_probe::bench::{CasePlan, Limits, Plan, count_side, record_side, trace_side};
use laggard_probe::{calls, sample};
use laggard_report::Style;
use laggard_report::code::hot_loop;
use laggard_report::flame::Graph;
use laggard_report::page::MOST_FRAMES;
use laggard_report::why::{self as show, Beyond, Lag, WhyReport};
use laggard_symbols::FileSystem;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Of all time: for timing, and for sampling and tracing each side.
const TIMING: f64 = 0.45;
const SAMPLING: f64 = 0.15;
const TRACING: f64 = 0.03;
/// Counting has no end that is known before; most it may take, by all time.
const COUNTING: f64 = 2.0;
/// Enough to know how large a lag is that is to be explained.
const PRECISION: f64 = 0.02;
/// Samples a second: few seconds have to tell much.
const RATE: f64 = 1999.0;

/// Runs the verb.
pub(crate) fn run(args: &WhyArgs, printer: &Printer) -> anyhow::Result<()> {
    let destination = Destination::of(&args.output)?;
    show_verdict(&found(args, printer)?, &destination, printer)
}

/// What the flags ask to be judged.
pub(crate) fn found(args: &WhyArgs, printer: &Printer) -> anyhow::Result<Found> {
    match &args.from[..] {
        [] => measured(planned(args)?, args.time, args.timeout, printer),
        [verdict] => {
            ensure_no_recording(verdict)?;
            kept(Source::open(verdict)?)
        }
        recordings => recorded(recordings, printer),
    }
}

/// Says why the second of two sides lags.
pub(crate) fn of_sides(
    plan: Plan,
    (time, timeout): (Duration, Duration),
    output: &Output,
    printer: &Printer,
) -> anyhow::Result<()> {
    let destination = Destination::of(output)?;
    let found = measured(plan, time, timeout, printer)?;
    show_verdict(&found, &destination, printer)
}

/// Judges, and shows the verdict.
fn show_verdict(found: &Found, destination: &Destination, printer: &Printer) -> anyhow::Result<()> {
    let page = || found.page();
    destination.write(printer, page, |form, style| found.render(form, style))
}

impl Found {
    /// The verdict in some form.
    pub(crate) fn render(&self, form: Format, style: &Style) -> String {
        self.judged(|report| match form {
            Format::Json => show::json(report),
            Format::Md => show::markdown(report),
            Format::Html => show::html(report),
            Format::Csv => show::csv(report),
            Format::Text => show::text(report, style),
        })
    }

    /// The verdict as a page.
    pub(crate) fn page(&self) -> String {
        let graph = graph(&self.looks);
        let beyond = Beyond {
            graph: graph.as_ref(),
            distributions: distributions(&self.timings),
            loops: self.looks.iter().map(Look::hot_loop).collect(),
        };
        self.judged(|report| show::page(report, beyond))
    }

    fn judged<T>(&self, show: impl FnOnce(&WhyReport) -> T) -> T {
        let Found { timings, lag, seen, notes, .. } = self;
        let pair = seen.as_ref().map(|[a, b]| Pair { a, b });
        let judgement = pair.as_ref().map(judge);
        show(&WhyReport { timings, lag: *lag, pair, judgement: judgement.as_ref(), notes })
    }
}

/// The calls of both sides in one tree, by call.
fn graph(looks: &[Look]) -> Option<Graph> {
    let [a, b] = looks else { return None };
    let calls = [a.calls, b.calls].map(|calls| calls.max(1) as f64);
    let (of_a, of_b) = (View::whole(&a.profile), View::whole(&b.profile));
    let pair = pair(&of_a, &of_b, [&a.name, &b.name], Some(Scale::PerCall(calls)));
    Some(pair.graph.pruned(0.0, MOST_FRAMES).0)
}

/// The page of an earlier verdict.
pub(crate) fn page_of(source: Source) -> anyhow::Result<String> {
    Ok(kept(source)?.page())
}

/// What is to be judged.
pub(crate) struct Found {
    pub(crate) timings: Timings,
    lag: Lag,
    seen: Option<[Seen; 2]>,
    notes: Vec<String>,
    /// What was recorded of each side just now, for a page.
    looks: Vec<Look>,
}

/// A side's samples and the code they are in.
struct Look {
    name: String,
    profile: Profile,
    /// Calls of the side that the samples are of.
    calls: u64,
    code: Code,
}

impl Look {
    fn hot_loop(&self) -> (String, String) {
        (self.name.clone(), hot_loop(&self.code))
    }
}

/// Times both sides, and looks at them if one lags.
fn measured(
    plan: Plan,
    time: Duration,
    timeout: Duration,
    printer: &Printer,
) -> anyhow::Result<Found> {
    let plan = Plan {
        limits: Limits {
            time: time.mul_f64(TIMING),
            precision: PRECISION,
            timeout,
            ..Limits::default()
        },
        seed: SEED,
        ..plan
    };
    let timings = timed(&plan, printer)?;
    let comparisons = compare(&timings, SEED);
    let lag = Lag::of(comparisons.first().context("nothing was measured")?);
    let mut notes = vec![];
    let mut looks = vec![];
    let mut seen = None;
    if lag.is_there() {
        let lone = CasePlan::default();
        let case = plan.cases.first().unwrap_or(&lone);
        let (notes, looks) = (&mut notes, &mut looks);
        let mut looker =
            Looker { time, plan: &plan, case, timings: &timings, notes, looks, printer };
        seen = Some(looker.both()?);
    }
    Ok(Found { timings, lag, seen, notes, looks })
}

/// One recording says nothing about another.
fn ensure_no_recording(path: &Path) -> anyhow::Result<()> {
    if is_run(path).unwrap_or(false) {
        return Err(failure::with_hint(
            format!("{} is one recording, and why compares two", path.display()),
            "give the recording of A and that of B: laggard why --from a.lag b.lag".into(),
        ));
    }
    Ok(())
}

/// What an earlier verdict was made from.
pub(crate) fn kept(source: Source) -> anyhow::Result<Found> {
    let evidence = laggard_formats::read::why::read(source)?;
    let lag = match evidence.single_ratio {
        Some(ratio) => Lag::Recorded(ratio),
        None => Lag::Measured { ratio: evidence.ratio, verdict: evidence.verdict, n: evidence.n },
    };
    let timings =
        Timings { command: evidence.command, sides: evidence.sides.into(), ..Timings::default() };
    let (seen, notes) = (evidence.seen, evidence.notes);
    Ok(Found { timings, lag, seen, notes, looks: vec![] })
}

/// Sides that were timed, and a recording of so many calls of each.
pub(crate) fn sampled(
    timings: Timings,
    recordings: &[(PathBuf, u64); 2],
    printer: &Printer,
) -> anyhow::Result<Found> {
    let comparisons = compare(&timings, SEED);
    let lag = Lag::of(comparisons.first().context("nothing was measured")?);
    let mut notes = vec!["calls into libraries are not traced in this process".to_owned()];
    let mut looks = vec![];
    let mut seen = vec![];
    let case = timings.cases.first().context("nothing was measured")?;
    for (side, (path, calls)) in recordings.iter().enumerate().filter(|_| lag.is_there()) {
        let name = &timings.sides[side].name;
        let (run, losses) = load_run(path)?;
        notes.extend(losses.into_iter().map(|loss| format!("{name}: {loss}")));
        let Run::Profile(mut profile) = run else { anyhow::bail!("{name} has no samples") };
        let mut of_side = times(&case.series[side]);
        let code = seen_in(&mut of_side, &mut profile, name, &mut notes, printer);
        looks.push(Look { name: name.clone(), profile, calls: *calls, code });
        seen.push(of_side);
    }
    let seen = <[Seen; 2]>::try_from(seen).ok().map(|[mut a, mut b]| {
        settle(&mut a, &mut b);
        [a, b]
    });
    Ok(Found { timings, lag, seen, notes, looks })
}

/// One recording of each side: the whole of a run is its call.
fn recorded(paths: &[PathBuf], printer: &Printer) -> anyhow::Result<Found> {
    let mut notes = vec![];
    let mut sides = vec![];
    let mut looks = vec![];
    let mut seen = vec![];
    for (letter, path) in ["A", "B"].into_iter().zip(paths) {
        let (run, losses) = load_run(path)?;
        notes.extend(losses.into_iter().map(|loss| format!("{}: {loss}", path.display())));
        let Run::Profile(mut profile) = run else {
            return Err(failure::with_hint(
                format!("{} has calls and no samples", path.display()),
                "give recordings of laggard record".into(),
            ));
        };
        sides.push(Side {
            name: letter.into(),
            runs: profile.about.command.join(" "),
            facts: vec![("recording".into(), path.display().to_string())],
        });
        let mut side = of_run(&profile);
        let code = seen_in(&mut side, &mut profile, letter, &mut notes, printer);
        looks.push(Look { name: letter.into(), profile, calls: 1, code });
        seen.push(side);
    }
    let seen = <[Seen; 2]>::try_from(seen).ok().context("two recordings are compared")?;
    let lag = Lag::Recorded(seen[1].wall_ns / seen[0].wall_ns.max(1.0));
    let timings = Timings { sides, ..Timings::default() };
    Ok(Found { timings, lag, seen: Some(seen).filter(|_| lag.is_there()), notes, looks })
}

/// Two sides: those given, or those of a case.
fn planned(args: &WhyArgs) -> anyhow::Result<Plan> {
    let given: Vec<String> = args.a.iter().chain(&args.b).cloned().collect();
    if args.of.case.is_none() {
        return Ok(Plan {
            sides: sides(&given, &args.shared)?,
            check: !args.shared.no_check,
            tolerance: args.shared.tolerance,
            ..Plan::default()
        });
    }
    let mut plan = suite::one(&args.of.suite(), &given, &args.shared)?;
    ensure!(plan.sides.len() > 1, "the case has one side, and why compares two");
    plan.sides.truncate(2);
    Ok(plan)
}

/// Looks at the sides, one after the other.
struct Looker<'a> {
    /// For all of it.
    time: Duration,
    plan: &'a Plan,
    case: &'a CasePlan,
    timings: &'a Timings,
    notes: &'a mut Vec<String>,
    looks: &'a mut Vec<Look>,
    printer: &'a Printer,
}

impl Looker<'_> {
    /// What there is to be seen of both. What takes long is only done if it is asked for.
    fn both(&mut self) -> anyhow::Result<[Seen; 2]> {
        let (mut a, mut b) = (self.look(0)?, self.look(1)?);
        settle(&mut a, &mut b);
        let missing = judge(&Pair { a: &a, b: &b }).missing;
        if missing.contains(&Missing::Counts) {
            self.count([&mut a, &mut b]);
        }
        Ok([a, b])
    }

    /// A side's times, its samples and the code they are in, and what it calls.
    fn look(&mut self, side: usize) -> anyhow::Result<Seen> {
        let case = self.timings.cases.first().context("nothing was measured")?;
        let mut seen = times(&case.series[side]);
        let name = &self.timings.sides[side].name;
        let bar = self.printer.steps();
        bar.set_message(format!("sampling {name}"));
        let options = sample::Options { rate: RATE, ..sample::Options::default() };
        let time = self.time.mul_f64(SAMPLING);
        let recorded = record_side(self.plan, side, self.case, time, &options);
        let (mut profile, calls) = recorded.map_err(explain)?;
        bar.set_message(format!("tracing {name}"));
        // Into all libraries, whoever calls.
        let options =
            calls::Options { libraries: vec!["*".into()], stack_every: 0, ..Default::default() };
        let time = self.time.mul_f64(TRACING);
        match trace_side(self.plan, side, self.case, time, &options) {
            Ok(traced) => seen.calls = Some(called(&traced.before, &traced.after, traced.calls)),
            Err(error) => self.notes.push(format!("{name}: its calls are not traced: {error}")),
        }
        bar.set_message(format!("looking at the code of {name}"));
        laggard_symbols::resolve(&mut profile, &FileSystem);
        let code = seen_in(&mut seen, &mut profile, name, self.notes, self.printer);
        self.looks.push(Look { name: name.clone(), profile, calls, code });
        bar.finish_and_clear();
        Ok(seen)
    }

    /// Adds what a simulated processor counts; both sides are counted, or none.
    fn count(&mut self, sides: [&mut Seen; 2]) {
        let bar = self.printer.steps();
        let limit = self.time.mul_f64(COUNTING);
        let mut counted = vec![];
        for (side, seen) in sides.iter().enumerate() {
            let name = &self.timings.sides[side].name;
            bar.set_message(format!("counting instructions of {name}"));
            match count_side(self.plan, side, self.case, seen.wall_ns, limit) {
                Ok(counts) => counted.push(counts),
                Err(error) => {
                    self.notes.push(format!("instructions are not counted: {error}"));
                    break;
                }
            }
        }
        bar.finish_and_clear();
        if counted.len() == sides.len() {
            for (seen, counts) in sides.into_iter().zip(&counted) {
                add_counts(seen, counts);
            }
        }
    }
}

/// Fewer samples say little about where time goes.
const FEW_SAMPLES: usize = 200;

/// Adds what samples and the code they are in tell of a side; returns the code.
fn seen_in(
    seen: &mut Seen,
    profile: &mut Profile,
    name: &str,
    notes: &mut Vec<String>,
    printer: &Printer,
) -> Code {
    join_workers(profile);
    let loading = loading(profile);
    fold_interpreter(profile);
    let code = match look_at(&hot_modules(profile), Some(profile), printer) {
        Ok((mut code, looked_at)) => {
            list_hottest(&mut code, &looked_at);
            code
        }
        Err(error) => {
            notes.push(format!("{name}: the code of its libraries cannot be read: {error:#}"));
            Default::default()
        }
    };
    let n = profile.samples.len();
    if n < FEW_SAMPLES {
        notes.push(format!("{name}: only {n} samples were taken; more --time tells more"));
    }
    add_work(seen, profile, &code, &loading);
    code
}
