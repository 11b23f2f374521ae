//! Counters as CSV: rows for counters, their parts and derived metrics.

use super::{CountersReport, word_of};
use crate::table::{Column, Table};
use laggard_core::counters::{derive, totals};
use laggard_core::model::counters::Counter;

const COLUMNS: [&str; 12] = [
    "kind",
    "event",
    "modifiers",
    "core",
    "of",
    "until_s",
    "value",
    "unit",
    "state",
    "counted",
    "spread",
    "run_ns",
];

/// CSV. `kind` is `counter`, `part` (of the preceding counter, by core type) or `derived`. `counted` and
/// `spread` are fractions.
pub fn csv(report: &CountersReport) -> String {
    let counters = report.counters;
    let mut table = Table::new(COLUMNS.map(Column::text));
    for row in &counters.rows {
        table.push(line("counter", row));
        for part in &row.parts {
            table.push(line("part", part));
        }
    }
    for of in derive(counters, &totals(counters)) {
        let state = match of.missing.is_empty() {
            true => "derived".to_owned(),
            false => format!("missing: {}", of.missing.join(", ")),
        };
        let mut row = vec!["derived".to_owned(), of.name.to_owned()];
        row.resize(6, String::new());
        row.push(number(of.value));
        row.push(word_of(of.figure).to_owned());
        row.push(state);
        row.push(String::new());
        row.push(number(of.spread));
        table.push(row);
    }
    table.csv()
}

fn line(kind: &str, row: &Counter) -> Vec<String> {
    vec![
        kind.to_owned(),
        row.name.clone(),
        row.modifiers.clone(),
        row.pmu.clone(),
        row.of.clone(),
        number(row.time_ns.map(|ns| ns as f64 / 1e9)),
        number(row.value()),
        row.unit.clone(),
        row.reading.word().to_owned(),
        number(row.counted),
        number(row.spread),
        row.run_ns.map_or_else(String::new, |ns| ns.to_string()),
    ]
}

/// At most nine decimals, without trailing zeros.
pub(crate) fn number(value: Option<f64>) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return String::new() };
    let text = format!("{value:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
