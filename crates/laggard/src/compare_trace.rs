//! Loads, compares and reports two traces, or the ranks of two jobs.

use crate::cli::{BY_FUNCTION, BY_LIBRARY, CompareArgs, Format, TraceArgs};
use crate::evidence::TraceFrom;
use crate::failure;
use crate::output::Places;
use crate::page::ROWS;
use crate::printer::Printer;
use crate::ranks::{self, Given};
use crate::trace::{Loader, Need, Reading};
use anyhow::{Context, bail};
use laggard_core::compare::trace::found::{Finding, TraceComparison, Verdict};
use laggard_core::compare::trace::{self as core, Run};
use laggard_core::trace::summary::Summary;
use laggard_core::trace::{Analysis, By};
use laggard_formats::read::kineto;
use laggard_report::compare_trace::{self as show, CompareTrace, Shown};
use laggard_report::page::{Distribution, Page, Times, html};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

/// Default number of rows per table.
const USUAL_ROWS: usize = 10;

/// A trace of one side.
pub(crate) type File = (PathBuf, TraceFrom);

/// Compares the sides. The exit status is that of `--fail-above`.
pub(crate) fn run(
    args: &CompareArgs,
    places: &Places,
    printer: &Printer,
    sides: [Vec<File>; 2],
) -> anyhow::Result<ExitCode> {
    if let Some(flag) = args.samples.given().next() {
        bail!("{flag} applies to profiles; these are traces");
    }
    for (flag, is_given) in [("--lib", args.lib.is_some()), ("--fn", args.function.is_some())] {
        anyhow::ensure!(!is_given, "{flag} applies to profiles and call traces; these are traces");
    }
    let by = by(args)?;
    let reading = Reading::new(&args.traces.trace)?;
    let loader = reading.loader(printer);
    let comparison = load_and_compare(args, &loader, sides, by)?;
    let rows = (!args.all).then_some(args.top.unwrap_or(USUAL_ROWS));
    let report = CompareTrace {
        comparison: &comparison,
        shown: shown(args, by),
        top: rows,
        phase: args.traces.trace.phase.as_deref().unwrap_or(""),
    };
    let verdict = args.fail_above.map(|limit| gate(&comparison.whole, limit)).transpose()?;
    places.write(printer, |form, style| match form {
        Format::Text => show::text(&report, style),
        // Machine-readable formats have all rows, unless `--top` is given.
        Format::Json => show::json(&CompareTrace { top: args.top, ..report }),
        Format::Csv => show::csv(&CompareTrace { top: args.top, ..report }),
        Format::Md => show::markdown(&report),
        Format::Html => show::html(&report),
    })?;
    Ok(verdict.unwrap_or(ExitCode::SUCCESS))
}

/// Loads and compares both sides. Only the compared parts of a trace are kept in memory.
fn load_and_compare(
    args: &CompareArgs,
    loader: &Loader,
    sides: [Vec<File>; 2],
    by: Option<By>,
) -> anyhow::Result<TraceComparison> {
    let phase = match &args.traces.trace.phase {
        Some(label) => Some(loader.phases.parse(label).with_context(|| {
            format!("unknown phase {label}: define it with --phase-pattern {label}=PATTERN")
        })?),
        None => None,
    };
    let [a, b] = load_both(sides, loader, phase, by)?;
    if let Some(label) = &args.traces.trace.phase
        && a.iter().chain(&b).all(Run::is_empty)
    {
        return Err(without_phase(label, [&a, &b]));
    }
    let labels = labels(&args.traces.label, [&a, &b])?;
    let given = |label, runs| core::Given { label, runs };
    Ok(core::compare(given(&labels[0], &a), given(&labels[1], &b), by))
}

/// The HTML page of two traces, or of the ranks of two jobs.
pub(crate) fn page(
    files: [&Path; 2],
    sources: [TraceFrom; 2],
    printer: &Printer,
    title: &str,
) -> anyhow::Result<String> {
    let reading = Reading::new(&TraceArgs::default())?;
    let loader = reading.loader(printer);
    let [a, b] = sources;
    let sides = [vec![(files[0].to_owned(), a)], vec![(files[1].to_owned(), b)]];
    let [a, b] = load_both(sides, &loader, None, None)?;
    let labels = labels(&[], [&a, &b])?;
    let given = |label, runs| core::Given { label, runs };
    let comparison = core::compare(given(&labels[0], &a), given(&labels[1], &b), None);
    let report =
        CompareTrace { comparison: &comparison, shown: Shown::Whole, top: Some(ROWS), phase: "" };
    let side = |side: usize| Times {
        name: labels[side].clone(),
        values: comparison.laps_ns[side].clone(),
        interval: None,
    };
    let several = comparison.laps_ns.iter().any(|laps| laps.len() > 1);
    let distribution = Distribution {
        title: format!("Time per {}", comparison.sides[0].marker.word()),
        unit: "ns",
        axis: format!("time per {}", comparison.sides[0].marker.word()),
        sides: vec![side(0), side(1)],
    };
    Ok(html(&Page {
        title,
        report: show::html(&report),
        is_read_first: true,
        distributions: if several { vec![distribution] } else { vec![] },
        ..Page::default()
    }))
}

