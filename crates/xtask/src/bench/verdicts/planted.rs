//! Pairs with one planted cause each: whether it is named first, and its share of the lag.

use super::{Args, Lab, machine};
use crate::bench::child;
use crate::project;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// The planted cause of a pair.
#[derive(serde::Deserialize)]
struct Planted {
    kinds: Vec<String>,
    language: String,
    cause: String,
}

/// The verdict on a pair.
struct Verdict {
    ratio: f64,
    kind: Option<String>,
    explains: f64,
    others: Vec<String>,
}

pub(super) fn section(lab: &Lab, args: &Args) -> Result<String> {
    let text = std::fs::read_to_string(lab.culprits.package.join("planted.toml"))?;
    let all: BTreeMap<String, Planted> =
        toml::from_str(&text).context("cannot read planted.toml")?;
    let mut rows = vec![];
    let (mut named, mut half, mut planted, mut accused, mut innocent) = (0, 0, 0, 0, 0);
    for (name, pair) in &all {
        eprintln!("bench: why {name}");
        let verdict = ask(lab, args, name).with_context(|| format!("no verdict on {name}"))?;
        let first = verdict.kind.as_deref().unwrap_or("none");
        let is_right = match pair.kinds.is_empty() {
            true => verdict.kind.is_none(),
            false => pair.kinds.iter().any(|kind| kind == first),
        };
        if pair.kinds.is_empty() {
            innocent += 1;
            accused += u32::from(!is_right);
        } else {
            planted += 1;
            named += u32::from(is_right);
            half += u32::from(is_right && verdict.explains >= 0.5);
        }
        let explains = if verdict.kind.is_some() {
            format!("{:.0} %", verdict.explains * 100.0)
        } else {
            "-".into()
        };
        rows.push(format!(
            "| `{name}` | {} | {} | {:.2}x | {}{first} | {explains} | {} |",
            pair.language,
            pair.cause,
            verdict.ratio,
            if is_right { "" } else { "**wrong:** " },
            verdict.others.join(", ")
        ));
    }
    let time = args.why;
    Ok(format!(
        "## Planted culprits\n\n\
         `cargo xtask bench verdicts --part planted`: {planted} pairs in which B is slower for one known reason, and \
         {innocent} pairs without a difference (`subjects/culprits`), each measured by \
         `laggard why --case NAME --time {time}s`.\n\n\
         **The planted kind is named first in {named} of {planted} pairs and explains at least half of the lag in {half}. \
         A culprit is named in {accused} of {innocent} pairs without a difference.**\n\n\
         {}\n\n\
         | pair | language | planted cause | B / A | first culprit | share of lag | other culprits |\n\
         |---|---|---|---:|---|---:|---|\n{}\n",
        machine::describe(),
        rows.join("\n")
    ))
}

fn ask(lab: &Lab, args: &Args, name: &str) -> Result<Verdict> {
    let mut why = lab.laggard("why");
    why.args(["--case", name, "--time", &format!("{}s", args.why)]);
    let said = child::measure(&mut why)?.stdout;
    let said: Value = serde_json::from_str(&said).context("cannot parse the JSON of why")?;
    if args.keep {
        keep(name, said.clone())?;
    }
    let culprits = said["culprits"].as_array().context("why reported no list of culprits")?;
    let explains = |culprit: &Value| culprit["explains"].as_f64().unwrap_or_default();
    let kind = |culprit: &Value| culprit["kind"].as_str().unwrap_or_default().to_owned();
    let other = |culprit: &Value| format!("{} {:.0} %", kind(culprit), explains(culprit) * 100.0);
    Ok(Verdict {
        ratio: said["ratio"]["middle"].as_f64().unwrap_or(f64::NAN),
        kind: culprits.first().map(kind),
        explains: culprits.first().map_or(0.0, explains),
        others: culprits.iter().skip(1).map(other).collect(),
    })
}

/// Writes the evidence to the fixtures, without facts about the machine.
fn keep(name: &str, mut said: Value) -> Result<()> {
    for side in said["sides"].as_array_mut().into_iter().flatten() {
        side["facts"] = Value::Array(vec![]);
    }
    let root = project::root();
    let here = root.to_string_lossy();
    let text = serde_json::to_string(&said)?.replace(&*here, "");
    let path = root.join("fixtures/culprits").join(format!("{name}.json"));
    std::fs::create_dir_all(path.with_file_name(""))?;
    std::fs::write(&path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}
