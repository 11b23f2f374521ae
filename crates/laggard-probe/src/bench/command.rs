//! A side that is a command: started for every call and timed from just before its start to its
//! end.

use super::pin::Cpus;
use super::plan::{CasePlan, Plan, Runs, SidePlan};
use super::process::Exit;
use super::runner::{About, Runner};
use super::said::Said;
use super::side;
use super::spawn::Launch;
use super::trouble::Trouble;
use super::value::Value;
use laggard_core::model::timings::Batch;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A command and its preparation command.
pub(super) struct Command {
    run: Step,
    prepare: Option<Step>,
    said: Said,
    nowhere: File,
    timeout: Duration,
    show_output: bool,
    ignore_failure: bool,
    peak_memory: u64,
}

struct Step {
    program: PathBuf,
    launch: Launch,
}

impl Step {
    fn new(
        words: &[OsString],
        plan: &Plan,
        side: &SidePlan,
        cpus: Option<Cpus>,
    ) -> Result<Step, Trouble> {
        let program = side::program(words)?;
        let env = side::environment(plan, side);
        let launch = Launch::new(&program, &words[1..], &env, side.directory.as_deref(), cpus)
            .map_err(|source| Trouble::Start {
                program: program.clone(),
                step: "passing its arguments",
                source,
            })?;
        Ok(Step { program, launch })
    }
}

impl Command {
    pub(super) fn new(
        plan: &Plan,
        side: &SidePlan,
        case: &CasePlan,
        (words, prepare): (&[OsString], Option<&[OsString]>),
        cpus: Option<Cpus>,
    ) -> Result<Command, Trouble> {
        let step = |words: &[OsString]| Step::new(&side::fill(words, case), plan, side, cpus);
        Ok(Command {
            run: step(words)?,
            prepare: prepare.map(step).transpose()?,
            said: Said::new().map_err(Trouble::Wire)?,
            nowhere: side::nowhere().map_err(Trouble::Wire)?,
            timeout: plan.limits.timeout,
            show_output: plan.show_output,
            ignore_failure: side.ignore_failure,
            peak_memory: 0,
        })
    }

    /// Runs a command to its end and returns its duration.
    fn complete(&self, step: &Step, what: &'static str) -> Result<(Duration, Exit), Trouble> {
        self.said.clear();
        let nowhere = self.nowhere.as_fd();
        let stderr = io::stderr();
        let files = if self.show_output {
            [nowhere, stderr.as_fd(), stderr.as_fd()]
        } else {
            [nowhere, nowhere, self.said.fd()]
        };
        let process = step.launch.start(&files).map_err(|(what, source)| Trouble::Start {
            program: step.program.clone(),
            step: what,
            source,
        })?;
        let started = process.started();
        let has_ended = process.has_ended_by(started + self.timeout);
        let wall = started.elapsed();
        if !has_ended {
            return Err(Trouble::Timeout { what, limit: self.timeout });
        }
        Ok((wall, process.end()))
    }

    pub(super) fn call(&mut self) -> Result<(Duration, Exit), Trouble> {
        if let Some(prepare) = &self.prepare {
            let (_, exit) = self.complete(prepare, "its preparation command")?;
            if !exit.status.success() {
                return Err(Trouble::of(
                    exit.status,
                    "in its preparation command",
                    self.said.tail(),
                ));
            }
        }
        let (wall, exit) = self.complete(&self.run, "a call")?;
        if !exit.status.success() && !self.ignore_failure {
            return Err(Trouble::of(exit.status, "instead of 0", self.said.tail()));
        }
        Ok((wall, exit))
    }
}

/// Runs the preparation command of a side once, if it has one.
pub fn prepare_once(plan: &Plan, side: &SidePlan, case: &CasePlan) -> Result<(), Trouble> {
    if let Runs::Command { prepare: Some(words), .. } = &side.runs {
        Command::new(plan, side, case, (words, None), side::cpus(side)?)?.call()?;
    }
    Ok(())
}

impl Runner for Command {
    fn value(&mut self) -> Result<Value, Trouble> {
        self.call()?;
        Ok(Value::Unknown("no value: it is a command".into()))
    }

    fn run(&mut self, calls: u64, lead: u64) -> Result<Batch, Trouble> {
        for _ in 0..lead {
            self.call()?;
        }
        let mut batch = Batch { calls, ..Batch::default() };
        for _ in 0..calls {
            let (wall, Exit { usage, queued_ns, .. }) = self.call()?;
            batch.wall_ns += wall.as_nanos() as u64;
            batch.user_ns += nanos(usage.ru_utime);
            batch.system_ns += nanos(usage.ru_stime);
            batch.minor_faults += usage.ru_minflt as u64;
            batch.major_faults += usage.ru_majflt as u64;
            batch.waits += usage.ru_nvcsw as u64;
            batch.preemptions += usage.ru_nivcsw as u64;
            batch.queued_ns += queued_ns;
            self.peak_memory = self.peak_memory.max(usage.ru_maxrss as u64 * 1024);
        }
        Ok(batch)
    }

    fn bind(&mut self, cpus: Cpus) {
        for step in std::iter::once(&mut self.run).chain(&mut self.prepare) {
            step.launch.bind(cpus);
        }
    }

    fn about(&mut self) -> Result<About, Trouble> {
        let mut facts = vec![
            ("program".to_owned(), self.run.program.to_string_lossy().into_owned()),
            ("wall time".to_owned(), "includes process start-up".to_owned()),
        ];
        // Until it executes the program, a new process is accounted with the driver's memory, so a
        // smaller peak is not observable.
        let ours = own_peak();
        if self.peak_memory <= ours {
            facts.push(("peak memory".to_owned(), format!("below {} MiB", ours.div_ceil(1 << 20))));
            self.peak_memory = 0;
        }
        Ok(About { facts, threads: 0, peak_memory: self.peak_memory })
    }

    fn is_batched(&self) -> bool {
        false
    }

    fn runs_empty(&self) -> bool {
        false
    }

    fn pid(&self) -> Option<i32> {
        None
    }
}

/// Time to start and end an empty command: the minimum of several runs.
pub(super) fn cost_of_start(plan: &Plan, words: &[&str]) -> Option<Duration> {
    let side = SidePlan::new("", super::Runs::Command { words: vec![], prepare: None });
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let mut nothing = Command::new(plan, &side, &CasePlan::default(), (&words, None), None).ok()?;
    let until = Instant::now() + Duration::from_millis(100);
    let mut least: Option<Duration> = None;
    while Instant::now() < until {
        let (wall, _) = nothing.call().ok()?;
        least = Some(least.map_or(wall, |least| least.min(wall)));
    }
    least
}

fn nanos(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

/// Peak memory of this process.
fn own_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<u64> = peak.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0) * 1024
}
