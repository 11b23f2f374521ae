//! Results of benchmarks: what file has some, and showing one or two.

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

/// The seed of what is drawn at random, so that a file always says the same.
pub const SEED: u64 = 1;
/// The exit code when a case got too slow.
pub(crate) const TRIPPED: u8 = 1;
/// Rows of a table when nothing else is asked for.
pub(crate) const USUAL_ROWS: usize = 20;

/// Loads results of any kind.
pub(crate) fn load(path: &Path) -> anyhow::Result<Timings> {
    Ok(bench::read(Source::open(path)?)?)
}

/// The same of a source that is open already.
pub(crate) fn read(source: Source) -> anyhow::Result<Timings> {
    Ok(bench::read(source)?)
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
        Format::Html => show::html(&report),
    })
}

/// Reports on results.
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
        anyhow::bail!("{flag} shows a recording or a trace; {} is a bench", path.display());
    }
    let rows = if args.top.is_some() || args.all { top(args) } else { Some(USUAL_ROWS) };
    show(timings, rows, places, printer)
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

/// Two benches as sections of a page.
pub(crate) fn section_of_two(before: (&str, &Timings), after: (&str, &Timings)) -> String {
    show_two::html(&Two::new(before, after).report(None, None))
}

/// Says how a bench compares with an earlier one; the exit code is that of the gate.
pub(crate) fn compare_with_baseline(
    (path, baseline): (&str, &Timings),
    now: &Timings,
    limit: Option<f64>,
    printer: &Printer,
) -> anyhow::Result<ExitCode> {
    let two = Two::new((path, baseline), ("now", now));
    // The bench itself is the result, and may be JSON: this is talk about it.
    printer.note(&show_two::text(&two.report(limit, Some(USUAL_ROWS)), &Style::default()));
    two.verdict(limit)
}

/// Two benches, compared.
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
        // A gate that looked at nothing must not let anything through.
        anyhow::ensure!(
            !self.comparison.changes.is_empty(),
            "--fail-above has nothing to look at: the files have no case in common"
        );
        let is_tripped = self.comparison.changes.iter().any(|change| trips(change, limit));
        Ok(if is_tripped { ExitCode::from(TRIPPED) } else { ExitCode::SUCCESS })
    }
}
