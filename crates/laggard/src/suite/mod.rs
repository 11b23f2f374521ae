//! Suites: named cases that are timed one after the other.
//!
//! The sides of built-in suites are array libraries; a suite file defines its own. Both give
//! self-contained cases with the same sides in each.

pub(crate) mod arrays;
mod file;
mod installed;

use crate::cli::{CaseSideArgs, EachSideArgs, SidesArgs, SuiteArgs};
use crate::failure;
use crate::sides::{preparation_command, set};
use anyhow::{Context, anyhow, bail, ensure};
use file::File;
use laggard_core::model::profile::About;
use laggard_probe::bench::{
    CasePlan, Own, Plan, Repeat, ResultCheck, Runs, SidePlan, alone, prepare_once,
};
use laggard_report::code::glob;
use std::ffi::OsString;
use std::path::Path;

/// The default suite file.
const FILE: &str = "laggard-bench.toml";
/// Maximum number of names in an error.
const MOST_NAMES: usize = 12;

/// The selected cases. `chosen` are the sides: libraries for a built-in suite, letters or names for a
/// suite file. If empty, all sides of the suite file are used, or the installed array libraries, of
/// which there must be at least `fewest`.
pub(crate) fn cases(
    args: &SuiteArgs,
    chosen: &[String],
    shared: &SidesArgs,
    fewest: usize,
) -> anyhow::Result<Vec<CasePlan>> {
    ensure!(
        !shared.commands,
        "--commands applies to sides given on the command line, not to a suite"
    );
    let mut cases = match source(args)? {
        Source::Arrays(suite) if chosen.is_empty() => {
            // Reports wrong options before it starts an interpreter.
            arrays::cases(suite, args, &["numpy".to_owned()])?;
            arrays::cases(suite, args, &installed::libraries(&shared.each, fewest)?)?
        }
        Source::Arrays(suite) => arrays::cases(suite, args, chosen)?,
        Source::File(file) => {
            if let Some(flag) = args.for_arrays().next() {
                bail!("{flag} applies to the built-in suites {}", arrays::SUITES.join(" and "));
            }
            let cases = file.cases(chosen)?;
            picked(cases, &args.case)?
        }
    };
    for case in &mut cases {
        let Some(own) = &mut case.own else { continue };
        set(&mut own.sides, &shared.each)?;
        own.check &= !shared.no_check;
        own.tolerance = shared.tolerance.or(own.tolerance);
        for side in &mut own.sides {
            match &mut side.runs {
                Runs::Statement { setup, prepare, .. } => {
                    *setup = joined(shared.setup.iter().chain([&*setup]));
                    *prepare = joined(shared.prepare.iter().chain([&*prepare]));
                }
                Runs::Command { prepare, .. } if !shared.prepare.is_empty() => {
                    *prepare = preparation_command(shared)?;
                }
                Runs::Command { .. } => {}
            }
        }
    }
    Ok(cases)
}

/// A plan for the only selected case. Fails if several are selected.
pub(crate) fn one(
    args: &SuiteArgs,
    chosen: &[String],
    shared: &SidesArgs,
    fewest: usize,
) -> anyhow::Result<Plan> {
    let mut cases = cases(args, chosen, shared, fewest)?;
    let labels: Vec<String> = cases.iter().map(CasePlan::label).collect();
    ensure!(
        labels.len() == 1,
        "--case {} matches several cases: {}",
        args.case.join(" "),
        few(&labels)
    );
    let case = cases.remove(0);
    let Own { sides, check, tolerance } = case.own.clone().context("the case has no sides")?;
    Ok(Plan {
        sides,
        check: ResultCheck::require_if(check),
        tolerance,
        cases: vec![CasePlan { own: None, ..case }],
        ..Plan::default()
    })
}

/// The only selected case and one of its sides, given by letter or name.
fn one_side(
    args: &SuiteArgs,
    side: &str,
    shared: &SidesArgs,
) -> anyhow::Result<(CasePlan, SidePlan)> {
    let is_letter = side.len() == 1;
    let chosen = if is_letter { vec![] } else { vec![side.to_owned()] };
    let mut plan = one(args, &chosen, shared, 1)?;
    // Characters that are not letters give an index beyond the last side.
    let number = |letter: u8| usize::from(letter.to_ascii_lowercase().wrapping_sub(b'a'));
    let at = if is_letter { number(side.as_bytes()[0]) } else { 0 };
    ensure!(at < plan.sides.len(), "this case has no side {side}");
    Ok((plan.cases.remove(0), plan.sides.swap_remove(at)))
}

/// A side of a case as a command line, for `record` and `calls`.
pub(crate) struct Alone {
    /// The program and its arguments.
    pub(crate) words: Vec<OsString>,
    /// The statement or command of the side, as the user wrote it.
    text: String,
    case: String,
    side: String,
}

