//! Tables of the report: ranking, times, controls, differences between builds, overhead.

use super::{FfiReport, name_of, of};
use crate::document::Document;
use crate::number::{Quantity, percent, plural, significant, with_sign};
use crate::table::{Column, Table};
use laggard_core::ffi::{Cost, Crossing, Difference, Figure, Known};
use laggard_core::model::ffi::{Cell, Ffi, Overhead, Who};

/// Up to this many categories are shown in full without `--all`.
const FEW_CATEGORIES: usize = 3;
/// Maximum number of differences shown without `--all`.
const SOME_DIFFERENCES: usize = 10;

/// `12.3 ns`.
pub(super) fn time(ns: f64) -> String {
    Quantity::Time.show(ns)
}

/// Nanoseconds without a unit, for a column.
pub(super) fn nanos(ns: f64) -> String {
    significant(ns)
}

pub(super) fn ratio(ratio: f64) -> String {
    if ratio < 9.995 { format!("{ratio:.2}") } else { significant(ratio) }
}

pub(super) fn range((low, high): (f64, f64)) -> String {
    format!("{} to {}", ratio(low), ratio(high))
}

fn nanos_range((low, high): (f64, f64)) -> String {
    format!("{} to {}", nanos(low), nanos(high))
}

/// `+1.2`, in percent.
fn change(share: f64) -> String {
    with_sign(share, percent(share))
}

fn known(of: Option<Known>, show: impl Fn(f64) -> String) -> String {
    of.map_or_else(String::new, |known| show(known.middle))
}

fn ranged(of: Option<Known>, show: impl Fn((f64, f64)) -> String) -> String {
    of.and_then(|known| known.range).map_or_else(String::new, show)
}

/// Build and interpreter for a heading, if there is more than one.
fn place(ffi: &Ffi, python: usize, profile: usize) -> String {
    let mut words = vec![];
    if ffi.profiles.len() > 1 {
        words.push(ffi.profiles[profile].name.clone());
    }
    if ffi.pythons.len() > 1 {
        words.push(format!("Python {}", ffi.pythons[python].name));
    }
    if words.is_empty() { String::new() } else { format!(", {}", words.join(", ")) }
}

/// Ranking of bindings over all categories.
pub(super) fn standings(report: &FfiReport, document: &mut Document) {
    let FfiReport { ffi, figures, .. } = report;
    let Some(floor) = figures.floor else { return };
    for python in 0..ffi.pythons.len() {
        let rows = figures.standings.iter().filter(|of| (of.python, of.profile) == (python, 0));
        let rows: Vec<_> = rows.collect();
        let Some(first) = rows.first() else { continue };
        if rows.len() < 2 {
            continue;
        }
        document.heading(format!("Bindings by cost{}", place(ffi, python, 0)));
        let mut table = Table::new([
            Column::number("rank", ""),
            Column::text("binding"),
            Column::number("× floor", ""),
            Column::number("lowest", ""),
            Column::text("in"),
            Column::number("highest", ""),
            Column::text("in"),
        ]);
        let category = |at: usize| ffi.categories[at].name.clone();
        for standing in &rows {
            table.push([
                standing.rank.to_string(),
                ffi.bindings[standing.binding].name.clone(),
                ratio(standing.ratio),
                ratio(standing.least.1),
                category(standing.least.0),
                ratio(standing.most.1),
                category(standing.most.0),
            ]);
        }
        document.table(table);
        document.minor(format!(
            "geometric mean of the time per call relative to {}, over {} common to all bindings",
            ffi.bindings[floor].name,
            plural_y(first.categories, "category", "categories")
        ));
    }
}

fn plural_y(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Categories, without those of the size scan.
fn categories(ffi: &Ffi) -> impl Iterator<Item = usize> {
    (0..ffi.categories.len()).filter(|&at| ffi.categories[at].size.is_none())
}

/// Columns of the table of times: bindings in their order, then the null control.
fn columns(report: &FfiReport, python: usize) -> Vec<Who> {
    let all = (0..report.ffi.bindings.len()).map(Who::Binding).chain([Who::Null]);
    let is_there = |who: &Who| {
        of(report, |cell| cell.who == *who && (cell.python, cell.profile) == (python, 0))
            .any(|(_, figure)| figure.net.is_some())
    };
    all.filter(is_there).collect()
}

fn at<'a>(
    report: &FfiReport<'a>,
    place: (usize, usize, usize),
    who: Who,
) -> Option<(&'a Cell, &'a Figure)> {
    let is_it =
        |cell: &Cell| cell.who == who && (cell.category, cell.python, cell.profile) == place;
    of(report, is_it).next()
}

