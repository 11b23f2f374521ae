//! `laggard why`: times and samples two sides, inspects their code, and names the causes of the lag of
//! B.

use crate::INTERRUPTED;
use crate::bench::SEED;
use crate::cli::{Format, Output, SideName, WhyArgs};
use crate::commands::bench::{explain, timed};
use crate::commands::inspect::{hot_modules, list_hottest, look_at};
use crate::compare_profile::pair;
use crate::failure;
use crate::output::Destination;
use crate::page::distributions;
use crate::printer::Printer;
use crate::profile::{is_run, load_run};
use crate::sides::{name_sides, scans, sides};
use crate::source_text::SourceText::{self, Included, Omitted};
use crate::source_text::{add_source, now_unix};
use crate::suite;
use anyhow::{Context, ensure};
use indicatif::ProgressBar;
use laggard_core::compare::profile::Scale;
use laggard_core::compare::timings::compare;
use laggard_core::culprit::{
    Io, Missing, Pair, Seen, add_counts, add_work, called, fault_spots, judge, loading, of_run,
    settle, times, wait_spots,
};
use laggard_core::model::code::Code;
use laggard_core::model::profile::Profile;
use laggard_core::model::timings::{Case, Side, Timings};
use laggard_core::profile::{View, fold_interpreter, join_workers};
use laggard_core::stats::growth::Growth;
use laggard_formats::Source;
use laggard_formats::lag::Run;
use laggard_probe::bench::{
    CasePlan, Interrupts, Limits, Period, Plan, ResultCheck, count_calls, count_side, record_side,
    trace_side, was_interrupted,
};
use laggard_probe::sample::{Clock, PerfEvent};
use laggard_probe::{calls, sample};
use laggard_report::Style;
use laggard_report::bench::grows_as;
use laggard_report::code::hot_loop;
use laggard_report::flame::Graph;
use laggard_report::number::plural;
use laggard_report::page::MOST_FRAMES;
use laggard_report::why::{self as show, Beyond, Lag, WhyReport};
use laggard_symbols::FileSystem;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Shares of the total time: for timing both sides, and for sampling and tracing each side.
const TIMING: f64 = 0.3;
/// Share for timing with several values of a parameter.
const TIMING_OF_SCAN: f64 = 0.5;
const SAMPLING: f64 = 0.12;
const TRACING: f64 = 0.03;
/// Share of the total time for locating page faults or waits, if they matter.
const LOCATING: f64 = 0.04;
/// Minimum share of the lag for which page faults and waits are located.
const SPOT_THAT_MATTERS: f64 = 0.1;
/// Share of the total time after which counting the calls of a side stops, and the minimum relative to
/// a call.
const COUNTING_CALLS: f64 = 0.06;
const COUNTED_CALL: f64 = 2.5;
/// Time limit of the whole verdict, relative to the total time. Set-up code runs once per step, and
/// the duration of counting instructions cannot be predicted.
const LIMIT: f64 = 1.25;
/// Time limit for timing calls so slow that there would be fewer than three rounds otherwise.
const OVERTIME: f64 = 1.8;
/// Minimum time for counting the instructions of a side.
const LEAST_COUNTING: Duration = Duration::from_secs(1);
/// Precision goal of the timing, sufficient to estimate the lag.
const PRECISION: f64 = 0.02;
/// Minimum share of the wall time for a note about other programs.
const QUEUED_THAT_MATTERS: f64 = 0.05;
/// Waits per call below which waiting is not located: they are chance events.
const SELDOM: f64 = 0.01;
/// Sampling rate, high because each side is sampled for a few seconds only.
const RATE: f64 = 1999.0;

/// Notice if the user interrupts the measurement before both sides were sampled.
const NOT_EXAMINED: &str = "interrupted: the causes of the lag were not examined";

