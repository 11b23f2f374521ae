//! How libraries are built and what their code consists of, as text, Markdown, CSV and JSON.

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

/// What a report about code is made of.
#[derive(Clone, Copy, Debug)]
pub struct CodeReport<'a> {
    /// The files.
    pub code: &'a Code,
    /// Which functions are shown, and in what order.
    pub choice: &'a Choice,
    /// What of it is shown.
    pub shown: Shown,
    /// Whether listings show the bytes of instructions.
    pub bytes: bool,
}

/// What a report shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// Facts about files, then functions.
    #[default]
    All,
    /// No functions.
    Files,
    /// Only functions.
    Functions,
}

/// The report for a terminal.
pub fn text(report: &CodeReport, style: &Style) -> String {
    document(report).text(style)
}

/// The same sections in Markdown.
pub fn markdown(report: &CodeReport) -> String {
    document(report).markdown()
}

/// One row a function, or an instruction where code was asked for, as CSV.
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
                "{name}: its functions overlap, {} bytes of them were not disassembled",
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

/// What all instructions of a file are, and those that were executed.
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
        Column::text("what"),
        Column::number("in the file", "n"),
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
        "every instruction has one class, down to all; below it is what some of them do besides",
    );
}

/// What samples saw of a whole file.
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
    document.heading(format!("Code for processors{of}"));
    let mut table = Table::new([
        Column::text("target"),
        Column::number("functions", "n"),
        Column::text("runs here"),
        Column::text("needs"),
    ]);
    for target in &file.targets {
        let here = match &target.lacks {
            None => String::new(),
            Some(lacks) if lacks.is_empty() => "yes".to_owned(),
            Some(lacks) if lacks.len() == target.needs.len() => "no".to_owned(),
            Some(lacks) => format!("no: lacks {}", lacks.join(", ")),
        };
        table.push([target.name.clone(), count(target.functions), here, target.needs.join(" ")]);
    }
    document.table(table);
    document.minor("by the names of functions; which one runs is the library's choice");
}

/// The name of a file without its directories.
fn short(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

/// The name of a function, or where it is when it has none.
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