/// Time per call, with one row per category and one column per binding.
pub(super) fn times(report: &FfiReport, document: &mut Document) {
    let ffi = report.ffi;
    for python in 0..ffi.pythons.len() {
        let columns = columns(report, python);
        document.heading(format!("Time per call{}", place(ffi, python, 0)));
        let head = |who: &Who| name_of(ffi, *who).trim_matches(['(', ')']).replace(" control", "");
        let heads = columns.iter().map(|who| Column::number(&head(who), "ns"));
        let mut table =
            Table::new([Column::text("category")].into_iter().chain(heads).collect::<Vec<_>>());
        for category in categories(ffi) {
            let net = |who: &Who| {
                let found = at(report, (category, python, 0), *who);
                known(found.and_then(|(_, figure)| figure.net), nanos)
            };
            let times = columns.iter().map(net);
            table.push(
                [ffi.categories[category].name.clone()]
                    .into_iter()
                    .chain(times)
                    .collect::<Vec<_>>(),
            );
        }
        document.table(table);
        document.minor("medians over process launches, loop overhead subtracted".to_owned());
    }
}

/// All figures of each category: rank, confidence interval, best, CPU, first call, ratio, counters.
pub(super) fn details(report: &FfiReport, document: &mut Document) {
    let ffi = report.ffi;
    let all: Vec<usize> = categories(ffi).collect();
    if !report.is_whole && all.len() > FEW_CATEGORIES {
        document.minor(
            "for confidence intervals, ranks and counters use --all or -o FILE (.html, .md, .json, .csv)"
                .to_owned(),
        );
        return;
    }
    let counters = counters(report);
    for category in all {
        document.heading(format!(
            "{}: {}",
            ffi.categories[category].name, ffi.categories[category].about
        ));
        for python in 0..ffi.pythons.len() {
            for profile in 0..ffi.profiles.len() {
                one_detail(report, (category, python, profile), &counters, document);
            }
        }
    }
}

fn one_detail(
    report: &FfiReport,
    place_of: (usize, usize, usize),
    counters: &[String],
    document: &mut Document,
) {
    let ffi = report.ffi;
    let (_, python, profile) = place_of;
    let wanted = |cell: &Cell| {
        (cell.category, cell.python, cell.profile) == place_of && cell.who != Who::Loop
    };
    let mut rows: Vec<_> = of(report, wanted).collect();
    if rows.is_empty() {
        return;
    }
    rows.sort_by_key(|(cell, figure)| (figure.rank.unwrap_or(usize::MAX), cell.who));
    let place = place(ffi, python, profile);
    if !place.is_empty() {
        document.minor(place.trim_start_matches(", ").to_owned());
    }
    let mut heads = vec![
        Column::number("rank", ""),
        Column::text("binding"),
        Column::number("median", "ns"),
        Column::range("95 % CI", "ns"),
        Column::number("best", "ns"),
        Column::number("CPU", "ns"),
        Column::number("first call", "ns"),
        Column::number("× floor", ""),
        Column::range("95 % CI", ""),
    ];
    heads.extend(counters.iter().map(|name| Column::number(name, "n")));
    heads.push(Column::text("note").may_go());
    let mut table = Table::new(heads);
    for (cell, figure) in rows {
        table.push(detail(ffi, cell, figure, counters));
    }
    document.table(table);
}

fn detail(ffi: &Ffi, cell: &Cell, figure: &Figure, counters: &[String]) -> Vec<String> {
    let is_measured = figure.net.is_some();
    let number = |ns: f64| if is_measured { nanos(ns) } else { String::new() };
    let mut row = vec![
        figure.rank.map_or_else(String::new, |rank| rank.to_string()),
        name_of(ffi, cell.who).to_owned(),
        known(figure.net, nanos),
        ranged(figure.net, nanos_range),
        number(figure.best_ns),
        number(figure.cpu_ns),
        number(figure.first_ns),
        known(figure.ratio, ratio),
        ranged(figure.ratio, range),
    ];
    for name in counters {
        let counted = figure.counted.iter().find(|(of, ..)| of == name);
        row.push(counted.map_or_else(String::new, |(_, value, _)| significant(value.max(0.0))));
    }
    row.push(cell.trouble.clone().unwrap_or_else(|| cell.note.clone()));
    row
}

