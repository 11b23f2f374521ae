//! Tools that compare two sides.

use super::Lab;
use super::same::verdict;
use crate::bench::child;
use crate::{project, python, system};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Laggard,
    Sequential,
    Pyperf,
    Hyperfine,
}

/// Result of a comparison.
pub(super) struct Called {
    pub(super) is_different: bool,
    pub(super) ratio: f64,
}

impl Tool {
    /// All available tools. Others are skipped with a notice.
    pub(super) fn all(lab: &Lab) -> Vec<Tool> {
        let mut all = vec![Tool::Laggard, Tool::Sequential];
        match python::install(&lab.python, "pyperf") {
            Ok(()) => all.push(Tool::Pyperf),
            Err(error) => eprintln!("skipped: pyperf: {error:#}"),
        }
        match system::ensure_debian("hyperfine", "hyperfine") {
            Ok(()) => all.push(Tool::Hyperfine),
            Err(error) => eprintln!("skipped: hyperfine: {error:#}"),
        }
        all
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Tool::Laggard => "`laggard bench`, 2 s",
            Tool::Sequential => "`timeit`, sequential, 1 s per side",
            Tool::Pyperf => "`pyperf timeit` and `compare_to`",
            Tool::Hyperfine => "`hyperfine`, 20 runs per side",
        }
    }

    pub(super) fn compare(self, lab: &Lab, (setup, statement): (&str, &str)) -> Result<Called> {
        match self {
            Tool::Laggard => {
                let mut bench = lab.laggard("bench");
                bench.args(["--time", "2s", "--setup", setup, statement, statement]);
                verdict(&child::measure(&mut bench)?.stdout)
            }
            Tool::Sequential => sequential(lab, setup, statement),
            Tool::Pyperf => pyperf(lab, setup, statement),
            Tool::Hyperfine => hyperfine(lab, setup, statement),
        }
    }
}

/// The common approach: one second of A, then one second of B, and a t-test.
fn sequential(lab: &Lab, setup: &str, statement: &str) -> Result<Called> {
    const SCRIPT: &str = "import sys, timeit
timer = timeit.Timer(sys.argv[2], sys.argv[1])
number, took = timer.autorange()
number = max(1, int(number * 0.02 / took))
print(*[time / number for time in timer.repeat(50, number)])";
    let side = || -> Result<Vec<f64>> {
        let mut run = Command::new(&lab.python);
        let said = child::measure(run.args(["-c", SCRIPT, setup, statement]))?.stdout;
        said.split_whitespace()
            .map(|time| time.parse().context("timeit printed no number"))
            .collect()
    };
    let (a, b) = (side()?, side()?);
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let (of_a, of_b) = (mean(&a), mean(&b));
    let error = |all: &[f64], mean: f64| {
        let squares: f64 = all.iter().map(|time| (time - mean).powi(2)).sum();
        squares / (all.len() - 1) as f64 / all.len() as f64
    };
    let t = (of_b - of_a) / (error(&a, of_a) + error(&b, of_b)).sqrt();
    Ok(Called { is_different: t.abs() > 1.98, ratio: of_b / of_a })
}

fn pyperf(lab: &Lab, setup: &str, statement: &str) -> Result<Called> {
    let room = tempfile::tempdir()?;
    let files = ["a.json", "b.json"].map(|name| room.path().join(name));
    for file in &files {
        let mut time = Command::new(&lab.python);
        time.args(["-m", "pyperf", "timeit", "--fast", "--quiet", "--setup", setup, "-o"]);
        child::measure(time.arg(file).arg(statement))?;
    }
    let mut compare = Command::new(&lab.python);
    let said = child::measure(compare.args(["-m", "pyperf", "compare_to"]).args(&files))?.stdout;
    // `Mean +- std dev: [a] 5.1 us +- 0.2 us -> [b] 5.3 us +- 0.1 us: 1.04x slower`, or
    // `Benchmark hidden because not significant`.
    let factor =
        said.split_whitespace().find_map(|word| word.strip_suffix('x')?.parse::<f64>().ok());
    let is_different =
        !said.contains("not significant") && factor.is_some_and(|factor| factor > 1.0);
    let ratio = match (factor, said.contains("faster")) {
        (Some(factor), true) => 1.0 / factor,
        (Some(factor), false) => factor,
        (None, _) => 1.0,
    };
    Ok(Called { is_different, ratio })
}

/// Whole processes that call the statement for about 50 ms.
fn hyperfine(lab: &Lab, setup: &str, statement: &str) -> Result<Called> {
    const SCRIPT: &str = "import sys, timeit\ntimeit.Timer(sys.argv[2], sys.argv[1]).timeit(2000)";
    let Some(program) = project::which("hyperfine") else { bail!("hyperfine is not in PATH") };
    let room = tempfile::tempdir()?;
    let (script, out) = (room.path().join("side.py"), room.path().join("out.json"));
    std::fs::write(&script, SCRIPT)?;
    let python = lab.python.to_string_lossy();
    let side = format!("'{python}' '{}' '{setup}' '{statement}'", script.display());
    let mut run = Command::new(program);
    run.args(["-N", "--style", "none", "--runs", "20", "--export-json"]).arg(&out);
    child::measure(run.args([&side, &side]))?;
    let said: Value = serde_json::from_slice(&std::fs::read(&out)?)?;
    let of = |side: usize, what: &str| {
        said["results"][side][what].as_f64().context("a value is missing in the JSON of hyperfine")
    };
    let (a, b) = (of(0, "mean")?, of(1, "mean")?);
    let ratio = b / a;
    // Error propagation as in hyperfine: relative errors of both sides.
    let error = ratio * ((of(0, "stddev")? / a).powi(2) + (of(1, "stddev")? / b).powi(2)).sqrt();
    Ok(Called { is_different: (ratio - 1.0).abs() > 2.0 * error, ratio })
}
