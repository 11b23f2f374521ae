//! Reads JSON of pyperf, version 1.0. Each benchmark is a case with one side.
//!
//! Values are seconds per call. Metadata can belong to the file, to a benchmark or to a run; the
//! most specific value is used.

use super::value::{facts, list, moment, text};
use super::{Next, batches, lost_times, only_side};
use laggard_core::model::timings::{Case, Series, Timings};
use serde_json::Value;

const MACHINE: &[(&str, &str)] = &[
    ("hostname", "host"),
    ("cpu_model_name", "CPU"),
    ("cpu_count", "CPUs"),
    ("cpu_affinity", "pinned to CPUs"),
    ("cpu_config", "CPU settings"),
    ("platform", "platform"),
    ("aslr", "ASLR"),
    ("timer", "clock"),
];
const INTERPRETER: &[(&str, &str)] = &[
    ("python_implementation", "interpreter"),
    ("python_version", "version"),
    ("python_executable", "program"),
    ("python_compiler", "compiler"),
];

/// Converts a file.
pub(super) fn timings(file: &Value) -> Result<Timings, String> {
    let version = file.get("version").and_then(Value::as_str).unwrap_or("1.0");
    if !version.starts_with("1.") {
        return Err(format!("pyperf format version {version} is not supported (expected 1.0)"));
    }
    let whole = file.get("metadata").unwrap_or(&Value::Null);
    let benchmarks = list(file, "benchmarks");
    let about = benchmarks.first().and_then(|first| first.get("metadata")).unwrap_or(&Value::Null);
    // With a single benchmark, metadata can be stored at the level of the file or of the benchmark.
    let said = |fields| {
        let of_all = facts(whole, fields);
        if of_all.is_empty() { facts(about, fields) } else { of_all }
    };
    let either = |field: &str| text(whole, field).or_else(|| text(about, field));
    let runs = match benchmarks.len() {
        1 => either("timeit_stmt").or_else(|| either("command")).unwrap_or_default(),
        _ => "",
    };
    let mut timings = Timings {
        tool: format!("pyperf {}", either("perf_version").unwrap_or_default()).trim_end().into(),
        facts: said(MACHINE),
        sides: vec![only_side(unquoted(runs), said(INTERPRETER))],
        ..Timings::default()
    };
    let mut next = Next::default();
    for benchmark in benchmarks {
        let known = |run: &Value, field: &str| {
            let own = benchmark.get("metadata").and_then(|of| of.get(field));
            let of_run = run.get("metadata").and_then(|of| of.get(field));
            of_run.or(own).or_else(|| whole.get(field)).cloned().unwrap_or(Value::Null)
        };
        let name = known(&Value::Null, "name");
        let name = name.as_str().unwrap_or_default();
        let unit = known(&Value::Null, "unit");
        if let Some(unit) = unit.as_str().filter(|unit| *unit != "second") {
            timings.warnings.push(format!(
                "skipped benchmark {name:?}: its values are in {unit}s, not seconds"
            ));
            continue;
        }
        let mut case = Case { name: name.to_owned(), ..Case::default() };
        let mut series = Series::default();
        let (mut values, mut warm_up) = (vec![], vec![]);
        for run in list(benchmark, "runs") {
            let inner = loops(&known(run, "inner_loops"));
            let calls = loops(&known(run, "loops")) * inner;
            let value = |value: &Value| (value.as_f64().unwrap_or(f64::NAN), calls);
            values.extend(list(run, "values").iter().map(value));
            for pair in list(run, "warmups") {
                let Some([count, value]) = pair.as_array().map(Vec::as_slice) else { continue };
                warm_up.push((value.as_f64().unwrap_or(f64::NAN), loops(count) * inner));
            }
            let date = known(run, "date");
            let started = date.as_str().and_then(moment).unwrap_or(0.0);
            if started > 0.0 && (timings.started_unix == 0.0 || started < timings.started_unix) {
                timings.started_unix = started;
            }
            let memory = known(run, "mem_max_rss").as_u64().unwrap_or(0);
            series.peak_memory = series.peak_memory.max(memory);
        }
        if values.is_empty() {
            timings.warnings.push(format!("skipped benchmark {name:?}: it has no values"));
            continue;
        }
        (series.warm_up, _) = batches(&warm_up, &mut Next::default());
        let lost;
        (series.batches, lost) = batches(&values, &mut next);
        if lost > 0 {
            timings.warnings.push(lost_times(lost, &format!("{name:?}")));
        }
        case.series.push(series);
        timings.cases.push(case);
    }
    if timings.cases.is_empty() {
        let why = timings.warnings.first().map_or("the file has none", String::as_str);
        return Err(format!("no usable benchmarks: {why}"));
    }
    Ok(timings)
}

/// Number of calls; 1 if missing or invalid.
fn loops(value: &Value) -> u64 {
    value.as_u64().filter(|n| (1..1 << 30).contains(n)).unwrap_or(1)
}

/// Statements are stored as Python string literals.
fn unquoted(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('\'').or_else(|| inside('"')).unwrap_or(text)
}
