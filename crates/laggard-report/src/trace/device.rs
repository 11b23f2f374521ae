//! Busy and idle time of devices.

use crate::document::Document;
use crate::number::{count, percent, share};
use crate::rows::{kept, more, time_unit};
use crate::table::{Column, Table};
use laggard_core::trace::summary::{Device, Stream};

pub(super) fn devices(devices: &[Device], document: &mut Document) {
    if devices.is_empty() {
        return;
    }
    document.heading("Devices");
    let time = time_unit(devices, &[|device| device.span_ns, |device| device.compute_ns]);
    let unit = time.name;
    let mut table = Table::new([
        Column::text("device"),
        Column::text("name"),
        Column::number("span", unit),
        Column::number("busy", "%"),
        Column::number("idle", "%"),
        Column::number("compute", unit),
        Column::number("comm.", unit),
        Column::number("exposed", unit),
        Column::number("copies", unit),
        Column::number("exposed", unit),
    ]);
    let communicates = devices.iter().any(|device| device.communication_ns > 0);
    let copies = devices.iter().any(|device| device.copy_ns > 0);
    for device in devices {
        let time = |ns: i64| time.number(ns as f64);
        let time_if = |there: bool, ns: i64| if there { time(ns) } else { String::new() };
        let of_span = |ns: i64| percent(share(ns as f64, device.span_ns as f64));
        table.push([
            device.device.clone(),
            device.name.clone(),
            time(device.span_ns),
            of_span(device.busy_ns),
            of_span(device.idle_ns),
            time(device.compute_ns),
            time_if(communicates, device.communication_ns),
            time_if(communicates, device.exposed_communication_ns),
            time_if(copies, device.copy_ns),
            time_if(copies, device.exposed_copy_ns),
        ]);
    }
    document.table(table);
    match (communicates, copies) {
        (true, true) => document.minor(
            "exposed: communication not overlapped by compute; copies not overlapped by kernels",
        ),
        (true, false) => document.minor("exposed: communication not overlapped by compute"),
        (false, true) => document.minor("exposed: copies not overlapped by kernels"),
        (false, false) => {}
    }
}

pub(super) fn idle(devices: &[Device], document: &mut Document) {
    let idle: Vec<&Device> = devices.iter().filter(|device| device.idle_ns > 0).collect();
    if idle.is_empty() {
        return;
    }
    document.heading("Idle time by cause");
    let unit = time_unit(&idle, &[|device| device.idle_ns]);
    let mut table = Table::new([
        Column::text("device"),
        Column::number("idle", unit.name),
        Column::number("gaps", "n"),
        Column::number("host-bound", unit.name),
        Column::number("", "%"),
        Column::number("synchronization", unit.name),
        Column::number("", "%"),
        Column::number("other", unit.name),
        Column::number("", "%"),
    ]);
    for device in idle {
        let causes =
            [device.idle.host_bound_ns, device.idle.synchronisation_ns, device.idle.other_ns];
        let mut row = vec![
            device.device.clone(),
            unit.number(device.idle_ns as f64),
            count(device.idle.gaps),
        ];
        for ns in causes {
            row.push(unit.number(ns as f64));
            row.push(percent(share(ns as f64, device.idle_ns as f64)));
        }
        table.push(row);
    }
    document.table(table);
}

/// Adds the streams of all devices if there is more than one.
pub(super) fn streams(devices: &[Device], top: Option<usize>, document: &mut Document) {
    let mut streams: Vec<(&Device, &Stream)> = devices
        .iter()
        .flat_map(|device| device.streams.iter().map(move |stream| (device, stream)))
        .collect();
    if streams.len() < 2 {
        return;
    }
    streams.sort_by_key(|(_, stream)| std::cmp::Reverse(stream.busy_ns));
    document.heading("Streams");
    let unit = time_unit(&streams, &[|(_, stream)| stream.busy_ns]);
    let mut table = Table::new([
        Column::text("device"),
        Column::text("stream"),
        Column::number("busy", unit.name),
        Column::number("of span", "%"),
        Column::number("operations", "n"),
    ]);
    for (device, stream) in kept(&streams, top) {
        table.push([
            device.device.clone(),
            stream.stream.clone(),
            unit.number(stream.busy_ns as f64),
            percent(share(stream.busy_ns as f64, device.span_ns as f64)),
            count(stream.count),
        ]);
    }
    document.table(table);
    more(&streams, top, document);
}
