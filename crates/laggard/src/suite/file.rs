//! Suite files (TOML).
//!
//! Settings of all cases are at the top level, those of one side in a table named by its letter.
//! Unknown keys are errors.

use super::joined;
use crate::cli::Parameter;
use crate::shell::words;
use crate::sides::scans;
use anyhow::{Context, bail, ensure};
use laggard_probe::bench::{CasePlan, Own, Runs, SidePlan};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::Value;

/// A suite file.
pub(super) struct File {
    content: Content,
    /// The directory of the file. Paths in the file are relative to it.
    directory: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    /// Runs before the set-up of each case.
    #[serde(default)]
    setup: String,
    /// The interpreter of all sides.
    python: Option<PathBuf>,
    #[serde(default)]
    case: Vec<Case>,
    a: Option<Side>,
    b: Option<Side>,
    c: Option<Side>,
    d: Option<Side>,
    e: Option<Side>,
    f: Option<Side>,
    g: Option<Side>,
    h: Option<Side>,
}

/// Settings of a side in all cases.
#[derive(Clone, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Side {
    name: Option<String>,
    env: BTreeMap<String, Value>,
    python: Option<PathBuf>,
    dir: Option<PathBuf>,
    threads: Option<u16>,
    setup: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    setup: String,
    /// Code of sides that do not define their own.
    run: Option<String>,
    #[serde(default)]
    params: BTreeMap<String, Vec<Value>>,
    /// Whether the sides are command lines.
    #[serde(default)]
    commands: bool,
    /// A command that runs before each run.
    prepare: Option<String>,
    #[serde(default = "yes")]
    check: bool,
    tolerance: Option<f64>,
    a: Option<OfCase>,
    b: Option<OfCase>,
    c: Option<OfCase>,
    d: Option<OfCase>,
    e: Option<OfCase>,
    f: Option<OfCase>,
    g: Option<OfCase>,
    h: Option<OfCase>,
}

/// A side in one case: a string with its code, or a table.
#[derive(Clone, Default)]
struct OfCase {
    run: Option<String>,
    rest: Side,
}

const LETTERS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

fn yes() -> bool {
    true
}

impl File {
    pub(super) fn load(path: &Path) -> anyhow::Result<File> {
        let cannot = || format!("cannot read {}", path.display());
        let text = std::fs::read_to_string(path).with_context(cannot)?;
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        File::parse(&text, directory).with_context(cannot)
    }

    fn parse(text: &str, directory: PathBuf) -> anyhow::Result<File> {
        let content: Content = toml::from_str(text)?;
        ensure!(!content.case.is_empty(), "the file has no [[case]]");
        for (at, case) in content.case.iter().enumerate() {
            ensure!(!case.name.is_empty(), "a case has an empty name");
            ensure!(
                content.case[..at].iter().all(|other| other.name != case.name),
                "duplicate case name {:?}",
                case.name
            );
        }
        Ok(File { content, directory })
    }

    /// All cases with these sides, given by letter or name; all sides if empty.
    pub(super) fn cases(&self, chosen: &[String]) -> anyhow::Result<Vec<CasePlan>> {
        let sides = self.sides()?;
        let places = chosen.iter().map(|name| place(&sides, name));
        let places: Vec<usize> = match chosen {
            [] => (0..sides.len()).collect(),
            _ => places.collect::<anyhow::Result<_>>()?,
        };
        let mut all = vec![];
        for case in &self.content.case {
            let made = self.case(case, &sides, &places);
            all.extend(made.with_context(|| format!("case {:?} is invalid", case.name))?);
        }
        Ok(all)
    }

    /// Names and common settings of all sides.
    fn sides(&self) -> anyhow::Result<Vec<(String, Side)>> {
        let all = &self.content;
        let shared = [&all.a, &all.b, &all.c, &all.d, &all.e, &all.f, &all.g, &all.h];
        let is_in_case = |at: usize| all.case.iter().any(|case| case.sides()[at].is_some());
        let is_there: Vec<bool> =
            shared.iter().enumerate().map(|(at, side)| side.is_some() || is_in_case(at)).collect();
        let last = is_there.iter().rposition(|&is_there| is_there);
        let n = last.map_or(0, |last| last + 1);
        ensure!(n > 0, "no sides are defined: a case needs a = \"…\" and b = \"…\"");
        if let Some(gap) = is_there[..n].iter().position(|&is_there| !is_there) {
            bail!("side {} is defined, but side {} is missing", LETTERS[n - 1], LETTERS[gap]);
        }
        Ok(shared
            .into_iter()
            .zip(LETTERS)
            .take(n)
            .map(|(side, letter)| {
                let side = side.clone().unwrap_or_default();
                (side.name.clone().unwrap_or_else(|| letter.to_uppercase()), side)
            })
            .collect())
    }

