//! The report about one record of calls.

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

/// What a report about calls is made of.
#[derive(Clone, Copy, Debug)]
pub struct CallsReport<'a> {
    /// The file, as the user named it.
    pub path: &'a str,
    /// The calls to show.
    pub view: &'a View<'a>,
    /// Why these.
    pub filter: &'a Filter,
    /// What of the file could not be read, a statement each.
    pub losses: &'a [String],
    /// What to show of them.
    pub shown: &'a Shown,
    /// Rows a table shows; None is all.
    pub top: Option<usize>,
    /// Whether to name everything that was left alone.
    pub is_verbose: bool,
}

/// What to show of calls.
#[derive(Clone, Debug)]
pub enum Shown {
    /// Everything: what the run was, these tables, lines of Python and the values of arguments.
    Whole(Vec<Totals>, PythonLines, Vec<Arguments>),
    /// One table.
    Table(Totals),
    /// Who calls a function: places, exactly, and lines of Python, as far as kept stacks tell.
    Callers(String, Totals, PythonLines),
    /// What a function calls.
    Callees(String, Totals),
    /// Callers with what they call.
    Tree(Vec<TreeRow>),
    /// Lines of Python.
    PythonLines(PythonLines),
    /// Values of arguments.
    Arguments(Vec<Arguments>),
    /// How long calls of a function took.
    Histogram(String, Tally),
}

/// The report for a terminal.
pub fn text(report: &CallsReport, style: &Style) -> String {
    document(report).text(style)
}

/// The same sections in Markdown.
pub fn markdown(report: &CallsReport) -> String {
    document(report).markdown()
}

/// The same as sections of a page.
pub fn html(report: &CallsReport) -> String {
    document(report).html()
}

/// JSON of the schema `laggard.calls/1`.
pub fn json(report: &CallsReport) -> String {
    json::json(report)
}

/// One table as CSV: the one asked for, else that of functions.
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
            let title = format!("Calls by callers of {function}");
            tables::table(&title, table, report, &mut document);
            if !lines.rows.is_empty() {
                let title = format!("Calls of {function} by Python line");
                python::table(&title, lines, report, &mut document);
            }
        }
        Shown::PythonLines(lines) => {
            python::table("Calls by Python line", lines, report, &mut document);
        }
        Shown::Callees(function, table) => {
            let title = format!("Calls by what {function} calls");
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

/// `83.0 ms in 1,200 calls`: what shares are of.
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
