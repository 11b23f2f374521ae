//! Tables, trees and histograms of calls.

use super::columns::Columns;
use super::{CallsReport, time, whole};
use crate::document::Document;
use crate::number::{Quantity, count, duration, percent, plural, share};
use crate::rows::{kept, more};
use crate::table::{Column, Table};
use laggard_core::calls::{
    Arguments, By, Caller, Class, Measure, Row, Tally, Totals, TreeRow, View, blas,
};
use std::collections::BTreeMap;

/// Width of the longest bar.
const BAR: f64 = 40.0;
/// Maximum number of histogram buckets; more are merged by octave unless all rows are requested.
const MOST_CLASSES: usize = 40;

pub(super) fn title(by: By) -> &'static str {
    match by {
        By::Library => "Calls by library",
        By::Function => "Calls by function",
        By::Caller => "Calls by caller",
        By::Thread => "Calls by thread",
    }
}

/// A table with the base of its shares.
pub(super) fn table(title: &str, totals: &Totals, report: &CallsReport, document: &mut Document) {
    document.heading(title);
    let rows = kept(&totals.rows, report.top);
    if rows.is_empty() {
        document.line("no calls");
        return;
    }
    let columns = Columns::new(totals, rows);
    let single = matches!(totals.by, By::Function | By::Caller);
    let (noun, of) = match totals.by {
        By::Library => ("library", ""),
        By::Function => ("function", "library"),
        By::Caller => ("function", ""),
        By::Thread => ("thread", "process"),
    };
    let mut headers = columns.headers();
    headers.extend(["from", "caller", of, noun].map(Column::text));
    let mut table = Table::new(headers);
    let only = only(rows.iter().filter(|_| single).map(|row| row.of.as_str()));
    let only_from = only_caller(rows);
    for row in rows {
        let blank = String::new;
        let (from, caller) = row.caller.as_ref().map_or((blank(), blank()), place);
        let of = if totals.by == By::Thread { row.of.clone() } else { short(&row.of) };
        let mut cells = columns.cells(&row.tally);
        cells.extend([
            if only_from.is_some() { blank() } else { from },
            caller,
            if totals.by == By::Caller || only.is_some() { blank() } else { of },
            row.name.clone(),
        ]);
        table.push(cells);
    }
    document.table(table);
    rest(totals, rows.len(), document);
    in_library("all from", only_from, document);
    in_library("all in", only, document);
    columns.remarks(document);
}

/// Library, and function with its source line if known.
fn place(caller: &Caller) -> (String, String) {
    let function = if caller.place.is_empty() {
        caller.function.clone()
    } else {
        format!("{} ({})", caller.function, caller.place)
    };
    // Unnamed functions contain their library.
    let from =
        if caller.function.starts_with('[') { String::new() } else { short(&caller.library) };
    (from, function)
}

/// Library name without the tag of an extension module, the version, and the hash that wheels add.
pub(crate) fn short(library: &str) -> String {
    let end =
        [".cpython-", ".abi3.", ".so"].into_iter().filter_map(|mark| library.find(mark)).min();
    let name = &library[..end.unwrap_or(library.len())];
    match name.rsplit_once('-') {
        Some((plain, hash)) if hash.len() == 8 && hash.chars().all(|c| c.is_ascii_hexdigit()) => {
            plain.to_owned()
        }
        _ => name.to_owned(),
    }
}

/// The library that all rows share.
pub(crate) fn only<'a>(mut libraries: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let first = libraries.next()?;
    libraries.all(|library| library == first).then_some(first)
}

fn only_caller(rows: &[Row]) -> Option<&str> {
    only(rows.iter().filter_map(|row| Some(row.caller.as_ref()?.library.as_str())))
}

pub(super) fn in_library(how: &str, library: Option<&str>, document: &mut Document) {
    if let Some(library) = library {
        document.minor(format!("{how} {library}"));
    }
}

fn rest(totals: &Totals, shown: usize, document: &mut Document) {
    let hidden = &totals.rows[shown..];
    if hidden.is_empty() {
        return;
    }
    let part = hidden.iter().fold(0.0, |sum, row| sum + totals.share(&row.tally));
    document.minor(format!("({}: {} %)", plural(hidden.len() as u64, "more row"), percent(part)));
}

