//! The report about one trace.
//!
//! Text and Markdown have the same sections, each in one function of this folder that adds to a
//! document only when it has something to say. JSON is the `json` folder's.

pub(crate) mod about;
pub(crate) mod breakdown;
mod device;
mod host;
mod json;
#[cfg(test)]
mod tests;
mod throughput;

use crate::document::Document;
use crate::number;
use crate::table::Style;
use laggard_core::trace::summary::{Breakdown, Summary};
use laggard_core::trace::{By, Stack};

/// Share of device time without a class from which on the report warns.
const UNCLASSIFIED_THAT_MATTERS: f64 = 0.2;

/// What a report about one trace is made of.
#[derive(Clone, Copy, Debug)]
pub struct TraceReport<'a> {
    /// The file, as the user named it.
    pub path: &'a str,
    /// What the trace says.
    pub summary: &'a Summary,
    /// Only this table, instead of the whole report.
    pub breakdown: Option<&'a Breakdown>,
    /// Label of the phase the report is narrowed to.
    pub phase: Option<&'a str>,
    /// Kernels no rule caught; shown instead of the whole report.
    pub unclassified: Option<&'a Breakdown>,
    /// Device time by operator with its Python stacks; shown instead of the whole report.
    pub stacks: Option<&'a [Stack]>,
    /// Rows a table shows; None is all.
    pub top: Option<usize>,
}

/// The report for a terminal.
pub fn text(report: &TraceReport, style: &Style) -> String {
    document(report).text(style)
}

/// The same sections in Markdown.
pub fn markdown(report: &TraceReport) -> String {
    document(report).markdown()
}

/// The same as sections of a page.
pub fn html(report: &TraceReport) -> String {
    document(report).html()
}

/// JSON of the schema `laggard.report.trace/1`.
pub fn json(report: &TraceReport) -> String {
    json::json(report)
}

/// One table as CSV: the one asked for, else device time by class.
pub fn csv(report: &TraceReport) -> String {
    if let Some(stacks) = report.stacks {
        return breakdown::stacks_csv(stacks, report.top);
    }
    let by_class = || report.summary.breakdowns.iter().find(|table| table.by == By::Class);
    breakdown::csv(report.breakdown.or(report.unclassified).or_else(by_class), report.top)
}

fn document(report: &TraceReport) -> Document {
    let mut document = Document::default();
    if report.breakdown.is_some() || report.unclassified.is_some() || report.stacks.is_some() {
        document.heading(narrowed(report));
        if let Some(table) = report.breakdown {
            breakdown::table(table, report.top, breakdown::title(table.by), &mut document);
        }
        if let Some(table) = report.unclassified {
            breakdown::table(table, report.top, "Kernels no rule caught", &mut document);
        }
        if let Some(stacks) = report.stacks {
            breakdown::stacks(stacks, report.top, &mut document);
        }
    } else {
        whole(report, &mut document);
    }
    document
}

fn whole(report: &TraceReport, document: &mut Document) {
    let TraceReport { summary, top, .. } = *report;
    document.heading(narrowed(report));
    about::about(summary, document);
    about::losses(&summary.losses, document);
    about::totals(&summary.totals, report.phase, document);
    device::devices(&summary.devices, document);
    device::idle(&summary.devices, document);
    device::streams(&summary.devices, top, document);
    breakdown::all(&summary.breakdowns, top, document);
    host::launches(&summary.launches, &summary.links, document);
    throughput::copies(&summary.copies, top, document);
    throughput::work(&summary.work, summary.work_distinct, top, document);
    throughput::collectives(&summary.collectives, top, document);
    host::steps(summary.steps.as_ref(), top, document);
    host::links(&summary.links, document);
    about::peak_memory(summary.peak_memory.as_ref(), document);
    if summary.unclassified_share > UNCLASSIFIED_THAT_MATTERS {
        document.notice(format!(
            "warning: {} % of device time is in kernels no rule caught (--unclassified lists them)",
            number::percent(summary.unclassified_share)
        ));
    }
}

fn narrowed(report: &TraceReport) -> String {
    match report.phase {
        Some(phase) => format!("{}, phase {phase}", report.path),
        None => report.path.to_owned(),
    }
}
