//! CSV of a trace comparison. Times are in nanoseconds; names are unchanged from the traces.

use super::order::side_word;
use super::{CompareTrace, Shown};
use crate::rows::kept;
use crate::table::{Column, Table};
use laggard_core::compare::trace::found::{Finding, KernelUse, Spread};
use laggard_core::trace::By;

/// Columns of a finding, after its key columns.
const FINDING: [&str; 37] = [
    "name",
    "class",
    "count_a",
    "count_b",
    "total_a_ns",
    "total_b_ns",
    "lap_count_a",
    "lap_count_b",
    "lap_a_ns",
    "lap_b_ns",
    "mean_a_ns",
    "mean_b_ns",
    "n_a",
    "n_b",
    "gap_ns",
    "gap_low_ns",
    "gap_high_ns",
    "ratio",
    "ratio_low",
    "ratio_high",
    "total_gap_ns",
    "share",
    "verdict",
    "spread",
    "p",
    "flops_per_s_a",
    "flops_per_s_b",
    "peak_share_a",
    "peak_share_b",
    "geometry_a",
    "geometry_b",
    "kernel_a",
    "kernel_b",
    "op_a",
    "op_b",
    "line_a",
    "line_b",
];

pub(super) fn csv(report: &CompareTrace) -> String {
    match report.shown {
        Shown::Layers => layers(report),
        Shown::Fusion => fusions(report),
        Shown::Table(by) => findings(report, by),
        Shown::Whole | Shown::Stacks => findings(report, By::Class),
    }
}

fn findings(report: &CompareTrace, by: By) -> String {
    let mut table = of_columns(["by"].iter().chain(&FINDING));
    for row in kept(report.rows(by), report.top) {
        table.push([vec![by.word().to_owned()], finding(row)].concat());
    }
    table.csv()
}

fn layers(report: &CompareTrace) -> String {
    let mut table = of_columns(["layer_a", "layer_b"].iter().chain(&FINDING));
    for row in kept(&report.comparison.layers.rows, report.top) {
        let numbers = row.numbers.map(|n| n.map_or_else(String::new, |n| n.to_string()));
        table.push([numbers.to_vec(), finding(&row.finding)].concat());
    }
    table.csv()
}

/// Kernels of a sequence are joined by `;`, as frames are in collapsed stacks.
fn fusions(report: &CompareTrace) -> String {
    let columns = [
        "fused_by",
        "fused",
        "unfused",
        "classes_fused",
        "classes_unfused",
        "lap_count",
        "seen",
        "mean_fused_ns",
        "mean_unfused_ns",
        "saved_ns",
        "confidence",
        "evidence",
    ];
    let mut table = of_columns(columns.iter());
    for row in kept(&report.comparison.fusions, report.top) {
        table.push([
            side_word(row).to_owned(),
            row.fused.join(";"),
            row.unfused.join(";"),
            row.classes[0].join(";"),
            row.classes[1].join(";"),
            number(row.lap_count),
            row.seen.to_string(),
            number(row.mean_ns[0]),
            number(row.mean_ns[1]),
            number(row.saved_ns),
            number(row.confidence),
            row.evidence.clone(),
        ]);
    }
    table.csv()
}

fn of_columns<'a>(names: impl Iterator<Item = &'a &'a str>) -> Table {
    Table::new(names.map(|name| Column::text(name)).collect::<Vec<_>>())
}

/// The cells of [`FINDING`].
fn finding(row: &Finding) -> Vec<String> {
    let [a, b] = &row.sides;
    let (low, high) = row.gap_ns.range.unzip();
    let longest = |kernels: &[KernelUse]| kernels.first().map(|used| used.name.clone());
    let [rate_a, rate_b] = row.rate;
    [
        vec![row.name.clone(), row.class.clone()],
        [a, b].map(|side| side.count.to_string()).to_vec(),
        [a, b].map(|side| side.total_ns.to_string()).to_vec(),
        [a, b].map(|side| number(side.lap_count)).to_vec(),
        [a, b].map(|side| number(side.lap_ns)).to_vec(),
        [a, b].map(|side| number(side.mean_ns)).to_vec(),
        [a, b].map(|side| side.n.to_string()).to_vec(),
        vec![
            number(row.gap_ns.middle),
            known(low),
            known(high),
            known(row.ratio),
            known(row.ratio_range.map(|range| range.low)),
            known(row.ratio_range.map(|range| range.high)),
            (b.total_ns.saturating_sub(a.total_ns)).to_string(),
            number(row.share),
            row.verdict.word().to_owned(),
            row.spread.word().to_owned(),
            known(Some(row.p).filter(|_| row.spread != Spread::None)),
        ],
        [rate_a, rate_b].map(|rate| known(rate.map(|rate| rate.flops_per_s))).to_vec(),
        [rate_a, rate_b].map(|rate| known(rate.and_then(|rate| rate.peak_share))).to_vec(),
        row.geometry.to_vec(),
        row.kernels.each_ref().map(|kernels| longest(kernels).unwrap_or_default()).to_vec(),
        row.ops.to_vec(),
        row.lines.to_vec(),
    ]
    .concat()
}

/// Formats a number; empty if it is not finite.
fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

fn known(value: Option<f64>) -> String {
    value.map_or_else(String::new, number)
}