/// Table of the call tree.
pub(super) fn tree(rows: &[TreeRow], report: &CallsReport, document: &mut Document) {
    document.heading("Call tree");
    let shown = kept(rows, report.top);
    if shown.is_empty() {
        document.line("no calls");
        return;
    }
    let View { measure, whole: all, .. } = report.view;
    let amount = |row: &TreeRow| match measure {
        Measure::Time => Some(row.tally.self_ns),
        // Calls of a whole library may be nested in each other.
        Measure::Instructions if row.depth > 0 => row.tally.instructions,
        _ => None,
    };
    let amounts = shown.iter().filter_map(amount).map(|n| n as f64);
    let (heading, unit) = match measure {
        Measure::Time => ("self", Quantity::Time.unit(amounts)),
        _ => ("inclusive", Quantity::Instructions.unit(amounts)),
    };
    let mut table = Table::new([
        Column::number("share", "%"),
        Column::number(heading, unit.name),
        Column::number("calls", "n"),
        Column::names("caller, function"),
        Column::text("library"),
    ]);
    for row in shown {
        table.push([
            percent(match measure {
                Measure::Time => row.tally.share_of(all),
                _ => row.tally.share_of_calls(all),
            }),
            amount(row).map_or_else(String::new, |n| unit.number(n as f64)),
            count(row.tally.count),
            "· ".repeat(row.depth) + &row.name,
            short(&row.library),
        ]);
    }
    document.table(table);
    more(rows, report.top, document);
    document.minor(match measure {
        Measure::Time => format!("share of self time, {}", whole(all, *measure)),
        _ => format!("share of calls, {} in all", count(all.count)),
    });
    if *measure == Measure::Instructions {
        document.minor("inclusive: instructions with callees");
    }
}

/// Table of argument values.
pub(super) fn arguments(rows: &[Arguments], report: &CallsReport, document: &mut Document) {
    document.heading("Calls by arguments");
    let shown = kept(rows, report.top);
    if shown.is_empty() {
        document.line("no arguments were recorded: trace with --args N");
        return;
    }
    let total = Quantity::Time.unit(shown.iter().map(|row| row.total_ns as f64));
    let is_timed = report.view.measure == Measure::Time;
    let only = only(shown.iter().map(|row| row.library.as_str()));
    let mut table = Table::new([
        Column::number("total", total.name),
        Column::number("calls", "n"),
        Column::range("mean", ""),
        Column::text("function and first integer arguments").first(),
        Column::text("library").may_go(),
    ]);
    for row in shown {
        table.push([
            if is_timed { total.number(row.total_ns as f64) } else { String::new() },
            count(row.count),
            row.mean().filter(|_| is_timed).map_or_else(String::new, |ns| duration(ns as i64)),
            format!("{}({})", row.function, values(row).join(", ")),
            if only.is_some() { String::new() } else { short(&row.library) },
        ]);
    }
    document.table(table);
    more(rows, report.top, document);
    in_library("all in", only, document);
    let values = "values without names are register contents: non-integer arguments show as integers, \
                  and the upper bits of narrow ones are undefined";
    document.minor(match is_timed {
        true => format!("{values}; one slow call can dominate a mean"),
        false => values.to_owned(),
    });
}

trait Mean {
    fn mean(&self) -> Option<f64>;
}

impl Mean for Arguments {
    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total_ns as f64 / self.count as f64)
    }
}

/// Arguments of BLAS functions with their names. Other numbers beyond 32 bits are formatted in hexadecimal,
/// since they are probably addresses.
fn values(row: &Arguments) -> Vec<String> {
    if let Some(known) = blas::described(&row.function, &row.values) {
        return known.into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    }
    let value = |&value: &i64| match i32::try_from(value) {
        Ok(small) => small.to_string(),
        Err(_) if u32::try_from(value).is_ok() => value.to_string(),
        Err(_) => format!("{value:#x}"),
    };
    row.values.iter().map(value).collect()
}

/// Histogram of call durations.
pub(super) fn histogram(
    function: &str,
    tally: &Tally,
    report: &CallsReport,
    document: &mut Document,
) {
    document.heading(format!("Calls to {function} by duration"));
    let timed = tally.timed();
    if timed == 0 {
        document.line(match report.view.measure {
            Measure::Time => "no call was timed",
            _ => "calls were counted, not timed",
        });
        return;
    }
    let all: Vec<Class> = tally.classes().collect();
    let by_octaves = all.len() > MOST_CLASSES && report.top.is_some();
    let classes = if by_octaves { octaves(&all) } else { all };
    let largest = classes.iter().map(|class| class.count).max().unwrap_or(1);
    let mut table = Table::new([
        Column::range("from", ""),
        Column::number("calls", "n"),
        Column::number("share", "%"),
        Column::text(""),
    ]);
    for class in &classes {
        let bar = (class.count as f64 / largest as f64 * BAR).ceil() as usize;
        table.push([
            time(class.low_ns),
            count(class.count),
            percent(share(class.count as f64, timed as f64)),
            "█".repeat(bar),
        ]);
    }
    document.table(table);
    if by_octaves {
        document.minor("(buckets merged by octave; --all shows each)");
    }
    let show = |ns: Option<u64>| ns.map_or_else(String::new, time);
    let quantile = |q: f64| show(tally.quantile(q).map(|found| found.ns));
    document.minor(format!(
        "{}: min {}, median {}, p99 {}, max {}; mean {}",
        plural(timed, "timed call"),
        show(tally.min_ns),
        quantile(0.5),
        quantile(0.99),
        show(tally.max_ns),
        tally.mean_ns().map_or_else(String::new, |ns| duration(ns as i64)),
    ));
    if tally.count > timed {
        document.minor(format!("{} without a duration", plural(tally.count - timed, "call")));
    }
}

