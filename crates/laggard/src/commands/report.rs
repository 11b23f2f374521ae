//! `laggard report`: reports on one file of any kind, or on the ranks of a job.

use crate::bench;
use crate::calls;
use crate::cli::{BY_TREE, Format, ReportArgs, is_interpreters};
use crate::counters;
use crate::evidence::{Evidence, TraceFrom};
use crate::failure;
use crate::ffi;
use crate::output::Places;
use crate::printer::Printer;
use crate::profile;
use crate::ranks::{self, Given};
use crate::trace::{Loader, Need, Reading, Trace};
use laggard_core::model::timeline::Timeline;
use laggard_core::profile::{
    By as SamplesBy, Tree, View, callees, callers, library_tree, quality, top_down, totals,
};
use laggard_core::trace::summary::{Breakdown, ROWS_KEPT, Summary};
use laggard_core::trace::{Analysis, By, Stack, breakdown, stacks, steps, summarise, work_rows};
use laggard_formats::Source;
use laggard_formats::read::{Kind, kind_of};
use laggard_report::profile::{self as show_profile, ProfileReport, Shown, ShownTree, TreeKind};
use laggard_report::ranks as show_ranks;
use laggard_report::trace::{self as show, TraceReport};
use std::path::Path;

/// Runs the verb.
pub(crate) fn run(args: &ReportArgs, printer: &Printer) -> anyhow::Result<()> {
    let places = args.output.places()?;
    let reading = Reading::new(&args.trace)?;
    let loader = reading.loader(printer);
    let files = ranks::files(&args.files)?;
    if let [Given { path, .. }] = &files[..] {
        return show_one(args, &places, &loader, path, Evidence::load(path, printer)?);
    }
    let of_one = [
        ("--by", args.by.is_some()),
        ("--phase", args.trace.phase.is_some()),
        ("--stacks", args.stacks),
        ("--unclassified", args.unclassified),
    ];
    // Only regular files: a pipe can be read only once.
    for Given { path, .. } in files.iter().filter(|given| given.path.is_file()) {
        let kind = kind_of(&Source::open(path)?.head());
        if kind != Kind::Trace {
            return Err(failure::with_hint(
                format!(
                    "cannot report on {} together with other files: it is {}",
                    path.display(),
                    kind.words()
                ),
                format!("report on it alone: laggard report {}", path.display()),
            ));
        }
    }
    if let Some(flag) = args.samples.given().chain(args.calls.given()).next() {
        anyhow::bail!("{flag} applies to profiles and call traces; these are traces");
    }
    if let Some((flag, _)) = of_one.iter().find(|(_, given)| *given) {
        return Err(failure::with_hint(
            format!("{flag} applies to a single trace; {} were given", files.len()),
            "give one file, or omit the option to compare all ranks".into(),
        ));
    }
    let ranks = ranks::load(&files, &loader)?;
    // Shows all ranks unless `--top` is given.
    let report = show_ranks::RanksReport { ranks: &ranks, top: args.top };
    places.write(printer, |form, style| match form {
        Format::Text => show_ranks::text(&report, style),
        Format::Json => show_ranks::json(&report),
        Format::Csv => show_ranks::csv(&report),
        Format::Md => show_ranks::markdown(&report),
        Format::Html => show_ranks::html(&report),
    })
}

/// Reports on one file.
pub(crate) fn show_one(
    args: &ReportArgs,
    places: &Places,
    loader: &Loader,
    path: &Path,
    evidence: Evidence,
) -> anyhow::Result<()> {
    let printer = &loader.printer;
    if !matches!(evidence, Evidence::Trace(_)) {
        ensure_no_trace_flags(args, evidence.words())?;
    }
    match evidence {
        Evidence::Profile(mut loaded) => samples(args, places, printer, path, &mut loaded),
        Evidence::Calls(loaded) => calls::report(args, places, printer, path, &loaded),
        Evidence::Bench(timings) => bench::report(args, places, printer, path, &timings),
        Evidence::Counters(found) => counters::report(args, places, printer, path, &found),
        Evidence::Ffi(found) => ffi::report(args, places, printer, path, &found),
        Evidence::Why(_) => Err(failure::with_hint(
            format!("{} is a result of laggard why", path.display()),
            format!("show it again: laggard why --from {}", path.display()),
        )),
        Evidence::Trace(from) => {
            ensure_no_profile_flags(args, path)?;
            one(args, places, loader, path, from)
        }
    }
}

/// Fails if flags for traces are given.
fn ensure_no_trace_flags(args: &ReportArgs, what: &str) -> anyhow::Result<()> {
    let of_traces = [
        ("--phase", args.trace.phase.is_some()),
        ("--phase-pattern", !args.trace.phase_pattern.is_empty()),
        ("--stacks", args.stacks),
        ("--unclassified", args.unclassified),
        ("--rules", args.trace.rules.is_some()),
    ];
    match of_traces.iter().find(|(_, given)| *given) {
        Some((flag, _)) => anyhow::bail!("{flag} applies to traces; this is {what}"),
        None => Ok(()),
    }
}