/// Names of all counters.
pub(super) fn counters(report: &FfiReport) -> Vec<String> {
    let mut names: Vec<String> = vec![];
    for (name, ..) in report.figures.cells.iter().flat_map(|figure| &figure.counted) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Compares interpreters.
pub(super) fn pythons(report: &FfiReport, document: &mut Document) {
    let ffi = report.ffi;
    if ffi.pythons.len() < 2 {
        return;
    }
    document.heading("Comparison of Python versions");
    let mut heads = vec![Column::text("category"), Column::text("binding")];
    heads.extend(ffi.pythons.iter().map(|python| Column::number(&python.name, "ns")));
    heads.push(Column::number("last / first", ""));
    let mut table = Table::new(heads);
    let mut left_out = 0;
    for category in categories(ffi) {
        for who in (0..ffi.bindings.len()).map(Who::Binding).chain([Who::Null]) {
            let nets: Vec<Option<Known>> = (0..ffi.pythons.len())
                .map(|python| at(report, (category, python, 0), who)?.1.net)
                .collect();
            if nets.iter().flatten().count() < 2 {
                continue;
            }
            if !report.is_whole && category != 0 && categories(ffi).count() > FEW_CATEGORIES {
                left_out += 1;
                continue;
            }
            let ends = nets.first().copied().flatten().zip(nets.last().copied().flatten());
            let mut row = vec![ffi.categories[category].name.clone(), name_of(ffi, who).to_owned()];
            row.extend(nets.iter().map(|net| known(*net, nanos)));
            row.push(
                ends.map_or_else(String::new, |(first, last)| ratio(last.middle / first.middle)),
            );
            table.push(row);
        }
    }
    document.table(table);
    crate::rows::hidden(left_out, document);
}

/// The loop overhead that is subtracted, and the controls that bound the noise.
pub(super) fn controls(report: &FfiReport, document: &mut Document) {
    let ffi = report.ffi;
    document.heading("Controls");
    let mut table = Table::new([
        Column::text("control"),
        Column::text("Python").may_go(),
        Column::number("median", "ns"),
        Column::range("over categories", "ns"),
        Column::text("description"),
    ]);
    for python in 0..ffi.pythons.len() {
        for (who, words) in [
            (Who::Loop, "empty loop, subtracted from all other times"),
            (Who::Null, "call of an empty Python function"),
            (Who::C, "same call from C through a function pointer"),
        ] {
            let wanted = |cell: &Cell| {
                cell.who == who
                    && (cell.python, cell.profile) == (python, 0)
                    && ffi.categories[cell.category].size.is_none()
            };
            let mut nets: Vec<f64> =
                of(report, wanted).filter_map(|(_, of)| Some(of.net?.middle)).collect();
            nets.sort_by(f64::total_cmp);
            let (Some(&low), Some(&high)) = (nets.first(), nets.last()) else { continue };
            let range = if nets.len() > 1 { nanos_range((low, high)) } else { String::new() };
            table.push([
                name_of(ffi, who).trim_matches(['(', ')']).to_owned(),
                if ffi.pythons.len() > 1 {
                    ffi.pythons[python].name.clone()
                } else {
                    String::new()
                },
                nanos(nets[nets.len() / 2]),
                range,
                words.to_owned(),
            ]);
        }
    }
    document.table(table);
}

/// Cost of the second build profile relative to the first.
pub(super) fn differences(report: &FfiReport, document: &mut Document) {
    let FfiReport { ffi, figures, .. } = report;
    let [first, second] = &ffi.profiles[..] else { return };
    if figures.differences.is_empty() {
        return;
    }
    document.heading(format!("Cost of {} builds relative to {} builds", second.name, first.name));
    document.line(summed_up(ffi, &figures.differences));
    let of_null: Vec<&Difference> =
        figures.differences.iter().filter(|of| of.who == Who::Null).collect();
    let mut nulls: Vec<f64> = of_null.iter().map(|of| of.ratio.middle - 1.0).collect();
    nulls.sort_by(f64::total_cmp);
    if let (Some(low), Some(high)) = (nulls.first(), nulls.last()) {
        document.minor(format!(
            "null control (same code in both builds): median {} %, {} to {} % (n = {})",
            change(nulls[nulls.len() / 2]),
            change(*low),
            change(*high),
            plural_y(nulls.len(), "category", "categories")
        ));
    }
    let mut rows: Vec<&Difference> =
        figures.differences.iter().filter(|of| of.who != Who::Null).collect();
    let is_cost = |of: &&Difference| matches!(of.cost, Cost::Slower | Cost::Faster);
    if !report.is_whole && categories(ffi).count() > FEW_CATEGORIES {
        rows.retain(is_cost);
        rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    }
    let shown = crate::rows::kept(&rows, (!report.is_whole).then_some(SOME_DIFFERENCES));
    let counters = counters(report);
    let mut heads = vec![
        Column::text("category"),
        Column::text("binding"),
        Column::text("Python").may_go(),
        Column::number(&first.name, "ns"),
        Column::number(&second.name, "ns"),
        Column::number("diff.", "%"),
        Column::range("95 % CI", "%"),
    ];
    for name in &counters {
        heads.push(Column::number(name, &first.name).may_go());
        heads.push(Column::number(name, &second.name).may_go());
    }
    heads.push(Column::text("verdict"));
    let mut table = Table::new(heads);
    for of in shown {
        let cells = [0, 1].map(|profile| at(report, (of.category, of.python, profile), of.who));
        let net = |cell: Option<(&Cell, &Figure)>| known(cell.and_then(|(_, of)| of.net), nanos);
        let mut row = vec![
            ffi.categories[of.category].name.clone(),
            name_of(ffi, of.who).to_owned(),
            if ffi.pythons.len() > 1 { ffi.pythons[of.python].name.clone() } else { String::new() },
            net(cells[0]),
            net(cells[1]),
            change(of.ratio.middle - 1.0),
            of.ratio.range.map_or_else(String::new, |(low, high)| {
                format!("{} to {}", change(low - 1.0), change(high - 1.0))
            }),
        ];
        for name in &counters {
            for cell in cells {
                let counted =
                    cell.and_then(|(_, of)| of.counted.iter().find(|(of, ..)| of == name));
                row.push(
                    counted.map_or_else(String::new, |(_, value, _)| significant(value.max(0.0))),
                );
            }
        }
        row.push(verdict(of));
        table.push(row);
    }
    if !table.is_empty() {
        document.table(table);
    }
    crate::rows::more(&rows, (!report.is_whole).then_some(SOME_DIFFERENCES), document);
}

fn size(of: &Difference) -> f64 {
    (of.ratio.middle - 1.0).abs()
}

/// The verdict on a difference between builds.
pub(super) fn verdict(of: &Difference) -> String {
    match of.cost {
        Cost::Slower => "slower".into(),
        Cost::Faster => "faster".into(),
        Cost::None { .. } => "no detectable cost".into(),
        Cost::Unknown => "single launch".into(),
    }
}

/// `no detectable cost in 290 of 297 calls; slower in 5, by up to 2.1 % (noop through cffi)`.
fn summed_up(ffi: &Ffi, all: &[Difference]) -> String {
    let all: Vec<&Difference> = all.iter().filter(|of| of.who != Who::Null).collect();
    let such = |is_such: fn(&Cost) -> bool| all.iter().filter(move |of| is_such(&of.cost));
    let most = |of: Vec<&&Difference>| {
        let most = of.into_iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
        let place =
            format!("{} through {}", ffi.categories[most.category].name, name_of(ffi, most.who));
        Some(format!("by up to {} % ({place})", percent(size(most))))
    };
    let none = such(|cost| matches!(cost, Cost::None { .. })).count();
    let mut words =
        vec![format!("no detectable cost in {none} of {}", plural(all.len() as u64, "call"))];
    for (word, is_such) in [
        ("slower", (|cost| matches!(cost, Cost::Slower)) as fn(&Cost) -> bool),
        ("faster", |cost| matches!(cost, Cost::Faster)),
    ] {
        let found: Vec<_> = such(is_such).collect();
        let n = found.len();
        if let Some(by) = most(found) {
            words.push(format!("{word} in {n}, {by}"));
        }
    }
    words.join("; ")
}

/// Array size from which call overhead is below a tenth of the work.
pub(super) fn crossed(report: &FfiReport, document: &mut Document) {
    let FfiReport { ffi, figures, .. } = report;
    if figures.crossed.is_empty() {
        return;
    }
    let scanned = ffi.categories.iter().find(|category| category.size.is_some());
    document.heading(format!(
        "Elements needed for call overhead below 10 % of the work, {}",
        scanned.map_or("", |category| &category.name)
    ));
    let mut heads = vec![
        Column::text("binding"),
        Column::text("Python").may_go(),
        Column::range("elements", "n"),
    ];
    let sizes: Vec<u64> =
        figures.crossed.iter().flat_map(|of| &of.points).fold(vec![], |mut all, point| {
            if !all.contains(&point.size) {
                all.push(point.size);
            }
            all
        });
    heads.extend(sizes.iter().map(|size| Column::number(&format!("n={size}"), "ns").may_go()));
    let mut table = Table::new(heads);
    for of in &figures.crossed {
        let mut row = vec![
            ffi.bindings[of.binding].name.clone(),
            if ffi.pythons.len() > 1 { ffi.pythons[of.python].name.clone() } else { String::new() },
            crossing(of.crossing),
        ];
        for size in &sizes {
            let point = of.points.iter().find(|point| point.size == *size);
            row.push(point.map_or_else(String::new, |point| nanos(point.call_ns)));
        }
        table.push(row);
    }
    document.table(table);
    document.minor("work: time of the same function called in a C loop".to_owned());
}

/// A number of elements, or a bound.
pub(super) fn crossing(of: Crossing) -> String {
    match of {
        Crossing::At(size) => crate::number::count(rounded(size)),
        Crossing::Before(size) => format!("≤ {}", crate::number::count(size)),
        Crossing::After(size) => format!("> {}", crate::number::count(size)),
        Crossing::Unknown => String::new(),
    }
}

/// Rounds to two digits. The scanned sizes are too far apart for more.
fn rounded(size: f64) -> u64 {
    let step = 10f64.powf(size.max(1.0).log10().floor() - 1.0).max(1.0);
    ((size / step).round() * step) as u64
}

/// Profiling overhead.
pub(super) fn overheads(report: &FfiReport, document: &mut Document) {
    let ffi = report.ffi;
    let Some(first) = ffi.overheads.first() else { return };
    document.heading("Profiling overhead");
    let mut table = Table::new([
        Column::text("build"),
        Column::text("method"),
        Column::number("per call", "%"),
        Column::range("95 % CI", "%"),
        Column::number("total CPU", "%"),
        Column::number("runs", "n"),
        Column::number("samples", "n"),
        Column::number("complete stacks", "%"),
        Column::number("recorded", "MB"),
    ]);
    let mut not_here: Vec<(String, &str)> = vec![];
    for of in &ffi.overheads {
        let Overhead {
            profile, method, ratio, whole, n, samples, complete, bytes, why_not, ..
        } = of;
        if !why_not.is_empty() && !not_here.iter().any(|(known, _)| known == method) {
            not_here.push((method.clone(), why_not));
        }
        let is_measured = ratio.is_some();
        let number = |n: u64| if is_measured { crate::number::count(n) } else { String::new() };
        table.push([
            ffi.profiles[*profile].name.clone(),
            method.clone(),
            ratio.map_or_else(String::new, |of| change(of.middle - 1.0)),
            ratio.map_or_else(String::new, |of| {
                format!("{} to {}", change(of.low - 1.0), change(of.high - 1.0))
            }),
            if is_measured { change(whole - 1.0) } else { String::new() },
            number(*n as u64),
            number(*samples),
            complete.map_or_else(String::new, percent),
            bytes.map_or_else(String::new, |bytes| significant(bytes as f64 / 1e6)),
        ]);
    }
    document.table(table);
    for (method, why) in not_here {
        document.line(format!("{method} is not available: {}", why.trim()));
    }
    document.minor(format!(
        "workload: {}; per call: CPU time of the measured loop; total CPU: CPU time of the whole run, including the recorder; complete stacks reach the program's entry point",
        first.workload
    ));
}

/// Notes on bindings that do not do exactly the same work.
pub(super) fn notes(report: &FfiReport, document: &mut Document) {
    let ffi = report.ffi;
    let mut lines: Vec<String> = vec![];
    let noted = |cell: &Cell| {
        !cell.note.is_empty()
            && (cell.python, cell.profile) == (0, 0)
            && ffi.categories[cell.category].size.is_none()
    };
    let mut cells: Vec<&Cell> = of(report, noted).map(|(cell, _)| cell).collect();
    cells.sort_by_key(|cell| (cell.category, cell.who));
    for cells in cells.chunk_by(|a, b| a.category == b.category && a.note == b.note) {
        let names: Vec<&str> = cells.iter().map(|cell| name_of(ffi, cell.who)).collect();
        let category = &ffi.categories[cells[0].category].name;
        lines.push(format!("{category}, {}: {}", names.join(" and "), cells[0].note));
    }
    if !lines.is_empty() {
        document.heading("Differences between bindings");
        for line in lines {
            document.line(line);
        }
    }
}
