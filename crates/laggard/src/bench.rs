//! Loads, reports and compares benchmark results.

use crate::cli::{CompareArgs, Format, ReportArgs};
use crate::commands::report::top;
use crate::output::Places;
use crate::printer::Printer;
use laggard_core::compare::gate::trips;
use laggard_core::compare::runs::{RunsComparison, compare_runs};
use laggard_core::compare::timings::{CaseComparison, compare};
use laggard_core::model::timings::Timings;
use laggard_formats::Source;
use laggard_formats::read::bench;
use laggard_report::Style;
use laggard_report::bench::{self as show, BenchReport};
use laggard_report::compare_bench::{self as show_two, CompareBench, Given};
use std::path::Path;
use std::process::ExitCode;

/// Random seed, fixed so that the report of a file is reproducible.
pub const SEED: u64 = 1;
/// Exit status if `--fail-above` trips.
pub(crate) const TRIPPED: u8 = 1;
/// Default number of rows per table.
pub(crate) const USUAL_ROWS: usize = 20;

/// Loads benchmark results in any supported format.
pub(crate) fn load(path: &Path) -> anyhow::Result<Timings> {
    Ok(bench::read(Source::open(path)?)?)
}

/// Reads benchmark results from an open source.
pub(crate) fn read(source: Source) -> anyhow::Result<Timings> {
    Ok(bench::read(source)?)
}

/// How much of a benchmark to print on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The verdict, one line per side and the problems.
    Brief,
    /// Everything that was measured.
    Complete,
}

/// Writes a report in all requested formats.
pub(crate) fn show(
    timings: &Timings,
    rows: Option<usize>,
    extent: Extent,
    places: &Places,
    printer: &Printer,
) -> anyhow::Result<()> {
    let comparisons = compare(timings, SEED);
    let report = BenchReport { timings, comparisons: &comparisons, top: rows };
    let render = |form, style: &Style| match form {
        Format::Text => show::text(&report, style),
        Format::Json => show::json(&report),
        Format::Csv => show::csv(&report),
        Format::Md => show::markdown(&report),
        Format::Html => show::html(&report),
    };
    match extent {
        Extent::Brief => places.write_brief(printer, render, |style| show::brief(&report, style)),
        Extent::Complete => places.write(printer, render),
    }
}

/// Reports on benchmark results.
pub(crate) fn report(
    args: &ReportArgs,
    places: &Places,
    printer: &Printer,
    path: &Path,
    timings: &Timings,
) -> anyhow::Result<()> {
    let of_others = args.samples.given().chain(args.calls.given()).next();
    let by = args.by.is_some().then_some("--by");
    if let Some(flag) = of_others.or(by) {
        anyhow::bail!("{flag} applies to profiles and traces; {} is a benchmark", path.display());
    }
    let rows = if args.top.is_some() || args.all { top(args) } else { Some(USUAL_ROWS) };
    show(timings, rows, Extent::Complete, places, printer)
}

/// Compares two benchmarks. The exit status is that of `--fail-above`.
pub(crate) fn compare_two(
    args: &CompareArgs,
    places: &Places,
    printer: &Printer,
    before: &Timings,
    after: &Timings,
) -> anyhow::Result<ExitCode> {
    let of_calls = [("--lib", args.lib.is_some()), ("--fn", args.function.is_some())];
    if let Some((flag, _)) = of_calls.iter().find(|(_, given)| *given) {
        anyhow::bail!("{flag} applies to profiles and call traces; these are benchmarks");
    }
    let [path_a, path_b] = args.paths();
    let rows = (!args.all).then_some(args.top.unwrap_or(USUAL_ROWS));
    let two = Two::new((&path_a, before), (&path_b, after));
    let report = two.report(args.fail_above, rows);
    places.write(printer, |form, style| match form {
        Format::Text => show_two::text(&report, style),
        Format::Json => show_two::json(&report),
        Format::Csv => show_two::csv(&report),
        Format::Md => show_two::markdown(&report),
        Format::Html => show_two::html(&report),
    })?;
    two.verdict(args.fail_above)
}

/// The comparison of two benchmarks as sections of an HTML page.
pub(crate) fn section_of_two(before: (&str, &Timings), after: (&str, &Timings)) -> String {
    show_two::html(&Two::new(before, after).report(None, None))
}

/// Prints the comparison with a baseline. The exit status is that of `--fail-above`.
pub(crate) fn compare_with_baseline(
    (path, baseline): (&str, &Timings),
    now: &Timings,
    limit: Option<f64>,
    printer: &Printer,
) -> anyhow::Result<ExitCode> {
    let two = Two::new((path, baseline), ("this run", now));
    // To standard error, because the benchmark itself goes to standard output, perhaps as JSON.
    printer.note(&show_two::text(&two.report(limit, Some(USUAL_ROWS)), &Style::default()));
    two.verdict(limit)
}

/// Two benchmarks and their comparison.
struct Two<'a> {
    paths: [&'a str; 2],
    timings: [&'a Timings; 2],
    own: [Vec<CaseComparison>; 2],
    comparison: RunsComparison,
}

impl<'a> Two<'a> {
    fn new((path_a, a): (&'a str, &'a Timings), (path_b, b): (&'a str, &'a Timings)) -> Two<'a> {
        Two {
            paths: [path_a, path_b],
            timings: [a, b],
            own: [compare(a, SEED), compare(b, SEED)],
            comparison: compare_runs(a, b, SEED),
        }
    }

    fn report(&self, limit: Option<f64>, top: Option<usize>) -> CompareBench<'_> {
        let given = |at: usize| Given {
            path: self.paths[at],
            timings: self.timings[at],
            comparisons: &self.own[at],
        };
        CompareBench { before: given(0), after: given(1), comparison: &self.comparison, limit, top }
    }

    fn verdict(&self, limit: Option<f64>) -> anyhow::Result<ExitCode> {
        let Some(limit) = limit else { return Ok(ExitCode::SUCCESS) };
        // An empty comparison must not pass.
        anyhow::ensure!(
            !self.comparison.changes.is_empty(),
            "--fail-above has nothing to compare: the files have no case in common"
        );
        let is_tripped = self.comparison.changes.iter().any(|change| trips(change, limit));
        Ok(if is_tripped { ExitCode::from(TRIPPED) } else { ExitCode::SUCCESS })
    }
}
