//! Report of the FFI suite: time per call of every binding, ranking, cost of frame pointers,
//! profiling overhead, and the array size from which call overhead is negligible.
//!
//! Input is the evidence of a run and the figures that [`laggard_core::ffi::figures`] computes
//! from it.

mod charts;
mod csv;
mod json;
mod tables;
#[cfg(test)]
mod tests;

pub use csv::csv;
pub use json::json;

use crate::document::Document;
use crate::escape;
use crate::number::{moment, percent, plural};
use crate::page::{self, Page};
use crate::profile::about::{LONGEST_COMMAND, command};
use crate::table::Style;
use laggard_core::ffi::{Figure, Figures};
use laggard_core::model::ffi::{Build, Cell, Ffi, Library, Skipped, Who};

/// Input of the report.
#[derive(Clone, Copy, Debug)]
pub struct FfiReport<'a> {
    /// The evidence.
    pub ffi: &'a Ffi,
    /// The figures computed from it.
    pub figures: &'a Figures,
    /// Whether to show every row.
    pub is_whole: bool,
}

/// For a terminal.
pub fn text(report: &FfiReport, style: &Style) -> String {
    document(report).text(style)
}

/// The report as Markdown, with every row.
pub fn markdown(report: &FfiReport) -> String {
    document(&FfiReport { is_whole: true, ..*report }).markdown()
}

/// Sections of an HTML page, with charts.
pub fn html(report: &FfiReport) -> String {
    let whole = FfiReport { is_whole: true, ..*report };
    let mut document = Document::default();
    sections(&whole, &mut document);
    charts::html(&whole) + &document.html()
}

/// A whole HTML page, with charts.
pub fn page(report: &FfiReport) -> String {
    page::html(&Page {
        title: "Cost of calls from Python",
        lead: &lead(report),
        report: html(report),
        is_read_first: true,
        ..Page::default()
    })
}

/// Build commands and built libraries, for a terminal.
pub fn build_text(commands: &[String], libraries: &[Library]) -> String {
    let line = |line: String| format!("  {}\n", escape::visible(&line));
    let commands = commands.iter().map(|command| line(format!("$ {command}")));
    let libraries = libraries.iter().map(|library| line(looked_at(library)));
    commands.chain(libraries).collect()
}

fn document(report: &FfiReport) -> Document {
    let mut document = Document::default();
    document.lead(lead(report));
    sections(report, &mut document);
    document
}

/// Everything except the lead, which an HTML page shows in its header.
fn sections(report: &FfiReport, document: &mut Document) {
    tables::standings(report, document);
    tables::times(report, document);
    tables::details(report, document);
    tables::pythons(report, document);
    tables::controls(report, document);
    tables::differences(report, document);
    tables::crossed(report, document);
    tables::overheads(report, document);
    tables::notes(report, document);
    skipped(report.ffi, document);
    builds(report, document);
    about(report.ffi, document);
    for warning in &report.ffi.warnings {
        document.notice(format!("warning: {warning}"));
    }
}

/// The one-line summary.
fn lead(report: &FfiReport) -> String {
    let FfiReport { ffi, figures, .. } = report;
    if let Some(own) = (0..ffi.bindings.len()).find(|at| ffi.bindings[*at].is_users) {
        let cell = of(report, |cell| cell.who == Who::Binding(own)).next();
        let Some((_, Figure { net: Some(net), ratio: Some(ratio), .. })) = cell else {
            return "nothing was measured".to_owned();
        };
        return format!(
            "{} takes {} per call, {}x the floor{}",
            ffi.bindings[own].name,
            tables::time(net.middle),
            tables::ratio(ratio.middle),
            ratio
                .range
                .map_or_else(String::new, |range| format!(" (95 % CI {})", tables::range(range)))
        );
    }
    let Some(floor) = figures.floor else { return "nothing was measured".to_owned() };
    let others = figures.standings.iter().filter(|standing| {
        (standing.python, standing.profile) == (0, 0) && standing.binding != floor
    });
    let others: Vec<String> = others
        .map(|of| format!("{} {}x", ffi.bindings[of.binding].name, tables::ratio(of.ratio)))
        .collect();
    let floor_name = &ffi.bindings[floor].name;
    let mut words = String::new();
    let first =
        of(report, |cell| cell.who == Who::Binding(floor) && (cell.python, cell.profile) == (0, 0));
    if let Some((cell, Figure { net: Some(net), .. })) = first.into_iter().next() {
        let category = &ffi.categories[cell.category].name;
        words = format!("{category} through {floor_name}: {}", tables::time(net.middle));
    }
    if !others.is_empty() {
        words += &format!("; relative to it over all categories: {}", others.join(", "));
    }
    words
}

