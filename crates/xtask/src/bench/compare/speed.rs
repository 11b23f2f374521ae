//! Time and memory of comparing two large traces, compared with loading them and with Python.
//!
//! Every round runs all programs in random order, so that noise on the machine affects all of them.

use super::Lab;
use crate::bench::child::{self, Run};
use crate::bench::machine;
use crate::bench::summary::range;
use crate::project;
use anyhow::{Context, Result};
use laggard_core::stats::summary::Summary;
use laggard_samples::Rng;
use laggard_samples::pairs::{Length, Plan, Planted};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Python is slow and varies little.
const PYTHON_ROUNDS: u32 = 2;
/// Memory that Python needs, as a multiple of the larger file.
const PYTHON_MEMORY: f64 = 8.5;

/// A command to run on a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    LoadA,
    LoadB,
    Compare,
    /// With indexes.
    CompareAgain,
    Python,
    PythonNoCollector,
}

impl Turn {
    const ALL: [Turn; 6] = [
        Turn::LoadA,
        Turn::LoadB,
        Turn::Compare,
        Turn::CompareAgain,
        Turn::Python,
        Turn::PythonNoCollector,
    ];

    fn label(self) -> &'static str {
        match self {
            Turn::LoadA => "`laggard report A --no-index`",
            Turn::LoadB => "`laggard report B --no-index`",
            Turn::Compare => "`laggard compare A B --no-index`",
            Turn::CompareAgain => "`laggard compare A B`, with indexes",
            Turn::Python => "Python, orjson, sums by kernel",
            Turn::PythonNoCollector => "the same, GC off",
        }
    }

    fn is_python(self) -> bool {
        matches!(self, Turn::Python | Turn::PythonNoCollector)
    }

    fn command(self, lab: &Lab, pair: &Pair) -> Command {
        let mut command = match self {
            Turn::LoadA | Turn::LoadB => lab.laggard("report"),
            Turn::Compare | Turn::CompareAgain => lab.laggard("compare"),
            Turn::Python | Turn::PythonNoCollector => {
                let mut python = Command::new(&lab.python);
                python.arg(project::root().join("crates/xtask/src/bench/compare/by_name.py"));
                python
            }
        };
        let [a, b] = &pair.files;
        match self {
            Turn::LoadA => command.arg(a),
            Turn::LoadB => command.arg(b),
            _ => command.args([a, b]),
        };
        match self {
            Turn::LoadA | Turn::LoadB | Turn::Compare => command.arg("--no-index"),
            Turn::PythonNoCollector => command.arg("--gc-off"),
            Turn::CompareAgain | Turn::Python => &mut command,
        };
        command
    }
}

/// Two traces.
struct Pair {
    files: [PathBuf; 2],
    bytes: [f64; 2],
}

/// All runs of one pair.
struct Measured {
    /// By command in the order of [`Turn::ALL`], then by round. Python has fewer rounds.
    runs: Vec<Vec<Run>>,
    /// Anonymous memory of [`Turn::Compare`], by round, if known.
    own_bytes: Vec<f64>,
}

impl Measured {
    fn of(&self, turn: Turn) -> &[Run] {
        &self.runs[turn as usize]
    }

    /// Cost of comparing, divided by the cost of loading both sides, per round.
    fn over_loading(&self, cost: fn(&Run) -> f64) -> Vec<f64> {
        let loads = self.of(Turn::LoadA).iter().zip(self.of(Turn::LoadB));
        let rounds = self.of(Turn::Compare).iter().zip(loads);
        rounds.map(|(both, (a, b))| cost(both) / (cost(a) + cost(b))).collect()
    }
}

