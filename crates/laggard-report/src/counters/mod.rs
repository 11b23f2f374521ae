//! Report of performance counters: totals, derived metrics and details.

mod csv;
mod json;
#[cfg(test)]
pub(crate) mod tests;

pub use csv::csv;
pub(crate) use csv::number;
pub use json::json;
pub(crate) use json::{FigureShape, word_of};

use crate::document::Document;
use crate::number::{NO_VALUE, percent, plural, significant};
use crate::rows::{kept, more};
use crate::table::{Column, Style, Table};
use laggard_core::counters::{Derived, Figure, Rate, derive, rates, totals};
use laggard_core::model::counters::{Counter, Counters, Seconds};

/// Input of the report.
#[derive(Clone, Copy, Debug)]
pub struct CountersReport<'a> {
    /// The counters.
    pub counters: &'a Counters,
    /// Maximum number of rows in a table; `None` for all.
    pub top: Option<usize>,
}

/// The report as terminal text.
pub fn text(report: &CountersReport, style: &Style) -> String {
    document(report).text(style)
}

/// The report as Markdown.
pub fn markdown(report: &CountersReport) -> String {
    document(report).markdown()
}

/// The report as HTML sections.
pub fn html(report: &CountersReport) -> String {
    document(report).html()
}

fn document(report: &CountersReport) -> Document {
    let counters = report.counters;
    let totals = totals(counters);
    let derived = derive(counters, &totals);
    let mut document = Document::default();
    document.lead(lead(&totals, &derived));
    document.heading("Counters");
    sums(report, &totals, &mut document);
    document.heading("Derived metrics");
    figures(&derived, &mut document);
    parts(report, &mut document);
    single(report, &mut document);
    about(counters, &mut document);
    for warning in &counters.warnings {
        document.notice(format!("warning: {warning}"));
    }
    document
}

/// The main result in one line.
fn lead(totals: &[Counter], derived: &[Derived]) -> String {
    let known = derived.iter().filter_map(|of| Some(format!("{} {}", label(of), shown(of)?)));
    let known: Vec<String> = known.take(3).collect();
    if !known.is_empty() {
        return known.join(", ");
    }
    let counted = totals.iter().filter(|row| row.value().is_some()).count();
    format!("{} of {} counted", counted, plural(totals.len() as u64, "event"))
}

fn sums(report: &CountersReport, totals: &[Counter], document: &mut Document) {
    let rates = rates(report.counters, totals);
    let is_of_cpu = rates.iter().flatten().any(|rate| rate.of_cpu);
    let per = if is_of_cpu { "per CPU second" } else { "per second" };
    let mut table = Table::new([
        Column::text("event"),
        Column::number("value", ""),
        Column::text("unit"),
        Column::range(per, ""),
        Column::number("counted", "% of time"),
        Column::range("std. error", "±%"),
        Column::text("remark"),
    ]);
    for (row, rate) in kept(totals, report.top).iter().zip(&rates) {
        table.push([
            row.label(),
            value(row),
            row.unit.clone(),
            rate.map_or_else(String::new, per_second),
            row.counted.filter(|_| row.value().is_some()).map_or_else(String::new, percent),
            row.spread.map_or_else(String::new, spread),
            if row.value().is_some() { String::new() } else { row.reading.word().to_owned() },
        ]);
    }
    document.table(table);
    more(totals, report.top, document);
    if totals.iter().any(|row| row.value().is_some() && row.counted.is_some_and(|of| of < 0.995)) {
        document.minor("perf scales events that were counted for only part of the time");
    }
    if totals.iter().any(|row| row.spread.is_some()) {
        document.minor("std. error: standard error of the mean over runs");
    }
}

fn figures(derived: &[Derived], document: &mut Document) {
    let mut table = Table::new([
        Column::text("metric"),
        Column::range("value", ""),
        Column::range("std. error", "±%"),
        Column::text("remark"),
    ]);
    for of in derived.iter().filter(|of| of.value.is_some()) {
        let remark = if of.is_whole { "" } else { "events counted at different times" };
        let spread = of.spread.map_or_else(String::new, spread);
        table.push([
            label(of).to_owned(),
            shown(of).unwrap_or_default(),
            spread,
            remark.to_owned(),
        ]);
    }
    if !table.is_empty() {
        document.table(table);
    }
    for of in derived.iter().filter(|of| of.value.is_none()) {
        document.minor(format!("{}: not available, requires {}", label(of), of.missing.join(", ")));
    }
}

