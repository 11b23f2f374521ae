//! The report of one trace.
//!
//! Text, Markdown and HTML have the same sections. One function of this folder builds each section
//! and adds it to the document if it has rows. The `json` folder writes JSON.

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

/// Share of unclassified device time above which the report warns.
const UNCLASSIFIED_THAT_MATTERS: f64 = 0.2;

/// Input of the report of one trace.
#[derive(Clone, Copy, Debug)]
pub struct TraceReport<'a> {
    /// Path as the user typed it.
    pub path: &'a str,
    /// Summary of the trace.
    pub summary: &'a Summary,
    /// If set, only this table is shown.
    pub breakdown: Option<&'a Breakdown>,
    /// Label of the selected phase.
    pub phase: Option<&'a str>,
    /// Unclassified kernels; if set, only this table is shown.
    pub unclassified: Option<&'a Breakdown>,
    /// Device time by operator and Python stack; if set, only these stacks are shown.
    pub stacks: Option<&'a [Stack]>,
    /// Maximum rows per table; `None` shows all.
    pub top: Option<usize>,
}

/// Formats the report as text for a terminal.
pub fn text(report: &TraceReport, style: &Style) -> String {
    document(report).text(style)
}

/// Formats the report as Markdown.
pub fn markdown(report: &TraceReport) -> String {
    document(report).markdown()
}

/// Formats the report as sections of an HTML page.
pub fn html(report: &TraceReport) -> String {
    document(report).html()
}

/// Formats the report as JSON, schema `laggard.report.trace/1`.
pub fn json(report: &TraceReport) -> String {
    json::json(report)
}

/// Formats one table as CSV: the selected one, or device time by class.
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
            breakdown::table(table, report.top, "Unclassified kernels", &mut document);
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
            "warning: {} % of device time is in unclassified kernels (--unclassified lists them)",
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
