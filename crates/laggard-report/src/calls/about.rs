//! Sections about the program, the call trace and its quality.

use super::{CallsReport, time, whole};
use crate::document::Document;
use crate::escape;
use crate::number::{Quantity, count, instructions, percent, plural, share};
use crate::profile::about::{LONGEST_COMMAND, command};
use laggard_core::calls::{By, Measure, totals};
use std::collections::BTreeSet;

/// Maximum number of untraced functions listed without `-v`.
const MOST_UNTRACED: usize = 5;

pub(super) fn about(report: &CallsReport, document: &mut Document) {
    let about = &report.view.calls.profile.about;
    let cpu = about.user_ns.saturating_add(about.system_ns);
    let by = [about.method.as_str(), about.tool.as_str()];
    let by: Vec<&str> = by.into_iter().filter(|word| !word.is_empty()).collect();
    document.facts([
        ("command", escape::fit(&command(&about.command), LONGEST_COMMAND)),
        (
            "exit status",
            about
                .exit_code
                .filter(|&code| code != 0)
                .map_or_else(String::new, |code| code.to_string()),
        ),
        ("duration", format!("{} wall time, {} CPU time", time(about.duration_ns), time(cpu))),
        ("calls", calls(report)),
        ("time", timed(report)),
        ("instructions", weighed(report)),
        ("traced by", by.join(", ")),
        ("filter", filter(report).unwrap_or_default()),
    ]);
}

fn timed(report: &CallsReport) -> String {
    match report.view.measure {
        Measure::Time => {
            format!("{} in traced calls, over all threads", time(report.view.whole.self_ns))
        }
        _ => String::new(),
    }
}

fn weighed(report: &CallsReport) -> String {
    let own = report.view.whole.own_instructions;
    let own = own.filter(|_| report.view.measure == Measure::Instructions);
    own.map_or_else(String::new, |own| {
        format!("{} in traced functions, without callees", instructions(own))
    })
}

/// Adds the filter, if there is one.
pub(super) fn shown(report: &CallsReport, document: &mut Document) {
    if let Some(filter) = filter(report) {
        document.facts([("filter", filter)]);
    }
}

fn calls(report: &CallsReport) -> String {
    let view = report.view;
    let libraries = totals(view, By::Library).rows.len() as u64;
    let places: BTreeSet<u32> = view.rows.iter().map(|row| row.caller).collect();
    let libraries = if libraries == 1 {
        "1 library".to_owned()
    } else {
        format!("{} libraries", count(libraries))
    };
    format!(
        "{} to {} in {libraries}, from {}, on {}",
        count(view.whole.count),
        plural(totals(view, By::Function).rows.len() as u64, "function"),
        plural(places.len() as u64, "call site"),
        plural(totals(view, By::Thread).rows.len() as u64, "thread"),
    )
}

/// Description of the filter with the share of matching calls.
fn filter(report: &CallsReport) -> Option<String> {
    let filter = report.filter;
    let named = [
        ("library", &filter.library),
        ("function", &filter.function),
        ("thread", &filter.thread),
        ("process", &filter.process),
    ];
    let parts: Vec<String> = named
        .into_iter()
        .filter_map(|(what, asked)| Some(format!("{what} {}", asked.as_deref()?)))
        .collect();
    if parts.is_empty() {
        return None;
    }
    let all = report.view.calls.rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.count));
    Some(format!(
        "{}: {}, {} % of all calls",
        parts.join(", "),
        whole(&report.view.whole, report.view.measure),
        percent(share(report.view.whole.count as f64, all as f64))
    ))
}

pub(super) fn quality(report: &CallsReport, document: &mut Document) {
    let calls = report.view.calls;
    let q = &calls.quality;
    let sum = |of: fn(&laggard_core::model::calls::CallRow) -> u64| {
        calls.rows.iter().fold(0u64, |sum, row| sum.saturating_add(of(row)))
    };
    let (all, unfinished) = (sum(|row| row.count), sum(|row| row.unfinished));
    let some = |n: u64, text: String| if n == 0 { String::new() } else { text };
    let facts = [
        (
            "unfinished",
            some(
                unfinished,
                format!(
                    "{} did not return (exception, longjmp, or still running at exit): counted, \
                     not timed",
                    plural(unfinished, "call")
                ),
            ),
        ),
        (
            "too deep",
            some(
                q.too_deep,
                format!("{} nested too deeply: counted, not timed", plural(q.too_deep, "call")),
            ),
        ),
        (
            "table full",
            some(
                q.table_full,
                format!("{} counted by function, not by call site", plural(q.table_full, "call")),
            ),
        ),
        ("not traced", not_traced(report)),
        ("overhead", overhead(report, all)),
    ];
    let warnings = &calls.profile.quality.warnings;
    if warnings.is_empty() && facts.iter().all(|(_, value)| value.is_empty()) {
        return;
    }
    document.heading("Quality");
    document.facts(facts);
    for warning in warnings {
        document.minor(format!("note: {warning}"));
    }
}

fn not_traced(report: &CallsReport) -> String {
    let left = &report.view.calls.quality.not_wrapped;
    if left.is_empty() {
        return String::new();
    }
    let most = if report.is_verbose { usize::MAX } else { MOST_UNTRACED };
    let mut named: Vec<String> =
        left.iter().take(most).map(|(name, why)| format!("{name} ({why})")).collect();
    if left.len() > named.len() {
        named.push(format!("{} more (-v lists them)", left.len() - named.len()));
    }
    let which = plural(left.len() as u64, "function");
    format!("{which}: {}", named.join(", "))
}

fn overhead(report: &CallsReport, all: u64) -> String {
    let calls = report.view.calls;
    let each = calls.quality.cost_ns;
    if each <= 0.0 {
        return String::new();
    }
    let sum = each * all as f64;
    let of = share(sum, calls.profile.about.duration_ns as f64);
    format!(
        "{} per call, measured at start; about {} in total for {} ({} % of wall time if on one \
         thread)",
        Quantity::Time.show(each),
        Quantity::Time.show(sum),
        plural(all, "call"),
        percent(of)
    )
}