/// Counters by core type of a hybrid CPU.
fn parts(report: &CountersReport, document: &mut Document) {
    let parts = report.counters.rows.iter().flat_map(|row| &row.parts);
    let rows: Vec<&Counter> = parts.collect();
    if rows.is_empty() {
        return;
    }
    document.heading("By core type");
    let mut table = Table::new([
        Column::text("event"),
        Column::text("core"),
        Column::number("value", ""),
        Column::number("counted", "% of time"),
        Column::text("remark"),
    ]);
    for row in kept(&rows, report.top) {
        table.push([
            row.label(),
            row.pmu.clone(),
            value(row),
            row.counted.map_or_else(String::new, percent),
            if row.value().is_some() { String::new() } else { row.reading.word().to_owned() },
        ]);
    }
    document.table(table);
    more(&rows, report.top, document);
}

/// Counters by CPU, thread and interval, if the file has them.
fn single(report: &CountersReport, document: &mut Document) {
    let is_single = |row: &&Counter| !row.of.is_empty() || row.time_ns.is_some();
    let rows: Vec<&Counter> = report.counters.rows.iter().filter(is_single).collect();
    if rows.is_empty() {
        return;
    }
    document.heading("By CPU, thread and interval");
    let mut table = Table::new([
        Column::number("end", "s"),
        Column::text("CPU or thread"),
        Column::text("event"),
        Column::number("value", ""),
        Column::text("unit"),
        Column::text("remark"),
    ]);
    for row in kept(&rows, report.top) {
        table.push([
            row.time_ns.map_or_else(String::new, |ns| format!("{:.3}", ns as f64 / 1e9)),
            row.of.clone(),
            row.label(),
            value(row),
            row.unit.clone(),
            if row.value().is_some() { String::new() } else { row.reading.word().to_owned() },
        ]);
    }
    document.table(table);
    more(&rows, report.top, document);
}

fn about(counters: &Counters, document: &mut Document) {
    document.heading("Measurement");
    let seconds = |value: Option<f64>| value.map_or_else(String::new, |s| format!("{s:.6} s"));
    document.facts([
        ("tool", counters.tool.clone()),
        ("date", counters.started.clone()),
        ("command", counters.command.clone()),
        ("runs", counters.runs.map_or_else(String::new, |runs| runs.to_string())),
        ("wall time", counters.elapsed.map_or_else(String::new, wall)),
        ("user time", seconds(counters.user_s)),
        ("system time", seconds(counters.system_s)),
    ]);
}

fn wall(of: Seconds) -> String {
    let spread = of.spread.map_or_else(String::new, |of| format!(" ±{} %", spread(of)));
    format!("{:.6} s{spread}", of.value)
}

/// A value in its unit. Counts are printed exactly.
pub(crate) fn value(row: &Counter) -> String {
    row.value().map_or_else(String::new, |value| figure(value, &row.unit))
}

/// A number in a unit.
pub(crate) fn figure(value: f64, unit: &str) -> String {
    let is_count = unit.is_empty() && value.fract() == 0.0 && value.abs() < 1e18;
    if is_count && value >= 0.0 { crate::number::count(value as u64) } else { significant(value) }
}

/// Label of a derived metric in text. JSON and CSV use [`Derived::name`].
pub(crate) fn label(of: &Derived) -> &'static str {
    match of.name {
        "processors used" => "CPUs utilized",
        name => name,
    }
}

/// A derived value with its unit; `None` if it has no value.
pub(crate) fn shown(of: &Derived) -> Option<String> {
    of.value.map(|value| figure_of(of.figure, value))
}

/// A value of this kind with its unit.
pub(crate) fn figure_of(figure: Figure, value: f64) -> String {
    match figure {
        Figure::Ratio => significant(value),
        Figure::Share => format!("{} %", percent(value)),
        Figure::PerSecond => scaled(value) + "Hz",
    }
}

fn per_second(rate: Rate) -> String {
    scaled(rate.per_second).trim_end().to_owned()
}

/// `85.4 k`, `3.21 G`; always contains the space before a unit.
fn scaled(value: f64) -> String {
    const STEPS: [(f64, &str); 5] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, "")];
    if !value.is_finite() {
        return NO_VALUE.to_owned();
    }
    let step = STEPS.into_iter().find(|(size, _)| value >= 0.9995 * size).unwrap_or((0.0, ""));
    format!("{} {}", significant(value / step.0.max(1.0)), step.1)
}

/// A standard error in percent, with two decimals as in perf.
pub(crate) fn spread(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}
