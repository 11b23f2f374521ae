//! The run as one table: one row per caller, category, build and interpreter.

use super::{FfiReport, name_of, tables};
use crate::table::{Column, Table};
use laggard_core::ffi::Known;

const COLUMNS: [&str; 21] = [
    "category",
    "group",
    "size",
    "binding",
    "build",
    "python",
    "rank",
    "launches",
    "batches",
    "net_ns",
    "net_low_ns",
    "net_high_ns",
    "best_ns",
    "cpu_ns",
    "gross_ns",
    "first_call_ns",
    "ratio",
    "ratio_low",
    "ratio_high",
    "note",
    "trouble",
];

/// CSV with one row per cell. Counters follow in columns of their own.
pub fn csv(report: &FfiReport) -> String {
    let ffi = report.ffi;
    let counters = tables::counters(report);
    let heads = COLUMNS.into_iter().map(str::to_owned).chain(counters.iter().cloned());
    let mut table = Table::new(heads.map(|name| Column::text(&name)).collect::<Vec<_>>());
    for (cell, figure) in ffi.cells.iter().zip(&report.figures.cells) {
        let category = &ffi.categories[cell.category];
        let is_measured = figure.net.is_some();
        let number = |value: f64| if is_measured { value.to_string() } else { String::new() };
        let middle = |of: Option<Known>| of.map_or_else(String::new, |of| of.middle.to_string());
        let low = |of: Option<Known>| {
            of.and_then(|of| of.range).map_or_else(String::new, |(low, _)| low.to_string())
        };
        let high = |of: Option<Known>| {
            of.and_then(|of| of.range).map_or_else(String::new, |(_, high)| high.to_string())
        };
        let mut row = vec![
            category.name.clone(),
            category.group.clone(),
            category.size.map_or_else(String::new, |size| size.to_string()),
            name_of(ffi, cell.who).trim_matches(['(', ')']).to_owned(),
            ffi.profiles[cell.profile].name.clone(),
            ffi.pythons[cell.python].name.clone(),
            figure.rank.map_or_else(String::new, |rank| rank.to_string()),
            cell.launches.len().to_string(),
            figure.batches.to_string(),
            middle(figure.net),
            low(figure.net),
            high(figure.net),
            number(figure.best_ns),
            number(figure.cpu_ns),
            number(figure.gross_ns),
            number(figure.first_ns),
            middle(figure.ratio),
            low(figure.ratio),
            high(figure.ratio),
            cell.note.clone(),
            cell.trouble.clone().unwrap_or_default(),
        ];
        for name in &counters {
            let counted = figure.counted.iter().find(|(of, ..)| of == name);
            row.push(counted.map_or_else(String::new, |(_, value, _)| value.to_string()));
        }
        table.push(row);
    }
    table.csv()
}
