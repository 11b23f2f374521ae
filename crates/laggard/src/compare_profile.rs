//! Recordings of two sides: narrowed alike, compared and shown.

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
use laggard_core::model::profile::Unit;
use laggard_core::profile::{Filter, View, fold_interpreter, quality};
use laggard_report::compare_profile::{self as show, CompareProfile, Given, Recording, Shown};
use laggard_report::flame::Graph;
use laggard_report::number::plural;
use std::process::ExitCode;

/// Rows of a table when nothing else is asked for.
const USUAL_ROWS: usize = 10;

/// A recording and the file it is from.
pub(crate) struct Named {
    pub(crate) path: String,
    pub(crate) loaded: Loaded,
}

/// What two profiles differ in, and the tree of both.
pub(crate) struct Pair {
    pub(crate) comparison: ProfileComparison,
    pub(crate) graph: Graph,
}

/// Fails where two profiles have nothing in common that a picture could show: bytes and time, say.
pub(crate) fn ensure_alike(a: &View, b: &View) -> anyhow::Result<()> {
    if a.unit() == b.unit() {
        return Ok(());
    }
    Err(failure::with_hint(
        format!("A counts {} and B {}", a.event_name(), b.event_name()),
        "choose an event that both have with --event; laggard compare shows shares of each".into(),
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

/// The comparison of two profiles as sections of a page.
pub(crate) fn section(pair: &Pair, files: [(&str, &Loaded); 2], views: [&View; 2]) -> String {
    let recordings = files.map(|(path, loaded)| [recording(path, loaded)]);
    let given = [0, 1].map(|side: usize| Given {
        recordings: &recordings[side],
        event: views[side].event_name(),
        unit: views[side].unit(),
    });
    show::html(&CompareProfile {
        a: given[0],
        b: given[1],
        comparison: &pair.comparison,
        narrowed: "",
        shown: Shown::Whole,
        top: Some(ROWS),
    })
}

/// Compares; the exit code is that of the gate.
pub(crate) fn run(
    args: &CompareArgs,
    places: &Places,
    printer: &Printer,
    mut sides: [Vec<Named>; 2],
) -> anyhow::Result<ExitCode> {
    // Whoever names the interpreter wants to see it.
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

/// The samples that the flags keep. That one side has none is an answer; that neither has is none.
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
                // An event is what is compared, not a part of it.
                Err(found) if found.what == "event" => return Err(missing(&found)),
                Err(found) => {
                    first_missing.get_or_insert(found);
                    // Nothing of what was recorded.
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
    anyhow::ensure!(
        flags.calls.is_none() || is_call,
        "--calls is for --scale call: time of one call"
    );
    let is_time = views.iter().flatten().all(View::is_time);
    Ok(match (flags.scale, flags.calls) {
        (_, Some(calls)) => Scale::PerCall(calls.0),
        (None, None) => Scale::of(&views[0], &views[1]),
        (Some(ScaleArg::Call), None) => {
            return Err(failure::with_hint(
                "--scale call needs to know the calls of each side".into(),
                "give how often each recording calls what is compared: --calls 100,50".into(),
            ));
        }
        (Some(ScaleArg::Time), None) if !is_time => {
            return Err(failure::with_hint(
                "--scale time needs samples of time, and these count something else".into(),
                "choose an event with --event, or --scale weight, samples or share".into(),
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

/// What samples were narrowed to.
fn in_words(args: &CompareArgs, views: &[Vec<View>; 2]) -> String {
    let flags = &args.samples;
    let of = |word: &str, name: &Option<String>| {
        name.as_ref().map(|name| format!("{word} {}", laggard_report::escape::visible(name)))
    };
    let start_up: u64 = views.iter().flatten().map(|view| view.start_up.samples).sum();
    let hidden = (start_up > 0).then(|| {
        format!("without {} of start-up (--start-up keeps them)", plural(start_up, "sample"))
    });
    let parts = [
        of("below library", &args.lib),
        of("thread", &flags.thread),
        of("program", &flags.comm),
        of("functions", &args.function),
        hidden,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Whether B is slower by more than is allowed: all of it, or one of the functions asked for.
fn gate(
    args: &CompareArgs,
    comparison: &ProfileComparison,
    limit: f64,
) -> anyhow::Result<ExitCode> {
    if comparison.spread == Spread::Sampling {
        return Err(failure::with_hint(
            "--fail-above needs at least two recordings of each side: one says nothing about how runs differ".into(),
            "give several: laggard compare --fail-above 5% --a a1.lag a2.lag a3.lag --b b1.lag b2.lag b3.lag".into(),
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
                "--fail-above has nothing to look at: both sides are 100 % of themselves".into(),
                "name functions with --fn, or choose another --scale".into(),
            ));
        }
        None => trips(&comparison.whole),
    };
    Ok(if is_tripped { ExitCode::from(TRIPPED) } else { ExitCode::SUCCESS })
}
