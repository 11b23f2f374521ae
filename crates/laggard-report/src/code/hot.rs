//! The hottest loop of a disassembly, for an HTML page.

use super::{function_name, short};
use crate::escape::xml;
use crate::number::{percent, share};
use laggard_core::model::code::{AsmLine, Code, Listing};

/// Maximum number of instructions shown, around the hottest one.
const MOST: usize = 160;

/// The hottest loop of the hottest listing as an HTML table; empty without listings.
pub fn hot_loop(code: &Code) -> String {
    let samples_of =
        |listing: &&Listing| listing.lines.iter().map(|line| line.samples).sum::<u64>();
    let Some(listing) = code.listings.iter().max_by_key(samples_of) else { return String::new() };
    let all = samples_of(&listing);
    let Some(file) = code.files.get(listing.file as usize) else { return String::new() };
    let Some(function) = file.functions.get(listing.function as usize) else {
        return String::new();
    };
    let lines = shown(listing);
    if lines.is_empty() {
        return String::new();
    }
    let hottest = lines.iter().map(|line| line.samples).max().unwrap_or(0);
    let row = |line: &AsmLine| {
        let part = share(line.samples as f64, all as f64);
        let cost = if line.samples == 0 { String::new() } else { percent(part) };
        let place = match (code.texts.get(line.source), line.line) {
            ("", _) | (_, 0) => String::new(),
            (file, number) => format!("{}:{number}", short(file)),
        };
        format!(
            "<tr{}><td class=\"n\">{cost}</td><td>{:x}</td><td>{}</td><td>{}</td></tr>\n",
            if line.samples > 0 && line.samples * 2 >= hottest { " class=\"hot\"" } else { "" },
            line.address,
            xml(&format!("{} {}", line.mnemonic, line.operands)),
            xml(&place)
        )
    };
    format!(
        "<p class=\"line\">{} in {}: {} of {} instructions</p>\n<table class=\"code\"><thead><tr>\
         <th class=\"n\">self %</th><th>address</th><th>instruction</th><th>source</th></tr></thead>\n\
         <tbody>\n{}</tbody></table>\n",
        xml(&function_name(code, function.name, function.address)),
        xml(short(&file.path)),
        lines.len(),
        listing.lines.len(),
        lines.iter().map(row).collect::<String>()
    )
}

/// The lines of the hottest loop, or the lines around the hottest instruction.
fn shown(listing: &Listing) -> &[AsmLine] {
    let lines = &listing.lines;
    let Some(hottest) = (0..lines.len()).max_by_key(|&at| (lines[at].samples, usize::MAX - at))
    else {
        return &[];
    };
    let hot = listing.loops.iter().find(|found| found.hottest && found.samples > 0);
    let range = match hot {
        Some(found) => {
            lines.partition_point(|line| line.address < found.start)
                ..lines.partition_point(|line| line.address < found.end)
        }
        None => 0..lines.len(),
    };
    if range.len() <= MOST {
        return &lines[range];
    }
    let start = hottest.saturating_sub(MOST / 2).clamp(range.start, range.end - MOST);
    &lines[start..start + MOST]
}
