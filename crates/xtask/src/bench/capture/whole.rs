//! Sampling overhead of whole programs, compared with perf and py-spy.

use super::Lab;
use super::tools::answer;
use super::turns::{self, Used};
use crate::bench::machine;
use anyhow::{Context, Result, bail};
use laggard_probe::sample::{self, Options};
use std::ffi::OsString;
use std::path::Path;

const PROGRAM: &str = include_str!("whole.py");
const WORKLOADS: [(&str, &str); 2] = [("fib", "pure Python, fib"), ("dot", "`np.dot` of 4x4")];

/// The profiler that runs the program.
#[derive(Clone, Copy)]
pub(super) enum Runner {
    Nobody,
    Agent { rate: u32, inherit: bool },
    Perf { rate: u32 },
    Spy { rate: u32, is_native: bool },
}

impl Runner {
    pub(super) fn label(self, is_control: bool) -> String {
        match self {
            Runner::Nobody if is_control => "no profiler (control)".into(),
            Runner::Nobody => "no profiler".into(),
            Runner::Agent { rate, inherit: false } => format!("laggard, {rate} Hz"),
            Runner::Agent { rate, inherit: true } => {
                format!("laggard, {rate} Hz, one inherited event")
            }
            Runner::Perf { rate } => {
                format!("`perf record -e task-clock:u -F {rate} --call-graph dwarf,32768`")
            }
            Runner::Spy { rate, is_native: true } => format!("`py-spy record --native -r {rate}`"),
            Runner::Spy { rate, is_native: false } => {
                format!("`py-spy record -r {rate}`")
            }
        }
    }

    /// Runs a command that writes its CPU and wall time to `times`.
    pub(super) fn run(self, lab: &Lab, command: &[OsString], times: &Path) -> Result<Used> {
        // Do not read the times of an earlier run.
        _ = std::fs::remove_file(times);
        let recording = lab.scratch.path().join("recording");
        let mut sampled = None;
        match self {
            Runner::Nobody => {
                let quiet = Options { quiet: true, ..Options::default() };
                let ended = sample::bare(command, &quiet)?;
                ensure(ended.code())?;
            }
            Runner::Agent { rate, inherit } => {
                let options =
                    Options { rate: f64::from(rate), inherit, quiet: true, ..Options::default() };
                let (profile, ended) = sample::record(command, &options, &mut |_| ())?;
                ensure(ended.code())?;
                let weight: u64 = profile.samples.iter().map(|sample| sample.weight).sum();
                sampled = Some(weight as f64 / profile.about.user_ns.max(1) as f64);
            }
            Runner::Perf { rate } => {
                _ = answer(&mut lab.tools.perf_record(rate, &recording, command)?)?;
            }
            Runner::Spy { rate, is_native } => {
                _ = answer(&mut lab.tools.spy_record(rate, is_native, &recording, command)?)?;
            }
        }
        let text = std::fs::read_to_string(times).context("the measured program wrote no times")?;
        Ok(Used { sampled, ..Used::parse(&text)? })
    }
}

fn ensure(code: i32) -> Result<()> {
    if code != 0 {
        bail!("the measured program failed with exit status {code}");
    }
    Ok(())
}

pub(super) fn section(lab: &Lab) -> Result<String> {
    let runners = [
        Runner::Nobody,
        Runner::Nobody,
        Runner::Agent { rate: 999, inherit: false },
        Runner::Agent { rate: 99, inherit: false },
        Runner::Perf { rate: 999 },
        Runner::Spy { rate: 100, is_native: true },
    ];
    let mut text = format!(
        "### Sampling overhead, whole programs\n\n{}\n\n\
         CPU and wall time from start to end, measured by the program itself, without the time of the \
         profiler; {}; {} rounds in random order. Ratios are computed per round. py-spy pauses the \
         program, which affects only wall time.\n",
        machine::describe(),
        machine::python(lab.python()),
        lab.rounds,
    );
    let labels: Vec<String> =
        runners.iter().enumerate().map(|(at, runner)| runner.label(at > 0)).collect();
    for (workload, title) in WORKLOADS {
        let times = lab.scratch.path().join("times");
        let command: [OsString; 5] = [
            lab.python().into(),
            "-c".into(),
            PROGRAM.into(),
            workload.into(),
            times.clone().into(),
        ];
        let series = turns::take(&format!("whole, {workload}"), &labels, lab.rounds, |peer| {
            runners[peer].run(lab, &command, &times)
        });
        text += &format!("\n#### {title}\n\n{}", turns::table(&series));
    }
    Ok(text)
}
