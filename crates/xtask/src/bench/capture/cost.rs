//! Sampling overhead within one process: the program toggles its own sampling, so that nothing else
//! differs. An empty handler shows the kernel's part of the overhead.

use super::Lab;
use super::figures::Estimate;
use crate::bench::machine;
use anyhow::{Context, Result, bail};
use laggard_probe::sample::{self, Options};
use laggard_samples::Rng;
use std::ffi::OsString;

const PROGRAM: &str = include_str!("toggled.py");
const WORKLOADS: [(&str, &str); 2] = [("fib", "pure Python, fib"), ("dot", "`np.dot` of 4x4")];
const RATES: [f64; 2] = [999.0, 99.0];

/// Ratios of CPU times of adjacent chunks.
#[derive(Default)]
struct Ratios {
    /// With sampling, divided by without.
    on: Vec<f64>,
    /// Without sampling, divided by without.
    control: Vec<f64>,
}

pub(super) fn section(lab: &Lab) -> Result<String> {
    let mut text = format!(
        "### Sampling overhead, within one process\n\n{}\n\n\
         A program runs equal chunks of work with sampling on and off, in varying order. Overhead is \
         the CPU time with sampling relative to that without: {} pairs per row in {} interleaved \
         processes, {}. Median with 95 % bootstrap confidence interval. *Empty handler*: signals are \
         delivered and the handler returns immediately. *Control*: both chunks without sampling.\n\n\
         | | rate | sampling | empty handler | sampling minus empty | control |\n\
         |---|---:|---:|---:|---:|---:|\n",
        machine::describe(),
        lab.pairs,
        lab.rounds,
        machine::python(lab.python()),
    );
    for (workload, title) in WORKLOADS {
        for rate in RATES {
            let [full, empty] = measure(lab, workload, rate)?;
            let control: Vec<f64> = full.control.iter().chain(&empty.control).copied().collect();
            text += &format!(
                "| {title} | {rate} Hz | {} | {} | {} | {} |\n",
                Estimate::median(&full.on).as_change(),
                Estimate::median(&empty.on).as_change(),
                Estimate::difference(&full.on, &empty.on).as_percent(),
                Estimate::median(&control).as_change(),
            );
        }
    }
    Ok(text)
}

/// Ratios with sampling and with the empty handler, interleaved.
fn measure(lab: &Lab, workload: &str, rate: f64) -> Result<[Ratios; 2]> {
    let mut all = [Ratios::default(), Ratios::default()];
    let blocks = lab.rounds.min(lab.pairs);
    let mut order = [0, 1];
    let mut rng = Rng::new(u64::from(blocks));
    for block in 0..blocks {
        eprintln!("bench: cost, {workload} at {rate} Hz: round {} of {blocks}", block + 1);
        let pairs = (lab.pairs + block) / blocks;
        rng.shuffle(&mut order);
        for mode in order {
            let options = Options { rate, empty: mode == 1, quiet: true, ..Options::default() };
            one(lab, workload, pairs, &options, &mut all[mode])?;
        }
    }
    Ok(all)
}

fn one(lab: &Lab, workload: &str, pairs: u32, options: &Options, all: &mut Ratios) -> Result<()> {
    let output = lab.scratch.path().join("toggled");
    let command: [OsString; 6] = [
        lab.python().into(),
        "-c".into(),
        PROGRAM.into(),
        workload.into(),
        pairs.to_string().into(),
        output.clone().into(),
    ];
    let (_, ended) = sample::record(&command, options, &mut |_| ())?;
    if ended.code() != 0 {
        bail!("the measured program failed with exit status {}", ended.code());
    }
    let text = std::fs::read_to_string(&output).context("the measured program wrote no times")?;
    for line in text.lines() {
        let times: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [on, off, again] = times[..] else { bail!("expected three times: {line:?}") };
        all.on.push(on / off);
        all.control.push(again / off);
    }
    Ok(())
}
