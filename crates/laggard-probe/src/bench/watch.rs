//! Runs one side alone while it is sampled or its calls are traced.

use super::case::named;
use super::plan::{CasePlan, Plan, Runs, SidePlan};
use super::{Group, start_one};
use crate::calls::{self, Tracing};
use crate::error::Error;
use crate::sample::{Options, Sampling};
use laggard_core::culprit::Io;
use laggard_core::model::calls::Calls;
use laggard_core::model::profile::{About, FrameKind, Profile};
use std::ffi::{OsStr, OsString};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::{Duration, Instant};

/// Maximum length of a batch, so that the time limit is kept.
const LONGEST_BATCH: Duration = Duration::from_millis(100);
/// Share of the time for calls before sampling starts.
const WARM: f64 = 0.1;
/// A slow first call is measured, and not repeated, if it takes at most this multiple of later calls.
/// Otherwise it includes work that later calls do not repeat, such as compiling.
const LIKE_LATER: f64 = 1.3;

/// How long a side runs.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    /// Minimum duration; the last call may exceed it.
    pub time: Duration,
    /// Time of a call in nanoseconds; 0 if it is unknown.
    pub call_ns: f64,
}

/// Calls a side repeatedly for a period and samples it. For a statement, only samples of its
/// calls are kept, not those of its set-up code; for a command, all samples are kept. Returns the
/// samples and the number of calls.
pub fn record_side(
    plan: &Plan,
    side: usize,
    case: &CasePlan,
    period: Period,
    options: &Options,
) -> Result<(Profile, u64), Error> {
    let _group = Group::reserve();
    let is_command = matches!(plan.sides[side].runs, Runs::Command { .. });
    // Every call of a command is a new process.
    let options = Options { children: options.children || is_command, ..options.clone() };
    let mut sampling = Sampling::open(&options)?;
    let mut own = plan.sides[side].clone();
    let preloaded = variable(&own, "LD_PRELOAD");
    own.env.extend(sampling.environment(preloaded));
    let is_over = AtomicBool::new(false);
    let origin = Instant::now();
    let origin_ns = sampling.now_ns();
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| sampling.take_until(&is_over));
        let ran = run(plan, &own, case, period, &mut |_| ());
        is_over.store(true, Release);
        ran
    });
    let Ran { began, ended, calls, .. } = ran.map_err(|trouble| named(plan, side, trouble))?;
    if !sampling.was_loaded() {
        return Err(not_loaded("the sampling agent", &own));
    }
    let about = About {
        command: vec![own.runs.text()],
        duration_ns: (ended - began).as_nanos() as u64,
        method: "agent".into(),
        tool: concat!("laggard ", env!("CARGO_PKG_VERSION")).into(),
        ..About::default()
    };
    let mut profile = sampling.finish(about, 1.0);
    let at = |moment: Instant| origin_ns + (moment - origin).as_nanos() as u64;
    let timed = at(began)..at(ended);
    profile.samples.retain(|sample| timed.contains(&sample.time_ns));
    drop_preparation(&mut profile);
    Ok((profile, calls))
}

/// The worker adds this to the line numbers of the preparation.
const PREPARATION_LINES: u32 = 20_000;

/// Drops the samples of code that prepares a call of a statement.
pub fn drop_preparation(profile: &mut Profile) {
    let is_preparation: Vec<bool> = profile
        .frames
        .iter()
        .map(|frame| {
            frame.kind == FrameKind::Python
                && frame.line > PREPARATION_LINES
                && profile.texts.get(frame.file) == "<statement>"
        })
        .collect();
    if !is_preparation.contains(&true) {
        return;
    }
    let mut samples = std::mem::take(&mut profile.samples);
    samples.retain(|sample| {
        profile.frames_of(sample.stack).all(|frame| !is_preparation[frame as usize])
    });
    profile.samples = samples;
}

/// Traced calls of a side.
pub struct Traced {
    /// Counts at several moments, each with a weight. Their weighted sum is what the side calls: the
    /// counts after its calls minus those before, minus those of as many batches without calls.
    pub counts: Vec<(Calls, f64)>,
    /// Reads and writes at the same moments, with the same weights; empty if the kernel does not count
    /// them.
    pub io: Vec<(Io, f64)>,
    /// Number of calls of the side.
    pub calls: u64,
}

