//! Results of benchmarks: what file has some, and showing one or two.

use crate::cli::{CompareArgs, Format, ReportArgs};
use crate::commands::report::top;
use crate::output::Places;
use crate::printer::Printer;
use laggard_core::compare::gate::gate;
use laggard_core::compare::runs::compare_runs;
use laggard_core::compare::timings::compare;
use laggard_core::model::timings::Timings;
use laggard_formats::Source;
use laggard_formats::read::bench;
use laggard_report::bench::{self as show, BenchReport};
use laggard_report::compare_bench::{self as show_two, CompareBench, Given};
use std::path::Path;
use std::process::ExitCode;

/// The seed of what is drawn at random, so that a file always says the same.
pub(crate) const SEED: u64 = 1;
/// The exit code when a case got too slow.
const TRIPPED: u8 = 1;
/// Rows of a table when nothing else is asked for.
const USUAL_ROWS: usize = 20;

/// Whether a file has results of a benchmark.
pub(crate) fn is_bench(path: &Path) -> anyhow::Result<bool> {
    Ok(path.is_file() && bench::kind_of_file(path)?.is_some())
}

/// Loads results of any kind.
pub(crate) fn load(path: &Path) -> anyhow::Result<Timings> {
    Ok(bench::read(Source::open(path)?)?)
}

/// Shows results, in any form.
pub(crate) fn show(
    timings: &Timings,
    rows: Option<usize>,
    places: &Places,
    printer: &Printer,
) -> anyhow::Result<()> {
    let comparisons = compare(timings, SEED);
    let report = BenchReport { timings, comparisons: &comparisons, top: rows };
    places.write(printer, |form, style| match form {
        Format::Text => show::text(&report, style),
        Format::Json => show::json(&report),
        Format::Csv => show::csv(&report),
        Format::Md => show::markdown(&report),
    })
}

/// Reports on results.
pub(crate) fn report(
    args: &ReportArgs,
    places: &Places,
    printer: &Printer,
    path: &Path,
) -> anyhow::Result<()> {
    let of_others = args.samples.given().chain(args.calls.given()).next();
    let by = args.by.is_some().then_some("--by");
    if let Some(flag) = of_others.or(by) {
        anyhow::bail!("{flag} shows a recording or a trace; {} is a bench", path.display());
    }
    let rows = if args.top.is_some() || args.all { top(args) } else { Some(USUAL_ROWS) };
    show(&load(path)?, rows, places, printer)
}

/// Compares two files of results; the exit code is that of the gate.
pub(crate) fn compare_two(
    args: &CompareArgs,
    places: &Places,
    printer: &Printer,
    before: &Timings,
    after: &Timings,
) -> anyhow::Result<ExitCode> {
    let of_calls = [("--lib", args.lib.is_some()), ("--fn", args.function.is_some())];
    if let Some((flag, _)) = of_calls.iter().find(|(_, given)| *given) {
        anyhow::bail!("{flag} keeps calls; these are benches");
    }
    let comparison = compare_runs(before, after, SEED);
    let is_tripped =
        args.fail_above.is_some_and(|limit| gate(before, after, limit, SEED).is_tripped());
    let (path_a, path_b) = (args.a.display().to_string(), args.b.display().to_string());
    let (of_before, of_after) = (compare(before, SEED), compare(after, SEED));
    let report = CompareBench {
        before: Given { path: &path_a, timings: before, comparisons: &of_before },
        after: Given { path: &path_b, timings: after, comparisons: &of_after },
        comparison: &comparison,
        limit: args.fail_above,
        top: (!args.all).then_some(args.top.unwrap_or(USUAL_ROWS)),
    };
    places.write(printer, |form, style| match form {
        Format::Text => show_two::text(&report, style),
        Format::Json => show_two::json(&report),
        Format::Csv => show_two::csv(&report),
        Format::Md => show_two::markdown(&report),
    })?;
    // A gate that looked at nothing must not let anything through.
    anyhow::ensure!(
        args.fail_above.is_none() || !comparison.changes.is_empty(),
        "--fail-above has nothing to look at: the files have no case in common"
    );
    Ok(if is_tripped { ExitCode::from(TRIPPED) } else { ExitCode::SUCCESS })
}
