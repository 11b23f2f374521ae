//! `laggard why`: time two sides, sample both, look at their code, and name what makes B lag.

use crate::bench::SEED;
use crate::cli::{Format, Output, ProfileForm, WhyArgs};
use crate::commands::bench::{explain, timed};
use crate::commands::inspect::{hot_modules, look_at};
use crate::output::put;
use crate::printer::Printer;
use crate::profile::{ensure_replaceable, form_of};
use crate::sides::sides;
use crate::suite;
use anyhow::{Context, ensure};
use laggard_core::compare::timings::{Verdict, compare};
use laggard_core::culprit::{Pair, Seen, add_work, judge, times};
use laggard_core::model::timings::Timings;
use laggard_core::profile::{fold_interpreter, join_workers};
use laggard_probe::bench::{CasePlan, Limits, Plan, record_side};
use laggard_probe::sample::Options;
use laggard_report::why::{self as show, WhyReport};
use laggard_symbols::FileSystem;
use std::path::Path;

/// Of all time: for timing, and for sampling each side.
const TIMING: f64 = 0.5;
const SAMPLING: f64 = 0.15;
/// Enough to know how large a lag is that is to be explained.
const PRECISION: f64 = 0.02;
/// Samples a second: few seconds have to tell much.
const RATE: f64 = 1999.0;

/// Runs the verb.
pub(crate) fn run(args: &WhyArgs, printer: &Printer) -> anyhow::Result<()> {
    let is_page = |path: &&Path| form_of(path) == Some(ProfileForm::Html);
    let page = args.output.output.as_deref().filter(is_page);
    if let Some(path) = page {
        ensure_replaceable(path, ProfileForm::Html, args.output.force)?;
    }
    // Beside a page the verdict is shown.
    let rest = Output { output: None, ..args.output.clone() };
    let places = if page.is_some() { rest.places()? } else { args.output.places()? };
    let plan = Plan {
        limits: Limits {
            time: args.time.mul_f64(TIMING),
            precision: PRECISION,
            timeout: args.timeout,
            ..Limits::default()
        },
        seed: SEED,
        ..planned(args)?
    };
    let timings = timed(&plan, printer)?;
    let comparisons = compare(&timings, SEED);
    let comparison = comparisons.first().context("nothing was measured")?;
    let mut notes = vec![];
    let seen = if comparison.verdict == Verdict::Slower {
        Some([0, 1].map(|side| look(args, &plan, &timings, side, &mut notes, printer)))
    } else {
        None
    };
    let seen = match seen {
        Some([a, b]) => Some((a?, b?)),
        None => None,
    };
    let pair = seen.as_ref().map(|(a, b)| Pair { a, b });
    let judgement = pair.as_ref().map(judge);
    let report = WhyReport {
        timings: &timings,
        comparison,
        pair,
        judgement: judgement.as_ref(),
        notes: &notes,
    };
    if let Some(path) = page {
        put(path, show::page(&report).as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    places.write(printer, |form, style| match form {
        Format::Json => show::json(&report),
        Format::Md => show::markdown(&report),
        Format::Text | Format::Csv => show::text(&report, style),
    })?;
    if let Some(path) = page {
        printer.note(&format!("wrote {}", path.display()));
    }
    Ok(())
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

/// What there is to be seen of a side: its times, its samples and the code they are in.
fn look(
    args: &WhyArgs,
    plan: &Plan,
    timings: &Timings,
    side: usize,
    notes: &mut Vec<String>,
    printer: &Printer,
) -> anyhow::Result<Seen> {
    let case = timings.cases.first().context("nothing was measured")?;
    let mut seen = times(&case.series[side]);
    let name = &timings.sides[side].name;
    let bar = printer.steps();
    bar.set_message(format!("sampling {name}"));
    let options = Options { rate: RATE, ..Options::default() };
    let time = args.time.mul_f64(SAMPLING);
    let lone = CasePlan::default();
    let case_plan = plan.cases.first().unwrap_or(&lone);
    let recorded = record_side(plan, side, case_plan, time, &options);
    bar.set_message(format!("looking at the code of {name}"));
    let (mut profile, _) = recorded.map_err(explain)?;
    laggard_symbols::resolve(&mut profile, &FileSystem);
    join_workers(&mut profile);
    fold_interpreter(&mut profile);
    let code = match look_at(&hot_modules(&profile), Some(&profile), printer) {
        Ok((code, _)) => code,
        Err(error) => {
            notes.push(format!("{name}: the code of its libraries cannot be read: {error:#}"));
            Default::default()
        }
    };
    if profile.samples.len() < FEW_SAMPLES {
        notes.push(format!(
            "{name}: only {} samples were taken; more --time tells more",
            profile.samples.len()
        ));
    }
    add_work(&mut seen, &profile, &code, "");
    bar.finish_and_clear();
    Ok(seen)
}

/// Fewer samples say little about where time goes.
const FEW_SAMPLES: usize = 200;
