//! Parses a line of `perf stat -j`: one object per counter.

use super::Line;
use super::event::{event, is_event, nanoseconds, number, reading};
use laggard_core::model::counters::{Counter, Metric};
use serde_json::Value;

/// Maximum length of a line.
const LONGEST_LINE: usize = 1 << 14;
/// Keys for the scope of a counter, and the prefix of the number in perf's text output.
const WHOM: [(&str, &str); 8] = [
    ("cpu", "CPU"),
    ("thread", ""),
    ("socket", ""),
    ("die", ""),
    ("core", ""),
    ("node", ""),
    ("cache", ""),
    ("cgroup", ""),
];

/// Parses a line. `None` if it is not recognized.
pub(super) fn row(line: &str) -> Option<Line> {
    let line = line.trim().trim_start_matches('[').trim_end_matches([',', ']']);
    if !line.starts_with('{') || line.len() > LONGEST_LINE {
        return None;
    }
    let of: Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| of.get(key).and_then(Value::as_str);
    // Some versions write numbers as strings.
    let figure = |key: &str| match of.get(key)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number(text),
        _ => None,
    };
    let metric = text("metric-unit")
        .filter(|unit| !unit.is_empty())
        .map(|unit| Metric { value: figure("metric-value"), text: unit.to_owned() });
    let Some(name) = text("event") else { return metric.map(Line::Metric) };
    let name = Some(name).filter(|name| is_event(name))?;
    let reading = match of.get("counter-value")? {
        Value::String(value) => reading(value)?,
        Value::Number(value) => reading(&value.to_string())?,
        _ => return None,
    };
    let event = event(name);
    let whom = WHOM.iter().filter_map(|(key, before)| Some(format!("{before}{}", text(key)?)));
    let percent = |key: &str| figure(key).map(|percent| percent / 100.0).filter(|s| *s >= 0.0);
    Some(Line::Row(Box::new(Counter {
        name: event.name,
        modifiers: event.modifiers,
        pmu: event.pmu,
        spread: percent("variance").filter(|_| reading.value().is_some()),
        reading,
        unit: text("unit").unwrap_or_default().to_owned(),
        run_ns: of.get("event-runtime").and_then(Value::as_u64),
        counted: percent("pcnt-running").map(|share| share.min(1.0)),
        metrics: metric.into_iter().collect(),
        of: whom.collect::<Vec<_>>().join(" "),
        time_ns: figure("interval").and_then(nanoseconds),
        parts: vec![],
    })))
}