/// Fails if flags for profiles or call traces are given.
fn ensure_no_profile_flags(args: &ReportArgs, path: &Path) -> anyhow::Result<()> {
    if let Some(flag) = args.samples.given().next() {
        anyhow::bail!("{flag} applies to profiles; {} is not a profile", path.display());
    }
    if let Some(flag) = args.calls.given().next() {
        anyhow::bail!("{flag} applies to call traces; {} is not a call trace", path.display());
    }
    trace_by(args).map(|_| ())
}

/// The value of `--by` for a trace.
fn trace_by(args: &ReportArgs) -> anyhow::Result<Option<By>> {
    let Some(word) = &args.by else { return Ok(None) };
    let found = By::ALL.into_iter().find(|by| by.word() == word);
    found.map(Some).ok_or_else(|| {
        let words = By::ALL.map(By::word).join(", ");
        let what = if calls::is_own_word(word) { "call traces" } else { "profiles" };
        anyhow::anyhow!("--by {word} applies to {what}; a trace supports {words}")
    })
}

/// Reports on a profile.
fn samples(
    args: &ReportArgs,
    places: &Places,
    printer: &Printer,
    path: &Path,
    loaded: &mut profile::Loaded,
) -> anyhow::Result<()> {
    if let Some(flag) = args.calls.given().next() {
        anyhow::bail!("{flag} applies to call traces; {} is a profile", path.display());
    }
    let flags = &args.samples;
    let quality = quality(&loaded.profile);
    let named = [&flags.callers, &flags.callees, &flags.narrow.lib].map(Option::as_deref);
    let is_tree = flags.tree
        || args.by.as_deref() == Some(BY_TREE)
        || args.by.is_none() && named.iter().any(Option::is_some);
    // Interpreter frames are not folded if a filter names the interpreter.
    let wants_glue = named.into_iter().flatten().any(is_interpreters);
    flags.narrow.fold(&mut loaded.profile, is_tree && !wants_glue);
    let filter = flags.time.of(flags.narrow.filter());
    let view = View::new(&loaded.profile, &filter).map_err(|missing| profile::missing(&missing))?;
    let shown = shown(args, &view)?;
    let name = path.display().to_string();
    // Trees are limited by share, and by rows only if `--top` is given.
    let top = if matches!(shown, Shown::Tree(_)) { args.top } else { top(args) };
    let report = ProfileReport {
        path: &name,
        view: &view,
        filter: &filter,
        quality: &quality,
        losses: &loaded.losses,
        shown: &shown,
        top,
    };
    places.write(printer, |form, style| match form {
        Format::Text => show_profile::text(&report, style),
        Format::Json => show_profile::json(&report),
        Format::Csv => show_profile::csv(&report),
        Format::Md => show_profile::markdown(&report),
        Format::Html => show_profile::html(&report),
    })
}

/// Tree nodes with a smaller share are omitted, unless `--all` is given.
const LEAST_SHARE: f64 = 0.01;

/// The tables or tree of a profile requested by the flags.
fn shown(args: &ReportArgs, view: &View) -> anyhow::Result<Shown> {
    let flags = &args.samples;
    let least = if args.all { 0.0 } else { LEAST_SHARE };
    let tree = |kind: TreeKind, tree: Tree| Ok(Shown::Tree(ShownTree { kind, tree, least }));
    if let Some(function) = &flags.callers {
        let found = callers(view, function).map_err(|missing| profile::missing(&missing))?;
        return tree(TreeKind::Callers(function.clone()), found);
    }
    if let Some(function) = &flags.callees {
        let found = callees(view, function).map_err(|missing| profile::missing(&missing))?;
        return tree(TreeKind::Callees(function.clone()), found);
    }
    if flags.tree || args.by.as_deref() == Some(BY_TREE) {
        return tree(TreeKind::TopDown, top_down(view));
    }
    if flags.module_graph {
        return Ok(Shown::Table(totals(view, SamplesBy::Border)));
    }
    if let Some(word) = &args.by {
        let by = SamplesBy::ALL.into_iter().find(|by| by.word() == word).ok_or_else(|| {
            let words = SamplesBy::ALL.map(SamplesBy::word).join(", ");
            let what = if calls::is_own_word(word) { "call traces" } else { "traces" };
            anyhow::anyhow!("--by {word} applies to {what}; a profile supports {words}, {BY_TREE}")
        })?;
        return Ok(Shown::Table(totals(view, by)));
    }
    if let Some(library) = &flags.narrow.lib {
        return tree(TreeKind::Library(library.clone()), library_tree(view));
    }
    Ok(Shown::Whole(profile::usual_tables(view)))
}

