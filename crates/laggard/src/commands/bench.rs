//! `laggard bench`: times sides in alternation and compares them.

use crate::INTERRUPTED;
use crate::bench::{Extent, SEED, USUAL_ROWS, compare_with_baseline, load, show};
use crate::cli::BenchArgs;
use crate::failure;
use crate::printer::Printer;
use crate::sides::{limits, scans, sides};
use crate::suite;
use anyhow::ensure;
use laggard_core::model::timings::Timings;
use laggard_probe::bench::{Interrupts, Plan, Progress, ResultCheck, Stage, Trouble, measure};
use laggard_probe::{Error, Refusal};
use laggard_report::number::plural;
use std::process::ExitCode;

/// Runs the verb.
pub(crate) fn run(args: &BenchArgs, printer: &Printer) -> anyhow::Result<ExitCode> {
    let places = args.output.places()?;
    // Loads the baseline first, so that errors are found before the measurement.
    let baseline = args.baseline.as_deref().map(load).transpose()?;
    let plan = planned(args)?;
    if args.suite.list {
        return printer.data(&suite::list(&plan.cases)).map(|()| ExitCode::SUCCESS);
    }
    let interrupts = Interrupts::keep();
    let timings = timed(&plan, printer);
    let was_interrupted = interrupts.end();
    let timings = timings?;
    let rows = (!args.all).then_some(args.top.unwrap_or(USUAL_ROWS));
    let extent = if printer.is_verbose() { Extent::Complete } else { Extent::Brief };
    show(&timings, rows, extent, &places, printer)?;
    if was_interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let failed = timings.unmeasured.iter().filter(|case| !case.is_skipped).count();
    let all = timings.cases.len() + timings.unmeasured.len();
    ensure!(failed == 0, "{failed} of {} could not be measured", plural(all as u64, "case"));
    match (&args.baseline, &baseline) {
        (Some(path), Some(baseline)) => {
            let baseline = (&*path.to_string_lossy(), baseline);
            compare_with_baseline(baseline, &timings, args.fail_above, printer)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Plans the measurement.
pub(crate) fn planned(args: &BenchArgs) -> anyhow::Result<Plan> {
    let mut plan = Plan {
        check: if args.shared.no_check {
            ResultCheck::Skip
        } else if args.fail_above.is_some() || args.baseline.is_some() {
            ResultCheck::Require
        } else {
            ResultCheck::Report
        },
        tolerance: args.shared.tolerance,
        seed: SEED,
        instructions: args.instructions,
        allocations: true,
        ..Plan::default()
    };
    if args.sides.is_empty() || args.suite.is_given() {
        ensure!(
            args.param.is_empty(),
            "--param applies to sides given on the command line, not to a suite"
        );
        // One side is enough for a list, or if the result is compared with an earlier one.
        let fewest = if args.baseline.is_some() || args.suite.list { 1 } else { 2 };
        plan.cases = suite::cases(&args.suite, &args.sides, &args.shared, fewest)?;
    } else {
        plan.cases = scans(&args.param)?;
        plan.sides = sides(&args.sides, &args.shared)?;
    }
    plan.limits = limits(&args.effort, plan.cases.len());
    let own = plan.cases.iter_mut().flat_map(|case| &mut case.own);
    for side in own.flat_map(|own| &mut own.sides).chain(&mut plan.sides) {
        side.cpus = args.cpus.clone().map_or(vec![], |cpus| cpus.0);
    }
    Ok(plan)
}

/// Runs the measurement and shows progress between rounds.
pub(crate) fn timed(plan: &Plan, printer: &Printer) -> anyhow::Result<Timings> {
    let bar = printer.steps();
    let measured = measure(plan, &mut |now| bar.set_message(words(now)));
    bar.finish_and_clear();
    let mut timings = measured.map_err(explain)?;
    timings.command = std::env::args().collect();
    Ok(timings)
}

fn words(now: &Progress) -> String {
    let case = match (now.cases, now.name) {
        (1, _) => String::new(),
        (cases, name) => format!("case {} of {cases}, {name}: ", now.case + 1),
    };
    let doing = match now.stage {
        Stage::SetUp => "setting up".to_owned(),
        Stage::Check => "comparing results".to_owned(),
        Stage::WarmUp => format!("warming up, round {}", now.rounds),
        Stage::Sampling => {
            let width =
                now.width.map_or_else(String::new, |width| format!(", ±{:.1} %", width * 100.0));
            format!("round {}{width}", now.rounds)
        }
        Stage::Allocations => "counting allocations".to_owned(),
        Stage::Instructions => "counting instructions".to_owned(),
    };
    format!(
        "{case}{doing}, {:.0} of at most {:.0} s",
        now.elapsed.as_secs_f64(),
        now.budget.as_secs_f64()
    )
}

/// Adds a hint to errors if one is known.
pub(crate) fn explain(error: Error) -> anyhow::Error {
    let inner = match &error {
        Error::Case { error, .. } => error,
        error => error,
    };
    let hint = match inner {
        Error::Side { trouble: Trouble::Missing(Refusal::Missing(_)), .. } => {
            "give its path; set the interpreter of Python statements with --python"
        }
        Error::Side { trouble: Trouble::Timeout { .. }, .. } => "raise the limit: --timeout 5m",
        Error::Side { trouble: Trouble::Raised { last, .. }, .. }
            if last.starts_with("ModuleNotFoundError") =>
        {
            "select an interpreter that has the module with --python, --a-python or --b-python"
        }
        Error::Side { trouble: Trouble::Syntax(_), .. } => {
            "sides are Python statements; use --commands to run command lines"
        }
        Error::Interrupted => return failure::interrupted(),
        Error::Differ { .. } => "if this is expected, use --tolerance 1e-3 or --no-check",
        _ => return error.into(),
    };
    failure::caused(error, hint.into())
}
