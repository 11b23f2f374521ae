//! Accuracy of the verdict: pairs with one planted cause, and pairs without a difference.

use super::Lab;
use crate::bench::child;
use anyhow::{Context, Result};
use laggard_core::culprit::Kind;
use laggard_samples::pairs::{Length, Plan, Planted};
use serde_json::Value;
use std::collections::BTreeMap;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;

/// How to generate pairs.
struct Setting {
    title: &'static str,
    steps: u64,
    python: bool,
}

const SETTINGS: [Setting; 3] = [
    Setting { title: "10 steps", steps: 10, python: true },
    Setting { title: "1 step", steps: 1, python: true },
    Setting { title: "10 steps, no Python functions", steps: 10, python: false },
];

impl Setting {
    /// A single iteration of a server has only one phase, so there is no mix of phases.
    fn has(&self, planted: Planted) -> bool {
        self.steps > 1 || planted != Planted::PhaseMix
    }
}

/// The culprit to name first; `None` if there is none. `Vendors` has no known culprit.
fn expected(planted: Planted) -> Option<Kind> {
    match planted {
        Planted::SlowClass => Some(Kind::SameKernelSlower),
        Planted::Fused => Some(Kind::Unfused),
        Planted::LayerMore => Some(Kind::MoreCalls),
        Planted::LateLaunches | Planted::SlowHostGap => Some(Kind::LaunchBound),
        Planted::ExposedCommunication => Some(Kind::ExposedCommunication),
        Planted::OtherKernel => Some(Kind::OtherKernel),
        Planted::PhaseMix | Planted::Nothing | Planted::Noise | Planted::Vendors => None,
    }
}

/// The verdict on a pair.
struct Said {
    first: Option<String>,
    explains: f64,
    /// Rows reported as slower or faster.
    differing: Vec<String>,
}

impl Said {
    fn is_right(&self, expected: Option<Kind>) -> bool {
        match expected {
            Some(kind) => self.first.as_deref() == Some(kind.word()),
            None => self.first.is_none() && self.differing.is_empty(),
        }
    }

    /// Description of a wrong verdict.
    fn instead(&self, expected: Option<Kind>) -> String {
        match (&self.first, expected) {
            (Some(first), _) => first.clone(),
            (None, Some(_)) => "no culprit".into(),
            (None, None) => self.differing.join(", "),
        }
    }
}

pub(super) fn section(lab: &Lab) -> Result<String> {
    let mut rows = String::new();
    let mut wrong = String::new();
    let (mut named, mut guilty, mut accused, mut differ, mut innocent) = (0, 0, 0, 0, 0);
    for planted in Planted::ALL.into_iter().filter(|planted| *planted != Planted::Vendors) {
        eprintln!("bench: verdicts on {}", planted.word());
        let expected = expected(planted);
        let mut cells = vec![];
        for setting in &SETTINGS {
            if !setting.has(planted) {
                cells.push("-".to_owned());
                continue;
            }
            let (mut right, mut n, mut least) = (0, 0, f64::INFINITY);
            let mut instead: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for seed in SEEDS {
                let said = ask(lab, planted, setting, seed)?;
                n += 1;
                if said.is_right(expected) {
                    right += 1;
                    least = least.min(said.explains);
                } else {
                    instead.entry(said.instead(expected)).or_default().push(seed.to_string());
                }
                if expected.is_none() {
                    accused += u32::from(said.first.is_some());
                    differ += u32::from(!said.differing.is_empty());
                }
            }
            for (said, seeds) in instead {
                let noun = if seeds.len() == 1 { "seed" } else { "seeds" };
                let (word, title, seeds) = (planted.word(), setting.title, seeds.join(", "));
                wrong += &format!("- `{word}`, {title}, {noun} {seeds}: {said}\n");
            }
            if expected.is_some() {
                (named, guilty) = (named + right, guilty + n);
            } else {
                innocent += n;
            }
            cells.push(if expected.is_some() && right > 0 {
                format!("{right} of {n}, ≥ {:.0} %", least * 100.0)
            } else {
                format!("{right} of {n}")
            });
        }
        let kind = expected.map_or("none", Kind::word);
        rows += &format!("| `{}` | {kind} | {} |\n", planted.word(), cells.join(" | "));
    }
    let titles = SETTINGS.map(|setting| setting.title).join(" | ");
    let wrong =
        if wrong.is_empty() { String::new() } else { format!("\nWrong verdicts:\n\n{wrong}") };
    Ok(format!(
        "### Accuracy of the verdict\n\n\
         Pairs of `cargo xtask gen-pair`, seeds {} to {}, compared with `laggard compare --json`. A pair with a planted \
         cause is correct if the first culprit has the planted kind; ≥ is the lowest share of the lag that it explains. \
         A pair without a difference is correct if no culprit is named and no row of any table is reported as slower or \
         faster.\n\n\
         **The planted kind is named first in {named} of {guilty} pairs. Of {innocent} pairs without a difference, \
         {accused} have a culprit and {differ} have a row reported as slower or faster.**\n\n\
         | pair | expected | {titles} |\n|---|---|---|---|---|\n{rows}{wrong}",
        SEEDS.start(),
        SEEDS.end(),
    ))
}

fn ask(lab: &Lab, planted: Planted, setting: &Setting, seed: u64) -> Result<Said> {
    let (length, python) = (Length::Steps(setting.steps), setting.python);
    let files = lab.write(&Plan { planted, length, seed, python })?;
    let mut compare = lab.laggard("compare");
    compare.args(&files).args(["--json", "--no-index"]);
    let said = child::measure(&mut compare)?.stdout;
    let said: Value = serde_json::from_str(&said).context("cannot parse the JSON of compare")?;
    let culprits = said["culprits"].as_array().context("compare reported no list of culprits")?;
    let first = culprits.first();
    Ok(Said {
        first: first.and_then(|culprit| Some(culprit["kind"].as_str()?.to_owned())),
        explains: first.and_then(|culprit| culprit["explains"].as_f64()).unwrap_or_default(),
        differing: differing(&said),
    })
}

/// Rows of all tables that are reported as slower or faster.
fn differing(said: &Value) -> Vec<String> {
    let tables = [&said["time"], &said["findings"], &said["host"], &said["layers"]["rows"]];
    let rows = tables.into_iter().filter_map(Value::as_array).flatten();
    rows.chain([&said["whole"]])
        .filter_map(|row| {
            let verdict = row["verdict"].as_str()?;
            let differs = matches!(verdict, "slower" | "faster");
            let name = row["name"].as_str().unwrap_or_default();
            differs.then(|| format!("{name} {verdict}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::differing;
    use serde_json::json;

    #[test]
    fn differing_rows_of_all_tables() {
        let row = |name: &str, verdict: &str| json!({ "name": name, "verdict": verdict });
        let said = json!({
            "whole": row("step", "no detectable difference"),
            "time": [row("compute", "slower")],
            "findings": [row("GEMM", "single sample")],
            "host": [row("launches", "faster")],
            "layers": { "rows": [row("layer 1", "slower")] },
        });
        assert_eq!(differing(&said), ["compute slower", "launches faster", "layer 1 slower"]);
    }
}
