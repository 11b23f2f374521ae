//! A side against itself, which must read as equal; and against one that takes 2 % longer.

use super::tools::{Called, Tool};
use super::{Args, Lab, machine};
use crate::bench::child;
use anyhow::{Context, Result};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Set-ups and statements of different kinds.
const STATEMENTS: [(&str, &str); 4] = [
    ("", "sum(range(1000))"),
    ("import numpy as np; a = np.arange(100_000) % 7.0", "a.sum()"),
    ("x = [i * 7919 % 10_007 for i in range(2000)]", "sorted(x)"),
    ("import numpy as np; a = np.ones((40, 40))", "a @ a"),
];

pub(super) fn section(lab: &Lab, args: &Args) -> Result<String> {
    let tools = Tool::all(lab);
    let mut counts: Vec<Vec<Called>> = tools.iter().map(|_| vec![]).collect();
    let mut quiet = vec![];
    let half = args.comparisons / 2;
    for number in 0..half {
        eprint!("\rbench: the same side twice, quiet {} of {half} ", number + 1);
        quiet.push(Tool::Laggard.compare(lab, STATEMENTS[number as usize % STATEMENTS.len()])?);
    }
    let loaded = args.comparisons - half;
    under_load(|| {
        // Every tool in every round, as long as it has rounds.
        for number in 0..loaded {
            eprint!("\rbench: the same side twice, under load {} of {loaded} ", number + 1);
            let statement = STATEMENTS[number as usize % STATEMENTS.len()];
            for (tool, called) in tools.iter().zip(&mut counts) {
                if *tool == Tool::Laggard || number < args.of_others {
                    called.push(tool.compare(lab, statement)?);
                }
            }
        }
        Ok(())
    })?;
    eprintln!();
    let row = |name: &str, load: &str, called: &[Called]| {
        let different = called.iter().filter(|one| one.is_different).count();
        let mut off: Vec<f64> = called.iter().map(|one| (one.ratio - 1.0).abs() * 100.0).collect();
        off.sort_by(f64::total_cmp);
        let at = |share: f64| off[((off.len() - 1) as f64 * share) as usize];
        format!(
            "| {name} | {load} | {} | {different} ({:.0} %) | {:.1} % | {:.1} % |",
            called.len(),
            100.0 * different as f64 / called.len() as f64,
            at(0.5),
            at(1.0)
        )
    };
    let mut rows = vec![row(Tool::Laggard.label(), "none of ours", &quiet)];
    let measured = tools.iter().zip(&counts).filter(|(_, called)| !called.is_empty());
    rows.extend(measured.map(|(tool, called)| row(tool.label(), "bursts", called)));
    Ok(format!(
        "## The same side twice\n\n\
         `cargo xtask bench verdicts --part same`: a statement against itself, of four kinds in turn. Load is a thread for \
         each core that works and rests in bursts of 5 to 300 ms. A tool calls the sides different by its own rule: \
         laggard by its verdict (95 %), pyperf by `compare_to` (which hides a ratio that is not significant: \
         it counts as 1), hyperfine when its ratio is further from 1 than twice the \
         error it gives, one after the other by Welch's t at 95 %.\n\n\
         {}\n\n\
         | tool | load | comparisons | called different | median error of the ratio | largest |\n\
         |---|---|---:|---:|---:|---:|\n{}\n",
        machine::describe(),
        rows.join("\n")
    ))
}

/// A planted 2 %: as many elements more.
pub(super) fn small(lab: &Lab) -> Result<String> {
    const RUNS: usize = 10;
    let mut ratios = vec![];
    let mut found = 0;
    for number in 0..RUNS {
        eprint!("\rbench: 2 % slower, {} of {RUNS} ", number + 1);
        let mut bench = lab.laggard("bench");
        bench.args(["--time", "5s", "--precision", "0.5%", "--no-check"]);
        bench.args(["sum(range(10000))", "sum(range(10200))"]);
        let called = verdict(&child::measure(&mut bench)?.stdout)?;
        found += usize::from(called.is_different && called.ratio > 1.0);
        ratios.push(called.ratio);
    }
    eprintln!();
    ratios.sort_by(f64::total_cmp);
    let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    Ok(format!(
        "## A slowdown of 2 %\n\n\
         `cargo xtask bench verdicts --part small`: `sum(range(10000))` against `sum(range(10200))`, runs of 5 s: \
         **found in {found} of {RUNS}** (ratios {} to {}, median {}).\n\n{}\n",
        percent(ratios[0]),
        percent(ratios[RUNS - 1]),
        percent(ratios[RUNS / 2]),
        machine::describe()
    ))
}

/// What `laggard bench` says of its only comparison.
pub(super) fn verdict(json: &str) -> Result<Called> {
    let said: Value = serde_json::from_str(json).context("its JSON cannot be read")?;
    let found = &said["cases"][0]["comparisons"][0];
    let verdict = found["verdict"].as_str().context("it has no verdict")?;
    let ratio = found["ratio"]["middle"].as_f64().context("it has no ratio")?;
    Ok(Called { is_different: matches!(verdict, "slower" | "faster"), ratio })
}

/// Does something while other threads work in bursts.
fn under_load<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    let is_over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for seed in 1..=cores as u64 {
            scope.spawn(move || burst(seed, is_over));
        }
        let done = run();
        is_over.store(true, Relaxed);
        done
    })
}

fn burst(seed: u64, is_over: &AtomicBool) {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis(5 + (state >> 33) % 296)
    };
    while !is_over.load(Relaxed) {
        let (work, rest) = (next(), next());
        let began = Instant::now();
        while began.elapsed() < work {
            std::hint::black_box(began.elapsed());
        }
        std::thread::sleep(rest);
    }
}
