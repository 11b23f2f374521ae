//! Build facts and instruction mix of libraries, as text, Markdown, CSV and JSON.

mod build;
mod choose;
mod functions;
mod hot;
mod json;
mod listing;
#[cfg(test)]
mod tests;

pub use choose::{Choice, Row, Sort, choose, glob};
pub use hot::hot_loop;
pub use json::json;

use crate::document::Document;
use crate::number::{count, percent, plural};
use crate::table::{Column, Style, Table};
use laggard_core::model::code::{Class, Code, CodeFile, Mark, Mix};

/// Input of a report about code.
#[derive(Clone, Copy, Debug)]
pub struct CodeReport<'a> {
    /// The files.
    pub code: &'a Code,
    /// Which functions to list, and in what order.
    pub choice: &'a Choice,
    /// Which sections to show.
    pub shown: Shown,
    /// Whether listings show instruction bytes.
    pub bytes: bool,
}

/// Sections of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// Files, then functions.
    #[default]
    All,
    /// Only files.
    Files,
    /// Only functions.
    Functions,
}

/// The report for a terminal.
pub fn text(report: &CodeReport, style: &Style) -> String {
    document(report).text(style)
}

/// The report as Markdown.
pub fn markdown(report: &CodeReport) -> String {
    document(report).markdown()
}

/// CSV with one row per function, or one row per instruction if there are listings.
pub fn csv(report: &CodeReport) -> String {
    match report.code.listings.is_empty() {
        true => functions::csv(report),
        false => listing::csv(report),
    }
}

fn document(report: &CodeReport) -> Document {
    let mut document = Document::default();
    let code = report.code;
    if !code.listings.is_empty() {
        for listing in &code.listings {
            listing::show(report, listing, &mut document);
        }
        return document;
    }
    if report.shown != Shown::Functions {
        match &*code.files {
            [file] => one(file, &mut document),
            files => {
                build::side_by_side(files, &mut document);
                files.iter().for_each(|file| targets(file, true, &mut document));
            }
        }
    }
    if report.shown != Shown::Files {
        functions::show(report, &mut document);
    }
    for file in &code.files {
        let name = short(&file.path);
        if !file.not_disassembled.is_empty() {
            document.notice(format!("{name}: {}", file.not_disassembled));
        }
        if file.skipped_bytes > 0 {
            document.notice(format!(
                "{name}: {} bytes of overlapping functions were not disassembled",
                count(file.skipped_bytes)
            ));
        }
    }
    document
}

fn one(file: &CodeFile, document: &mut Document) {
    build::facts(file, document);
    mix(file, document);
    targets(file, false, document);
}

/// Adds the instruction mix of a file, static and executed.
fn mix(file: &CodeFile, document: &mut Document) {
    let all = file.mix();
    if all.instructions() == 0 {
        return;
    }
    document.heading("Instructions");
    let executed = executed(file);
    let seen = executed.instructions();
    let mut table = Table::new([
        Column::text("class"),
        Column::text("description"),
        Column::number("in file", "n"),
        Column::number("", "%"),
        Column::number("executed", "%"),
    ]);
    let mut row = |word: &str, meaning: &str, here: u64, ran: u64| {
        if here == 0 {
            return;
        }
        let of = |part: u64, whole: u64| match whole {
            0 => String::new(),
            _ => percent(part as f64 / whole as f64),
        };
        table.push([
            word.to_owned(),
            meaning.to_owned(),
            count(here),
            of(here, all.instructions()),
            of(ran, seen),
        ]);
    };
    for class in Class::ALL {
        row(class.word(), class.meaning(), all.of(class), executed.of(class));
    }
    row("all", "", all.instructions(), seen);
    for mark in Mark::ALL {
        row(mark.word(), mark.meaning(), all.with(mark), executed.with(mark));
    }
    document.table(table);
    document.minor(
        "rows above \"all\" are exclusive classes; rows below count properties of instructions",
    );
}

/// Executed instructions of a whole file.
fn executed(file: &CodeFile) -> Mix {
    let mut sum = Mix::default();
    let hot = file.executed.iter().flat_map(|executed| &executed.hot);
    hot.for_each(|hot| sum.add(&hot.mix));
    sum
}

fn targets(file: &CodeFile, named: bool, document: &mut Document) {
    if file.targets.is_empty() {
        return;
    }
    let of = if named { format!(" of {}", short(&file.path)) } else { String::new() };
    document.heading(format!("CPU-specific code{of}"));
    let mut table = Table::new([
        Column::text("target"),
        Column::number("functions", "n"),
        Column::text("supported here"),
        Column::text("requires"),
    ]);
    for target in &file.targets {
        let here = match &target.lacks {
            None => String::new(),
            Some(lacks) if lacks.is_empty() => "yes".to_owned(),
            Some(lacks) if lacks.len() == target.needs.len() => "no".to_owned(),
            Some(lacks) => format!("no: {} missing", lacks.join(", ")),
        };
        table.push([target.name.clone(), count(target.functions), here, target.needs.join(" ")]);
    }
    document.table(table);
    document.minor("detected from function names; the library selects a variant at run time");
}

/// File name without directories.
fn short(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

/// Name of a function, or its address if it has no name.
fn function_name(code: &Code, name: u32, address: u64) -> String {
    match code.texts.get(name) {
        "" => format!("{address:#x}"),
        name => name.to_owned(),
    }
}

/// `75.0 % of 4 functions`.
fn part_of(part: u64, whole: u64, word: &str) -> String {
    let share = percent(crate::number::share(part as f64, whole as f64));
    format!("{share} % of {}", plural(whole, word))
}
