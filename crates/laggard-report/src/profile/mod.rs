//! The report about one profile.

pub(crate) mod about;
pub(crate) mod json;
mod tables;
#[cfg(test)]
mod tests;

use crate::document::Document;
use crate::number::{Quantity, count, plural};
use crate::table::Style;
use laggard_core::model::profile::Unit;
use laggard_core::profile::{Cost, Filter, QualitySummary, Totals, Tree, View};

/// What a report about one profile is made of.
#[derive(Clone, Copy, Debug)]
pub struct ProfileReport<'a> {
    /// The file, as the user named it.
    pub path: &'a str,
    /// The samples to show.
    pub view: &'a View<'a>,
    /// Why these.
    pub filter: &'a Filter,
    /// How far they can be trusted.
    pub quality: &'a QualitySummary,
    /// What of the file could not be read, a statement each.
    pub losses: &'a [String],
    /// What to show of them.
    pub shown: &'a Shown,
    /// Rows a table shows; None is all.
    pub top: Option<usize>,
}

/// What to show of a profile.
#[derive(Clone, Debug)]
pub enum Shown {
    /// Everything: what the run was, and these tables.
    Whole(Vec<Totals>),
    /// One table.
    Table(Totals),
    /// One tree.
    Tree(ShownTree),
}

/// A tree with its heading.
#[derive(Clone, Debug)]
pub struct ShownTree {
    /// What it is.
    pub kind: TreeKind,
    /// The tree.
    pub tree: Tree,
    /// Share of the whole below which a node is left out.
    pub least: f64,
}

/// What a tree is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeKind {
    /// From the program's start inwards.
    TopDown,
    /// From a function to its callers.
    Callers(String),
    /// From a function to what it called.
    Callees(String),
    /// From the caller of a library to its innermost functions.
    Library(String),
}

/// The report for a terminal.
pub fn text(report: &ProfileReport, style: &Style) -> String {
    document(report).text(style)
}

/// The same sections in Markdown.
pub fn markdown(report: &ProfileReport) -> String {
    document(report).markdown()
}

/// The same as sections of a page.
pub fn html(report: &ProfileReport) -> String {
    document(report).html()
}

/// JSON of the schema `laggard.profile/1`.
pub fn json(report: &ProfileReport) -> String {
    json::json(report)
}

/// One table as CSV: the one asked for, else that of functions.
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

/// `83.0 ms in 83 samples of task-clock`: what shares are of.
fn whole(view: &View, cost: Cost) -> String {
    let samples = samples_of(cost.samples, view.event_name());
    match view.unit() {
        Unit::Count if cost.weight == cost.samples => samples,
        Unit::Count => format!("{} counted in {samples}", count(cost.weight)),
        unit => format!("{} in {samples}", quantity(unit).show(cost.weight as f64)),
    }
}

/// `83 samples of task-clock`; where samples are all that is counted, only how many.
pub(crate) fn samples_of(samples: u64, event: &str) -> String {
    match event {
        "samples" => plural(samples, "sample"),
        event => format!("{} of {event}", plural(samples, "sample")),
    }
}

/// What weights of a unit are shown as.
pub(crate) fn quantity(unit: Unit) -> Quantity {
    match unit {
        Unit::Count => Quantity::Instructions,
        Unit::Nanos => Quantity::Time,
        Unit::Bytes => Quantity::Bytes,
    }
}
