//! Reads JSON of pytest-benchmark. Each test is a case with one side.

use super::value::{count, facts, list, moment, number, plain, text};
use super::{Next, batches, lost_times, only_side};
use laggard_core::model::timings::{Case, Series, Timings};
use serde_json::Value;

const MACHINE: &[(&str, &str)] =
    &[("node", "host"), ("system", "system"), ("release", "kernel"), ("machine", "machine")];
const CPU: &[(&str, &str)] = &[("brand_raw", "CPU"), ("count", "CPUs")];
const COMMIT: &[(&str, &str)] =
    &[("id", "commit"), ("branch", "branch"), ("dirty", "uncommitted changes")];
const INTERPRETER: &[(&str, &str)] = &[
    ("python_implementation", "interpreter"),
    ("python_version", "version"),
    ("python_compiler", "compiler"),
];

/// Converts a file.
pub(super) fn timings(file: &Value) -> Result<Timings, String> {
    let part = |name: &str| file.get(name).unwrap_or(&Value::Null);
    let machine = part("machine_info");
    let mut timings = Timings {
        tool: format!("pytest-benchmark {}", text(file, "version").unwrap_or_default())
            .trim_end()
            .into(),
        started_unix: text(file, "datetime").and_then(moment).unwrap_or(0.0),
        facts: facts(machine, MACHINE),
        sides: vec![only_side("", facts(machine, INTERPRETER))],
        ..Timings::default()
    };
    timings.facts.extend(facts(machine.get("cpu").unwrap_or(&Value::Null), CPU));
    timings.facts.extend(facts(part("commit_info"), COMMIT));
    let mut without_data = 0;
    let mut next = Next::default();
    for row in list(file, "benchmarks") {
        let stats = row.get("stats").unwrap_or(&Value::Null);
        let name = text(row, "fullname").or_else(|| text(row, "name")).unwrap_or_default();
        let calls = count(stats, "iterations").unwrap_or(1);
        let seconds = |value: &Value| (value.as_f64().unwrap_or(f64::NAN), calls);
        let mut values: Vec<(f64, u64)> = list(stats, "data").iter().map(seconds).collect();
        if values.is_empty() {
            let Some(median) = number(stats, "median") else {
                timings.warnings.push(format!("skipped {name}: it has no times"));
                continue;
            };
            values.push((median, calls));
            without_data += 1;
        }
        let (batches, lost) = batches(&values, &mut next);
        if lost > 0 {
            timings.warnings.push(lost_times(lost, name));
        }
        let (name, parameters) = parameters(row, name);
        let series = vec![Series { batches, ..Series::default() }];
        timings.cases.push(Case { name, parameters, series });
    }
    if without_data > 0 {
        timings.warnings.push(format!(
            "{without_data} of {} tests have no times per round, only a median, so no confidence \
             interval can be computed; run pytest with --benchmark-json FILE or \
             --benchmark-save-data",
            timings.cases.len()
        ));
    }
    if timings.cases.is_empty() {
        return Err("no benchmark has times".into());
    }
    Ok(timings)
}

/// Splits a test name into the bare name and its parameters. If a parameter is a list or an object,
/// all stay in the name, as pytest writes them.
fn parameters(row: &Value, name: &str) -> (String, Vec<(String, String)>) {
    let whole = || (name.to_owned(), vec![]);
    let Some(given) = row.get("params").and_then(Value::as_object) else { return whole() };
    let plain = |(name, value): (&String, &Value)| Some((name.clone(), plain(value)?));
    let Some(parameters) = given.iter().map(plain).collect::<Option<Vec<_>>>() else {
        return whole();
    };
    let id = text(row, "param").map(|id| format!("[{id}]")).unwrap_or_default();
    match name.strip_suffix(&id) {
        Some(bare) if !id.is_empty() => (bare.to_owned(), parameters),
        _ => whole(),
    }
}