/// Calls a side repeatedly for a period and traces its calls into libraries.
pub fn trace_side(
    plan: &Plan,
    side: usize,
    case: &CasePlan,
    period: Period,
    options: &calls::Options,
) -> Result<Traced, Error> {
    let _group = Group::reserve();
    let is_command = matches!(plan.sides[side].runs, Runs::Command { .. });
    let options = calls::Options { children: options.children || is_command, ..options.clone() };
    let tracing = Tracing::open(&options)?;
    let own = traced(&plan.sides[side], &tracing);
    let mut moments = vec![];
    let ran = run(plan, &own, case, period, &mut |pid| moments.push((tracing.so_far(), io(pid))));
    let Ran { calls, batches, empty, .. } = ran.map_err(|trouble| named(plan, side, trouble))?;
    if !tracing.was_loaded() {
        return Err(not_loaded("the tracing agent", &own));
    }
    let of_empty = batches as f64 / empty.max(1) as f64;
    // The moment before the warm-up, if calls followed it.
    moments.drain(..moments.len().saturating_sub(3));
    let weights = [-1.0, 1.0 + of_empty, -of_empty];
    let io = moments.iter().map(|moment| moment.1).zip(weights);
    let io = io.map(|(io, weight)| Some((io?, weight))).collect::<Option<_>>().unwrap_or_default();
    let counts = moments.into_iter().map(|moment| moment.0).zip(weights).collect();
    Ok(Traced { counts, io, calls })
}

/// Reads and writes so far of a process, or of the processes that this one has started and waited for.
fn io(pid: Option<i32>) -> Option<Io> {
    let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let text = std::fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    let value = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?;
        value.parse().ok()
    };
    Some(Io {
        reads: value("syscr")?,
        read_bytes: value("rchar")?,
        writes: value("syscw")?,
        written_bytes: value("wchar")?,
    })
}

/// A side with the environment of the tracing agent.
pub(super) fn traced(side: &SidePlan, tracing: &Tracing) -> SidePlan {
    let mut own = side.clone();
    own.env.extend(tracing.environment(|name| variable(side, name)));
    own
}

/// The error that a side did not load an agent.
pub(super) fn not_loaded(agent: &'static str, side: &SidePlan) -> Error {
    Error::Unavailable { what: agent, why: format!("side {} did not load it", side.name) }
}

/// The value of an environment variable of a side, its own or inherited.
fn variable(side: &SidePlan, name: &str) -> Option<OsString> {
    let own = side.env.iter().rev().find(|(own, _)| own == OsStr::new(name));
    own.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
}

/// Maximum number of batches without calls, which show what the worker itself calls for a batch.
const EMPTY_BATCHES: u64 = 8;

/// The timed part of a run.
struct Ran {
    began: Instant,
    ended: Instant,
    calls: u64,
    /// Number of batches; 0 for commands, which have no worker.
    batches: u64,
    /// Number of empty batches after them.
    empty: u64,
}

/// Runs warm-up calls, then calls for the period, then empty batches of statements. Calls `at` with
/// the process before and after each part.
fn run(
    plan: &Plan,
    side: &SidePlan,
    case: &CasePlan,
    Period { time, call_ns }: Period,
    at: &mut dyn FnMut(Option<i32>),
) -> Result<Ran, super::Trouble> {
    let (mut runner, _) = start_one(plan, side, case, None, &mut |_| None)?;
    let warm = Instant::now();
    let is_batched = runner.is_batched();
    let mut batch = 1;
    let has_worker = runner.runs_empty();
    let pid = runner.pid();
    let mut run = |most: Duration, batch: &mut u64| {
        let began = Instant::now();
        let (mut calls, mut batches) = (0, 0);
        while calls == 0 || began.elapsed() < most {
            let started = Instant::now();
            runner.run(*batch, 0)?;
            calls += *batch;
            batches += u64::from(has_worker);
            if is_batched && started.elapsed() * 2 < LONGEST_BATCH {
                *batch *= 2;
            }
        }
        Ok::<Ran, super::Trouble>(Ran { began, ended: Instant::now(), calls, batches, empty: 0 })
    };
    // Called again below if this part is only the warm-up.
    at(pid);
    let mut ran = run(time.mul_f64(WARM).saturating_sub(warm.elapsed()), &mut batch)?;
    let took_ns = (ran.ended - ran.began).as_nanos() as f64;
    let is_enough = ran.ended - ran.began >= time.mul_f64(0.5);
    if !is_enough || took_ns > LIKE_LATER * call_ns {
        at(pid);
        ran = run(time, &mut batch)?;
    }
    at(pid);
    let mut empty = 0;
    let began = Instant::now();
    // A slow preparation also runs before an empty batch.
    while has_worker && empty < EMPTY_BATCHES && (empty == 0 || began.elapsed() < time) {
        runner.run(0, 0)?;
        empty += 1;
    }
    at(pid);
    Ok(Ran { empty, ..ran })
}
