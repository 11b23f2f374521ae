//! Filters, compares and reports the profiles of two sides.

use crate::bench::TRIPPED;
use crate::cli::{
    BY_FUNCTION, BY_LIBRARY, CompareArgs, Format, ScaleArg, SideArg, is_interpreters,
};
use crate::failure;
use crate::output::Places;
use crate::page::ROWS;
use crate::printer::Printer;
use crate::profile::{Loaded, missing};
use laggard_core::compare::diff_tree::diff_tree;
use laggard_core::compare::profile::{Gap, GapVerdict, ProfileComparison, Scale, Spread, compare};
use laggard_core::divergence::{Divergence, diverge_views};
use laggard_core::model::profile::Unit;
use laggard_core::profile::{Filter, View, fold_interpreter, quality};
use laggard_report::compare_profile::{self as show, CompareProfile, Given, Recording, Shown};
use laggard_report::flame::Graph;
use laggard_report::number::plural;
use std::process::ExitCode;
use std::slice;

/// Default number of rows per table.
const USUAL_ROWS: usize = 10;

/// A profile with its path.
pub(crate) struct Named {
    pub(crate) path: String,
    pub(crate) loaded: Loaded,
}

/// A comparison of two profiles, with its differential flame graph.
pub(crate) struct Pair {
    pub(crate) comparison: ProfileComparison,
    pub(crate) graph: Graph,
}

/// Fails if two profiles have different units, such as bytes and time.
pub(crate) fn ensure_alike(a: &View, b: &View) -> anyhow::Result<()> {
    if a.unit() == b.unit() {
        return Ok(());
    }
    Err(failure::with_hint(
        format!("A and B count different events: {} and {}", a.event_name(), b.event_name()),
        "use --event with an event that both profiles have, or compare shares with laggard compare"
            .into(),
    ))
}

/// Compares one view of each side.
pub(crate) fn pair(a: &View, b: &View, names: [&str; 2], scale: Option<Scale>) -> Pair {
    let (a, b) = (std::slice::from_ref(a), std::slice::from_ref(b));
    let scale = scale.unwrap_or_else(|| Scale::of(a, b));
    let comparison = compare(a, b, scale);
    let tree = diff_tree(a, b, &comparison.alignment, scale);
    let graph = Graph::of_pair(&tree, &comparison, names, (b[0].event_name(), b[0].unit()));
    Pair { comparison, graph }
}

fn recording<'a>(path: &'a str, loaded: &'a Loaded) -> Recording<'a> {
    let quality = quality(&loaded.profile);
    Recording {
        path,
        about: &loaded.profile.about,
        losses: &loaded.losses,
        whole_stacks: quality.complete as f64 / quality.samples.max(1) as f64,
    }
}

/// The comparison of two profiles as sections of an HTML page.
pub(crate) fn section(pair: &Pair, files: [(&str, &Loaded); 2], views: [&View; 2]) -> String {
    let recordings = files.map(|(path, loaded)| [recording(path, loaded)]);
    let given = [0, 1].map(|side: usize| Given {
        recordings: &recordings[side],
        event: views[side].event_name(),
        unit: views[side].unit(),
    });
    show::page_section(&CompareProfile {
        a: given[0],
        b: given[1],
        comparison: &pair.comparison,
        divergence: diverged(views.map(slice::from_ref), pair.comparison.scale).as_ref(),
        narrowed: "",
        shown: Shown::Whole,
        top: Some(ROWS),
    })
}

