//! Facts about the trace, its losses and its totals.

use crate::document::Document;
use crate::escape;
use crate::number::{bytes, count, duration, plural};
use crate::rows::time_unit;
use crate::table::{Column, Table};
use laggard_core::trace::summary::{About, CountTime, Loss, PeakMemory, Summary, Totals};

/// Maximum width of a name inside a line, in columns.
const LONGEST_NAME: usize = 60;
/// Words that identify software among the properties whose names end in `_version`.
const SOFTWARE: [&str; 12] = [
    "cuda", "cupti", "hip", "roc", "nccl", "torch", "python", "driver", "runtime", "xpu", "mtia",
    "kineto",
];
/// Maximum number of versions shown.
const MOST_VERSIONS: usize = 8;

pub(super) fn about(summary: &Summary, document: &mut Document) {
    let Summary { about, totals, .. } = summary;
    if totals.events == 0 {
        document.line("no events in this trace");
    }
    document.facts([
        ("GPU", gpus(&about.gpus)),
        ("rank", rank(about)),
        ("versions", versions(&about.properties)),
        ("span", if totals.span_ns > 0 { duration(totals.span_ns) } else { String::new() }),
        ("size", size(totals)),
        ("recorded", if totals.events > 0 { recorded(about) } else { String::new() }),
    ]);
}

/// Formats device names with their counts.
pub(crate) fn gpus(gpus: &[(String, u64)]) -> String {
    let gpu = |(name, count): &(String, u64)| {
        let name = if name.is_empty() { "unknown" } else { name };
        let times = if *count == 1 { String::new() } else { format!(" ×{count}") };
        escape::fit(name, LONGEST_NAME) + &times
    };
    gpus.iter().map(gpu).collect::<Vec<_>>().join(", ")
}

fn rank(about: &About) -> String {
    let place = match (about.rank, about.world_size) {
        (Some(rank), Some(size)) => format!("{rank} of {size}"),
        (Some(rank), None) => rank.to_string(),
        (None, Some(size)) => format!("unknown (of {size} ranks)"),
        (None, None) => String::new(),
    };
    match about.backend.as_deref() {
        Some(backend) if !place.is_empty() => {
            format!("{place}, {}", escape::fit(backend, LONGEST_NAME))
        }
        Some(backend) => escape::fit(backend, LONGEST_NAME),
        None => place,
    }
}

/// Formats the versions among a trace's properties in their vendors' notation.
fn versions(properties: &[(String, String)]) -> String {
    let version = |(key, value): &(String, String)| {
        let what = key
            .strip_suffix("_version")
            .filter(|what| SOFTWARE.iter().any(|word| what.contains(word)))?;
        let value = value.trim_matches('"');
        let number: Option<u64> = value.parse().ok();
        let shown = match (what, number) {
            ("cuda_runtime" | "cuda_driver", Some(n)) if n >= 1_000 => {
                format!("{}.{}", n / 1_000, n % 1_000 / 10)
            }
            ("hip_runtime" | "hip_driver", Some(n)) if n >= 10_000_000 => {
                format!("{}.{}.{}", n / 10_000_000, n / 100_000 % 100, n % 100_000)
            }
            ("cupti", Some(n)) if n >= 100_000 => format!("{}.{}", n / 10_000, n / 100 % 100),
            _ => escape::fit(value, LONGEST_NAME),
        };
        let label = match what {
            "cuda_runtime" => "CUDA",
            "cuda_driver" => "CUDA driver",
            "hip_runtime" => "HIP",
            "hip_driver" => "HIP driver",
            "cupti" => "CUPTI",
            _ => &*escape::fit(what, LONGEST_NAME),
        };
        Some(format!("{label} {shown}"))
    };
    let versions: Vec<String> = properties.iter().filter_map(version).take(MOST_VERSIONS).collect();
    versions.join(", ")
}

fn size(totals: &Totals) -> String {
    if totals.bytes == 0 && totals.events == 0 {
        return String::new();
    }
    let text = bytes(i64::try_from(totals.bytes).unwrap_or(i64::MAX));
    format!("{text} uncompressed, {}", plural(totals.events, "event"))
}

fn recorded(about: &About) -> String {
    match (about.shapes, about.stacks) {
        (true, true) => "shapes and Python stacks",
        (true, false) => "shapes, no Python stacks",
        (false, true) => "Python stacks, no shapes",
        (false, false) => "neither shapes nor Python stacks",
    }
    .to_owned()
}

pub(super) fn losses(losses: &[Loss], document: &mut Document) {
    if losses.is_empty() {
        return;
    }
    document.heading("Lost or repaired events");
    let mut table = Table::new([
        Column::number("n", ""),
        Column::text("what"),
        Column::number("first at byte", ""),
    ]);
    for loss in losses {
        table.push([count(loss.count), loss.explanation.clone(), count(loss.first_offset)]);
    }
    document.table(table);
}

pub(super) fn totals(totals: &Totals, phase: Option<&str>, document: &mut Document) {
    let on_device = [
        ("kernels", totals.kernels),
        ("copies", totals.copies),
        ("fills", totals.fills),
        ("other device operations", totals.device),
    ];
    let on_host = [
        ("runtime calls", totals.runtime),
        ("operators, including nested", totals.ops),
        ("Python functions, including nested", totals.python),
    ];
    let some = |rows: &[(&'static str, CountTime)]| -> Vec<(&'static str, CountTime)> {
        rows.iter().filter(|(_, total)| total.count > 0).copied().collect()
    };
    let (on_device, on_host) = (some(&on_device), some(&on_host));
    if totals.events == 0 {
        return;
    }
    document.heading("Totals");
    if on_device.is_empty() {
        document.line(match phase {
            Some(phase) => format!("no device operations in phase {phase}"),
            None => "no device operations in this trace".to_owned(),
        });
    }
    let rows = [on_device, on_host].concat();
    if rows.is_empty() {
        return;
    }
    let unit = time_unit(&rows, &[|row| row.1.time_ns]);
    let columns =
        [Column::text("what"), Column::number("n", ""), Column::number("time", unit.name)];
    let mut table = Table::new(columns);
    for (what, total) in rows {
        table.push([what.to_owned(), count(total.count), unit.number(total.time_ns as f64)]);
    }
    document.table(table);
}

pub(super) fn peak_memory(peak: Option<&PeakMemory>, document: &mut Document) {
    let Some(peak) = peak else { return };
    document.heading("Peak memory");
    document.line(format!(
        "{} allocated by tensors, {} reserved by the allocator (n = {} events)",
        bytes(peak.allocated),
        bytes(peak.reserved),
        count(peak.n)
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_use_the_notation_of_their_vendors() {
        let properties = [
            ("cuda_runtime_version", "12090"),
            ("cuda_driver_version", "13000"),
            ("cupti_version", "26"),
            ("hip_runtime_version", "60443482"),
            ("roctracer_version", "4.1"),
            ("trace_id", "ABC"),
        ];
        let properties = properties.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(
            versions(&properties),
            "CUDA 12.9, CUDA driver 13.0, CUPTI 26, HIP 6.4.43482, roctracer 4.1"
        );
        assert_eq!(versions(&[("cupti_version".to_owned(), "130001".to_owned())]), "CUPTI 13.0");
    }
}
