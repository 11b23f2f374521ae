//! `laggard compare`: compares two files of one kind. A is the reference.

use crate::bench;
use crate::calls::{Loaded, missing};
use crate::cli::{CompareArgs, Format};
use crate::compare_profile::{self, Named};
use crate::compare_trace;
use crate::counters;
use crate::evidence::{Evidence, TraceFrom};
use crate::failure;
use crate::output::Places;
use crate::page::ROWS;
use crate::printer::Printer;
use laggard_core::calls::{Comparison, Filter, View, compare};
use laggard_core::model::calls::Calls;
use laggard_report::compare_calls::{self as show, CompareCalls, Given};
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the verb.
pub(crate) fn run(args: &CompareArgs, printer: &Printer) -> anyhow::Result<ExitCode> {
    let places = args.output.places()?;
    // A directory holds the ranks of a job.
    if args.files().iter().flatten().any(|path| path.is_dir()) {
        let sides = args
            .files()
            .map(|files| files.into_iter().map(|path| (path, TraceFrom::File)).collect());
        return compare_trace::run(args, &places, printer, sides);
    }
    let mut sides = [vec![], vec![]];
    for (side, files) in sides.iter_mut().zip(args.files()) {
        for path in files {
            side.push((path.display().to_string(), Evidence::load(&path, printer)?));
        }
    }
    show(args, &places, printer, sides)
}

/// Compares the loaded files.
pub(crate) fn show(
    args: &CompareArgs,
    places: &Places,
    printer: &Printer,
    sides: [Vec<(String, Evidence)>; 2],
) -> anyhow::Result<ExitCode> {
    if sides.iter().flatten().all(|(_, evidence)| matches!(evidence, Evidence::Profile(_))) {
        let named = |(path, evidence)| match evidence {
            Evidence::Profile(loaded) => Some(Named { path, loaded: *loaded }),
            _ => None,
        };
        args.ensure_only_for("profiles", true)?;
        let sides = sides.map(|side| side.into_iter().filter_map(named).collect());
        return compare_profile::run(args, places, printer, sides);
    }
    if sides.iter().flatten().all(|(_, evidence)| matches!(evidence, Evidence::Trace(_))) {
        let file = |(path, evidence)| match evidence {
            Evidence::Trace(from) => Some((PathBuf::from(path), from)),
            _ => None,
        };
        let sides = sides.map(|side| side.into_iter().filter_map(file).collect());
        return compare_trace::run(args, places, printer, sides);
    }
    if let ([(_, Evidence::Calls(a))], [(_, Evidence::Calls(b))]) = (&sides[0][..], &sides[1][..]) {
        args.ensure_only_for("call traces", false)?;
        anyhow::ensure!(
            args.fail_above.is_none(),
            "--fail-above applies to benchmarks, profiles and traces; these are call traces"
        );
        return calls(args, places, printer, a, b).map(|()| ExitCode::SUCCESS);
    }
    if let ([(_, Evidence::Bench(a))], [(_, Evidence::Bench(b))]) = (&sides[0][..], &sides[1][..]) {
        args.ensure_only_for("benchmarks", false)?;
        return bench::compare_two(args, places, printer, a, b);
    }
    if let ([(_, Evidence::Counters(a))], [(_, Evidence::Counters(b))]) =
        (&sides[0][..], &sides[1][..])
    {
        args.ensure_only_for("perf stat counters", false)?;
        return counters::compare_two(args, places, printer, a, b);
    }
    Err(refused(&sides))
}

/// The error for files that cannot be compared.
fn refused(sides: &[Vec<(String, Evidence)>; 2]) -> anyhow::Error {
    let kinds: Vec<&str> = sides.iter().flatten().map(|(_, found)| found.words()).collect();
    if kinds.windows(2).all(|pair| pair[0] == pair[1]) && kinds.len() > 2 {
        return failure::with_hint(
            format!(
                "--a and --b accept several files only for profiles and traces; each of these files is {}",
                kinds[0]
            ),
            "give two files: laggard compare A B".into(),
        );
    }
    let each: Vec<String> = sides
        .iter()
        .flatten()
        .map(|(path, evidence)| format!("{path} is {}", evidence.words()))
        .collect();
    let what = match kinds.iter().all(|kind| *kind == kinds[0]) {
        true => "cannot compare these files",
        false => "files of different kinds cannot be compared",
    };
    failure::with_hint(
        format!("{what}: {}", each.join(", ")),
        "give files of one kind: profiles, traces, call traces, perf stat counters or benchmark results".into(),
    )
}

fn report_on<'a>(
    (path_a, a): (&'a str, &'a Loaded),
    (path_b, b): (&'a str, &'a Loaded),
    comparison: &'a Comparison,
    top: Option<usize>,
) -> CompareCalls<'a> {
    let given = |path: &'a str, loaded: &'a Loaded| Given {
        path,
        about: &loaded.calls.profile.about,
        losses: &loaded.losses,
    };
    CompareCalls { a: given(path_a, a), b: given(path_b, b), comparison, top }
}

/// The comparison of two call traces as sections of an HTML page.
pub(crate) fn section_of_calls(a: &Loaded, b: &Loaded, names: [&str; 2]) -> String {
    let comparison = compare(&View::whole(&a.calls), &View::whole(&b.calls));
    show::html(&report_on((names[0], a), (names[1], b), &comparison, Some(ROWS)))
}

/// Default number of rows per table.
const USUAL_ROWS: usize = 10;

fn calls(
    args: &CompareArgs,
    places: &Places,
    printer: &Printer,
    a: &Loaded,
    b: &Loaded,
) -> anyhow::Result<()> {
    let filter =
        Filter { library: args.lib.clone(), function: args.function.clone(), ..Filter::default() };
    // Fails only if no calls of either side match.
    let (of_a, of_b) = match (View::new(&a.calls, &filter), View::new(&b.calls, &filter)) {
        (Err(found), Err(_)) => return Err(missing(&found)),
        (of_a, of_b) => (of_a, of_b),
    };
    let nothing = Calls::default();
    let comparison = compare(
        &of_a.unwrap_or_else(|_| View::whole(&nothing)),
        &of_b.unwrap_or_else(|_| View::whole(&nothing)),
    );
    let [path_a, path_b] = args.paths();
    let rows = (!args.all).then_some(args.top.unwrap_or(USUAL_ROWS));
    let report = report_on((&path_a, a), (&path_b, b), &comparison, rows);
    places.write(printer, |form, style| match form {
        Format::Text => show::text(&report, style),
        Format::Json => show::json(&report),
        Format::Csv => show::csv(&report),
        Format::Md => show::markdown(&report),
        Format::Html => show::html(&report),
    })
}
