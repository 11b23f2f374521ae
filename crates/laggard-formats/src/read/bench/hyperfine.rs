//! Reads JSON of hyperfine. Each set of parameters is a case, and its commands are the sides.

use super::value::{list, nanoseconds, number, plain, text};
use super::{Next, batches, letter, lost_times};
use laggard_core::model::timings::{Case, Series, Side, Timings};
use serde_json::Value;

/// One command with one set of parameters.
struct Outcome<'a> {
    command: &'a str,
    parameters: Vec<(String, String)>,
    row: &'a Value,
}

/// A set of parameters and the commands that ran with it.
type Sides<'a> = (&'a [(String, String)], Vec<&'a Outcome<'a>>);

/// Converts a file.
pub(super) fn timings(file: &Value) -> Result<Timings, String> {
    let rows = list(file, "results");
    let outcomes: Vec<Outcome> = rows.iter().map(outcome).collect();
    let mut cases: Vec<Sides> = vec![];
    for outcome in &outcomes {
        match cases.iter_mut().find(|(parameters, _)| *parameters == outcome.parameters) {
            Some((_, sides)) => sides.push(outcome),
            None => cases.push((&outcome.parameters, vec![outcome])),
        }
    }
    let Some(sides) = cases.iter().map(|(_, sides)| sides.len()).max() else {
        return Err("the list of results is empty".into());
    };
    let mut timings = Timings {
        tool: "hyperfine".into(),
        sides: (0..sides)
            .map(|side| Side {
                name: letter(side),
                runs: common_command(&cases, side),
                facts: vec![],
            })
            .collect(),
        ..Timings::default()
    };
    let mut next = Next::default();
    for (parameters, outcomes) in &cases {
        if outcomes.len() < sides {
            let label = label(parameters);
            timings.warnings.push(format!(
                "skipped {label}: it has only {} of {sides} commands",
                outcomes.len()
            ));
            continue;
        }
        let mut case = Case { parameters: parameters.to_vec(), ..Case::default() };
        for outcome in outcomes {
            case.series.push(series(outcome, &mut next, &mut timings.warnings));
        }
        timings.cases.push(case);
    }
    if sides > 1 {
        timings.warnings.push(
            "hyperfine runs the commands one after the other, so a temporary disturbance affects \
             only one side; laggard bench --commands alternates between them"
                .into(),
        );
    }
    timings
        .facts
        .push(("CPU time".into(), "mean over all runs; hyperfine stores no times per run".into()));
    Ok(timings)
}

fn outcome(row: &Value) -> Outcome<'_> {
    let parameters = row.get("parameters").and_then(Value::as_object);
    let parameter = |(name, value): (&String, &Value)| {
        (name.clone(), plain(value).unwrap_or_else(|| value.to_string()))
    };
    Outcome {
        command: text(row, "command").unwrap_or_default(),
        parameters: parameters.into_iter().flatten().map(parameter).collect(),
        row,
    }
}

fn series(outcome: &Outcome, next: &mut Next, warnings: &mut Vec<String>) -> Series {
    let Outcome { command, row, .. } = outcome;
    let mut seconds: Vec<(f64, u64)> =
        list(row, "times").iter().map(|time| (time.as_f64().unwrap_or(f64::NAN), 1)).collect();
    let runs = seconds.len();
    if seconds.is_empty() {
        let known = number(row, "median").or_else(|| number(row, "mean"));
        seconds.extend(known.map(|seconds| (seconds, 1)));
        warnings.push(format!("{command:?} has no times per run, only a median"));
    }
    let (mut batches, lost) = batches(&seconds, next);
    if lost > 0 {
        warnings.push(lost_times(lost, &format!("{command:?}")));
    }
    let mean = |field: &str| number(row, field).and_then(nanoseconds).unwrap_or(0);
    let (user_ns, system_ns) = (mean("user"), mean("system"));
    for batch in &mut batches {
        (batch.user_ns, batch.system_ns) = (user_ns, system_ns);
    }
    // The exit code is null if a signal ended the run.
    let failed = list(row, "exit_codes").iter().filter(|code| code.as_i64() != Some(0)).count();
    if failed > 0 {
        warnings.push(format!("{failed} of {runs} runs of {command:?} failed"));
    }
    let memory = list(row, "memory_usage_byte").iter().filter_map(Value::as_u64).max();
    Series { batches, peak_memory: memory.unwrap_or(0), ..Series::default() }
}

/// The command of a side, with `{n}` in place of the parameter values. The command of the first
/// case if the template does not reproduce all commands.
fn common_command(cases: &[Sides], side: usize) -> String {
    let of_side =
        || cases.iter().filter_map(|(parameters, sides)| Some((*parameters, sides.get(side)?)));
    let Some((first, outcome)) = of_side().next() else { return String::new() };
    let mut template = outcome.command.to_owned();
    for (name, value) in first.iter().filter(|(_, value)| !value.is_empty()) {
        template = template.replace(value, &format!("{{{name}}}"));
    }
    let fits = |(parameters, outcome): (&[(String, String)], &&Outcome)| {
        let mut command = template.clone();
        for (name, value) in parameters {
            command = command.replace(&format!("{{{name}}}"), value);
        }
        command == outcome.command
    };
    if of_side().all(fits) { template } else { outcome.command.to_owned() }
}

fn label(parameters: &[(String, String)]) -> String {
    let parts: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if parts.is_empty() { "the case without parameters".to_owned() } else { parts.join(" ") }
}
