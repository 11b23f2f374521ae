//! Real differences between public releases and between statements: whether the first culprit is at
//! the right place and of an acceptable kind.

use super::{Args, Lab, machine};
use crate::bench::child;
use crate::{project, python};
use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use laggard_core::stats::summary::Summary;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The minor version of Python that the pairs are measured with.
const MINOR: u32 = 11;

#[derive(Deserialize)]
struct Pairs {
    pair: Vec<RealPair>,
}

#[derive(Deserialize)]
struct RealPair {
    name: String,
    setup: String,
    /// The statement of both sides, unless they differ.
    statement: Option<String>,
    a: Option<String>,
    b: Option<String>,
    #[serde(default)]
    packages: Vec<String>,
    a_packages: Option<Vec<String>>,
    b_packages: Option<Vec<String>>,
    #[serde(default)]
    b_env: BTreeMap<String, String>,
    place: Vec<String>,
    kind: Vec<String>,
}

pub(super) fn section(lab: &Lab, args: &Args) -> Result<String> {
    let path = project::root().join("subjects/real/pairs.toml");
    let text = std::fs::read_to_string(&path)?;
    let pairs: Pairs = toml::from_str(&text).context("cannot read subjects/real/pairs.toml")?;
    let Some(base) = python::installed().remove(&MINOR) else {
        bail!("the real pairs need CPython 3.{MINOR}");
    };
    let mut rows = vec![];
    let (mut places, mut kinds, mut open, mut times) = (0, 0, vec![], vec![]);
    let is_asked = |pair: &&RealPair| args.only.is_empty() || args.only.contains(&pair.name);
    let asked: Vec<&RealPair> = pairs.pair.iter().filter(is_asked).collect();
    for pair in &asked {
        eprintln!("bench: why {}", pair.name);
        let (verdict, time) = ask(lab, args, pair, &base).with_context(|| pair.name.clone())?;
        times.push(time.as_secs_f64() / f64::from(args.why));
        let first = &verdict["culprits"][0];
        let text = |key: &str| first[key].as_str().unwrap_or("none").to_owned();
        let (at, kind) = (text("at"), text("kind"));
        let is_place = pair.place.iter().any(|place| at.contains(place.as_str()));
        let is_kind = pair.kind.contains(&kind);
        places += u32::from(is_place);
        kinds += u32::from(is_kind);
        open.push(verdict["not_explained"].as_f64().unwrap_or(1.0));
        let mark = |is_right: bool| if is_right { "yes" } else { "**no**" };
        rows.push(format!(
            "| `{}` | {:.2}x | {kind} | {:.0} % | `{}` | {} | {} |",
            pair.name,
            verdict["ratio"]["middle"].as_f64().unwrap_or(f64::NAN),
            first["explains"].as_f64().unwrap_or_default() * 100.0,
            at.replace('|', "/"),
            mark(is_place),
            mark(is_kind)
        ));
    }
    let longest = times.iter().copied().fold(0.0, f64::max);
    Ok(format!(
        "## Real differences\n\n\
         `cargo xtask bench verdicts --part real`: {n} differences between public releases and between statements \
         (`subjects/real/pairs.toml`), each measured by `laggard why --time {time}s` with CPython 3.{MINOR}.\n\n\
         **The first culprit is at the right place in {places} of {n} pairs and of an acceptable kind in {kinds}. The \
         median share that is not explained is {open:.0} %. A verdict takes {median:.2} x `--time` in the median and \
         {longest:.2} x at most.**\n\n\
         {machine}\n\n\
         | pair | B / A | first culprit | share of lag | at | place | kind |\n\
         |---|---:|---|---:|---|---|---|\n{rows}\n",
        n = asked.len(),
        time = args.why,
        open = Summary::of(&open).median * 100.0,
        median = Summary::of(&times).median,
        machine = machine::describe(),
        rows = rows.join("\n")
    ))
}

/// The verdict on a pair and the time that it takes, without the installation of packages.
fn ask(lab: &Lab, args: &Args, pair: &RealPair, base: &Path) -> Result<(Value, Duration)> {
    let mut why = Command::new(&lab.program);
    why.args(["why", "--quiet", "--json", "--no-check", "--no-source"]);
    why.args(["--time", &format!("{}s", args.why), "--setup", &pair.setup]);
    for (letter, packages) in [("a", &pair.a_packages), ("b", &pair.b_packages)] {
        let packages = packages.as_ref().unwrap_or(&pair.packages);
        why.arg(format!("--{letter}-python")).arg(environment(base, packages)?);
    }
    for (name, value) in &pair.b_env {
        why.arg("--b-env").arg(format!("{name}={value}"));
    }
    for own in [&pair.a, &pair.b] {
        why.arg(own.as_ref().or(pair.statement.as_ref()).context("the pair has no statement")?);
    }
    let start = Instant::now();
    let said = child::measure(&mut why)?.stdout;
    let time = start.elapsed();
    let said: Value = serde_json::from_str(&said).context("cannot parse the JSON of why")?;
    if args.keep {
        keep(&pair.name, said.clone())?;
    }
    Ok((said, time))
}

/// The interpreter of an environment with these packages, which is created on first use.
fn environment(base: &Path, packages: &[String]) -> Result<PathBuf> {
    let mut sorted = packages.to_vec();
    sorted.sort();
    let name = if sorted.is_empty() { "none".to_owned() } else { sorted.join(",") };
    let environment = project::target()?.join("real").join(name);
    let (python, ready) = (environment.join("bin/python"), environment.join("ready"));
    if !ready.exists() {
        let mut make = Command::new(base);
        project::must(make.args(["-m", "venv", "--clear"]).arg(&environment))?;
        if !sorted.is_empty() {
            let mut pip = Command::new(&python);
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
            project::must(pip.args(["--only-binary", ":all:"]).args(&sorted))?;
        }
        std::fs::write(&ready, "")?;
    }
    Ok(python)
}

/// Writes the evidence to the fixtures, without facts about the machine and its directories.
fn keep(name: &str, mut said: Value) -> Result<()> {
    for side in said["sides"].as_array_mut().into_iter().flatten() {
        side["facts"] = Value::Array(vec![]);
    }
    said["command"] = Value::Array(vec![]);
    remove_directories(&mut said);
    let path = project::root().join("fixtures/real").join(format!("{name}.json.gz"));
    std::fs::create_dir_all(path.with_file_name(""))?;
    let mut out = GzEncoder::new(vec![], Compression::best());
    out.write_all(serde_json::to_string(&said)?.as_bytes())?;
    std::fs::write(&path, out.finish()?).with_context(|| format!("cannot write {}", path.display()))
}

/// Removes the directories of environments and interpreters from paths: `/…/lib/python3.11/json` becomes
/// `/lib/python3.11/json`.
fn remove_directories(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(at) = text.find("/lib/python3.").filter(|_| text.starts_with('/')) {
                text.drain(..at);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(remove_directories),
        Value::Object(items) => items.values_mut().for_each(remove_directories),
        _ => {}
    }
}
