//! Report of a profile.

pub(crate) mod about;
pub(crate) mod json;
mod tables;
#[cfg(test)]
mod tests;

pub use about::unsampled;

use crate::document::Document;
use crate::number::{Quantity, count, plural};
use crate::table::Style;
use laggard_core::model::profile::Unit;
use laggard_core::profile::{Cost, Filter, QualitySummary, Totals, Tree, View};

/// Input of the report.
#[derive(Clone, Copy, Debug)]
pub struct ProfileReport<'a> {
    /// Path as given by the user.
    pub path: &'a str,
    /// The samples to show.
    pub view: &'a View<'a>,
    /// Filter that selected them.
    pub filter: &'a Filter,
    /// Quality of the recording.
    pub quality: &'a QualitySummary,
    /// Parts of the file that could not be read, one sentence each.
    pub losses: &'a [String],
    /// Content of the report.
    pub shown: &'a Shown,
    /// Maximum number of rows in a table; `None` for all.
    pub top: Option<usize>,
}

/// Content of the report.
#[derive(Clone, Debug)]
pub enum Shown {
    /// Full report with these tables.
    Whole(Vec<Totals>),
    /// One table.
    Table(Totals),
    /// One tree.
    Tree(ShownTree),
}

/// A tree with its heading.
#[derive(Clone, Debug)]
pub struct ShownTree {
    /// Kind of tree.
    pub kind: TreeKind,
    /// The tree.
    pub tree: Tree,
    /// Nodes below this share of the whole are hidden.
    pub least: f64,
}

/// Kind of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeKind {
    /// From the program's entry point to the innermost functions.
    TopDown,
    /// From a function to its callers.
    Callers(String),
    /// From a function to its callees.
    Callees(String),
    /// From the caller of a library to its innermost functions.
    Library(String),
}

/// The report as terminal text.
pub fn text(report: &ProfileReport, style: &Style) -> String {
    document(report).text(style)
}

/// The report as Markdown.
pub fn markdown(report: &ProfileReport) -> String {
    document(report).markdown()
}

/// The report as HTML sections.
pub fn html(report: &ProfileReport) -> String {
    document(report).html()
}

/// JSON of schema `laggard.profile/1`.
pub fn json(report: &ProfileReport) -> String {
    json::json(report)
}

/// The requested table as CSV; by default the table of functions.
pub fn csv(report: &ProfileReport) -> String {
    match report.shown {
        Shown::Whole(all) => tables::csv(
            all.iter().find(|table| table.by == laggard_core::profile::By::Function),
            report.top,
        ),
        Shown::Table(table) => tables::csv(Some(table), report.top),
        Shown::Tree(tree) => tables::tree_csv(tree, report.top),
    }
}

fn document(report: &ProfileReport) -> Document {
    let mut document = Document::default();
    document.heading(report.path);
    match report.shown {
        Shown::Whole(all) => {
            about::about(report, &mut document);
            about::quality(report, &mut document);
            for table in all {
                tables::table(table, report, &mut document);
            }
        }
        Shown::Table(table) => {
            about::shown(report, &mut document);
            tables::table(table, report, &mut document);
        }
        Shown::Tree(tree) => {
            about::shown(report, &mut document);
            tables::tree(tree, report, &mut document);
        }
    }
    if report.view.whole.samples == 0 {
        document.line("no samples");
    }
    for loss in report.losses {
        document.notice(format!("warning: {loss}"));
    }
    document
}

/// `83.0 ms in 83 samples of task-clock`: the base of shares.
fn whole(view: &View, cost: Cost) -> String {
    let samples = samples_of(cost.samples, view.event_name());
    match view.unit() {
        Unit::Count if cost.weight == cost.samples => samples,
        Unit::Count => format!("{} counted in {samples}", count(cost.weight)),
        unit => format!("{} in {samples}", quantity(unit).show(cost.weight as f64)),
    }
}

/// `83 samples of task-clock`, or `83 samples` if the event is `samples`.
pub(crate) fn samples_of(samples: u64, event: &str) -> String {
    match event {
        "samples" => plural(samples, "sample"),
        event => format!("{} of {event}", plural(samples, "sample")),
    }
}

/// Quantity for formatting weights of a unit.
pub(crate) fn quantity(unit: Unit) -> Quantity {
    match unit {
        Unit::Count => Quantity::Instructions,
        Unit::Nanos => Quantity::Time,
        Unit::Bytes => Quantity::Bytes,
    }
}
