//! The report of several ranks of one job.

mod json;
mod straggler;
#[cfg(test)]
mod tests;

use crate::document::Document;
use crate::escape;
use crate::number::{Quantity, count, duration, percent, plural, share};
use crate::rows::{kept, more, time_unit};
use crate::table::{Column, Style, Table};
use laggard_core::trace::ranks::{RankRow, Ranks};
use std::path::Path;

/// Maximum width of a file name inside a line, in columns.
const LONGEST_NAME: usize = 60;

/// Input of the report of several ranks.
#[derive(Clone, Copy, Debug)]
pub struct RanksReport<'a> {
    /// The ranks to compare.
    pub ranks: &'a Ranks,
    /// Maximum rows per table; `None` shows all.
    pub top: Option<usize>,
}

/// Formats the report as text for a terminal.
pub fn text(report: &RanksReport, style: &Style) -> String {
    document(report).text(style)
}

/// Formats the report as Markdown.
pub fn markdown(report: &RanksReport) -> String {
    document(report).markdown()
}

/// Formats the report as sections of an HTML page.
pub fn html(report: &RanksReport) -> String {
    document(report).html()
}

/// Formats the report as JSON, schema `laggard.report.ranks/1`.
pub fn json(report: &RanksReport) -> String {
    json::json(report)
}

/// Formats the report as CSV with one row per rank; unknown values are empty.
pub fn csv(report: &RanksReport) -> String {
    let columns = [
        "rank",
        "file",
        "kernels",
        "span_ns",
        "busy_ns",
        "compute_ns",
        "exposed_communication_ns",
        "idle_ns",
        "host_bound_ns",
        "steps",
        "step_median_ns",
        "last_in",
        "matched",
    ];
    let mut table = Table::new(columns.map(Column::text));
    for row in kept(&report.ranks.rows, report.top) {
        table.push([
            row.rank.map_or_else(String::new, |rank| rank.to_string()),
            row.path.clone(),
            row.kernels.to_string(),
            row.span_ns.to_string(),
            row.busy_ns.to_string(),
            row.compute_ns.to_string(),
            row.exposed_communication_ns.to_string(),
            row.idle_ns.to_string(),
            row.host_bound_ns.to_string(),
            row.step_ns.map_or_else(String::new, |step| step.n.to_string()),
            row.step_ns.map_or_else(String::new, |step| step.median.to_string()),
            row.last_in.to_string(),
            row.matched.to_string(),
        ]);
    }
    table.csv()
}

fn document(report: &RanksReport) -> Document {
    let RanksReport { ranks, top } = *report;
    let mut document = Document::default();
    document.heading("Ranks");
    if ranks.rows.is_empty() {
        document.line("no ranks");
        return document;
    }
    side_by_side(&ranks.rows, top, &mut document);
    steps(&ranks.rows, top, &mut document);
    if ranks.rows.len() > 1 {
        document.heading("Stragglers");
        for line in straggler::in_words(&ranks.rows) {
            document.line(line);
        }
        if let Some(line) = by_compute(&ranks.rows) {
            document.line(line);
        }
    }
    skew(ranks, top, &mut document);
    document
}

fn side_by_side(rows: &[RankRow], top: Option<usize>, document: &mut Document) {
    let shown = kept(rows, top);
    let unit = time_unit(shown, &[|row| row.span_ns, |row| row.compute_ns]);
    let step = time_unit(shown, &[|row| row.step_ns.map_or(0, |step| step.median)]);
    let mut table = Table::new([
        Column::number("rank", ""),
        Column::text("file"),
        Column::number("span", unit.name),
        Column::number("busy", "%"),
        Column::number("compute", unit.name),
        Column::number("exposed", unit.name),
        Column::number("idle", unit.name),
        Column::number("host-bound", unit.name),
        Column::number("step", step.name),
        Column::number("last in", "n"),
        Column::number("matched", "n"),
    ]);
    for row in shown {
        let time = |ns: i64| unit.number(ns as f64);
        let if_matched = |n: u64| if row.matched > 0 { count(n) } else { String::new() };
        table.push([
            row.rank.map_or_else(String::new, |rank| rank.to_string()),
            file_name(&row.path),
            time(row.span_ns),
            percent(share(row.busy_ns as f64, row.span_ns as f64)),
            time(row.compute_ns),
            time(row.exposed_communication_ns),
            time(row.idle_ns),
            time(row.host_bound_ns),
            row.step_ns.map_or_else(String::new, |spread| step.number(spread.median as f64)),
            if_matched(row.last_in),
            if_matched(row.matched),
        ]);
    }
    document.table(table);
    more(rows, top, document);
    let mut remark = "exposed: communication not overlapped by compute".to_owned();
    if rows.iter().any(|row| row.step_ns.is_some()) {
        remark += "; step: median";
    }
    if rows.iter().any(|row| row.matched > 0) {
        remark += "; matched: collectives matched across ranks; last in: those in which this rank \
                   arrived last";
    }
    document.minor(remark);
}

