//! Python lines with their calls, estimated from recorded stacks.

use super::CallsReport;
use super::tables::{in_library, only, short};
use crate::document::Document;
use crate::number::{count, percent, plural};
use crate::rows::{kept, more};
use crate::table::{Column, Table};
use laggard_core::calls::PythonLines;

/// Table of Python lines and the functions they call.
pub(super) fn table(
    title: &str,
    lines: &PythonLines,
    report: &CallsReport,
    document: &mut Document,
) {
    document.heading(title);
    let shown = kept(&lines.rows, report.top);
    if shown.is_empty() {
        document.line(
            "no recorded stack has Python frames: trace with --stacks N (smaller N: more stacks)",
        );
        return;
    }
    let library = only(shown.iter().map(|row| row.library.as_str()));
    let mut table = Table::new([
        Column::number("calls", "~n"),
        Column::number("share", "%"),
        Column::number("stacks", "n"),
        Column::text("line"),
        Column::names("caller"),
        Column::text("library"),
        Column::names("function"),
    ]);
    for row in shown {
        table.push([
            count(row.calls.round() as u64),
            percent(row.share),
            count(row.stacks),
            row.place.clone(),
            row.caller.clone(),
            if library.is_some() { String::new() } else { short(&row.library) },
            row.function.clone(),
        ]);
    }
    document.table(table);
    more(&lines.rows, report.top, document);
    in_library("all in", library, document);
    document.minor(format!(
        "calls: estimated from {}, imprecise for few stacks; share: of all calls to the function",
        plural(lines.stacks, "recorded stack")
    ));
    if lines.unknown_calls > 0 {
        document.minor(format!(
            "{} to functions without a recorded stack",
            plural(lines.unknown_calls, "call")
        ));
    }
}

pub(super) fn csv(lines: &PythonLines, top: Option<usize>) -> String {
    let columns = ["place", "caller", "function", "library", "estimated_calls", "share", "stacks"];
    let mut table = Table::new(columns.map(Column::text));
    for row in kept(&lines.rows, top) {
        table.push([
            row.place.clone(),
            row.caller.clone(),
            row.function.clone(),
            row.library.clone(),
            format!("{:.1}", row.calls),
            format!("{:.6}", row.share),
            row.stacks.to_string(),
        ]);
    }
    table.csv()
}
