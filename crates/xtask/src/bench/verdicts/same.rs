//! A side compared with itself, and with one that takes 2 % longer.

use super::tools::{Called, Tool};
use super::{Args, Lab, machine};
use crate::bench::child;
use anyhow::{Context, Result};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Set-up code and statements of different kinds.
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
        eprint!("\rbench: same side twice, without load, {} of {half} ", number + 1);
        quiet.push(Tool::Laggard.compare(lab, STATEMENTS[number as usize % STATEMENTS.len()])?);
    }
    let loaded = args.comparisons - half;
    under_load(|| {
        // Other tools run fewer comparisons.
        for number in 0..loaded {
            eprint!("\rbench: same side twice, under load, {} of {loaded} ", number + 1);
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
    let mut rows = vec![row(Tool::Laggard.label(), "none added", &quiet)];
    let measured = tools.iter().zip(&counts).filter(|(_, called)| !called.is_empty());
    rows.extend(measured.map(|(tool, called)| row(tool.label(), "bursts", called)));
    Ok(format!(
        "## The same side twice\n\n\
         `cargo xtask bench verdicts --part same`: a statement compared with itself, alternating between four statements. \
         Load is one thread per core that works and sleeps in bursts of 5 to 300 ms. Each tool reports a difference by \
         its own rule: laggard by its verdict (95 %), pyperf by `compare_to` (insignificant ratios are hidden and count \
         as 1), hyperfine if the ratio differs from 1 by more than twice its error, sequential timeit by Welch's t-test \
         at 95 %.\n\n\
         {}\n\n\
         | tool | load | comparisons | reported as different | median error of the ratio | largest error |\n\
         |---|---|---:|---:|---:|---:|\n{}\n",
        machine::describe(),
        rows.join("\n")
    ))
}

/// A planted slowdown: 2 % more elements.
pub(super) fn small(lab: &Lab) -> Result<String> {
    const RUNS: usize = 10;
    let mut ratios = vec![];
    let mut found = 0;
    for number in 0..RUNS {
        eprint!("\rbench: slowdown of 2 %, {} of {RUNS} ", number + 1);
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
         `cargo xtask bench verdicts --part small`: `sum(range(10000))` compared with `sum(range(10200))`, 5 s per run: \
         **detected in {found} of {RUNS} runs** (ratios {} to {}, median {}).\n\n{}\n",
        percent(ratios[0]),
        percent(ratios[RUNS - 1]),
        percent(ratios[RUNS / 2]),
        machine::describe()
    ))
}

/// The verdict of `laggard bench` on its only comparison.
pub(super) fn verdict(json: &str) -> Result<Called> {
    let said: Value = serde_json::from_str(json).context("cannot parse the JSON of bench")?;
    let found = &said["cases"][0]["comparisons"][0];
    let verdict = found["verdict"].as_str().context("bench reported no verdict")?;
    let ratio = found["ratio"]["middle"].as_f64().context("bench reported no ratio")?;
    Ok(Called { is_different: matches!(verdict, "slower" | "faster"), ratio })
}

/// Runs a closure while other threads work in bursts.
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