/// Runs the verb.
pub(crate) fn run(args: &WhyArgs, printer: &Printer) -> anyhow::Result<ExitCode> {
    let destination = Destination::of(&args.output)?;
    let interrupts = Interrupts::keep();
    let found = found(args, printer);
    let was_interrupted = interrupts.end();
    let mut found = found?;
    // A file may be sent to others, so it holds source text only on request.
    if args.output.output.is_none() || args.keep_source {
        found.json_source = Included;
    }
    if args.no_source {
        (found.source, found.json_source) = (Omitted, Omitted);
    }
    show_verdict(&found, &destination, printer)?;
    Ok(if was_interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Collects the evidence: measures it, or loads it from files.
pub(crate) fn found(args: &WhyArgs, printer: &Printer) -> anyhow::Result<Found> {
    let names = &args.shared.each.name[..];
    match &args.from[..] {
        [] => measured(planned(args)?, args.time, args.timeout, printer),
        [verdict] => {
            ensure_no_recording(verdict)?;
            ensure!(names.is_empty(), "--name applies to sides, not to a saved verdict");
            kept(Source::open(verdict)?)
        }
        recordings => recorded(recordings, names, printer),
    }
}

/// Explains why the second side of a plan is slower.
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

/// Writes the verdict in all requested formats.
fn show_verdict(found: &Found, destination: &Destination, printer: &Printer) -> anyhow::Result<()> {
    let page = || found.page();
    destination.write(printer, page, |form, style| found.render(form, style))
}

impl Found {
    /// A verdict without evidence. Saved JSON contains no source text.
    fn new(timings: Timings, lag: Lag) -> Found {
        Found {
            timings,
            lag,
            is_exchanged: false,
            seen: None,
            notes: vec![],
            looks: vec![],
            source: Included,
            json_source: Omitted,
        }
    }

    /// The verdict in one format.
    pub(crate) fn render(&self, form: Format, style: &Style) -> String {
        let text = if form == Format::Json { self.json_source } else { self.source };
        self.judged(text, |report| match form {
            Format::Json => show::json(report),
            Format::Md => show::markdown(report),
            Format::Html => show::html(report),
            Format::Csv => show::csv(report),
            Format::Text => show::text(report, style),
        })
    }

    /// The verdict as an HTML page.
    pub(crate) fn page(&self) -> String {
        let graph = graph(&self.looks);
        let beyond = Beyond {
            graph: graph.as_ref(),
            distributions: distributions(&self.timings),
            loops: self.looks.iter().map(Look::hot_loop).collect(),
        };
        self.judged(self.source, |report| show::page(report, beyond))
    }

    fn judged<T>(&self, text: SourceText, show: impl FnOnce(&WhyReport) -> T) -> T {
        let Found { timings, lag, is_exchanged, seen, notes, .. } = self;
        let pair = seen.as_ref().map(|[a, b]| Pair { a, b });
        let judgement = pair.as_ref().map(|pair| {
            let mut judgement = judge(pair);
            add_source(&mut judgement, [pair.a, pair.b], text);
            judgement
        });
        show(&WhyReport {
            timings,
            lag: *lag,
            is_exchanged: *is_exchanged,
            pair,
            judgement: judgement.as_ref(),
            notes,
        })
    }
}

/// The differential flame graph of both sides, in time per call.
fn graph(looks: &[Look]) -> Option<Graph> {
    let [a, b] = looks else { return None };
    let calls = [a.calls, b.calls].map(|calls| calls.max(1) as f64);
    let (of_a, of_b) = (View::whole(&a.profile), View::whole(&b.profile));
    let pair = pair(&of_a, &of_b, [&a.name, &b.name], Some(Scale::PerCall(calls)));
    Some(pair.graph.pruned(0.0, MOST_FRAMES).0)
}

/// The HTML page of a saved verdict.
pub(crate) fn page_of(source: Source) -> anyhow::Result<String> {
    Ok(kept(source)?.page())
}

/// The evidence for a verdict.
pub(crate) struct Found {
    pub(crate) timings: Timings,
    lag: Lag,
    /// Whether the first given side is the slower one, which the report calls B.
    is_exchanged: bool,
    seen: Option<[Seen; 2]>,
    notes: Vec<String>,
    /// Profile and code of each side, for the HTML page; empty for saved verdicts.
    looks: Vec<Look>,
    /// Source text in reports, and in JSON.
    source: SourceText,
    json_source: SourceText,
}

/// The samples of a side, with the code of its hot modules.
struct Look {
    name: String,
    profile: Profile,
    /// Number of sampled calls.
    calls: u64,
    code: Code,
}

impl Look {
    fn hot_loop(&self) -> (String, String) {
        (self.name.clone(), hot_loop(&self.code))
    }
}

/// Times both sides and, if B lags, collects evidence.
fn measured(
    plan: Plan,
    time: Duration,
    timeout: Duration,
    printer: &Printer,
) -> anyhow::Result<Found> {
    let is_scan = plan.cases.len() > 1;
    let share = if is_scan { TIMING_OF_SCAN } else { TIMING };
    let mut plan = Plan {
        limits: Limits {
            time: time.mul_f64(share),
            precision: PRECISION,
            overtime: OVERTIME / share,
            timeout,
            ..Limits::default()
        },
        seed: SEED,
        ..plan
    };
    let start = Instant::now();
    let mut timings = timed(&plan, printer)?;
    let is_slow = start.elapsed() > time.mul_f64(TIMING_OF_SCAN + TIMING);
    let end = start + if is_slow { start.elapsed() + time } else { time.mul_f64(LIMIT) };
    let mut growth = [0, 1].map(|side| growth(&timings, side));
    if is_scan {
        // The last value is the largest one.
        timings.cases.drain(..timings.cases.len().saturating_sub(1));
        plan.cases.drain(..plan.cases.len() - 1);
        let measured = timings.cases.last().map(|case| &case.parameters);
        let asked = plan.cases.last().map(|case| &case.parameters);
        ensure!(measured == asked || was_interrupted(), "the largest value could not be measured");
    }
    let (lag, is_exchanged) = slower_last(&mut timings)?;
    if is_exchanged {
        growth.swap(0, 1);
        plan.sides.swap(0, 1);
        for (side, timed) in plan.sides.iter_mut().zip(&timings.sides) {
            side.name.clone_from(&timed.name);
        }
    }
    let mut notes: Vec<String> = vec![];
    let mut looks = vec![];
    let mut seen = None;
    if !lag.is_there() {
        let grown = timings.sides.iter().zip(growth.iter().flatten());
        notes.extend(grown.map(|(side, growth)| grows_as(&side.name, growth)));
    } else if was_interrupted() {
        notes.push(NOT_EXAMINED.to_owned());
    } else {
        let lone = CasePlan::default();
        let case = plan.cases.first().unwrap_or(&lone);
        let (notes, looks) = (&mut notes, &mut looks);
        let mut looker = Looker {
            time,
            end,
            start_up: [Duration::ZERO; 2],
            plan: &plan,
            case,
            timings: &timings,
            notes,
            looks,
            printer,
        };
        seen = looker.both()?;
        for (seen, growth) in seen.iter_mut().flatten().zip(growth) {
            seen.growth = growth;
        }
    }
    Ok(Found { is_exchanged, seen, notes, looks, ..Found::new(timings, lag) })
}

/// Makes the slower side the second one. Returns the lag, and whether the sides were exchanged.
fn slower_last(timings: &mut Timings) -> anyhow::Result<(Lag, bool)> {
    let lag = lag_of(timings)?;
    if !lag.is_reversed() {
        return Ok((lag, false));
    }
    timings.exchange();
    Ok((lag_of(timings)?, true))
}

/// The lag of the first case.
fn lag_of(timings: &Timings) -> anyhow::Result<Lag> {
    Ok(Lag::of(compare(timings, SEED).first().context("nothing was measured")?))
}

/// How the time of a side grows with the only parameter of the cases.
fn growth(timings: &Timings, side: usize) -> Option<Growth> {
    let value = |case: &Case| match &case.parameters[..] {
        [(_, value)] => value.parse().ok(),
        _ => None,
    };
    let values = timings.cases.iter().map(|case| Some((value(case)?, case)));
    let cases: Vec<(f64, &Case)> = values.collect::<Option<_>>()?;
    let (parameter, _) = timings.cases.first()?.parameters.first()?;
    Growth::of_side(parameter, &cases, side, SEED)
}

/// Fails if a single recording is given.
fn ensure_no_recording(path: &Path) -> anyhow::Result<()> {
    if is_run(path).unwrap_or(false) {
        return Err(failure::with_hint(
            format!("{} is a single recording; laggard why compares two", path.display()),
            "give one recording per side: laggard why --from a.lag b.lag".into(),
        ));
    }
    Ok(())
}

/// Loads the evidence of a saved verdict.
pub(crate) fn kept(source: Source) -> anyhow::Result<Found> {
    let evidence = laggard_formats::read::why::read(source)?;
    let lag = match evidence.single_ratio {
        Some(ratio) => Lag::Recorded(ratio),
        None => Lag::Measured { ratio: evidence.ratio, verdict: evidence.verdict, n: evidence.n },
    };
    let timings =
        Timings { command: evidence.command, sides: evidence.sides.into(), ..Timings::default() };
    Ok(Found {
        is_exchanged: evidence.is_exchanged,
        seen: evidence.seen,
        notes: evidence.notes,
        ..Found::new(timings, lag)
    })
}

/// Evidence from timings and a recording of each side with its number of calls.
pub(crate) fn sampled(
    mut timings: Timings,
    recordings: &[(PathBuf, u64); 2],
    printer: &Printer,
) -> anyhow::Result<Found> {
    let (lag, is_exchanged) = slower_last(&mut timings)?;
    let mut recordings = recordings.clone();
    if is_exchanged {
        recordings.swap(0, 1);
    }
    let mut notes = vec!["library calls are not traced in this process".to_owned()];
    let mut looks = vec![];
    let mut seen = vec![];
    let case = timings.cases.first().context("nothing was measured")?;
    for (side, (path, calls)) in recordings.iter().enumerate().filter(|_| lag.is_there()) {
        let name = &timings.sides[side].name;
        let (run, losses) = load_run(path)?;
        notes.extend(losses.into_iter().map(|loss| format!("{name}: {loss}")));
        let Run::Profile(mut profile) = run else { anyhow::bail!("{name} has no samples") };
        let mut of_side = times(&case.series[side]);
        of_side.measured_unix = now_unix();
        let code = seen_in(&mut of_side, &mut profile, name, &mut notes, printer);
        looks.push(Look { name: name.clone(), profile, calls: *calls, code });
        seen.push(of_side);
    }
    let seen = <[Seen; 2]>::try_from(seen).ok().map(|[mut a, mut b]| {
        settle(&mut a, &mut b);
        [a, b]
    });
    Ok(Found { is_exchanged, seen, notes, looks, ..Found::new(timings, lag) })
}

/// Evidence from one recording per side. The whole run counts as one call.
fn recorded(paths: &[PathBuf], names: &[SideName], printer: &Printer) -> anyhow::Result<Found> {
    let mut given = ["A", "B"].map(String::from);
    name_sides(names, given.iter_mut().collect())?;
    let mut notes = vec![];
    let mut sides = vec![];
    let mut looks = vec![];
    let mut seen = vec![];
    for (given, path) in given.iter().zip(paths) {
        let (run, losses) = load_run(path)?;
        notes.extend(losses.into_iter().map(|loss| format!("{}: {loss}", path.display())));
        let Run::Profile(mut profile) = run else {
            return Err(failure::with_hint(
                format!("{} is a call trace and has no samples", path.display()),
                "give files written by laggard record".into(),
            ));
        };
        sides.push(Side {
            name: given.clone(),
            runs: profile.about.command.join(" "),
            facts: vec![("recording".into(), path.display().to_string())],
        });
        let mut side = of_run(&profile);
        let name = path.display().to_string();
        let code = seen_in(&mut side, &mut profile, &name, &mut notes, printer);
        looks.push(Look { name: given.clone(), profile, calls: 1, code });
        seen.push(side);
    }
    let mut seen = <[Seen; 2]>::try_from(seen).ok().context("two recordings are required")?;
    let mut timings = Timings { sides, ..Timings::default() };
    let is_exchanged = seen[0].wall_ns > seen[1].wall_ns;
    if is_exchanged {
        timings.exchange();
        seen.swap(0, 1);
        looks.swap(0, 1);
        for (look, side) in looks.iter_mut().zip(&timings.sides) {
            look.name.clone_from(&side.name);
        }
    }
    let lag = Lag::Recorded(seen[1].wall_ns / seen[0].wall_ns.max(1.0));
    let seen = Some(seen).filter(|_| lag.is_there());
    Ok(Found { is_exchanged, seen, notes, looks, ..Found::new(timings, lag) })
}

/// Plans the measurement of the given sides, or of the sides of a case.
fn planned(args: &WhyArgs) -> anyhow::Result<Plan> {
    let given: Vec<String> = args.a.iter().chain(&args.b).cloned().collect();
    if args.of.case.is_none() {
        return Ok(Plan {
            sides: sides(&given, &args.shared)?,
            cases: scans(args.param.as_slice())?,
            check: if args.shared.no_check { ResultCheck::Skip } else { ResultCheck::Report },
            tolerance: args.shared.tolerance,
            ..Plan::default()
        });
    }
    let mut plan = suite::one(&args.of.suite(), &given, &args.shared, 2)?;
    ensure!(plan.sides.len() > 1, "the case has one side; laggard why compares two");
    plan.sides.truncate(2);
    Ok(plan)
}

/// Collects evidence of the sides, one after the other.
struct Looker<'a> {
    /// Total time.
    time: Duration,
    /// Deadline of the verdict.
    end: Instant,
    /// Time that a step of each side takes in addition to its calls, mainly for set-up code.
    start_up: [Duration; 2],
    plan: &'a Plan,
    case: &'a CasePlan,
    timings: &'a Timings,
    notes: &'a mut Vec<String>,
    looks: &'a mut Vec<Look>,
    printer: &'a Printer,
}

impl Looker<'_> {
    /// Collects evidence of both sides, the most important first: a step that does not fit into the time
    /// is skipped. Instructions are counted only if a judge needs them, because counting is slow.
    /// `None` if the user interrupts the sampling.
    fn both(&mut self) -> anyhow::Result<Option<[Seen; 2]>> {
        let sampled = self.sample(0).and_then(|a| Ok((a, self.sample(1)?)));
        let (mut a, mut b) = match sampled {
            Err(_) if was_interrupted() => {
                // Samples of a single side cannot be compared.
                self.looks.clear();
                self.notes.push(NOT_EXAMINED.to_owned());
                return Ok(None);
            }
            sampled => sampled?,
        };
        settle(&mut a, &mut b);
        self.locate(1, &a, &mut b);
        for (side, seen) in [&mut a, &mut b].into_iter().enumerate() {
            self.count_calls(side, seen);
        }
        if let (Some(of_a), Some(of_b)) = (&mut a.call_counts, &mut b.call_counts) {
            of_a.keep_defined(of_b);
            of_b.keep_defined(of_a);
        }
        for (side, seen) in [&mut a, &mut b].into_iter().enumerate() {
            self.trace_calls(side, seen);
        }
        let missing = judge(&Pair { a: &a, b: &b }).missing;
        if missing.contains(&Missing::Counts) && !was_interrupted() {
            self.count([&mut a, &mut b]);
        }
        if was_interrupted() {
            self.notes
                .push("interrupted: the verdict uses the evidence collected so far".to_owned());
        }
        Ok(Some([a, b]))
    }

    /// The times of a side.
    fn timed(&self, side: usize) -> anyhow::Result<Seen> {
        let case = self.timings.cases.first().context("nothing was measured")?;
        Ok(Seen {
            runs: self.plan.sides[side].runs.text(),
            measured_unix: now_unix(),
            ..times(&case.series[side])
        })
    }

    /// Collects the times, samples and code of a side.
    fn sample(&mut self, side: usize) -> anyhow::Result<Seen> {
        let mut seen = self.timed(side)?;
        let name = &self.timings.sides[side].name;
        let queued = seen.queued_ns / (seen.queued_ns + seen.wall_ns).max(1.0);
        if queued >= QUEUED_THAT_MATTERS {
            let share = queued * 100.0;
            let note = "other programs used its CPU; this time is not explained";
            self.notes.push(format!("{name}: waited {share:.0} % of its time because {note}"));
        }
        let bar = self.printer.steps();
        bar.set_message(self.step("sampling", name));
        let options = sample::Options { rate: RATE, ..sample::Options::default() };
        let period = Period { time: self.time.mul_f64(SAMPLING), call_ns: seen.wall_ns };
        let began = Instant::now();
        let recorded = record_side(self.plan, side, self.case, period, &options);
        let (mut profile, calls) = recorded.map_err(explain)?;
        let sampled = Duration::from_nanos(profile.about.duration_ns);
        self.start_up[side] = began.elapsed().saturating_sub(sampled);
        bar.set_message(self.step("inspecting the code of", name));
        laggard_symbols::resolve(&mut profile, &FileSystem);
        let code = seen_in(&mut seen, &mut profile, name, self.notes, self.printer);
        self.looks.push(Look { name: name.clone(), profile, calls, code });
        bar.finish_and_clear();
        Ok(seen)
    }

    /// Traces calls of a side into all libraries from all callers.
    fn trace_calls(&mut self, side: usize, seen: &mut Seen) {
        let period = Period { time: self.time.mul_f64(TRACING), call_ns: seen.wall_ns };
        let Some(bar) = self.begin(side, ["tracing calls of", "calls not traced"], period) else {
            return;
        };
        let options =
            calls::Options { libraries: vec!["*".into()], stack_every: 0, ..Default::default() };
        match trace_side(self.plan, side, self.case, period, &options) {
            Ok(traced) => {
                seen.calls = Some(called(&traced.counts, traced.calls));
                seen.io = (!traced.io.is_empty()).then(|| Io::sum(&traced.io, traced.calls));
            }
            Err(error) => self.note(side, &format!("calls not traced: {error}")),
        }
        bar.finish_and_clear();
    }

    /// Counts the calls of Python functions of a side.
    fn count_calls(&mut self, side: usize, seen: &mut Seen) {
        // Counting makes calls slower, so a slow call gets more time.
        let limit = self.time.mul_f64(COUNTING_CALLS).as_nanos() as f64;
        let time = Duration::from_nanos(limit.max(COUNTED_CALL * seen.wall_ns) as u64);
        let period = Period { time, call_ns: seen.wall_ns };
        let Some(bar) = self.begin(side, ["counting calls of", "calls not counted"], period) else {
            return;
        };
        match count_calls(self.plan, side, self.case, period) {
            Ok(counts) => seen.call_counts = Some(counts),
            Err(error) => self.note(side, &format!("calls not counted: {error}")),
        }
        bar.finish_and_clear();
    }

    /// Shows that a step of a side begins. `None`, with a note, if no time is left for it.
    fn begin(
        &mut self,
        side: usize,
        [what, failure]: [&str; 2],
        period: Period,
    ) -> Option<ProgressBar> {
        if was_interrupted() {
            return None;
        }
        let call = Duration::from_nanos(period.call_ns as u64);
        if self.left() < self.start_up[side] + period.time.max(call) {
            self.note(side, &format!("{failure}: no time left; increase --time"));
            return None;
        }
        let bar = self.printer.steps();
        bar.set_message(self.step(what, &self.timings.sides[side].name));
        Some(bar)
    }

    fn note(&mut self, side: usize, what: &str) {
        // The processes of an interrupted step were killed, which is not a property of the side.
        if was_interrupted() {
            return;
        }
        self.notes.push(format!("{}: {what}", self.timings.sides[side].name));
    }

    /// Samples where the slower side takes page faults and where it waits, if these explain a part of the
    /// lag.
    fn locate(&mut self, side: usize, faster: &Seen, seen: &mut Seen) {
        let lag = seen.wall_ns - faster.wall_ns;
        let matters = |ns: f64| ns >= SPOT_THAT_MATTERS * lag;
        let sampled = sample::Options { rate: RATE, ..sample::Options::default() };
        if matters(seen.system_ns - faster.system_ns) && seen.faults >= faster.faults + 1.0 {
            let event = PerfEvent::named("page-faults");
            let options = sample::Options { event, ..sampled.clone() };
            if let Some(profile) = self.record_again(side, "page faults", seen.wall_ns, &options) {
                seen.fault_spots = fault_spots(&profile);
            }
        }
        if matters(seen.waiting_ns() - faster.waiting_ns()) && seen.waits >= SELDOM {
            let options = sample::Options { clock: Clock::Wall, ..sampled };
            if let Some(profile) = self.record_again(side, "waiting", seen.wall_ns, &options) {
                seen.wait_spots = wait_spots(&profile);
            }
        }
    }

    /// A short recording of another event, with names. Failures are noted.
    fn record_again(
        &mut self,
        side: usize,
        what: &str,
        call_ns: f64,
        options: &sample::Options,
    ) -> Option<Profile> {
        let period = Period { time: self.time.mul_f64(LOCATING), call_ns };
        let failure = format!("{what} not located");
        let bar = self.begin(side, [&format!("locating {what} of"), &failure], period)?;
        let recorded = record_side(self.plan, side, self.case, period, options);
        bar.finish_and_clear();
        match recorded {
            Ok((mut profile, _)) => {
                laggard_symbols::resolve(&mut profile, &FileSystem);
                fold_interpreter(&mut profile);
                Some(profile)
            }
            Err(error) => {
                self.note(side, &format!("{failure}: {error}"));
                None
            }
        }
    }

    /// The time that is left.
    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// A progress line: `sampling A, about 12 s left`.
    fn step(&self, what: &str, name: &str) -> String {
        format!("{what} {name}, about {:.0} s left", self.left().as_secs_f64())
    }

    /// Adds instruction counts of a simulated CPU, for both sides or for none.
    fn count(&mut self, sides: [&mut Seen; 2]) {
        let bar = self.printer.steps();
        let mut counted = vec![];
        for (side, seen) in sides.iter().enumerate() {
            let name = &self.timings.sides[side].name;
            bar.set_message(self.step("counting instructions of", name));
            let limit = self.left() / (sides.len() - side) as u32;
            if limit < LEAST_COUNTING {
                let more = "no time left; increase --time";
                self.notes.push(format!("instructions not counted: {more}"));
                break;
            }
            match count_side(self.plan, side, self.case, seen.wall_ns, limit) {
                Ok(counts) => counted.push(counts),
                Err(_) if was_interrupted() => break,
                Err(error) => {
                    self.notes.push(format!("instructions not counted: {error}"));
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

/// With fewer samples, the distribution of time is uncertain.
const FEW_SAMPLES: usize = 200;

/// Adds evidence from samples and the code of hot modules. Returns the code.
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
            notes.push(format!("{name}: cannot read the code of its libraries: {error:#}"));
            Default::default()
        }
    };
    let n = profile.samples.len();
    // A side that waits has few samples, however long it is sampled.
    if n < FEW_SAMPLES && seen.waiting_ns() < seen.wall_ns / 2.0 {
        let samples = plural(n as u64, "sample");
        notes.push(format!("{name}: only {samples}; increase --time to get more"));
    }
    add_work(seen, profile, &code, &loading);
    code
}
