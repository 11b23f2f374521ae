//! The verdict as an HTML page: culprits, time per call, hot loops, and interactive views.

use super::{WhyReport, calls, document_of, functions, headlines, paths, remarks, verdict};
use crate::culprits;
use crate::document::Document;
use crate::escape::xml;
use crate::flame::Graph;
use crate::number::percent;
use crate::page::{self, Distribution, Page};
use crate::table::{Column, Table};
use laggard_core::culprit::{Pair, Work};
use laggard_core::model::code::Mark;

/// Additional content of the page, available if both sides were measured in this run.
#[derive(Default)]
pub struct Beyond<'a> {
    /// Flame graph of both sides, per call.
    pub graph: Option<&'a Graph>,
    /// Distributions of call times.
    pub distributions: Vec<Distribution>,
    /// Hottest loop of each side: side name and HTML rendered by this crate.
    pub loops: Vec<(String, String)>,
}

/// Maximum number of functions per side in the instruction table.
const MOST_MIXES: usize = 6;

/// The complete HTML page.
pub fn page(report: &WhyReport, beyond: Beyond) -> String {
    page::html(&Page {
        title: &verdict(report),
        report: body(report, &beyond.loops),
        graph: beyond.graph,
        distributions: beyond.distributions,
        is_read_first: true,
        ..Page::default()
    })
}

/// The verdict as HTML sections.
pub fn html(report: &WhyReport) -> String {
    format!("<h2>{}</h2>\n{}", xml(&verdict(report)), body(report, &[]))
}

fn body(report: &WhyReport, loops: &[(String, String)]) -> String {
    let mut body = String::new();
    for side in &report.timings.sides {
        body += &format!(
            "<p class=\"line\"><b>{}</b> <code>{}</code></p>\n",
            xml(&side.name),
            xml(&side.runs)
        );
    }
    for line in headlines(report) {
        body += &format!("<p class=\"line\">{}</p>\n", xml(&line));
    }
    if let Some(judgement) = report.judgement {
        body += &culprits::html(judgement, "call");
    }
    if let Some(pair) = &report.pair {
        body += &document_of(|document| {
            functions(report, pair, document);
            calls(report, pair, document);
            mixes(report, pair, document);
        });
    }
    let loops = loops.iter().filter(|(_, table)| !table.is_empty());
    for (number, (side, table)) in loops.enumerate() {
        if number == 0 {
            body += "<h2>Hottest loop of each side</h2>\n";
        }
        body += &format!("<p class=\"line\"><b>{}</b></p>\n{table}", xml(side));
    }
    if let Some(pair) = &report.pair {
        body += &document_of(|document| paths(report, pair, document));
    }
    for remark in remarks(report) {
        body += &format!("<p class=\"notice\">{}</p>\n", xml(&remark));
    }
    if !report.timings.facts.is_empty() {
        let fact = |(name, value): &(String, String)| {
            format!("<dt>{}</dt><dd>{}</dd>", xml(name), xml(value))
        };
        let facts: String = report.timings.facts.iter().map(fact).collect();
        body += &format!("<h2>Machine</h2>\n<dl class=\"facts\">{facts}</dl>\n");
    }
    body
}

/// Instruction mix of the hottest functions of each side.
fn mixes(report: &WhyReport, pair: &Pair, document: &mut Document) {
    let mut table = Table::new([
        Column::text("side"),
        Column::names("function"),
        Column::text("library"),
        Column::number("time", "% of side"),
        Column::number("vector", "%"),
        Column::number("widest", "bits"),
        Column::number("load", "%"),
        Column::number("store", "%"),
        Column::number("fma", "%"),
        Column::number("divide", "%"),
        Column::number("samples", "n"),
    ]);
    for (name, side) in [(report.name(0), pair.a), (report.name(1), pair.b)] {
        let mut work: Vec<&Work> = side.work.iter().filter(|work| work.mix.is_some()).collect();
        work.sort_by(|x, y| y.ns.total_cmp(&x.ns));
        for work in work.into_iter().take(MOST_MIXES) {
            let Some(mix) = &work.mix else { continue };
            let all = mix.instructions().max(1) as f64;
            let part = |n: u64| if n == 0 { String::new() } else { percent(n as f64 / all) };
            table.push([
                name.to_owned(),
                work.name.clone(),
                work.library.clone(),
                percent(work.ns / side.user_ns.max(1.0)),
                mix.packed_share().map_or_else(String::new, percent),
                mix.widest_vector().map_or_else(String::new, |bits| bits.to_string()),
                part(mix.with(Mark::Load)),
                part(mix.with(Mark::Store)),
                part(mix.with(Mark::Fma)),
                part(mix.with(Mark::Divide)),
                work.samples.to_string(),
            ]);
        }
    }
    if table.is_empty() {
        return;
    }
    document.heading("Instruction mix");
    document.table(table);
    document.minor("weighted by samples per basic block");
}
