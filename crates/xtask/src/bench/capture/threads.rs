//! Sampling overhead of a program with many threads, and whether its samples add up.

use super::Lab;
use super::turns;
use super::whole::Runner;
use crate::bench::machine;
use crate::project;
use anyhow::Result;
use std::ffi::OsString;

const THREADS: u32 = 160;
/// With fewer rounds, scheduling noise hides the overhead.
const FEWEST_ROUNDS: u32 = 7;
const WORKLOADS: [(&str, &str, &str); 2] =
    [("python", "150000", "pure Python"), ("dot", "600", "`np.dot` of 64x64")];

pub(super) fn section(lab: &Lab) -> Result<String> {
    let runners = [
        Runner::Nobody,
        Runner::Nobody,
        Runner::Agent { rate: 100, inherit: false },
        Runner::Agent { rate: 100, inherit: true },
        Runner::Spy { rate: 100, is_native: false },
        Runner::Spy { rate: 100, is_native: true },
    ];
    let rounds = if lab.rounds > 3 { lab.rounds.max(FEWEST_ROUNDS) } else { lab.rounds };
    let mut text = format!(
        "### {THREADS} threads\n\n{}\n\n\
         `subjects/probe/many_threads.py`, {}, {rounds} rounds in random order. Ratios are computed per \
         round. Times cover the part with threads. The last column is the CPU time represented by \
         samples, divided by the user CPU time of the whole program.\n",
        machine::describe(),
        machine::python(lab.python()),
    );
    let labels: Vec<String> =
        runners.iter().enumerate().map(|(at, runner)| runner.label(at > 0)).collect();
    for (workload, times_each, title) in WORKLOADS {
        let times = lab.scratch.path().join("times");
        let command: [OsString; 6] = [
            lab.python().into(),
            project::root().join("subjects/probe/many_threads.py").into(),
            workload.into(),
            THREADS.to_string().into(),
            times_each.into(),
            times.clone().into(),
        ];
        let series = turns::take(&format!("threads, {workload}"), &labels, rounds, |peer| {
            runners[peer].run(lab, &command, &times)
        });
        text += &format!("\n#### {title}\n\n{}", turns::table(&series));
    }
    Ok(text)
}
