//! Tables of a benchmark report: comparisons by case, and times of each side.

use super::{BenchReport, words};
use crate::document::Document;
use crate::number::{Quantity, count, plural, significant};
use crate::rows::{kept, more};
use crate::table::{Column, Table};
use laggard_core::compare::timings::CaseComparison;
use laggard_core::model::timings::{Case, Series};
use laggard_core::stats::summary::{Summary, bootstrap_median_interval};

/// Bootstrap resamples for the confidence interval of the median.
const RESAMPLES: usize = 2000;
/// Fixed seed, so that the same file gives the same interval.
const SEED: u64 = 1;

/// The median of a series with its confidence interval.
pub(super) struct Median {
    pub(super) all: Summary,
    /// 95 % confidence interval; `None` for a single sample.
    pub(super) range: Option<(f64, f64)>,
}

impl Median {
    pub(super) fn of(series: &Series) -> Median {
        let wall = series.wall();
        let range = (wall.len() > 1).then(|| bootstrap_median_interval(&wall, RESAMPLES, SEED));
        Median { all: Summary::of(&wall), range }
    }
}

/// Time per call of a single side.
pub(super) fn alone(case: &Case) -> String {
    let Some(series) = case.series.first() else { return "nothing was measured".to_owned() };
    let Median { all, range } = Median::of(series);
    let time = |ns: f64| Quantity::Time.show(ns);
    match range {
        Some((low, high)) => format!(
            "median {} per call (95 % CI {} to {}, n = {})",
            time(all.median),
            time(low),
            time(high),
            plural(all.n as u64, "round")
        ),
        None => format!("{} per call (single sample)", time(all.median)),
    }
}

/// One row per case; with more than two sides, one row per comparison.
pub(super) fn cases(report: &BenchReport, document: &mut Document) {
    document.heading("Cases");
    let timings = report.timings;
    let shown = kept(&timings.cases, report.top);
    let labels = words::Labels::of(&timings.cases);
    let medians: Vec<Vec<f64>> = shown
        .iter()
        .map(|case| case.series.iter().map(|of| Summary::of(&of.wall()).median).collect())
        .collect();
    let unit = Quantity::Time.unit(medians.iter().flatten().copied());
    let pairs = timings.sides.len() > 2;
    let name = |side: usize| timings.sides.get(side).map_or("", |side| side.name.as_str());
    let mut columns = vec![Column::text("case"), Column::number(name(0), unit.name)];
    if pairs {
        columns.push(Column::text("side"));
        columns.push(Column::number("time", unit.name));
    } else {
        columns.push(Column::number(name(1), unit.name));
    }
    columns.extend([
        Column::number("ratio", ""),
        Column::range("95 % CI", ""),
        Column::text("verdict"),
    ]);
    let mut table = Table::new(columns);
    for (at, (case, medians)) in shown.iter().zip(&medians).enumerate() {
        let time = |side: usize| medians.get(side).map_or_else(String::new, |ns| unit.number(*ns));
        let mut found = of_case(report, at).peekable();
        if found.peek().is_none() {
            table.push([labels.of_case(case), time(0)]);
        }
        for found in found {
            let mut row = vec![labels.of_case(case), time(0)];
            if pairs {
                row.push(name(found.side).to_owned());
            }
            row.push(time(found.side));
            row.push(found.wall.map_or_else(String::new, |ratio| words::ratio(ratio.middle)));
            row.push(found.wall.map_or_else(String::new, words::range));
            row.push(words::short(found));
            table.push(row);
        }
    }
    document.table(table);
    more(&timings.cases, report.top, document);
    if !labels.shared().is_empty() {
        document.minor(format!("all cases: {}", labels.shared()));
    }
    if !report.comparisons.is_empty() {
        document.minor(format!("median time per call; ratio: relative to {}", name(0)));
    }
}

pub(super) fn of_case<'a>(
    report: &BenchReport<'a>,
    case: usize,
) -> impl Iterator<Item = &'a CaseComparison> {
    report.comparisons.iter().filter(move |found| found.case == case)
}

/// Times of each side in each case.
pub(super) fn measured(report: &BenchReport, document: &mut Document) {
    let timings = report.timings;
    let shown = kept(&timings.cases, report.top);
    let all: Vec<(&Case, usize, &Series, Median)> = shown
        .iter()
        .flat_map(|case| case.series.iter().enumerate().map(move |(at, of)| (case, at, of)))
        .map(|(case, at, of)| (case, at, of, Median::of(of)))
        .collect();
    if all.is_empty() {
        return;
    }
    document.heading("Time per call");
    let labels = words::Labels::of(&timings.cases);
    // With several cases, the table above contains the confidence intervals.
    let is_all = timings.cases.len() == 1 || report.comparisons.is_empty();
    let unit = Quantity::Time.unit(all.iter().map(|(.., median)| median.all.median));
    let memory = Quantity::Bytes.unit(all.iter().map(|(_, _, of, _)| of.peak_memory as f64));
    let mut counters: Vec<&str> = vec![];
    for (_, _, series, _) in &all {
        for counter in &series.counters {
            if !counters.contains(&counter.name.as_str()) {
                counters.push(&counter.name);
            }
        }
    }
    let mut columns = vec![
        Column::text("case"),
        Column::text("side"),
        Column::number("median", unit.name),
        Column::range("95 % CI", unit.name),
        Column::range("quartiles", unit.name),
        Column::number("CPU", unit.name),
        Column::number("page faults", "n"),
        Column::number("peak memory", memory.name),
        Column::number("threads", "n"),
        Column::number("rounds", "n"),
        Column::number("calls", "n"),
    ];
    columns.extend(counters.iter().map(|name| Column::number(name, "n")));
    let mut table = Table::new(columns);
    for (case, side, series, median) in &all {
        let known = |value: u64| if value == 0 { String::new() } else { count(value) };
        let calls: u64 =
            series.batches.iter().map(|batch| batch.calls).fold(0, u64::saturating_add);
        let between = |(low, high): (f64, f64)| unit.range(low, " to ", high);
        let mut row = vec![
            labels.of_case(case),
            timings.sides.get(*side).map_or_else(String::new, |side| side.name.clone()),
            unit.number(median.all.median),
            median.range.filter(|_| is_all).map_or_else(String::new, between),
            if median.range.is_some() {
                between((median.all.p25, median.all.p75))
            } else {
                String::new()
            },
            super::cpu(series).map_or_else(String::new, |cpu| unit.number(cpu.median)),
            super::faults(series).map_or_else(String::new, significant),
            if series.peak_memory == 0 {
                String::new()
            } else {
                memory.number(series.peak_memory as f64)
            },
            known(series.threads.into()),
            count(median.all.n as u64),
            if is_all { count(calls) } else { String::new() },
        ];
        for name in &counters {
            let of = series.counters.iter().find(|counter| counter.name == *name);
            row.push(of.map_or_else(String::new, |of| significant(of.per_call)));
        }
        table.push(row);
    }
    document.table(table);
    more(&timings.cases, report.top, document);
    if report.comparisons.is_empty() && !labels.shared().is_empty() {
        document.minor(format!("all cases: {}", labels.shared()));
    }
}
