//! Loads call traces and reports on them.

use crate::cli::{BY_ARGUMENTS, BY_PYTHON_LINE, BY_TREE, Format, ReportArgs};
use crate::commands::report::top;
use crate::failure;
use crate::output::Places;
use crate::page::ROWS;
use crate::printer::Printer;
use laggard_core::calls::{By, Filter, Totals, View, arguments, python_lines, totals, tree};
use laggard_core::model::calls::Calls;
use laggard_core::profile::Missing;
use laggard_report::calls::{self as show, CallsReport, Shown};
use std::path::Path;

/// A loaded call trace, with its losses.
pub(crate) struct Loaded {
    pub(crate) calls: Calls,
    pub(crate) losses: Vec<String>,
}

impl Loaded {
    /// Prepares a call trace for display by demangling its names.
    pub(crate) fn new(mut calls: Calls, losses: Vec<String>) -> Loaded {
        readable(&mut calls);
        Loaded { calls, losses }
    }
}

/// Demangles the names of functions. Files store the mangled names.
pub(crate) fn readable(calls: &mut Calls) {
    for function in &mut calls.functions {
        let name = laggard_symbols::demangle(calls.profile.texts.get(function.name)).into_owned();
        function.name = calls.profile.texts.add(&name);
    }
}

/// Whether `--by` with this value applies to call traces only.
pub(crate) fn is_own_word(word: &str) -> bool {
    word == BY_ARGUMENTS || word == By::Caller.word()
}

/// The error for a missing item, with the available ones as hint.
pub(crate) fn missing(missing: &Missing) -> anyhow::Error {
    const MOST: usize = 20;
    let visible = |name: &String| laggard_report::escape::visible(name);
    let mut there: Vec<String> = missing.there.iter().take(MOST).map(visible).collect();
    if missing.there.len() > MOST {
        there.push("…".into());
    }
    let Missing { what, asked, .. } = missing;
    failure::with_hint(
        format!("no {what} matches {asked:?} in the call trace"),
        format!("available: {}", there.join(", ")),
    )
}

/// Reports on a call trace.
pub(crate) fn report(
    args: &ReportArgs,
    places: &Places,
    printer: &Printer,
    path: &Path,
    loaded: &Loaded,
) -> anyhow::Result<()> {
    let flags = &args.samples;
    let of_samples = [
        ("--event", flags.narrow.event.is_some()),
        ("--pid", flags.narrow.pid.is_some()),
        ("--from", flags.time.from.is_some()),
        ("--to", flags.time.to.is_some()),
        ("--start-up", flags.narrow.start_up),
        ("--module-graph", flags.module_graph),
    ];
    if let Some((flag, _)) = of_samples.iter().find(|(_, given)| *given) {
        anyhow::bail!("{flag} applies to profiles; {} is a call trace", path.display());
    }
    let filter = Filter {
        library: flags.narrow.lib.clone(),
        function: args.calls.function.clone(),
        thread: flags.narrow.thread.clone(),
        process: flags.narrow.comm.clone(),
    };
    let view = View::new(&loaded.calls, &filter).map_err(|found| missing(&found))?;
    let shown = shown(args, &view)?;
    let report = CallsReport {
        path: &path.display().to_string(),
        view: &view,
        filter: &filter,
        losses: &loaded.losses,
        shown: &shown,
        top: top(args),
        is_verbose: printer.is_verbose(),
    };
    places.write(printer, |form, style| match form {
        Format::Text => show::text(&report, style),
        Format::Json => show::json(&report),
        Format::Csv => show::csv(&report),
        Format::Md => show::markdown(&report),
        Format::Html => show::html(&report),
    })
}

/// The tables requested by the flags.
fn shown(args: &ReportArgs, view: &View) -> anyhow::Result<Shown> {
    let flags = &args.samples;
    let found = |view: Result<View<'_>, Missing>, by: By| -> anyhow::Result<Totals> {
        view.map(|view| totals(&view, by)).map_err(|found| missing(&found))
    };
    if let Some(function) = &args.calls.histogram {
        let of = view.calls_of(function).map_err(|found| missing(&found))?;
        return Ok(Shown::Histogram(function.clone(), of.whole));
    }
    if let Some(function) = &flags.callers {
        let of = view.calls_of(function).map_err(|found| missing(&found))?;
        let (places, lines) = (totals(&of, By::Caller), python_lines(&of));
        return Ok(Shown::Callers(function.clone(), places, lines));
    }
    if let Some(function) = &flags.callees {
        return Ok(Shown::Callees(function.clone(), found(view.calls_by(function), By::Function)?));
    }
    // Arguments are recorded per function only.
    let has_arguments = flags.narrow.thread.is_none() && flags.narrow.comm.is_none();
    match args.by.as_deref() {
        _ if flags.tree => Ok(Shown::Tree(tree(view))),
        Some(BY_TREE) => Ok(Shown::Tree(tree(view))),
        Some(BY_PYTHON_LINE) => Ok(Shown::PythonLines(python_lines(view))),
        Some(BY_ARGUMENTS) => {
            anyhow::ensure!(has_arguments, "arguments are not recorded per thread or process");
            Ok(Shown::Arguments(arguments(view)))
        }
        Some(word) => {
            let by = By::ALL.into_iter().find(|by| by.word() == word).ok_or_else(|| {
                let words = By::ALL.map(By::word).join(", ");
                let is_profile =
                    laggard_core::profile::By::ALL.iter().any(|other| other.word() == word);
                let what = if is_profile { "profiles" } else { "traces" };
                anyhow::anyhow!(
                    "--by {word} applies to {what}; a call trace supports {words}, {BY_PYTHON_LINE}, {BY_TREE}, {BY_ARGUMENTS}"
                )
            })?;
            Ok(Shown::Table(totals(view, by)))
        }
        None => Ok(whole(view, has_arguments)),
    }
}

/// The full report.
fn whole(view: &View, has_arguments: bool) -> Shown {
    let mut tables: Vec<Totals> = By::ALL.into_iter().map(|by| totals(view, by)).collect();
    // A table with a single thread or library has no information.
    tables.retain(|table| table.rows.len() > 1 || !matches!(table.by, By::Thread | By::Library));
    let arguments = if has_arguments { arguments(view) } else { vec![] };
    Shown::Whole(tables, python_lines(view), arguments)
}

/// The full report as sections of an HTML page.
pub(crate) fn section(loaded: &Loaded, path: &Path) -> String {
    let view = View::whole(&loaded.calls);
    show::html(&CallsReport {
        path: &path.display().to_string(),
        view: &view,
        filter: &Filter::default(),
        losses: &loaded.losses,
        shown: &whole(&view, true),
        top: Some(ROWS),
        is_verbose: false,
    })
}
