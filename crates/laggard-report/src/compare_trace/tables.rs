//! Tables of a trace comparison: device time, host and ranks.

use super::words::{Lap, signed, time as shown_time};
use super::{CompareTrace, Shown};
use crate::bench::words::{range, ratio};
use crate::document::Document;
use crate::number::{Quantity, Unit, count, mean_count, percent, plural, significant, with_sign};
use crate::rows::{kept, more};
use crate::table::{Column, Table};
use crate::trace::breakdown::{noun, title};
use laggard_core::compare::trace::found::{
    Finding, HostFinding, HostUnit, KernelUse, RankPair, Spent, Verdict, row_label,
};
use laggard_core::trace::By;

/// Maximum kernels listed per class and side, unless all rows are requested.
const MOST_KERNELS: usize = 4;

/// Adds the device time of a step by activity and cause of idle time.
pub(super) fn time(report: &CompareTrace, document: &mut Document) {
    let lap = Lap::common(report.comparison);
    document.heading(format!("Device time per {}", lap.one));
    let rows: Vec<_> =
        report.comparison.time.iter().map(|row| (row_label(&row.name).to_owned(), row)).collect();
    findings(report, &rows, None, "what", document);
}

/// Adds every table with data: classes, phases, operators and kernels.
pub(super) fn all(report: &CompareTrace, document: &mut Document) {
    table(report, By::Class, document);
    for by in [By::Phase, By::Shape] {
        if says_something(report.rows(by), by) {
            table(report, by, document);
        }
    }
    kernels(report, document);
}

/// Whether a table adds information: not if it has a single phase, or no row with an operator.
fn says_something(rows: &[Finding], by: By) -> bool {
    match by {
        By::Phase => rows.len() > 1,
        By::Shape => rows.iter().any(|row| row.name != "(no operator)"),
        _ => !rows.is_empty(),
    }
}

/// Adds the table of device time by one key.
pub(super) fn table(report: &CompareTrace, by: By, document: &mut Document) {
    document.heading(if by == By::Class { "Operations by class" } else { title(by) });
    let rows: Vec<_> = report.rows(by).iter().map(|row| (row.name.clone(), row)).collect();
    findings(report, &rows, report.top, noun(by), document);
}

/// Adds a table of findings, each with its label.
pub(super) fn findings(
    report: &CompareTrace,
    all: &[(String, &Finding)],
    top: Option<usize>,
    noun: &str,
    document: &mut Document,
) {
    let rows = kept(all, top);
    if rows.is_empty() {
        document.line("no rows");
        return;
    }
    let whole = &report.comparison.whole;
    let unit = unit(rows.iter().flat_map(|(_, row)| row.sides.iter().map(|side| side.lap_ns)));
    let has_class = noun != "class" && rows.iter().any(|(_, row)| !row.class.is_empty());
    let has_other_n = rows.iter().any(|(_, row)| samples(row) != samples(whole));
    let has_peak =
        rows.iter().any(|(_, row)| row.rate.iter().flatten().any(|rate| rate.peak_share.is_some()));
    let rates =
        rows.iter().flat_map(|(_, row)| row.rate.iter().flatten().map(|rate| rate.flops_per_s));
    let rate_unit = Quantity::FlopRate.unit(rates);
    let mut table = Table::new([
        Column::number("diff.", unit.name),
        Column::number("±", unit.name).may_go(),
        Column::number("ratio", ""),
        Column::number("A", unit.name),
        Column::number("B", unit.name),
        Column::range("count", "n, n").may_go(),
        Column::range("samples", "n, n").may_go(),
        Column::number("share", "%").may_go(),
        if has_peak {
            Column::range("of peak", "%, %").may_go()
        } else {
            Column::range("rate", &format!("{0}, {0}", rate_unit.name)).may_go()
        },
        Column::text("class").may_go(),
        Column::names(noun),
        Column::text("verdict"),
    ]);
    let if_told = |is_told: bool, cell: String| if is_told { cell } else { String::new() };
    for (name, row) in rows {
        let rate = row.rate.map(|rate| match (rate, has_peak) {
            (Some(rate), true) => rate.peak_share.map_or_else(String::new, percent),
            (Some(rate), false) => rate_unit.number(rate.flops_per_s),
            (None, _) => String::new(),
        });
        table.push([
            signed_in(unit, row.gap_ns.middle),
            half(unit, row),
            row.ratio.map_or_else(String::new, significant),
            lap_time(unit, row, 0),
            lap_time(unit, row, 1),
            pair(row.sides.map(|side| if_told(side.count > 0, mean_count(side.lap_count)))),
            if_told(has_other_n, samples(row)),
            share_of_gap(report, row),
            pair(rate),
            if_told(has_class, row.class.clone()),
            name.clone(),
            verdict(row.verdict).to_owned(),
        ]);
    }
    document.table(table);
    let rest = &all[rows.len()..];
    if !rest.is_empty() {
        let gap = rest.iter().map(|(_, row)| row.gap_ns.middle).sum::<f64>();
        let rows = plural(rest.len() as u64, "more row");
        document.minor(format!("({rows}: {})", signed(gap)));
    }
}

