//! Launches, steps and the links from device operations to the host.

use crate::document::Document;
use crate::number::{count, percent, plural, share, significant};
use crate::rows::time_unit;
use crate::table::{Column, Table};
use laggard_core::trace::summary::{Launches, Links, Spread, Steps};

/// Up to this number of steps, each step is shown even if the number of rows is limited.
const FEW_STEPS: usize = 20;

pub(super) fn launches(launches: &Launches, links: &Links, document: &mut Document) {
    let rows = [
        ("launch to start", launches.latency_ns),
        ("launch to start, idle stream", launches.idle_latency_ns),
        ("duration of the launch call", launches.call_ns),
    ];
    let rows: Vec<(&str, Spread)> = rows.into_iter().filter(|(_, spread)| spread.n > 0).collect();
    if rows.is_empty() {
        return;
    }
    document.heading("Launches");
    let unit = time_unit(&rows, &[|row| row.1.median, |row| row.1.p95]);
    let mut table = Table::new([
        Column::text("latency"),
        Column::number("median", unit.name),
        Column::range("p25–p75", unit.name),
        Column::number("p95", unit.name),
        Column::number("count", "n"),
    ]);
    for (what, spread) in rows {
        table.push([
            what.to_owned(),
            unit.number(spread.median as f64),
            unit.range(spread.p25 as f64, "–", spread.p75 as f64),
            unit.number(spread.p95 as f64),
            count(spread.n),
        ]);
    }
    document.table(table);
    if launches.latency_ns.n > 0 {
        document.line(format!(
            "{} % of launches queued behind other operations ({} of {}), mean queue length {}",
            percent(share(launches.queued as f64, launches.latency_ns.n as f64)),
            count(launches.queued),
            count(launches.latency_ns.n),
            significant(launches.mean_queue)
        ));
    }
    if links.graph_launches > 0 {
        document.line(format!(
            "{} ran {} device operations, at most {} per replay",
            plural(links.graph_launches, "graph replay"),
            count(links.graph_rows),
            count(links.largest_graph)
        ));
    }
}

pub(super) fn steps(steps: Option<&Steps>, top: Option<usize>, document: &mut Document) {
    let Some(steps) = steps.filter(|steps| steps.duration_ns.n > 0) else { return };
    document.heading(format!("Steps ({})", steps.marker));
    let rows = [("on the host", steps.duration_ns), ("on the device", steps.gpu_ns)];
    let unit = time_unit(&rows, &[|row| row.1.median, |row| row.1.max]);
    let mut table = Table::new([
        Column::text("time per step"),
        Column::number("median", unit.name),
        Column::range("min…max", unit.name),
        Column::number("steps", "n"),
    ]);
    for (what, spread) in rows.iter().filter(|(_, spread)| spread.max > 0) {
        table.push([
            (*what).to_owned(),
            unit.number(spread.median as f64),
            unit.range(spread.min as f64, "…", spread.max as f64),
            count(spread.n),
        ]);
    }
    document.table(table);
    if top.is_none() || steps.rows.len() <= FEW_STEPS {
        each_step(steps, document);
    }
}

fn each_step(steps: &Steps, document: &mut Document) {
    if steps.rows.len() < 2 {
        return;
    }
    document.blank();
    let start = time_unit(&steps.rows, &[|step| step.start_ns]);
    let time = time_unit(&steps.rows, &[|step| step.duration_ns, |step| step.gpu_ns]);
    let mut table = Table::new([
        Column::text("step"),
        Column::number("start", start.name),
        Column::number("host", time.name),
        Column::number("device", time.name),
        Column::number("operations", "n"),
    ]);
    let on_device = steps.gpu_ns.max > 0;
    for step in &steps.rows {
        let if_any = |cell: String| if on_device { cell } else { String::new() };
        table.push([
            step.name.clone(),
            start.number(step.start_ns as f64),
            time.number(step.duration_ns as f64),
            if_any(time.number(step.gpu_ns as f64)),
            if_any(count(step.gpu_count)),
        ]);
    }
    document.table(table);
    let hidden = steps.duration_ns.n.saturating_sub(steps.rows.len() as u64);
    if hidden > 0 {
        document.minor(format!("({})", plural(hidden, "more step")));
    }
}

pub(super) fn links(links: &Links, document: &mut Document) {
    if links.rows == 0 {
        return;
    }
    document.heading("Linked device operations");
    let mut table = Table::new([
        Column::text("linked to"),
        Column::number("linked", "n"),
        Column::number("share", "%"),
        Column::number("unlinked", "n"),
    ]);
    let kinds = [
        ("launch", links.launched),
        ("operator", links.with_op),
        ("Python function", links.with_python),
    ];
    for (to, linked) in kinds {
        table.push([
            to.to_owned(),
            count(linked),
            percent(share(linked as f64, links.rows as f64)),
            count(links.rows.saturating_sub(linked)),
        ]);
    }
    document.table(table);
}
