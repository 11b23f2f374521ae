//! Converts command-line arguments to sides, cases and limits of a measurement.

use crate::cli::{EachSideArgs, EffortArgs, Parameter, Set, SideName, SidesArgs};
use crate::shell::{shell_words, words};
use anyhow::{Context, bail, ensure};
use laggard_probe::bench::{CasePlan, Limits, Rounds, Runs, SidePlan, WarmUp};
use std::ffi::OsString;

/// Maximum number of sides, which are named by letters.
const MOST_SIDES: usize = 26;
/// Maximum number of cases. More are probably a mistake.
const MOST_CASES: usize = 1000;

/// The command that prepares the calls of a command.
pub(crate) fn preparation_command(shared: &SidesArgs) -> anyhow::Result<Option<Vec<OsString>>> {
    match &shared.prepare[..] {
        [] => Ok(None),
        [one] => Ok(Some(command(one, shared)?)),
        _ => bail!("--prepare accepts one command; it is repeatable only for Python statements"),
    }
}

/// Creates a side for each text, named by letter.
pub(crate) fn sides(texts: &[String], shared: &SidesArgs) -> anyhow::Result<Vec<SidePlan>> {
    ensure!(texts.len() <= MOST_SIDES, "at most {MOST_SIDES} sides can be measured");
    let mut sides = vec![];
    for (letter, text) in ('A'..='Z').zip(texts) {
        let runs = if shared.commands {
            Runs::Command { words: command(text, shared)?, prepare: preparation_command(shared)? }
        } else {
            Runs::Statement {
                code: text.clone(),
                setup: shared.setup.join("\n"),
                prepare: shared.prepare.join("\n"),
            }
        };
        sides.push(SidePlan::new(letter, runs));
    }
    set(&mut sides, &shared.each)?;
    Ok(sides)
}

/// The words of a command line.
fn command(line: &str, shared: &SidesArgs) -> anyhow::Result<Vec<OsString>> {
    match shared.shell {
        true => shell_words(line),
        false => words(line, "add --shell to run commands in a shell"),
    }
}

/// Applies the options of individual sides.
pub(crate) fn set(sides: &mut [SidePlan], each: &EachSideArgs) -> anyhow::Result<()> {
    for side in &mut *sides {
        side.python = each.python.clone().or(side.python.take());
    }
    let of = [
        (&each.a_python, &each.a_env, &each.a_dir, each.a_threads),
        (&each.b_python, &each.b_env, &each.b_dir, each.b_threads),
    ];
    for (number, (python, env, dir, threads)) in of.into_iter().enumerate() {
        let is_given = python.is_some() || !env.is_empty() || dir.is_some() || threads.is_some();
        let Some(side) = sides.get_mut(number) else {
            ensure!(
                !is_given,
                "cannot set options of side {0}: side {0} is missing",
                letter(number)
            );
            continue;
        };
        side.python = python.clone().or(side.python.take());
        side.env.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
        side.directory = dir.clone().or(side.directory.take());
        side.threads = threads.map(u32::from).or(side.threads);
    }
    for setting in &each.set {
        let side = sides.get_mut(setting.side).with_context(|| {
            format!("cannot set options of side {0}: side {0} is missing", letter(setting.side))
        })?;
        match setting.what.clone() {
            Set::Name(name) => side.name = name,
            Set::Python(python) => side.python = Some(python),
            Set::Env(name, value) => side.env.push((name.into(), value.into())),
            Set::Dir(directory) => side.directory = Some(directory),
            Set::Threads(threads) => side.threads = Some(u32::from(threads)),
        }
    }
    name_sides(&each.name, sides.iter_mut().map(|side| &mut side.name).collect())
}

/// Sets the names given with `--name`.
pub(crate) fn name_sides(given: &[SideName], mut sides: Vec<&mut String>) -> anyhow::Result<()> {
    for (number, SideName { side, name }) in given.iter().enumerate() {
        let is_again = given[..number].iter().any(|other| other.side == *side);
        ensure!(!is_again, "side {} has two names", letter(*side));
        let place = sides
            .get_mut(*side)
            .with_context(|| format!("cannot name side {0}: side {0} is missing", letter(*side)))?;
        (**place).clone_from(name);
    }
    for (number, name) in sides.iter().enumerate() {
        ensure!(!sides[..number].contains(name), "two sides are named {name}");
    }
    Ok(())
}

fn letter(side: usize) -> char {
    char::from(b'A' + side as u8)
}

/// Creates a case for each combination of parameter values.
pub(crate) fn scans(parameters: &[Parameter]) -> anyhow::Result<Vec<CasePlan>> {
    let mut cases = vec![CasePlan::default()];
    for parameter in parameters {
        cases = cases
            .iter()
            .flat_map(|case| {
                parameter.values.iter().map(|value| {
                    let mut case = case.clone();
                    case.parameters.push((parameter.name.clone(), value.clone()));
                    case
                })
            })
            .collect();
        ensure!(cases.len() <= MOST_CASES, "the parameters give more than {MOST_CASES} cases");
    }
    Ok(cases)
}

/// The limits of a measurement with this number of cases.
pub(crate) fn limits(effort: &EffortArgs, cases: usize) -> Limits {
    Limits {
        time: effort.time * cases.max(1) as u32,
        precision: effort.precision,
        warm_up: effort.warmup.map_or(WarmUp::UntilSteady, WarmUp::Rounds),
        rounds: effort.rounds.map_or(Limits::default().rounds, Rounds::Exactly),
        timeout: effort.timeout,
        ..Limits::default()
    }
}
