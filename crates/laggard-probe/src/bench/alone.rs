//! A side as a stand-alone command line, for recorders and tracers.

use super::plan::{CasePlan, Runs, SidePlan};
use super::side;
use super::worker::SCRIPT;
use crate::program::Refusal;
use std::ffi::OsString;
use std::time::Duration;

/// How often a statement is called.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Repeat {
    /// For about this long, without set-up.
    For(Duration),
    /// This many times.
    Times(u32),
}

/// The command line that runs a side of a case. A statement is called repeatedly after its set-up
/// code; a command runs once. `env` sets the environment and directory of the side.
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
        Runs::Statement { code, setup, prepare } => {
            let (seconds, times) = match repeat {
                Repeat::For(time) => (time.as_secs_f64().to_string(), String::new()),
                Repeat::Times(times) => (String::new(), times.to_string()),
            };
            words.push(side::interpreter(side)?.into());
            let given = ["-c", SCRIPT, "alone", &seconds, &times, code, setup, prepare, "0", ""];
            words.extend(given.map(OsString::from));
            words.push(case.parameters.len().to_string().into());
            for (name, value) in &case.parameters {
                words.extend([name.into(), value.into()]);
            }
        }
    }
    Ok(words)
}
