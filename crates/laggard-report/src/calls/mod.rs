//! Report of a call trace.

mod about;
pub(crate) mod columns;
pub(crate) mod json;
mod python;
pub(crate) mod tables;
#[cfg(test)]
mod tests;

use crate::document::Document;
use crate::number::{duration, instructions, plural};
use crate::table::Style;
use laggard_core::calls::{
    Arguments, By, Filter, Measure, PythonLines, Tally, Totals, TreeRow, View,
};

/// Input of the report.
#[derive(Clone, Copy, Debug)]
pub struct CallsReport<'a> {
    /// Path as given by the user.
    pub path: &'a str,
    /// The calls to show.
    pub view: &'a View<'a>,
    /// Filter that selected them.
    pub filter: &'a Filter,
    /// Parts of the file that could not be read, one sentence each.
    pub losses: &'a [String],
    /// Content of the report.
    pub shown: &'a Shown,
    /// Maximum number of rows in a table; `None` for all.
    pub top: Option<usize>,
    /// Whether to list all functions that were not traced.
    pub is_verbose: bool,
}

/// Content of the report.
#[derive(Clone, Debug)]
pub enum Shown {
    /// Full report with these tables, Python lines and argument values.
    Whole(Vec<Totals>, PythonLines, Vec<Arguments>),
    /// One table.
    Table(Totals),
    /// Callers of a function: exact call sites, and Python lines estimated from recorded stacks.
    Callers(String, Totals, PythonLines),
    /// Callees of a function.
    Callees(String, Totals),
    /// Call tree.
    Tree(Vec<TreeRow>),
    /// Python lines.
    PythonLines(PythonLines),
    /// Argument values.
    Arguments(Vec<Arguments>),
    /// Histogram of call durations of a function.
    Histogram(String, Tally),
}

/// The report as terminal text.
pub fn text(report: &CallsReport, style: &Style) -> String {
    document(report).text(style)
}

/// The report as Markdown.
pub fn markdown(report: &CallsReport) -> String {
    document(report).markdown()
}

/// The report as HTML sections.
pub fn html(report: &CallsReport) -> String {
    document(report).html()
}

/// JSON of schema `laggard.calls/1`.
pub fn json(report: &CallsReport) -> String {
    json::json(report)
}

/// The requested table as CSV; by default the table of functions.
pub fn csv(report: &CallsReport) -> String {
    match report.shown {
        Shown::Whole(all, ..) => {
            let functions = all.iter().find(|table| table.by == By::Function);
            functions.map_or_else(String::new, |table| tables::csv(table, report.top))
        }
        Shown::Table(table) | Shown::Callers(_, table, _) | Shown::Callees(_, table) => {
            tables::csv(table, report.top)
        }
        Shown::PythonLines(lines) => python::csv(lines, report.top),
        Shown::Tree(rows) => tables::tree_csv(rows, report.view, report.top),
        Shown::Arguments(rows) => tables::arguments_csv(rows, report.top),
        Shown::Histogram(_, tally) => tables::histogram_csv(tally),
    }
}

fn document(report: &CallsReport) -> Document {
    let mut document = Document::default();
    document.heading(report.path);
    if !matches!(report.shown, Shown::Whole(..)) {
        about::shown(report, &mut document);
    }
    match report.shown {
        Shown::Whole(all, lines, arguments) => {
            about::about(report, &mut document);
            about::quality(report, &mut document);
            for table in all {
                tables::table(tables::title(table.by), table, report, &mut document);
            }
            if !lines.rows.is_empty() {
                python::table("Calls by Python line", lines, report, &mut document);
            }
            if !arguments.is_empty() {
                tables::arguments(arguments, report, &mut document);
            }
        }
        Shown::Table(table) => {
            tables::table(tables::title(table.by), table, report, &mut document);
        }
        Shown::Callers(function, table, lines) => {
            let title = format!("Callers of {function}");
            tables::table(&title, table, report, &mut document);
            if !lines.rows.is_empty() {
                let title = format!("Calls to {function} by Python line");
                python::table(&title, lines, report, &mut document);
            }
        }
        Shown::PythonLines(lines) => {
            python::table("Calls by Python line", lines, report, &mut document);
        }
        Shown::Callees(function, table) => {
            let title = format!("Callees of {function}");
            tables::table(&title, table, report, &mut document);
        }
        Shown::Tree(rows) => tables::tree(rows, report, &mut document),
        Shown::Arguments(rows) => tables::arguments(rows, report, &mut document),
        Shown::Histogram(function, tally) => {
            tables::histogram(function, tally, report, &mut document);
        }
    }
    for loss in report.losses {
        document.notice(format!("warning: {loss}"));
    }
    document
}

/// `83.0 ms in 1,200 calls`: the base of shares.
fn whole(tally: &Tally, measure: Measure) -> String {
    let calls = plural(tally.count, "call");
    match (measure, tally.own_instructions) {
        (Measure::Time, _) => format!("{} in {calls}", time(tally.self_ns)),
        (Measure::Instructions, Some(own)) => format!("{} in {calls}", instructions(own)),
        _ => calls,
    }
}

fn time(ns: u64) -> String {
    duration(i64::try_from(ns).unwrap_or(i64::MAX))
}