/// Adds the kernels that both sides run, then the kernels that only one side runs.
pub(super) fn kernels(report: &CompareTrace, document: &mut Document) {
    let rows = report.rows(By::Kernel);
    let is_of_one = |row: &Finding| matches!(row.verdict, Verdict::OnlyInA | Verdict::OnlyInB);
    let same: Vec<&Finding> = rows.iter().filter(|row| !is_of_one(row)).collect();
    if !same.is_empty() || report.shown != Shown::Whole {
        document.heading("Kernels in A and B");
        same_kernels(report, &same, document);
    }
    for (side, verdict) in [Verdict::OnlyInA, Verdict::OnlyInB].into_iter().enumerate() {
        let rows: Vec<&Finding> = rows.iter().filter(|row| row.verdict == verdict).collect();
        if !rows.is_empty() {
            document.heading(format!("Kernels only in {}", ["A", "B"][side]));
            kernels_of_one(report, &rows, side, document);
        }
    }
}

fn same_kernels(report: &CompareTrace, all: &[&Finding], document: &mut Document) {
    let rows = kept(all, report.top);
    if rows.is_empty() {
        document.line("no kernel has the same name on both sides");
        return;
    }
    let gap = unit(rows.iter().map(|row| row.gap_ns.middle));
    let mean = unit(rows.iter().flat_map(|row| row.sides.iter().map(|side| side.mean_ns)));
    let mut table = Table::new([
        Column::number("diff.", gap.name),
        Column::number("±", gap.name).may_go(),
        Column::number("ratio", "of means"),
        Column::number("mean A", mean.name),
        Column::number("mean B", mean.name),
        Column::range("samples", "n, n"),
        Column::number("share", "%").may_go(),
        Column::text("grid, block").may_go(),
        Column::text("class").may_go(),
        Column::names("kernel"),
        Column::text("verdict"),
    ]);
    for row in rows {
        let [a, b] = &row.sides;
        let [grid_a, grid_b] = &row.geometry;
        let is_known = a.mean_ns > 0.0 && b.mean_ns > 0.0;
        table.push([
            signed_in(gap, row.gap_ns.middle),
            half(gap, row),
            if is_known { significant(b.mean_ns / a.mean_ns) } else { String::new() },
            mean.number(a.mean_ns),
            mean.number(b.mean_ns),
            pair([0, 1].map(|side| count(pieces(report, row, side)))),
            share_of_gap(report, row),
            if grid_a == grid_b { String::new() } else { format!("{grid_a} / {grid_b}") },
            row.class.clone(),
            row.name.clone(),
            verdict(row.verdict).to_owned(),
        ]);
    }
    document.table(table);
    more(all, report.top, document);
}

