//! `laggard compare`: what differs between two files of one kind. A is the reference.

use crate::bench;
use crate::calls::{Loaded, missing};
use crate::cli::{CompareArgs, Format};
use crate::failure;
use crate::output::Places;
use crate::printer::Printer;
use crate::profile;
use anyhow::Context;
use laggard_core::calls::{Filter, View, compare};
use laggard_core::model::calls::Calls;
use laggard_core::model::timings::Timings;
use laggard_formats::lag::Run;
use laggard_report::compare_calls::{self as show, CompareCalls, Given};
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

/// A file, by what it holds.
enum Evidence {
    /// Traced calls.
    Calls(Box<Loaded>),
    /// Samples.
    Profile,
    /// Results of a benchmark.
    Bench(Box<Timings>),
    /// Something else: a trace, or nothing that is known.
    Other,
}

impl Evidence {
    fn load(path: &Path) -> anyhow::Result<Evidence> {
        File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        if !profile::is_run(path)? {
            return Ok(match bench::is_bench(path)? {
                true => Evidence::Bench(Box::new(bench::load(path)?)),
                false => Evidence::Other,
            });
        }
        Ok(match profile::load_run(path)? {
            (Run::Calls(calls), losses) => Evidence::Calls(Box::new(Loaded::new(calls, losses))),
            (Run::Profile(_), _) => Evidence::Profile,
        })
    }

    fn words(&self) -> &'static str {
        match self {
            Evidence::Calls(_) => "a record of calls",
            Evidence::Profile => "a recording of samples",
            Evidence::Bench(_) => "a bench",
            Evidence::Other => "no file that laggard recorded",
        }
    }
}

/// Runs the verb.
pub(crate) fn run(args: &CompareArgs, printer: &Printer) -> anyhow::Result<ExitCode> {
    let places = args.output.places()?;
    match (Evidence::load(&args.a)?, Evidence::load(&args.b)?) {
        (Evidence::Calls(a), Evidence::Calls(b)) => {
            anyhow::ensure!(
                args.fail_above.is_none(),
                "--fail-above is for benches; these are records of calls"
            );
            calls(args, &places, printer, &a, &b).map(|()| ExitCode::SUCCESS)
        }
        (Evidence::Bench(a), Evidence::Bench(b)) => {
            bench::compare_two(args, &places, printer, &a, &b)
        }
        (a, b) => Err(failure::with_hint(
            format!(
                "only two records of calls, or two benches, can be compared yet: {} is {}, {} is {}",
                args.a.display(),
                a.words(),
                args.b.display(),
                b.words()
            ),
            "give two files of one kind: of laggard calls, or of a benchmark".into(),
        )),
    }
}

/// Rows of a table when nothing else is asked for.
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
    // That one side calls nothing of it is an answer; that neither does is none.
    let (of_a, of_b) = match (View::new(&a.calls, &filter), View::new(&b.calls, &filter)) {
        (Err(found), Err(_)) => return Err(missing(&found)),
        (of_a, of_b) => (of_a, of_b),
    };
    let nothing = Calls::default();
    let comparison = compare(
        &of_a.unwrap_or_else(|_| View::whole(&nothing)),
        &of_b.unwrap_or_else(|_| View::whole(&nothing)),
    );
    let (path_a, path_b) = (args.a.display().to_string(), args.b.display().to_string());
    let report = CompareCalls {
        a: Given { path: &path_a, about: &a.calls.profile.about, losses: &a.losses },
        b: Given { path: &path_b, about: &b.calls.profile.about, losses: &b.losses },
        comparison: &comparison,
        top: (!args.all).then_some(args.top.unwrap_or(USUAL_ROWS)),
    };
    places.write(printer, |form, style| match form {
        Format::Text => show::text(&report, style),
        Format::Json => show::json(&report),
        Format::Csv => show::csv(&report),
        Format::Md => show::markdown(&report),
    })
}