    /// One case for each combination of parameters.
    fn case(
        &self,
        case: &Case,
        sides: &[(String, Side)],
        places: &[usize],
    ) -> anyhow::Result<Vec<CasePlan>> {
        if let Some(share) = case.tolerance {
            ensure!((0.0..=1.0).contains(&share), "tolerance must be between 0 and 1");
        }
        let mut plans = vec![];
        for &at in places {
            let (name, shared) = &sides[at];
            let own = case.sides()[at].clone().unwrap_or_default();
            let run = own.run.as_ref().or(case.run.as_ref());
            let run = run.with_context(|| format!("side {} is missing", LETTERS[at]))?;
            let runs = if case.commands {
                ensure!(
                    case.setup.is_empty() && own.rest.setup.is_empty(),
                    "setup does not apply to commands: use prepare"
                );
                let words = |line: &str| words(line, "use `sh -c '…'` to run it in a shell");
                let prepare = case.prepare.as_deref().map(words).transpose()?;
                Runs::Command { words: words(run)?, prepare }
            } else {
                let setup =
                    [&self.content.setup, &shared.setup, &case.setup, &own.rest.setup].into_iter();
                let prepare = case.prepare.clone().unwrap_or_default();
                Runs::Statement { code: run.clone(), setup: joined(setup), prepare }
            };
            let python = own.rest.python.as_ref().or(shared.python.as_ref());
            let directory = own.rest.dir.as_ref().or(shared.dir.as_ref());
            let env = shared.env.iter().chain(&own.rest.env);
            plans.push(SidePlan {
                python: python.or(self.content.python.as_ref()).map(|path| self.program(path)),
                directory: directory.map(|path| self.directory.join(path)),
                env: env.map(variable).collect::<anyhow::Result<_>>()?,
                threads: own.rest.threads.or(shared.threads).map(u32::from),
                ..SidePlan::new(name, runs)
            });
        }
        let own = Own { sides: plans, check: case.check, tolerance: case.tolerance };
        let parameters: Vec<Parameter> = case
            .params
            .iter()
            .map(|(name, values)| {
                ensure!(!values.is_empty(), "parameter {name} has no values");
                let values = values.iter().map(text).collect::<anyhow::Result<_>>()?;
                Ok(Parameter { name: name.clone(), values })
            })
            .collect::<anyhow::Result<_>>()?;
        let named =
            |scan: CasePlan| CasePlan { name: case.name.clone(), own: Some(own.clone()), ..scan };
        Ok(scans(&parameters)?.into_iter().map(named).collect())
    }

    /// Resolves a program: names are looked up in PATH, paths are relative to the file.
    fn program(&self, path: &Path) -> PathBuf {
        if path.components().count() == 1 { path.to_owned() } else { self.directory.join(path) }
    }
}

impl Case {
    fn sides(&self) -> [&Option<OfCase>; 8] {
        [&self.a, &self.b, &self.c, &self.d, &self.e, &self.f, &self.g, &self.h]
    }
}

/// The index of the side with this letter or name.
fn place(sides: &[(String, Side)], name: &str) -> anyhow::Result<usize> {
    let is_it = |at: &usize| sides[*at].0 == name || LETTERS[*at].eq_ignore_ascii_case(name);
    let names: Vec<&str> = sides.iter().map(|(name, _)| name.as_str()).collect();
    (0..sides.len())
        .find(is_it)
        .with_context(|| format!("no side is named {name:?}: sides are {}", names.join(", ")))
}

fn variable((name, value): (&String, &Value)) -> anyhow::Result<(OsString, OsString)> {
    let value =
        text(value).with_context(|| format!("environment variable {name} has an invalid value"))?;
    Ok((name.into(), value.into()))
}

/// Converts a value to text for Python code and command lines.
fn text(value: &Value) -> anyhow::Result<String> {
    Ok(match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(true) => "True".into(),
        Value::Boolean(false) => "False".into(),
        other => bail!("expected a string, number or boolean, found {}", other.type_str()),
    })
}

/// The keys of `Side` without `name`, plus `run`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    run: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, Value>,
    python: Option<PathBuf>,
    dir: Option<PathBuf>,
    threads: Option<u16>,
    #[serde(default)]
    setup: String,
}

impl<'de> Deserialize<'de> for OfCase {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<OfCase, D::Error> {
        struct TextOrTable;
        impl<'de> Visitor<'de> for TextOrTable {
            type Value = OfCase;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a string or a table with run")
            }