fn kernels_of_one(report: &CompareTrace, all: &[&Finding], side: usize, document: &mut Document) {
    let rows = kept(all, report.top);
    let lap = unit(rows.iter().map(|row| row.sides[side].lap_ns));
    let mean = unit(rows.iter().map(|row| row.sides[side].mean_ns));
    let mut table = Table::new([
        Column::number("time", lap.name),
        Column::number("mean", mean.name),
        Column::number("count", "n"),
        Column::number("samples", "n"),
        Column::number("share", "%").may_go(),
        Column::text("class").may_go(),
        Column::names("kernel"),
    ]);
    for row in rows {
        let Spent { lap_ns, mean_ns, lap_count, .. } = row.sides[side];
        table.push([
            lap.number(lap_ns),
            mean.number(mean_ns),
            mean_count(lap_count),
            count(pieces(report, row, side)),
            share_of_gap(report, row),
            row.class.clone(),
            row.name.clone(),
        ]);
    }
    document.table(table);
    more(all, report.top, document);
}

/// Number of kernels that a mean is computed from: those within steps.
fn pieces(report: &CompareTrace, row: &Finding, side: usize) -> u64 {
    let laps = report.comparison.sides[side].laps;
    (row.sides[side].lap_count * laps as f64).round() as u64
}

/// Adds the host's metrics per step.
pub(super) fn host(report: &CompareTrace, document: &mut Document) {
    let rows = &report.comparison.host;
    if rows.is_empty() {
        return;
    }
    document.heading("Host");
    let mut table = Table::new([
        Column::text("what"),
        Column::range("A", ""),
        Column::range("B", ""),
        Column::number("ratio", ""),
        Column::range("95 % CI", "").may_go(),
        Column::range("samples", "n, n"),
        Column::text("verdict"),
    ]);
    for row in rows {
        table.push([
            row_label(&row.name).to_owned(),
            host_value(row, 0),
            host_value(row, 1),
            row.ratio.map_or_else(String::new, ratio),
            row.ratio_range.map_or_else(String::new, range),
            pair(row.n.map(count)),
            host_verdict(row).to_owned(),
        ]);
    }
    document.table(table);
}

/// Verdict of a row; counts are "more" or "fewer" instead of "slower" or "faster".
fn host_verdict(row: &HostFinding) -> &'static str {
    match (row.unit, row.verdict) {
        (HostUnit::Count, Verdict::Slower) => "more",
        (HostUnit::Count, Verdict::Faster) => "fewer",
        _ => verdict(row.verdict),
    }
}

fn host_value(row: &HostFinding, side: usize) -> String {
    row.values[side].map_or_else(String::new, |value| match row.unit {
        HostUnit::Nanos => shown_time(value),
        HostUnit::Count => mean_count(value),
        HostUnit::Share => format!("{} %", percent(value)),
    })
}

/// Adds the ranks of both sides.
pub(super) fn ranks(report: &CompareTrace, document: &mut Document) {
    let all = &report.comparison.ranks;
    let rows = kept(all, report.top);
    if rows.is_empty() {
        return;
    }
    document.heading("Ranks");
    let unit = unit(rows.iter().flat_map(|row| row.whole.sides.iter().map(|side| side.lap_ns)));
    let mut table = Table::new([
        Column::number("rank", ""),
        Column::number("diff.", unit.name),
        Column::number("±", unit.name).may_go(),
        Column::number("ratio", ""),
        Column::number("A", unit.name),
        Column::number("B", unit.name),
        Column::range("samples", "n, n"),
        Column::text("largest difference"),
        Column::text("verdict"),
    ]);
    for row in rows {
        let largest = row.largest.as_ref();
        let is_on_both = row.paths.iter().all(|path| !path.is_empty());
        let gap = if is_on_both { signed_in(unit, row.whole.gap_ns.middle) } else { String::new() };
        table.push([
            row.rank.to_string(),
            gap,
            half(unit, &row.whole),
            row.whole.ratio.map_or_else(String::new, significant),
            lap_time(unit, &row.whole, 0),
            lap_time(unit, &row.whole, 1),
            samples(&row.whole),
            largest.map_or_else(String::new, |(name, gap)| {
                format!("{} {}", signed(*gap), row_label(name))
            }),
            rank_verdict(row).to_owned(),
        ]);
    }
    document.table(table);
    more(all, report.top, document);
}

fn rank_verdict(row: &RankPair) -> &'static str {
    match &row.paths {
        [_, b] if b.is_empty() => Verdict::OnlyInA.word(),
        [a, _] if a.is_empty() => Verdict::OnlyInB.word(),
        _ => verdict(row.whole.verdict),
    }
}

