//! A side as a command of its own: for recorders and tracers, which run commands.

use super::plan::{CasePlan, Runs, SidePlan};
use super::side;
use super::worker::SCRIPT;
use crate::program::Refusal;
use std::ffi::OsString;
use std::time::Duration;

/// How often a statement is called.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Repeat {
    /// For about so long, set-up apart.
    For(Duration),
    /// So many times.
    Times(u32),
}

/// The words of a command that does what a side does in a case: a statement is called again and
/// again after its set-up, a command runs once. What the side has of its own, environment and
/// directory, is given by `env`.
pub fn alone(side: &SidePlan, case: &CasePlan, repeat: Repeat) -> Result<Vec<OsString>, Refusal> {
    let mut words: Vec<OsString> = vec![];
    let variables = side::own_environment(side);
    if !variables.is_empty() || side.directory.is_some() {
        words.push("env".into());
        if let Some(directory) = &side.directory {
            words.extend(["-C".into(), directory.into()]);
        }
        for (name, value) in variables {
            let mut word = name;
            word.push("=");
            word.push(value);
            words.push(word);
        }
    }
    match &side.runs {
        Runs::Command { words: own, .. } => {
            let own = side::fill(own, case);
            words.push(side::program(&own)?.into());
            words.extend(own.into_iter().skip(1));
        }
        Runs::Statement { code, setup } => {
            let (seconds, times) = match repeat {
                Repeat::For(time) => (time.as_secs_f64().to_string(), String::new()),
                Repeat::Times(times) => (String::new(), times.to_string()),
            };
            words.push(side::interpreter(side)?.into());
            let given = ["-c", SCRIPT, "alone", &seconds, &times, code, setup, "0", ""];
            words.extend(given.map(OsString::from));
            words.push(case.parameters.len().to_string().into());
            for (name, value) in &case.parameters {
                words.extend([name.into(), value.into()]);
            }
        }
    }
    Ok(words)
}