/// The cells that match, with their figures.
fn of<'a>(
    report: &FfiReport<'a>,
    is_wanted: impl Fn(&Cell) -> bool,
) -> impl Iterator<Item = (&'a Cell, &'a Figure)> {
    let cells = report.ffi.cells.iter().zip(&report.figures.cells);
    cells.filter(move |(cell, _)| is_wanted(cell))
}

/// Display name of a caller.
fn name_of(ffi: &Ffi, who: Who) -> &str {
    match who {
        Who::Loop => "(the loop)",
        Who::Null => "(null control)",
        Who::C => "(C to C)",
        Who::Binding(at) => ffi.bindings.get(at).map_or("?", |binding| &binding.name),
    }
}

fn skipped(ffi: &Ffi, document: &mut Document) {
    if ffi.skipped.is_empty() {
        return;
    }
    document.heading("Skipped");
    for Skipped { binding, python, profile, why, hint } in &ffi.skipped {
        let mut place = vec![];
        if ffi.pythons.len() > 1 {
            place.push(ffi.pythons[*python].name.clone());
        }
        place.extend(profile.map(|profile| ffi.profiles[profile].name.clone()));
        let place =
            if place.is_empty() { String::new() } else { format!(" ({})", place.join(", ")) };
        document.line(format!("{binding}{place}: {why}"));
        if !hint.is_empty() {
            document.minor(format!("  hint: {hint}"));
        }
    }
}

/// Compiler flags, commands and libraries of all builds.
fn builds(report: &FfiReport, document: &mut Document) {
    let ffi = report.ffi;
    if ffi.builds.is_empty() {
        return;
    }
    document.heading("Builds");
    for profile in &ffi.profiles {
        document.line(format!("{}: C and C++ flags {}", profile.name, profile.c_flags));
        document.minor(format!("  Rust flags {}", profile.rust_flags));
    }
    let mut lines = vec![];
    for build in &ffi.builds {
        lines.push(built(ffi, build));
        lines.extend(build.commands.iter().map(|command| format!("  $ {command}")));
        lines.extend(build.libraries.iter().map(|library| format!("  {}", looked_at(library))));
    }
    document.verbatim(lines);
}

fn built(ffi: &Ffi, build: &Build) -> String {
    let version =
        if build.version.is_empty() { String::new() } else { format!(" {}", build.version) };
    format!(
        "{}{version}, {}, Python {}{}",
        ffi.bindings[build.binding].name,
        ffi.profiles[build.profile].name,
        ffi.pythons[build.python].name,
        if build.is_cached { " (cached)" } else { "" }
    )
}

fn looked_at(library: &Library) -> String {
    let (with, of) = library.frame_setups;
    let (callers_with, callers) = library.of_callers;
    let share = percent(callers_with as f64 / callers.max(1) as f64);
    format!(
        "{}: frame pointers in {with} of {}, {callers_with} of {callers} non-leaf ones ({share} %); debug info: {}",
        library.name,
        plural(of, "function"),
        library.debug_info
    )
}

fn about(ffi: &Ffi, document: &mut Document) {
    document.heading("Measurement");
    let fact = |(name, value): &(String, String)| format!("{name}: {value}");
    let facts = |all: &[(String, String)]| all.iter().map(fact).collect::<Vec<_>>().join("; ");
    document.facts([
        ("tool", ffi.tool.clone()),
        ("date", moment(ffi.started_unix)),
        ("command", escape::fit(&command(&ffi.command), LONGEST_COMMAND)),
        ("machine", facts(&ffi.facts)),
    ]);
    for python in &ffi.pythons {
        document.facts([("Python", format!("{} ({})", facts(&python.facts), python.path))]);
    }
}