impl Alone {
    /// The selected side, called according to `repeat`; `None` if no case is given.
    pub(crate) fn of(args: &CaseSideArgs, repeat: Repeat) -> anyhow::Result<Option<Alone>> {
        if args.of.case.is_none() {
            return Ok(None);
        }
        let each = EachSideArgs { python: args.python.clone(), ..EachSideArgs::default() };
        let shared = SidesArgs { each, prepare: args.prepare.clone(), ..SidesArgs::default() };
        let side = args.side.as_deref().unwrap_or("a");
        let (case, side) = one_side(&args.of.suite(), side, &shared)?;
        prepare_once(&Plan::default(), &side, &case)
            .map_err(|trouble| anyhow!("side {} {trouble}", side.name))?;
        Ok(Some(Alone {
            words: alone(&side, &case, repeat)?,
            text: side.runs.text(),
            case: case.label(),
            side: side.name,
        }))
    }

    /// A file name made of case and side.
    pub(crate) fn file_name(&self) -> OsString {
        let is_plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
        let name = format!("{}-{}", self.case, self.side);
        name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect::<String>().into()
    }

    /// Stores the case and side in a recording, instead of the command that repeats the statement.
    pub(crate) fn tell(&self, about: &mut About) {
        about.command = vec![self.text.clone()];
        about.facts.push(("case".into(), format!("{}, side {}", self.case, self.side)));
    }
}

/// Lists cases with the code of their sides, one per line.
pub(crate) fn list(cases: &[CasePlan]) -> String {
    let labels: Vec<String> = cases.iter().map(CasePlan::label).collect();
    let widest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (label, case) in labels.iter().zip(cases) {
        let sides = case.own.iter().flat_map(|own| &own.sides);
        let sides: Vec<String> =
            sides.map(|side| format!("{}: {}", side.name, one_line(&side.runs.text()))).collect();
        text.push_str(&format!("{label:widest$}  {}\n", sides.join("  ")));
    }
    text
}

fn one_line(text: &str) -> String {
    text.trim().replace('\n', "; ")
}

/// The source of cases.
enum Source {
    /// A built-in suite; `None` if the cases are given by options only.
    Arrays(Option<&'static str>),
    File(Box<File>),
}

fn source(args: &SuiteArgs) -> anyhow::Result<Source> {
    if let Some(name) = &args.suite {
        if let Some(suite) = arrays::SUITES.iter().find(|suite| *suite == name) {
            return Ok(Source::Arrays(Some(suite)));
        }
        if !Path::new(name).is_file() {
            return Err(failure::with_hint(
                format!("no suite or file named {name}"),
                format!("give a built-in suite ({}) or a TOML file", arrays::SUITES.join(", ")),
            ));
        }
        return Ok(Source::File(Box::new(File::load(Path::new(name))?)));
    }
    if args.for_arrays().any(|flag| flag != "--simd-mode") {
        return Ok(Source::Arrays(None));
    }
    if Path::new(FILE).is_file() {
        let file = File::load(Path::new(FILE))?;
        let all = file.cases(&[])?;
        let is_there = |pattern: &String| all.iter().any(|case| fits(pattern, case));
        let are_arrays = args.case.iter().all(|case| arrays::is_case(case));
        if args.case.iter().all(is_there) || !are_arrays {
            return Ok(Source::File(Box::new(file)));
        }
    }
    if args.case.is_empty() {
        return Err(failure::with_hint(
            format!("nothing to time: no sides were given, and {FILE} does not exist here"),
            "give Python statements, command lines with --commands, or a suite, such as --suite 2d"
                .into(),
        ));
    }
    Ok(Source::Arrays(None))
}

/// The cases that match any of the patterns; all cases without patterns.
fn picked(cases: Vec<CasePlan>, patterns: &[String]) -> anyhow::Result<Vec<CasePlan>> {
    for pattern in patterns {
        if !cases.iter().any(|case| fits(pattern, case)) {
            let names: Vec<String> = cases.iter().map(CasePlan::label).collect();
            return Err(failure::with_hint(
                format!("no case matches {pattern}"),
                format!("cases: {}", few(&names)),
            ));
        }
    }
    let is_picked =
        |case: &CasePlan| patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, case));
    Ok(cases.into_iter().filter(is_picked).collect())
}

fn fits(pattern: &str, case: &CasePlan) -> bool {
    glob(pattern, &case.name) || glob(pattern, &case.label())
}

fn few(names: &[String]) -> String {
    let more = if names.len() > MOST_NAMES { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(MOST_NAMES)].join(", "))
}

/// Joins the parts of set-up code, skipping empty ones.
fn joined<'a>(parts: impl Iterator<Item = &'a String>) -> String {
    let parts: Vec<&str> = parts.map(String::as_str).filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}