/// Adds the distribution of step durations per rank.
fn steps(rows: &[RankRow], top: Option<usize>, document: &mut Document) {
    let with_steps: Vec<&RankRow> = rows.iter().filter(|row| row.step_ns.is_some()).collect();
    if with_steps.is_empty() {
        return;
    }
    document.heading("Steps");
    let median = |row: &&RankRow| row.step_ns.map_or(0, |step| step.median);
    let unit = time_unit(&with_steps, &[median, |row| row.step_ns.map_or(0, |step| step.max)]);
    let mut table = Table::new([
        Column::number("rank", ""),
        Column::text("file"),
        Column::number("median", unit.name),
        Column::range("p25–p75", unit.name),
        Column::range("min…max", unit.name),
        Column::number("steps", "n"),
    ]);
    let ranks_known = with_steps.iter().all(|row| row.rank.is_some());
    for row in kept(&with_steps, top) {
        let Some(step) = row.step_ns else { continue };
        table.push([
            row.rank.map_or_else(String::new, |rank| rank.to_string()),
            if ranks_known { String::new() } else { file_name(&row.path) },
            unit.number(step.median as f64),
            unit.range(step.p25 as f64, "–", step.p75 as f64),
            unit.range(step.min as f64, "…", step.max as f64),
            count(step.n),
        ]);
    }
    document.table(table);
    more(&with_steps, top, document);
}

/// Compares the ranks with the most and the least compute time.
fn by_compute(rows: &[RankRow]) -> Option<String> {
    let busy = || rows.iter().filter(|row| row.compute_ns > 0);
    let slowest = busy().max_by_key(|row| row.compute_ns)?;
    let fastest = busy().min_by_key(|row| row.compute_ns)?;
    if slowest.compute_ns == fastest.compute_ns {
        return Some(format!(
            "all ranks have the same compute time, {}",
            duration(slowest.compute_ns)
        ));
    }
    Some(format!(
        "{} has the longest compute time, {} in {}: {:.2}x that of {}, the shortest ({} in {})",
        name(slowest),
        duration(slowest.compute_ns),
        plural(slowest.kernels, "kernel"),
        slowest.compute_ns as f64 / fastest.compute_ns as f64,
        name(fastest),
        duration(fastest.compute_ns),
        plural(fastest.kernels, "kernel")
    ))
}

fn skew(ranks: &Ranks, top: Option<usize>, document: &mut Document) {
    let rows = kept(&ranks.collectives, top);
    if rows.is_empty() {
        return;
    }
    document.heading("Start skew of collectives");
    let values = rows.iter().flat_map(|row| {
        [row.start_skew_ns.median, row.start_skew_ns.p75, row.wait_ns.median, row.wait_ns.p75]
    });
    let unit = Quantity::Time.unit(values.map(|ns| ns as f64));
    let mut table = Table::new([
        Column::text("operation"),
        Column::number("count", "n"),
        Column::number("skew", unit.name),
        Column::range("p25–p75", unit.name),
        Column::number("wait", unit.name),
        Column::range("p25–p75", unit.name),
        Column::text("most often last"),
        Column::number("times", "n"),
    ]);
    for row in rows {
        let (straggler, times) = row.straggler;
        let quartiles = |low: i64, high: i64| unit.range(low as f64, "–", high as f64);
        table.push([
            row.operation.clone(),
            count(row.count),
            unit.number(row.start_skew_ns.median as f64),
            quartiles(row.start_skew_ns.p25, row.start_skew_ns.p75),
            unit.number(row.wait_ns.median as f64),
            quartiles(row.wait_ns.p25, row.wait_ns.p75),
            ranks.rows.get(straggler).map_or_else(String::new, name),
            count(times),
        ]);
    }
    document.table(table);
    more(&ranks.collectives, top, document);
    document.minor("skew: first to last start, depends on synchronized host clocks; wait: longest minus shortest duration, needs no common clock");
}

/// Name of a rank inside a sentence.
fn name(row: &RankRow) -> String {
    match row.rank {
        Some(rank) => format!("rank {rank}"),
        None => escape::fit(&file_name(&row.path), LONGEST_NAME),
    }
}

/// The last component of a path. The ranks of a job are usually in one directory.
fn file_name(path: &str) -> String {
    let name = Path::new(path).file_name().and_then(|name| name.to_str());
    name.unwrap_or(path).to_owned()
}