            fn visit_str<E>(self, text: &str) -> Result<OfCase, E> {
                Ok(OfCase { run: Some(text.to_owned()), ..OfCase::default() })
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<OfCase, M::Error> {
                let Table { run, env, python, dir, threads, setup } =
                    Table::deserialize(MapAccessDeserializer::new(map))?;
                Ok(OfCase { run, rest: Side { name: None, env, python, dir, threads, setup } })
            }
        }
        from.deserialize_any(TextOrTable)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    fn parse(text: &str) -> anyhow::Result<Vec<CasePlan>> {
        File::parse(text, "below".into())?.cases(&[])
    }

    fn sides(case: &CasePlan) -> &[SidePlan] {
        &case.own.as_ref().unwrap().sides
    }

    #[test]
    fn top_level_keys_apply_to_every_case() {
        let cases = parse(
            r#"
            setup = "import math"
            python = "python3.12"
            [a]
            env = { K = 1 }
            [b]
            name = "mine"
            python = "env/bin/python"
            dir = "there"
            setup = "y = 1"
            [[case]]
            name = "scale"
            setup = "x = 2"
            a = "x * 2"
            b = { run = "x + x", setup = "z = n", env = { K = "V" }, threads = 1 }
            params = { n = [1, 10] }
            tolerance = 1e-6
            [[case]]
            name = "both"
            run = "math.pi"
            check = false
            [[case]]
            name = "commands"
            commands = true
            prepare = "sync"
            a = "true"
            b = "test 'a b'"
            "#,
        )
        .unwrap();
        let labels: Vec<String> = cases.iter().map(CasePlan::label).collect();
        assert_eq!(labels, ["scale n=1", "scale n=10", "both", "commands"]);
        let [a, b] = sides(&cases[1]) else { panic!() };
        let setup = "import math\ny = 1\nx = 2\nz = n";
        assert_eq!(
            b.runs,
            Runs::Statement { code: "x + x".into(), setup: setup.into(), prepare: String::new() }
        );
        assert_eq!((&*a.name, &*b.name, b.threads), ("A", "mine", Some(1)));
        assert_eq!(a.env, [("K".into(), "1".into())]);
        assert_eq!(b.env, [("K".into(), "V".into())]);
        assert_eq!(a.python, Some("python3.12".into()));
        assert_eq!(b.python, Some("below/env/bin/python".into()));
        assert_eq!(b.directory, Some("below/there".into()));
        assert_eq!(sides(&cases[2])[0].runs.text(), "math.pi");
        let own = |at: usize| cases[at].own.as_ref().unwrap();
        assert_eq!((own(0).check, own(0).tolerance, own(2).check), (true, Some(1e-6), false));
        let Runs::Command { words, prepare } = &sides(&cases[3])[1].runs else { panic!() };
        assert_eq!((words.len(), prepare.is_some()), (2, true));
    }

    #[test]
    fn errors_include_the_position() {
        let case = "[[case]]\nname = \"x\"\n";
        let check = |text: &str, said: &str| {
            let error = format!("{:#}", parse(text).err().unwrap());
            assert!(error.contains(said), "{text}: {error}");
        };
        check("", "the file has no [[case]]");
        check("steup = 1", "unknown field `steup`");
        check("\nsteup = 1", "line 2");
        check(&format!("{case}a = {{ runs = \"1\" }}"), "unknown field `runs`");
        check(&format!("{case}a = {{ runs = \"1\" }}"), "line 3");
        check(&format!("{case}a = 1"), "a string or a table with run");
        check(case, "no sides are defined");
        check("[[case]]\na = \"1\"", "missing field `name`");
        check(&format!("{case}b = \"1\""), "side b is defined, but side a is missing");
        check(&format!("{case}a = \"1\"\n{case}a = \"2\""), "duplicate case name \"x\"");
        check(
            &format!("{case}a = \"1\"\nb = \"1\"\n[[case]]\nname = \"y\"\na = \"1\""),
            "side b is missing",
        );
        check(&format!("{case}a = \"1\"\nsetup = \"1\"\ncommands = true"), "does not apply");
        check(&format!("{case}a = \"1\"\nparams = {{ n = [] }}"), "has no values");
        check(&format!("{case}a = \"1\"\nparams = {{ n = [[1]] }}"), "expected a string, number");
        check(&format!("{case}a = \"1\"\ntolerance = 2.0"), "tolerance must be between 0 and 1");
        check(&format!("{case}a = 'x \"y'\ncommands = true"), "unbalanced quotes");
    }
}