/// Loads both sides in parallel, each with half of the threads.
fn load_both(
    sides: [Vec<File>; 2],
    loader: &Loader,
    phase: Option<u8>,
    by: Option<By>,
) -> anyhow::Result<[Vec<Run>; 2]> {
    let threads = (loader.options.threads / 2).max(1);
    let half = Loader { options: kineto::Options { threads, ..loader.options }, ..*loader };
    // Two progress bars would overwrite each other.
    let quiet = Loader { printer: loader.printer.without_progress(), ..half };
    let [of_a, of_b] = sides;
    thread::scope(|scope| {
        let b = scope.spawn(move || load(of_b, &quiet, phase, by));
        let a = load(of_a, &half, phase, by);
        let b = b.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok([a?, b?])
    })
}

/// Loads the traces of one side.
fn load(
    files: Vec<File>,
    loader: &Loader,
    phase: Option<u8>,
    by: Option<By>,
) -> anyhow::Result<Vec<Run>> {
    let of = |trace: crate::trace::Trace, path: &Path, loader: &Loader| -> anyhow::Result<Run> {
        let timeline = trace.timeline.as_ref().context("the trace has no tables")?;
        let summary = loader.summary(&trace);
        let analysis = Analysis::new(timeline, loader.rules, loader.phases, phase);
        let run = Run::new(&analysis, &path.display().to_string(), summary, by);
        trace.ensure_whole()?;
        loader.save(path, &trace, &run.summary);
        Ok(run)
    };
    let is_file = |(_, from): &File| matches!(from, TraceFrom::File);
    if files.len() == 1 && !files.iter().all(is_file) {
        let run = |(path, from): File| of(loader.take(&path, from, Need::Tables)?, &path, loader);
        return files.into_iter().map(run).collect();
    }
    anyhow::ensure!(
        files.iter().all(is_file),
        "cannot read several traces of one side from pipes: give files"
    );
    let paths: Vec<PathBuf> = files.into_iter().map(|(path, _)| path).collect();
    for (at, path) in paths.iter().enumerate() {
        // A duplicate would count as additional evidence.
        let is_again = paths[..at].contains(path);
        anyhow::ensure!(!is_again, "{} is given twice on one side", path.display());
    }
    let given = ranks::files(&paths)?;
    if let [Given { path, .. }] = &given[..] {
        return Ok(vec![of(loader.load(path, Need::Tables)?, path, loader)?]);
    }
    ranks::load_each(&given, loader, |path, loader| {
        of(loader.load(path, Need::Tables)?, path, loader)
    })
}

/// The names of the sides: the given labels, the devices if they differ, or "A" and "B".
fn labels(given: &[String], sides: [&[Run]; 2]) -> anyhow::Result<[String; 2]> {
    match given {
        [a, b] => return Ok([a.clone(), b.clone()]),
        [] => {}
        _ => bail!("give --label twice: once for A and once for B"),
    }
    let device = |runs: &[Run]| {
        let gpus = |summary: &Summary| summary.about.gpus.first().map(|(name, _)| name.clone());
        runs.first().and_then(|run| gpus(&run.summary)).unwrap_or_default()
    };
    let [a, b] = sides.map(device);
    if a != b && !a.is_empty() && !b.is_empty() {
        return Ok([a, b]);
    }
    Ok(["A".to_owned(), "B".to_owned()])
}

/// The value of `--by`.
fn by(args: &CompareArgs) -> anyhow::Result<Option<By>> {
    match args.by.as_deref() {
        None => Ok(None),
        Some(word @ (BY_LIBRARY | BY_FUNCTION)) => {
            let words = By::ALL.map(By::word).join(", ");
            bail!("--by {word} applies to profiles; traces support {words}")
        }
        Some(word) => Ok(By::ALL.into_iter().find(|by| by.word() == word)),
    }
}

fn shown(args: &CompareArgs, by: Option<By>) -> Shown {
    match by {
        _ if args.traces.layers => Shown::Layers,
        _ if args.traces.fusion => Shown::Fusion,
        _ if args.traces.stacks => Shown::Stacks,
        Some(by) => Shown::Table(by),
        None => Shown::Whole,
    }
}

/// Evaluates `--fail-above`: fails if a step of B is significantly slower by more than the limit.
fn gate(whole: &Finding, limit: f64) -> anyhow::Result<ExitCode> {
    if whole.sides.iter().any(|side| side.count == 0) {
        return Err(failure::with_hint(
            "--fail-above has nothing to compare: one side has no device operations".into(),
            "record device activity: ProfilerActivity.CUDA".into(),
        ));
    }
    match whole.verdict {
        Verdict::SingleSample => Err(failure::with_hint(
            "--fail-above needs repeated steps or kernels: there is one value per side".into(),
            "record several steps: torch.profiler.schedule(active=5, …)".into(),
        )),
        Verdict::Slower if whole.ratio.is_some_and(|ratio| ratio > 1.0 + limit) => {
            Ok(ExitCode::FAILURE)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// The error for a phase that neither side has, with the phases of both sides.
fn without_phase(label: &str, sides: [&[Run]; 2]) -> anyhow::Error {
    let phases = |runs: &[Run]| {
        let rows = runs.iter().flat_map(|run| &run.summary.breakdowns);
        let rows = rows.filter(|breakdown| breakdown.by == By::Phase).flat_map(|found| &found.rows);
        let words: Vec<String> = rows.map(|row| format!("{} in {}", row.count, row.name)).collect();
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    };
    let [a, b] = sides.map(phases);
    failure::with_hint(
        format!("no device operations in phase {label}: A has {a}; B has {b}"),
        "define phases by their annotations: --phase-pattern NAME=PATTERN".into(),
    )
}
