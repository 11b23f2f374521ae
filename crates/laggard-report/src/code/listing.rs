//! The disassembly of a function.

use super::{CodeReport, function_name, short};
use crate::document::Document;
use crate::escape;
use crate::number::{count, percent, plural, share};
use crate::table::{Column, Table};
use laggard_core::model::code::{AsmLine, Listing, Loop, Mark};

/// Width of the instruction column.
const INSTRUCTION: usize = 44;
/// Width of the bytes column: 11 bytes of two digits and a space.
const BYTES: usize = 33;

/// Adds a listing and its loops.
pub(super) fn show(report: &CodeReport, listing: &Listing, document: &mut Document) {
    let code = report.code;
    let Some(file) = code.files.get(listing.file as usize) else { return };
    let Some(function) = file.functions.get(listing.function as usize) else { return };
    let name = function_name(code, function.name, function.address);
    document.heading(format!("Disassembly of {name} in {}", short(&file.path)));
    let samples: u64 = listing.lines.iter().map(|line| line.samples).sum();
    let mix = function.mix;
    let sampled = match listing.sampled {
        true => format!(", {}", plural(samples, "sample")),
        false => String::new(),
    };
    let vector = mix
        .packed_share()
        .map_or_else(String::new, |share| format!(", {} % vector", percent(share)));
    document.line(format!(
        "at {:#x}, {} bytes, {}{vector}{sampled}",
        function.address,
        count(function.size),
        plural(listing.lines.len() as u64, "instruction"),
    ));
    if listing.lines.is_empty() {
        document.line(match &*file.not_disassembled {
            "" => "the file does not contain its code",
            why => why,
        });
        return;
    }
    loops(listing, samples, document);
    document.blank();
    document.verbatim(lines(report, listing, samples));
}

fn loops(listing: &Listing, samples: u64, document: &mut Document) {
    if listing.loops.is_empty() {
        return;
    }
    document.blank();
    let mut table = Table::new([
        Column::text("loop"),
        Column::text("kind"),
        Column::number("instr", "n"),
        Column::number("vector", "%"),
        Column::number("math", "% vector"),
        Column::number("widest", "bits"),
        Column::number("load", "n"),
        Column::number("store", "n"),
        Column::number("fma", "n"),
        Column::number("divide", "n"),
        Column::number("gather", "n"),
        Column::number("samples", "%"),
    ]);
    let text = |share: Option<f64>| share.map_or_else(String::new, percent);
    let nonzero = |n: u64| if n == 0 { String::new() } else { count(n) };
    for found in &listing.loops {
        table.push([
            format!("{:x}-{:x}", found.start, found.end),
            kind(found).to_owned(),
            count(found.mix.instructions()),
            text(found.mix.packed_share()),
            text(found.mix.packed_math_share()),
            found.mix.widest_vector().map_or_else(String::new, |bits| bits.to_string()),
            nonzero(found.mix.with(Mark::Load)),
            nonzero(found.mix.with(Mark::Store)),
            nonzero(found.mix.with(Mark::Fma)),
            nonzero(found.mix.with(Mark::Divide)),
            nonzero(found.mix.with(Mark::Gather)),
            if samples > 0 {
                percent(share(found.samples as f64, samples as f64))
            } else {
                String::new()
            },
        ]);
    }
    document.table(table);
}

fn kind(found: &Loop) -> &'static str {
    match (found.innermost, found.hottest) {
        (_, true) => "innermost, hot",
        (true, false) => "innermost",
        (false, false) => "outer",
    }
}