/// Adds the kernels, the operator and the Python line of every class, by difference.
pub(super) fn stacks(report: &CompareTrace, document: &mut Document) {
    document.heading("Kernels, operators and Python lines by class");
    let rows = report.rows(By::Class);
    if rows.is_empty() {
        document.line("no device operations");
    }
    for row in kept(rows, report.top) {
        let ratio =
            row.ratio.map_or_else(String::new, |ratio| format!(", {}x", significant(ratio)));
        let verdict = match verdict(row.verdict) {
            "" => String::new(),
            word => format!(", {word}"),
        };
        let title = format!("{}  {}{ratio}{verdict}", signed(row.gap_ns.middle), row.name);
        let frames: Vec<String> =
            [0, 1].iter().flat_map(|&side| behind(report, row, side)).collect();
        document.stack(title, &frames);
    }
    more(rows, report.top, document);
}

/// Lines that describe one class on one side.
fn behind(report: &CompareTrace, row: &Finding, side: usize) -> Vec<String> {
    let name = ["A", "B"][side];
    let Spent { lap_ns, lap_count, count: n, .. } = row.sides[side];
    if n == 0 {
        return vec![format!("{name}  none")];
    }
    let lap = Lap::common(report.comparison).one;
    let mut lines = vec![format!(
        "{name}  {} in {} operations per {lap}",
        shown_time(lap_ns),
        mean_count(lap_count)
    )];
    let kernels = &row.kernels[side];
    let most = report.top.map(|_| MOST_KERNELS);
    let kernel = |used: &KernelUse| {
        let total = shown_time(used.total_ns as f64);
        format!("   kernel    {total} total (n = {})  {}", count(used.count), used.name)
    };
    lines.extend(kept(kernels, most).iter().map(kernel));
    let left = kernels.len() - kept(kernels, most).len();
    if left > 0 {
        lines.push(format!("   ({})", plural(left as u64, "more kernel")));
    }
    for (what, of) in [("operator", &row.ops[side]), ("Python  ", &row.lines[side])] {
        if !of.is_empty() {
            lines.push(format!("   {what}  {of}"));
        }
    }
    lines
}

/// The unit for a column of times.
pub(super) fn unit(ns: impl IntoIterator<Item = f64>) -> Unit {
    Quantity::Time.unit(ns)
}

/// A difference in this unit, with its sign.
pub(super) fn signed_in(unit: Unit, ns: f64) -> String {
    with_sign(ns, unit.number(ns))
}

/// The values of A and B in one cell; empty if both are empty.
pub(super) fn pair([a, b]: [String; 2]) -> String {
    let shown = |value: String| if value.is_empty() { "-".to_owned() } else { value };
    if a.is_empty() && b.is_empty() { String::new() } else { format!("{}, {}", shown(a), shown(b)) }
}

/// Half-width of the confidence interval of a difference.
fn half(unit: Unit, row: &Finding) -> String {
    row.gap_ns.range.map_or_else(String::new, |(low, high)| unit.number((high - low) / 2.0))
}

/// Time of a side per step; empty if only the other side has the row.
fn lap_time(unit: Unit, row: &Finding, side: usize) -> String {
    match row.verdict {
        Verdict::OnlyInA if side == 1 => String::new(),
        Verdict::OnlyInB if side == 0 => String::new(),
        _ => unit.number(row.sides[side].lap_ns),
    }
}

/// Share of the whole difference; empty if the whole difference is not detectable.
fn share_of_gap(report: &CompareTrace, row: &Finding) -> String {
    match report.comparison.whole.verdict {
        Verdict::NoDetectableDifference(_) => String::new(),
        _ => with_sign(row.share, percent(row.share)),
    }
}

/// Sample sizes of a row: steps, or kernels within one step.
fn samples(row: &Finding) -> String {
    pair(row.sides.map(|side| if side.n > 0 { count(side.n) } else { String::new() }))
}

/// The verdict in a cell; empty for a single sample, which the legend explains.
pub(super) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::SingleSample => "",
        Verdict::NoDetectableDifference(_) => "not detectable",
        verdict => verdict.word(),
    }
}
