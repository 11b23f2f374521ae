//! HTML pages of profiles and benchmarks.

use crate::bench::SEED;
use crate::cli::{NarrowArgs, TimeArgs};
use crate::profile::{Loaded, ensure_some, missing, usual_tables};
use laggard_core::compare::timings::compare;
use laggard_core::model::timings::Timings;
use laggard_core::profile::{View, quality};
use laggard_report::bench::{self, BenchReport};
use laggard_report::flame::Graph;
use laggard_report::page::{Distribution, MOST_FRAMES, Page, Times, html, of_samples};
use laggard_report::profile::{self, ProfileReport, Shown};

/// Rows per table. Pages can be scrolled and their tables sorted, so more rows are useful.
pub(crate) const ROWS: usize = 50;

/// The page of a profile. Interpreter frames are folded in its flame graph, unless requested.
pub(crate) fn of_profile(
    loaded: &mut Loaded,
    (narrow, time): (&NarrowArgs, &TimeArgs),
    title: &str,
) -> anyhow::Result<String> {
    let filter = &time.of(narrow.filter());
    narrow.fold(&mut loaded.profile, false);
    let report = {
        let view = View::new(&loaded.profile, filter).map_err(|found| missing(&found))?;
        ensure_some(&view)?;
        let shown = Shown::Whole(usual_tables(&view));
        let quality = quality(&loaded.profile);
        let report = ProfileReport {
            path: title,
            view: &view,
            filter,
            quality: &quality,
            losses: &loaded.losses,
            shown: &shown,
            top: Some(ROWS),
        };
        profile::html(&report)
    };
    narrow.fold(&mut loaded.profile, true);
    let view = View::new(&loaded.profile, filter).map_err(|found| missing(&found))?;
    Ok(of_view(&view, title, report))
}

/// The page of a view, with the report as HTML.
pub(crate) fn of_view(view: &View, title: &str, report: String) -> String {
    let (whole, stacks) = Graph::of_view(view, title);
    let (graph, numbers) = whole.pruned(0.0, MOST_FRAMES);
    let nodes: Vec<u32> =
        stacks.iter().map(|&node| numbers.get(node as usize).copied().unwrap_or(0)).collect();
    html(&Page {
        title,
        report,
        graph: Some(&graph),
        timeline: of_samples(view, &nodes),
        ..Page::default()
    })
}

/// The page of a benchmark.
pub(crate) fn of_bench(timings: &Timings, title: &str) -> String {
    let comparisons = compare(timings, SEED);
    let report = BenchReport { timings, comparisons: &comparisons, top: None };
    html(&Page {
        title,
        report: bench::html(&report),
        is_read_first: true,
        distributions: distributions(timings),
        ..Page::default()
    })
}

/// The distributions of call times, per case and side.
pub(crate) fn distributions(timings: &Timings) -> Vec<Distribution> {
    let case = |case: &laggard_core::model::timings::Case| Distribution {
        title: bench::label(case),
        unit: "ns",
        axis: "time per call".to_owned(),
        sides: case
            .series
            .iter()
            .enumerate()
            .map(|(side, series)| Times {
                name: timings.sides.get(side).map_or_else(String::new, |side| side.name.clone()),
                values: series.wall(),
                interval: None,
            })
            .collect(),
    };
    timings.cases.iter().map(case).collect()
}