/// Merges buckets within the same power of two.
fn octaves(classes: &[Class]) -> Vec<Class> {
    let mut all: BTreeMap<u32, Class> = BTreeMap::new();
    for class in classes {
        let octave = class.low_ns.max(1).ilog2();
        let low_ns = if octave == 0 { 0 } else { 1 << octave };
        let sum = all.entry(octave).or_insert(Class { low_ns, high_ns: 0, count: 0 });
        sum.count = sum.count.saturating_add(class.count);
        sum.high_ns = sum.high_ns.max(class.high_ns);
    }
    all.into_values().collect()
}

/// CSV columns of a tally.
pub(crate) const TALLY: [&str; 12] = [
    "calls",
    "unfinished",
    "timed",
    "total_ns",
    "self_ns",
    "min_ns",
    "median_ns",
    "p99_ns",
    "max_ns",
    "self_share",
    "instructions",
    "own_instructions",
];

/// CSV cells of a tally; cells of times are empty if times were not measured.
pub(crate) fn cells(tally: &Tally, whole: &Tally, measure: Measure) -> [String; 12] {
    let is_timed = measure == Measure::Time;
    let some = |ns: Option<u64>| ns.map_or_else(String::new, |ns| ns.to_string());
    let quantile = |q: f64| some(tally.quantile(q).map(|found| found.ns));
    [
        tally.count.to_string(),
        tally.unfinished.to_string(),
        tally.timed().to_string(),
        some(is_timed.then_some(tally.total_ns)),
        some(is_timed.then_some(tally.self_ns)),
        some(tally.min_ns),
        quantile(0.5),
        quantile(0.99),
        some(tally.max_ns),
        if is_timed { format!("{:.6}", tally.share_of(whole)) } else { String::new() },
        some(tally.instructions),
        some(tally.own_instructions),
    ]
}

/// A table as CSV.
pub(super) fn csv(totals: &Totals, top: Option<usize>) -> String {
    let start = ["name", "of", "caller_library", "caller", "caller_place"];
    let mut table =
        Table::new(start.into_iter().chain(TALLY).map(Column::text).collect::<Vec<_>>());
    for row in kept(&totals.rows, top) {
        let Caller { library, function, place } = row.caller.clone().unwrap_or_default();
        let mut line = vec![row.name.clone(), row.of.clone(), library, function, place];
        line.extend(cells(&row.tally, &totals.whole, totals.measure));
        table.push(line);
    }
    table.csv()
}

pub(super) fn tree_csv(rows: &[TreeRow], view: &View, top: Option<usize>) -> String {
    let start = ["depth", "name", "of"];
    let mut table =
        Table::new(start.into_iter().chain(TALLY).map(Column::text).collect::<Vec<_>>());
    for row in kept(rows, top) {
        let mut line = vec![row.depth.to_string(), row.name.clone(), row.library.clone()];
        line.extend(cells(&row.tally, &view.whole, view.measure));
        table.push(line);
    }
    table.csv()
}

pub(super) fn arguments_csv(rows: &[Arguments], top: Option<usize>) -> String {
    let mut table =
        Table::new(["function", "library", "values", "calls", "total_ns"].map(Column::text));
    for row in kept(rows, top) {
        let values: Vec<String> = row.values.iter().map(ToString::to_string).collect();
        table.push([
            row.function.clone(),
            row.library.clone(),
            values.join(" "),
            row.count.to_string(),
            row.total_ns.to_string(),
        ]);
    }
    table.csv()
}

pub(super) fn histogram_csv(tally: &Tally) -> String {
    let mut table = Table::new(["low_ns", "high_ns", "calls"].map(Column::text));
    for class in tally.classes() {
        table.push([class.low_ns, class.high_ns, class.count].map(|n| n.to_string()));
    }
    table.csv()
}
