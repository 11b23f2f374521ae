//! Device time by class, kernel, phase, operator, Python line and more.

use crate::document::Document;
use crate::number::{count, duration, percent, plural, share};
use crate::rows::{kept, more, time_unit};
use crate::table::{Column, Table};
use laggard_core::trace::summary::{Breakdown, Group};
use laggard_core::trace::{By, Stack};

/// Adds all tables of the report that have data.
pub(super) fn all(breakdowns: &[Breakdown], top: Option<usize>, document: &mut Document) {
    for breakdown in breakdowns.iter().filter(|breakdown| says_something(breakdown)) {
        table(breakdown, top, title(breakdown.by), document);
    }
}

/// Whether a breakdown has rows other than the placeholder for missing data.
fn says_something(breakdown: &Breakdown) -> bool {
    let nothing = match breakdown.by {
        By::Phase => "none",
        By::Op => "(no operator)",
        By::Python => "(no Python frame)",
        _ => return !breakdown.rows.is_empty(),
    };
    breakdown.rows.iter().any(|row| row.name != nothing && row.time_ns > 0)
}

/// Adds one table and a line that sums up the hidden rows.
pub(super) fn table(
    breakdown: &Breakdown,
    top: Option<usize>,
    title: &str,
    document: &mut Document,
) {
    document.heading(title);
    let rows = kept(&breakdown.rows, top);
    if rows.is_empty() && breakdown.distinct == 0 {
        document.line("no rows");
        return;
    }
    let total = time_unit(rows, &[|row| row.time_ns]);
    let each = time_unit(rows, &[mean, |row| row.median_ns, |row| row.max_ns]);
    let mut table = Table::new([
        match breakdown.by {
            By::Kernel | By::Op | By::Python | By::Module | By::Launch => {
                Column::names(noun(breakdown.by))
            }
            _ => Column::text(noun(breakdown.by)),
        },
        Column::number("time", total.name),
        Column::number("share", "%"),
        Column::number("count", "n"),
        Column::number("mean", each.name),
        Column::number("median", each.name),
        Column::range("min…max", each.name),
    ]);
    for row in rows {
        table.push([
            row.name.clone(),
            total.number(row.time_ns as f64),
            percent(share(row.time_ns as f64, breakdown.total.time_ns as f64)),
            count(row.count),
            each.number(mean(row) as f64),
            each.number(row.median_ns as f64),
            each.range(row.min_ns as f64, "…", row.max_ns as f64),
        ]);
    }
    document.table(table);
    let hidden = breakdown.distinct.saturating_sub(rows.len() as u64);
    if hidden > 0 {
        let shown = rows.iter().fold(0i64, |sum, row| sum.saturating_add(row.time_ns));
        let rest = breakdown.total.time_ns.saturating_sub(shown);
        document.minor(format!(
            "({}: {}, {} %)",
            plural(hidden, "more row"),
            duration(rest),
            percent(share(rest as f64, breakdown.total.time_ns as f64))
        ));
    }
}

fn mean(row: &Group) -> i64 {
    row.time_ns / i64::try_from(row.count).unwrap_or(i64::MAX).max(1)
}

/// Adds device time by operator, each with its Python stack.
pub(super) fn stacks(stacks: &[Stack], top: Option<usize>, document: &mut Document) {
    document.heading("Device time by call stack");
    if stacks.is_empty() {
        document.line("no device operations in this trace");
    }
    for row in kept(stacks, top) {
        let title = format!("{} (n = {})  {}", duration(row.time_ns), count(row.count), row.op);
        document.stack(title, &row.frames);
    }
    more(stacks, top, document);
}

/// Formats the breakdown as CSV; only the header if there is no breakdown.
pub(super) fn csv(breakdown: Option<&Breakdown>, top: Option<usize>) -> String {
    let columns = ["name", "class", "count", "time_ns", "share", "min_ns", "median_ns", "max_ns"];
    let mut table = Table::new(columns.map(Column::text));
    for row in breakdown.map_or(&[][..], |breakdown| kept(&breakdown.rows, top)) {
        let total = breakdown.map_or(0, |breakdown| breakdown.total.time_ns);
        table.push([
            row.name.clone(),
            row.class.clone(),
            row.count.to_string(),
            row.time_ns.to_string(),
            format!("{:.6}", share(row.time_ns as f64, total as f64)),
            row.min_ns.to_string(),
            row.median_ns.to_string(),
            row.max_ns.to_string(),
        ]);
    }
    table.csv()
}

/// Formats stacks as CSV. Frames are joined by `;`, outermost first, as in collapsed stacks.
pub(super) fn stacks_csv(stacks: &[Stack], top: Option<usize>) -> String {
    let mut table = Table::new(["operator", "count", "time_ns", "frames"].map(Column::text));
    for row in kept(stacks, top) {
        let frames = row.frames.join(";");
        table.push([row.op.clone(), row.count.to_string(), row.time_ns.to_string(), frames]);
    }
    table.csv()
}

pub(crate) fn title(by: By) -> &'static str {
    match by {
        By::Class => "Device time by class",
        By::Group => "Device time by class group",
        By::Kernel => "Device time by kernel",
        By::Phase => "Device time by phase",
        By::Op => "Device time by CPU operator",
        By::Shape => "Device time by CPU operator and shapes",
        By::Python => "Device time by Python line",
        By::Module => "Device time by module",
        By::Stream => "Device time by stream",
        By::Launch => "Device time by launch call",
        By::Geometry => "Device time by grid and block",
    }
}

pub(crate) fn noun(by: By) -> &'static str {
    match by {
        By::Class => "class",
        By::Group => "group",
        By::Kernel => "kernel",
        By::Phase => "phase",
        By::Op => "operator",
        By::Shape => "operator and shapes",
        By::Python => "Python line",
        By::Module => "module",
        By::Stream => "stream",
        By::Launch => "launch call",
        By::Geometry => "grid and block",
    }
}