/// Compares the sides. The exit status is that of `--fail-above`.
pub(crate) fn run(
    args: &CompareArgs,
    places: &Places,
    printer: &Printer,
    mut sides: [Vec<Named>; 2],
) -> anyhow::Result<ExitCode> {
    // Interpreter frames are not folded if a filter names the interpreter.
    let asked = args.lib.iter().chain(&args.function);
    if !asked.into_iter().any(|name| is_interpreters(name)) {
        for named in sides.iter_mut().flatten() {
            fold_interpreter(&mut named.loaded.profile);
        }
    }
    let views = narrowed(args, &sides)?;
    let scale = scale(args, &views)?;
    let mut comparison = compare(&views[0], &views[1], scale);
    if let Some(function) = &args.function {
        keep_functions(&mut comparison, function)?;
    }
    let divergence = diverged([&views[0], &views[1]], scale);
    let recordings = [0, 1].map(|side: usize| {
        sides[side].iter().map(|named| recording(&named.path, &named.loaded)).collect::<Vec<_>>()
    });
    let given = [0, 1].map(|side| Given {
        recordings: &recordings[side],
        event: views[side].first().map_or("", View::event_name),
        unit: views[side].first().map_or(Unit::Count, View::unit),
    });
    let report = CompareProfile {
        a: given[0],
        b: given[1],
        comparison: &comparison,
        divergence: divergence.as_ref(),
        narrowed: &in_words(args, &views),
        shown: shown(args),
        top: (!args.all).then_some(args.top.unwrap_or(USUAL_ROWS)),
    };
    let verdict = args.fail_above.map(|limit| gate(args, &comparison, limit)).transpose()?;
    places.write(printer, |form, style| match form {
        Format::Text => show::text(&report, style),
        Format::Json => show::json(&report),
        Format::Csv => show::csv(&report),
        Format::Md => show::markdown(&report),
        Format::Html => show::html(&report),
    })?;
    Ok(verdict.unwrap_or(ExitCode::SUCCESS))
}

/// Where B's call paths diverge from A's, in profiles of time.
fn diverged(views: [&[View]; 2], scale: Scale) -> Option<Divergence> {
    let calls = match scale {
        Scale::Time => [1.0; 2],
        Scale::PerCall(calls) => calls,
        Scale::Weight | Scale::Samples | Scale::Share => return None,
    };
    if !views.iter().all(|side| !side.is_empty() && side.iter().all(View::is_time)) {
        return None;
    }
    Some(diverge_views(views, calls)).filter(|divergence| !divergence.points.is_empty())
}

fn shown(args: &CompareArgs) -> Shown {
    match (args.samples.only, args.by.as_deref()) {
        (Some(SideArg::A), _) => Shown::OnlyIn(0),
        (Some(SideArg::B), _) => Shown::OnlyIn(1),
        (None, Some(BY_LIBRARY)) => Shown::Libraries,
        (None, Some(BY_FUNCTION)) => Shown::Functions,
        (None, _) if args.function.is_some() => Shown::Functions,
        (None, _) => Shown::Whole,
    }
}

/// Filters the samples. Fails only if no samples of either side match.
fn narrowed<'a>(
    args: &CompareArgs,
    sides: &'a [Vec<Named>; 2],
) -> anyhow::Result<[Vec<View<'a>>; 2]> {
    let flags = &args.samples;
    let filter = Filter {
        library: args.lib.clone(),
        thread: flags.thread.clone(),
        process: flags.comm.clone(),
        event: flags.event.clone(),
        start_up: flags.start_up,
        ..Filter::default()
    };
    let mut views = [vec![], vec![]];
    let mut first_missing = None;
    let mut is_found = false;
    for (side, recordings) in sides.iter().enumerate() {
        for named in recordings {
            views[side].push(match View::new(&named.loaded.profile, &filter) {
                Ok(view) => {
                    is_found = true;
                    view
                }
                // Both sides must have the event.
                Err(found) if found.what == "event" => return Err(missing(&found)),
                Err(found) => {
                    first_missing.get_or_insert(found);
                    // An empty view of this recording.
                    let event = flags.event.clone();
                    let none = Filter { event, from_ns: Some(u64::MAX), ..Filter::default() };
                    View::new(&named.loaded.profile, &none).map_err(|found| missing(&found))?
                }
            });
        }
    }
    match first_missing {
        Some(found) if !is_found => Err(missing(&found)),
        _ => Ok(views),
    }
}