pub(super) fn section(lab: &Lab, rounds: u32, megabytes: u64) -> Result<String> {
    let mut text = format!(
        "## Comparing two traces\n\n\
         `cargo xtask bench compare`: `laggard compare A B` on two PyTorch traces. {}\n\n\
         Pairs: `cargo xtask gen-pair KIND A B --mb {megabytes}`, with the same number of steps on both sides. Each of \
         {rounds} rounds ran all programs in random order (Python: {} rounds). Values are median (min..max); ratios are \
         computed per round. CPU is user and system time of all threads. Peak memory includes the mapped files. The \
         Python script parses one side after the other and only sums time and launches by kernel name.\n",
        machine::describe(),
        PYTHON_ROUNDS.min(rounds),
    );
    let kinds = [
        (Planted::SlowClass, "Training, slower attention in the backward pass of B"),
        (Planted::PhaseMix, "Serving, more prefill iterations in B"),
    ];
    for (planted, title) in kinds {
        eprintln!("bench: generating {} with {megabytes} MB per side", planted.word());
        let length = Length::Bytes(megabytes * 1_000_000);
        let files = lab.write(&Plan { planted, length, seed: 1, python: true })?;
        let bytes = [size(&files[0])?, size(&files[1])?];
        let pair = Pair { files, bytes };
        let found = found(lab, &pair)?;
        let measured = take_turns(lab, &pair, rounds)?;
        text += &format!("\n### {title} (`{}`)\n\n", planted.word());
        text += &about(&pair, &found, &measured);
        text += &format!("\n{}\n{}", table(&measured), verdict(&pair, &measured));
        for file in &pair.files {
            std::fs::remove_file(file)?;
            // An index in the cache directory stays; `laggard index --clear` deletes it.
            _ = std::fs::remove_file(file.with_extension("json.lagi"));
        }
    }
    Ok(text)
}

fn size(file: &Path) -> Result<f64> {
    Ok(file.metadata()?.len() as f64)
}

/// Result of comparing a pair. Also writes the indexes and loads the files into the page cache.
fn found(lab: &Lab, pair: &Pair) -> Result<Value> {
    let said = child::measure(lab.laggard("compare").args(&pair.files).arg("--json"))?.stdout;
    serde_json::from_str(&said).context("cannot parse the JSON of compare")
}

fn take_turns(lab: &Lab, pair: &Pair, rounds: u32) -> Result<Measured> {
    let larger = pair.bytes[0].max(pair.bytes[1]);
    let has_python = machine::has_memory(larger * PYTHON_MEMORY);
    if !has_python {
        eprintln!("warning: Python skipped, not enough memory");
    }
    let mut order = Turn::ALL;
    let mut rng = Rng::new(u64::from(rounds));
    let mut runs: Vec<Vec<Run>> = Turn::ALL.iter().map(|_| vec![]).collect();
    let mut own_bytes = vec![];
    for round in 0..rounds {
        rng.shuffle(&mut order);
        for turn in order {
            if turn.is_python() && (!has_python || round >= PYTHON_ROUNDS) {
                continue;
            }
            eprintln!("bench: round {} of {rounds}: {}", round + 1, turn.label());
            let run = child::measure(&mut turn.command(lab, pair));
            runs[turn as usize].push(run.with_context(|| format!("{} failed", turn.label()))?);
        }
        // In a separate run, because polling costs time.
        let own = child::own_peak(&mut Turn::Compare.command(lab, pair))?;
        own_bytes.extend(own.map(|bytes| bytes as f64));
    }
    Ok(Measured { runs, own_bytes })
}