fn lines(report: &CodeReport, listing: &Listing, samples: u64) -> Vec<String> {
    let mut lines = vec![];
    let mut place = (0, 0);
    let texts = &report.code.texts;
    for line in &listing.lines {
        if (line.source, line.line) != place && line.line > 0 {
            place = (line.source, line.line);
            lines.push(format!("; {}:{}", texts.get(line.source), line.line));
        }
        let cost = match (samples, line.samples) {
            (0, _) => String::new(),
            (_, 0) => format!("{:>7} ", ""),
            (all, here) => format!("{:>6}% ", percent(share(here as f64, all as f64))),
        };
        let bytes = match report.bytes {
            true => format!("{:BYTES$}", hex(line)),
            false => String::new(),
        };
        let instruction = escape::visible(
            format!("{:8} {}{}", line.mnemonic, line.operands, direction(report, listing, line))
                .trim_end(),
        );
        let space = " ".repeat(INSTRUCTION.saturating_sub(escape::columns(&instruction)));
        let text = format!(
            "{cost}{}{} {:x}  {bytes}{instruction}{space} {}",
            margin(listing, line),
            if line.is_target { ">" } else { " " },
            line.address,
            what(line),
        );
        lines.push(text.trim_end().to_owned());
    }
    lines
}

/// The margin mark of the innermost loop around an instruction; double lines for the hottest.
fn margin(listing: &Listing, line: &AsmLine) -> &'static str {
    let around =
        |found: &&Loop| found.innermost && (found.start..found.end).contains(&line.address);
    let Some(found) = listing.loops.iter().find(around) else { return " " };
    let is_last = line.address + line.bytes.len() as u64 == found.end;
    match (line.address == found.start, is_last, found.hottest) {
        (true, true, false) => "[",
        (true, false, false) => "┌",
        (false, true, false) => "└",
        (false, false, false) => "│",
        (true, true, true) => "[",
        (true, false, true) => "╔",
        (false, true, true) => "╚",
        (false, false, true) => "║",
    }
}

/// The direction of a jump within the function, or the name of its target function.
fn direction(report: &CodeReport, listing: &Listing, line: &AsmLine) -> String {
    let Some(target) = line.target else { return String::new() };
    let first = listing.lines.first().map_or(0, |line| line.address);
    let last = listing.lines.last().map_or(0, |line| line.address);
    if (first..=last).contains(&target) {
        return if target <= line.address { " ↑" } else { " ↓" }.to_owned();
    }
    match report.code.texts.get(line.target_name) {
        "" => String::new(),
        name => format!(" <{name}>"),
    }
}

fn what(line: &AsmLine) -> String {
    let marks: String = line.marks.iter().map(|mark| format!(" {}", mark.word())).collect();
    format!("{}{marks}", line.class.word())
}

fn hex(line: &AsmLine) -> String {
    line.bytes.iter().map(|byte| format!("{byte:02x} ")).collect()
}

/// One row per instruction.
pub(super) fn csv(report: &CodeReport) -> String {
    let code = report.code;
    let columns = [
        "file", "function", "address", "bytes", "mnemonic", "operands", "class", "marks", "target",
        "source", "line", "loop", "samples",
    ];
    let mut table = Table::new(columns.map(Column::text));
    for listing in &code.listings {
        let Some(file) = code.files.get(listing.file as usize) else { continue };
        let Some(function) = file.functions.get(listing.function as usize) else { continue };
        for line in &listing.lines {
            let marks: Vec<&str> = line.marks.iter().map(|mark| mark.word()).collect();
            let inner = listing
                .loops
                .iter()
                .find(|found| found.innermost && (found.start..found.end).contains(&line.address));
            table.push([
                file.path.clone(),
                function_name(code, function.name, function.address),
                format!("{:#x}", line.address),
                hex(line).trim_end().to_owned(),
                line.mnemonic.clone(),
                line.operands.clone(),
                line.class.word().to_owned(),
                marks.join(" "),
                line.target.map_or_else(String::new, |target| format!("{target:#x}")),
                code.texts.get(line.source).to_owned(),
                if line.line > 0 { line.line.to_string() } else { String::new() },
                inner.map_or_else(String::new, |found| format!("{:#x}", found.start)),
                if listing.sampled { line.samples.to_string() } else { String::new() },
            ]);
        }
    }
    table.csv()
}