fn scale(args: &CompareArgs, views: &[Vec<View>; 2]) -> anyhow::Result<Scale> {
    let flags = &args.samples;
    let is_call = flags.scale == Some(ScaleArg::Call) || flags.scale.is_none();
    anyhow::ensure!(flags.calls.is_none() || is_call, "--calls requires --scale call");
    let is_time = views.iter().flatten().all(View::is_time);
    Ok(match (flags.scale, flags.calls) {
        (_, Some(calls)) => Scale::PerCall(calls.0),
        (None, None) => Scale::of(&views[0], &views[1]),
        (Some(ScaleArg::Call), None) => {
            return Err(failure::with_hint(
                "--scale call needs the number of calls of each side".into(),
                "give the number of calls in A and B, such as --calls 100,50".into(),
            ));
        }
        (Some(ScaleArg::Time), None) if !is_time => {
            return Err(failure::with_hint(
                "--scale time needs time samples, but these profiles count another event".into(),
                "select an event with --event, or use --scale weight, samples or share".into(),
            ));
        }
        (Some(ScaleArg::Time), None) => Scale::Time,
        (Some(ScaleArg::Weight), None) => Scale::Weight,
        (Some(ScaleArg::Samples), None) => Scale::Samples,
        (Some(ScaleArg::Share), None) => Scale::Share,
    })
}

fn keep_functions(comparison: &mut ProfileComparison, asked: &str) -> anyhow::Result<()> {
    if comparison.keep_functions(asked) {
        return Ok(());
    }
    let there = comparison.functions.iter().take(20);
    let there = there.map(|finding| comparison.function(finding).name.clone()).collect();
    let found = laggard_core::profile::Missing { what: "function", asked: asked.to_owned(), there };
    Err(missing(&found))
}

/// Describes the filters.
fn in_words(args: &CompareArgs, views: &[Vec<View>; 2]) -> String {
    let flags = &args.samples;
    let of = |word: &str, name: &Option<String>| {
        name.as_ref().map(|name| format!("{word} {}", laggard_report::escape::visible(name)))
    };
    let start_up: u64 = views.iter().flatten().map(|view| view.start_up.samples).sum();
    let hidden = (start_up > 0).then(|| {
        format!("without {} (--start-up includes them)", plural(start_up, "start-up sample"))
    });
    let parts = [
        of("under library", &args.lib),
        of("thread", &flags.thread),
        of("process", &flags.comm),
        of("functions", &args.function),
        hidden,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Evaluates `--fail-above` for the whole of B, or for the functions selected by `--fn`.
fn gate(
    args: &CompareArgs,
    comparison: &ProfileComparison,
    limit: f64,
) -> anyhow::Result<ExitCode> {
    if comparison.spread == Spread::Sampling {
        return Err(failure::with_hint(
            "--fail-above needs at least two recordings per side to estimate the variation between runs".into(),
            "give several recordings: laggard compare --fail-above 5% --a a1.lag a2.lag a3.lag --b b1.lag b2.lag b3.lag".into(),
        ));
    }
    let trips = |gap: &Gap| {
        let grew = gap.ratio().is_none_or(|ratio| ratio > 1.0 + limit);
        gap.verdict == GapVerdict::Slower && grew
    };
    let is_tripped = match &args.function {
        Some(_) => comparison.functions.iter().any(|finding| trips(&finding.total)),
        None if comparison.scale == Scale::Share => {
            return Err(failure::with_hint(
                "--fail-above cannot be applied to shares: both sides total 100 %".into(),
                "select functions with --fn, or use another --scale".into(),
            ));
        }
        None => trips(&comparison.whole),
    };
    Ok(if is_tripped { ExitCode::from(TRIPPED) } else { ExitCode::SUCCESS })
}