/// Sizes, steps and kernels, and whether Python reports the same counts.
fn about(pair: &Pair, found: &Value, measured: &Measured) -> String {
    let side = |key: &str, bytes: f64| {
        let side = &found[key];
        let total = &side["traces"][0]["totals"]["kernels"];
        let (count, ns) = (total["count"].as_u64(), total["time_ns"].as_f64());
        let (count, ns) = (count.unwrap_or_default(), ns.unwrap_or_default());
        let text = format!(
            "{:.0} MB, {} {}s, {count} kernels with {:.3} s in total",
            bytes / 1e6,
            side["laps"],
            side["marker"].as_str().unwrap_or_default(),
            ns / 1e9
        );
        (text, count, ns)
    };
    let (a, b) = (side("a", pair.bytes[0]), side("b", pair.bytes[1]));
    let python = measured.of(Turn::Python).first();
    let said = python.and_then(|run| serde_json::from_str::<Value>(&run.stdout).ok());
    let agrees = said.map(|said| {
        [("a", &a), ("b", &b)].iter().all(|(key, (_, count, ns))| {
            let micros = said[key]["kernel_us"].as_f64().unwrap_or_default();
            // Python sums microseconds in floating point.
            said[key]["kernels"].as_u64() == Some(*count)
                && (micros * 1e3 - ns).abs() <= ns / 1e9 + 1e3
        })
    });
    let peer = match agrees {
        None => "",
        Some(true) => " Python reports the same counts.",
        Some(false) => " **Python reports different counts.**",
    };
    format!("A: {}. B: {}.{peer}\n", a.0, b.0)
}

fn table(measured: &Measured) -> String {
    let mut text = "| | n | wall, s | CPU, s | peak memory, MB | wall, × `compare` |\n\
                    |---|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for turn in Turn::ALL {
        let runs = measured.of(turn);
        if runs.is_empty() {
            continue;
        }
        let values = |of: fn(&Run) -> f64| runs.iter().map(of).collect::<Vec<f64>>();
        let ours = measured.of(Turn::Compare);
        let ratios: Vec<f64> =
            runs.iter().zip(ours).map(|(run, ours)| run.wall_s / ours.wall_s).collect();
        text += &format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            turn.label(),
            runs.len(),
            range(&values(|run| run.wall_s), 3),
            range(&values(|run| run.cpu_s), 3),
            range(&values(|run| run.peak_bytes as f64 / 1e6), 0),
            if turn == Turn::Compare { "1".to_owned() } else { range(&ratios, 2) },
        );
    }
    text
}

/// The values that have targets.
fn verdict(pair: &Pair, measured: &Measured) -> String {
    let files = pair.bytes[0] + pair.bytes[1];
    let again: Vec<f64> = measured.of(Turn::CompareAgain).iter().map(|run| run.wall_s).collect();
    let peaks: Vec<f64> =
        measured.of(Turn::Compare).iter().map(|run| run.peak_bytes as f64).collect();
    let shares: Vec<f64> = measured.own_bytes.iter().map(|bytes| bytes / (files / 2.0)).collect();
    let own = if shares.is_empty() {
        "unknown".to_owned()
    } else {
        format!(
            "{:.0} MB, {} of the mean file size (target: at most 0.5; n = {})",
            Summary::of(&measured.own_bytes).median / 1e6,
            range(&shares, 2),
            shares.len()
        )
    };
    format!(
        "- Time of `compare` divided by that of both reports: wall {}, CPU {} (target: at most 1.3; n = {}).\n\
         - With indexes: {} s for {:.1} GB in total (target: under 0.5 s for two files of 1 GB).\n\
         - Anonymous memory of `compare` without an index: {own}, polled every millisecond in separate runs. Peak \
         memory minus the size of both mapped files is {:+.0} MB, which is too low if one file is unmapped before the \
         other has been read.\n",
        range(&measured.over_loading(|run| run.wall_s), 2),
        range(&measured.over_loading(|run| run.cpu_s), 2),
        measured.of(Turn::Compare).len(),
        range(&again, 3),
        files / 1e9,
        (Summary::of(&peaks).median - files) / 1e6,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparing_is_divided_by_loads_of_the_same_round() {
        let runs = |walls: [f64; 2]| {
            walls
                .map(|wall_s| Run { wall_s, cpu_s: 1.0, peak_bytes: 1, stdout: String::new() })
                .into_iter()
                .collect()
        };
        let runs = vec![runs([1.0, 2.0]), runs([1.0, 4.0]), runs([3.0, 3.0])];
        let measured = Measured { runs, own_bytes: vec![] };
        assert_eq!(measured.over_loading(|run| run.wall_s), [1.5, 0.5]);
        assert_eq!(measured.over_loading(|run| run.cpu_s), [0.5, 0.5]);
    }
}
