//! Throughput of devices: copy bandwidth, arithmetic rates and bus bandwidth.

use crate::document::Document;
use crate::number::{Quantity, Unit, count, percent};
use crate::rows::{hidden, kept, more, time_unit};
use crate::table::{Column, Table};
use laggard_core::trace::summary::{Collectives, Copies, Spread, Work};

pub(super) fn copies(copies: &[Copies], top: Option<usize>, document: &mut Document) {
    if copies.is_empty() {
        return;
    }
    document.heading("Copies and fills");
    let rows = kept(copies, top);
    let time = time_unit(rows, &[|row| row.time_ns]);
    let size = Quantity::Bytes.unit(rows.iter().map(|row| row.bytes as f64));
    let rate = rate_unit(rows.iter().map(|row| &row.bandwidth));
    let mut table = Table::new([
        Column::text("kind"),
        Column::number("count", "n"),
        Column::number("time", time.name),
        Column::number("size", size.name),
        Column::number("bandwidth", rate.name),
        Column::range("p25–p75", rate.name),
        Column::number("measured", "n"),
    ]);
    for row in rows {
        let measured = row.bandwidth.n > 0;
        let [median, quartiles, n] = spread_cells(&row.bandwidth, rate);
        table.push([
            row.kind.clone(),
            count(row.count),
            time.number(row.time_ns as f64),
            if measured || row.bytes > 0 { size.number(row.bytes as f64) } else { String::new() },
            median,
            quartiles,
            // Shown only if it differs from the count.
            if row.bandwidth.n == row.count { String::new() } else { n },
        ]);
    }
    document.table(table);
    more(copies, top, document);
}

pub(super) fn work(work: &[Work], distinct: u64, top: Option<usize>, document: &mut Document) {
    if work.is_empty() {
        return;
    }
    document.heading("Arithmetic throughput");
    let rows = kept(work, top);
    let time = time_unit(rows, &[|row| row.time_ns]);
    let rate = Quantity::FlopRate.unit(rows.iter().map(|row| row.flops_per_s));
    let mut table = Table::new([
        Column::names("operator"),
        Column::text("shape"),
        Column::text("dtype"),
        Column::number("calls", "n"),
        Column::number("time", time.name),
        Column::number("rate", rate.name),
        Column::number("of peak", "%"),
    ]);
    for row in rows {
        table.push([
            row.op.clone(),
            row.shape.clone(),
            row.dtype.clone(),
            count(row.count),
            time.number(row.time_ns as f64),
            rate.number(row.flops_per_s),
            row.peak_share.map_or_else(String::new, percent),
        ]);
    }
    document.table(table);
    hidden(distinct.saturating_sub(rows.len() as u64), document);
}

pub(super) fn collectives(
    collectives: &[Collectives],
    top: Option<usize>,
    document: &mut Document,
) {
    if collectives.is_empty() {
        return;
    }
    document.heading("Collectives");
    let rows = kept(collectives, top);
    let time = time_unit(rows, &[|row| row.time_ns]);
    let size = Quantity::Bytes.unit(rows.iter().map(|row| row.bytes as f64));
    let rate = rate_unit(rows.iter().map(|row| &row.bus_bandwidth));
    let mut table = Table::new([
        Column::text("operation"),
        Column::text("dtype"),
        Column::number("ranks", ""),
        Column::number("count", "n"),
        Column::number("time", time.name),
        Column::number("size", size.name),
        Column::number("bus bandwidth", rate.name),
        Column::range("p25–p75", rate.name),
    ]);
    for row in rows {
        let [median, quartiles, _] = spread_cells(&row.bus_bandwidth, rate);
        table.push([
            row.operation.clone(),
            row.dtype.clone(),
            count(row.ranks),
            count(row.count),
            time.number(row.time_ns as f64),
            size.number(row.bytes as f64),
            median,
            quartiles,
        ]);
    }
    document.table(table);
    more(collectives, top, document);
}

fn rate_unit<'a>(spreads: impl Iterator<Item = &'a Spread>) -> Unit {
    Quantity::ByteRate.unit(spreads.flat_map(|spread| [spread.median as f64, spread.p75 as f64]))
}

/// Cells for median, quartiles and n; empty without measurements.
fn spread_cells(spread: &Spread, unit: Unit) -> [String; 3] {
    if spread.n == 0 {
        return Default::default();
    }
    [
        unit.number(spread.median as f64),
        unit.range(spread.p25 as f64, "–", spread.p75 as f64),
        count(spread.n),
    ]
}
