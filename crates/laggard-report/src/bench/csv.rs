//! A benchmark as CSV.

use super::tables::{Median, of_case};
use super::{BenchReport, cpu, faults};
use crate::table::{Column, Table};
use laggard_core::stats::ratio::Interval;

const COLUMNS: [&str; 29] = [
    "case",
    "parameters",
    "side",
    "runs",
    "rounds",
    "calls",
    "median_ns",
    "low_ns",
    "high_ns",
    "min_ns",
    "p25_ns",
    "p75_ns",
    "max_ns",
    "mean_ns",
    "cpu_ns",
    "page_faults",
    "allocations",
    "peak_memory_bytes",
    "threads",
    "ratio",
    "ratio_low",
    "ratio_high",
    "gap_ns",
    "gap_low_ns",
    "gap_high_ns",
    "p",
    "adjusted_p",
    "cliffs_delta",
    "verdict",
];

/// CSV with one row per side and case. Comparison columns are empty for the first side.
pub fn csv(report: &BenchReport) -> String {
    let mut table = Table::new(COLUMNS.map(Column::text));
    for (at, case) in report.timings.cases.iter().enumerate() {
        let parameters: Vec<String> =
            case.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        for (number, series) in case.series.iter().enumerate() {
            let side = report.timings.sides.get(number);
            let text = |of: Option<&String>| of.cloned().unwrap_or_default();
            let Median { all, range } = Median::of(series);
            let calls: u64 =
                series.batches.iter().map(|batch| batch.calls).fold(0, u64::saturating_add);
            let mut row = vec![
                case.name.clone(),
                parameters.join(" "),
                text(side.map(|side| &side.name)),
                match series.runs.as_str() {
                    "" => text(side.map(|side| &side.runs)),
                    own => own.to_owned(),
                },
                all.n.to_string(),
                calls.to_string(),
                number_or_none(Some(all.median)),
                number_or_none(range.map(|range| range.0)),
                number_or_none(range.map(|range| range.1)),
            ];
            row.extend(
                [all.min, all.p25, all.p75, all.max, all.mean].map(Some).map(number_or_none),
            );
            row.push(number_or_none(cpu(series).map(|cpu| cpu.median)));
            row.push(number_or_none(faults(series)));
            let allocations = series.counters.iter().find(|counter| counter.name == "allocations");
            row.push(number_or_none(allocations.map(|counter| counter.per_call)));
            let known = |value: u64| if value == 0 { String::new() } else { value.to_string() };
            row.push(known(series.peak_memory));
            row.push(known(series.threads.into()));
            if let Some(found) = of_case(report, at).find(|found| found.side == number) {
                row.extend(three(found.wall));
                row.extend(three(found.gap_ns));
                row.push(chance(found.p));
                row.push(chance(found.adjusted_p));
                row.push(number_or_none(found.ranks.map(|of| of.delta.0)));
                row.push(super::json::word(found.verdict).to_owned());
            }
            table.push(row);
        }
    }
    table.csv()
}

pub(crate) fn three(of: Option<Interval>) -> [String; 3] {
    [of.map(|of| of.middle), of.map(|of| of.low), of.map(|of| of.high)].map(number_or_none)
}

/// At most six decimals, without trailing zeros; empty if missing or not finite.
pub(crate) fn number_or_none(value: Option<f64>) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return String::new() };
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A p-value, in scientific notation below 0.001.
pub(crate) fn chance(p: f64) -> String {
    if p < 1e-3 { format!("{p:.3e}") } else { number_or_none(Some(p)) }
}