fn one(
    args: &ReportArgs,
    places: &Places,
    loader: &Loader,
    path: &Path,
    from: TraceFrom,
) -> anyhow::Result<()> {
    let narrowed =
        args.by.is_some() || args.trace.phase.is_some() || args.stacks || args.unclassified;
    let need = if narrowed || top(args).is_some_and(|top| top > ROWS_KEPT) {
        Need::Tables
    } else {
        Need::Summary
    };
    let mut trace = loader.take(path, from, need)?;
    let mut summary = loader.summary(&trace);
    if args.all && trace.timeline.is_none() && !is_whole(&summary) {
        trace = loader.load(path, Need::Tables)?;
    }
    let whole = summary.clone();
    let report = Narrowed::new(args, loader, &trace, &mut summary)?;
    let name = path.display().to_string();
    let view = TraceReport {
        path: &name,
        summary: &summary,
        breakdown: report.breakdown.as_ref(),
        phase: args.trace.phase.as_deref(),
        unclassified: report.unclassified.as_ref(),
        stacks: report.stacks.as_deref(),
        top: top(args),
    };
    trace.ensure_whole()?;
    let written = places.write(&loader.printer, |form, style| match form {
        Format::Text => show::text(&view, style),
        Format::Json => show::json(&view),
        Format::Csv => show::csv(&view),
        Format::Md => show::markdown(&view),
        Format::Html => show::html(&view),
    });
    // The index is written after the report, so that the user does not wait for it.
    loader.save(path, &trace, &whole);
    written
}

/// Whether no table of a summary was truncated.
fn is_whole(summary: &Summary) -> bool {
    summary.breakdowns.iter().all(|table| table.distinct == table.rows.len() as u64)
        && summary.work_distinct == summary.work.len() as u64
        && summary.steps.as_ref().is_none_or(|steps| steps.duration_ns.n == steps.rows.len() as u64)
}

/// Parts of the report that need the tables of the trace.
#[derive(Default)]
struct Narrowed {
    breakdown: Option<Breakdown>,
    unclassified: Option<Breakdown>,
    stacks: Option<Vec<Stack>>,
}

impl Narrowed {
    fn new(
        args: &ReportArgs,
        loader: &Loader,
        trace: &Trace,
        summary: &mut Summary,
    ) -> anyhow::Result<Narrowed> {
        let Some(timeline) = &trace.timeline else { return Ok(Narrowed::default()) };
        let phase = match &args.trace.phase {
            None => None,
            Some(label) => Some(phase(label, loader, timeline)?),
        };
        let mut analysis = Analysis::new(timeline, loader.rules, loader.phases, phase);
        let rows = top(args);
        if phase.is_some() {
            *summary = summarise(&analysis);
        }
        if rows.is_none_or(|rows| rows > ROWS_KEPT) {
            for kept in &mut summary.breakdowns {
                *kept = breakdown(&analysis, kept.by, rows);
            }
            summary.work = work_rows(&analysis);
            summary.steps = steps(&analysis);
        }
        let mut narrowed = Narrowed {
            breakdown: trace_by(args)?.map(|by| breakdown(&analysis, by, rows)),
            ..Narrowed::default()
        };
        if args.stacks {
            narrowed.stacks = Some(stacks(&analysis, rows));
        }
        if args.unclassified {
            let other = loader.rules.other();
            let kept =
                analysis.rows.iter().copied().filter(|&row| analysis.class(row) == other).collect();
            analysis.rows = kept;
            narrowed.unclassified = Some(breakdown(&analysis, By::Kernel, rows));
        }
        Ok(narrowed)
    }
}

/// The number of a phase. Fails if the trace does not have it.
fn phase(label: &str, loader: &Loader, timeline: &Timeline) -> anyhow::Result<u8> {
    let found = loader.phases.parse(label).filter(|&number| timeline.gpu.phase.contains(&number));
    found.ok_or_else(|| {
        let whole = Analysis::new(timeline, loader.rules, loader.phases, None);
        let there = breakdown(&whole, By::Phase, None)
            .rows
            .iter()
            .map(|row| format!("{} ({})", row.name, row.count))
            .collect::<Vec<_>>()
            .join(", ");
        let hint = format!(
            "phases of this trace, with their numbers of device operations: {}",
            if there.is_empty() { "none".to_owned() } else { there }
        );
        failure::with_hint(format!("no device operations in phase {label:?}"), hint)
    })
}

/// Default number of rows per table.
const USUAL_ROWS: usize = 10;

pub(crate) fn top(args: &ReportArgs) -> Option<usize> {
    (!args.all).then_some(args.top.unwrap_or(USUAL_ROWS))
}
