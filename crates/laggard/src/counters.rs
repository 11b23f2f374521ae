//! Reports and compares `perf stat` counters.

use crate::bench::USUAL_ROWS;
use crate::cli::{CompareArgs, Format, ReportArgs};
use crate::commands::report::top;
use crate::output::Places;
use crate::printer::Printer;
use laggard_core::compare::counters::compare;
use laggard_core::model::counters::Counters;
use laggard_report::compare_counters::{self as show_two, CompareCounters, Given};
use laggard_report::counters::{self as show, CountersReport};
use std::path::Path;
use std::process::ExitCode;

/// Reports on counters.
pub(crate) fn report(
    args: &ReportArgs,
    places: &Places,
    printer: &Printer,
    path: &Path,
    counters: &Counters,
) -> anyhow::Result<()> {
    let of_others = args.samples.given().chain(args.calls.given()).next();
    if let Some(flag) = of_others.or(args.by.is_some().then_some("--by")) {
        anyhow::bail!(
            "{flag} applies to profiles and traces; {} has perf stat counters",
            path.display()
        );
    }
    let rows = if args.top.is_some() || args.all { top(args) } else { Some(USUAL_ROWS) };
    let report = CountersReport { counters, top: rows };
    places.write(printer, |form, style| match form {
        Format::Text => show::text(&report, style),
        Format::Json => show::json(&report),
        Format::Csv => show::csv(&report),
        Format::Md => show::markdown(&report),
        Format::Html => show::html(&report),
    })
}

/// Compares the counters of two runs.
pub(crate) fn compare_two(
    args: &CompareArgs,
    places: &Places,
    printer: &Printer,
    a: &Counters,
    b: &Counters,
) -> anyhow::Result<ExitCode> {
    let given = [
        ("--lib", args.lib.is_some()),
        ("--fn", args.function.is_some()),
        ("--fail-above", args.fail_above.is_some()),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
        anyhow::bail!("{flag} does not apply to perf stat counters");
    }
    let [path_a, path_b] = args.paths();
    let comparison = compare(a, b);
    let report = CompareCounters {
        a: Given { path: &path_a, counters: a },
        b: Given { path: &path_b, counters: b },
        comparison: &comparison,
        top: (!args.all).then_some(args.top.unwrap_or(USUAL_ROWS)),
    };
    places.write(printer, |form, style| match form {
        Format::Text => show_two::text(&report, style),
        Format::Json => show_two::json(&report),
        Format::Csv => show_two::csv(&report),
        Format::Md => show_two::markdown(&report),
        Format::Html => show_two::html(&report),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The report as sections of an HTML page.
pub(crate) fn section(counters: &Counters) -> String {
    show::html(&CountersReport { counters, top: None })
}

/// The comparison of two runs as sections of an HTML page.
pub(crate) fn section_of_two(a: (&str, &Counters), b: (&str, &Counters)) -> String {
    let comparison = compare(a.1, b.1);
    show_two::html(&CompareCounters {
        a: Given { path: a.0, counters: a.1 },
        b: Given { path: b.0, counters: b.1 },
        comparison: &comparison,
        top: None,
    })
}
