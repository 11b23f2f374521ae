//! Samples a program: native and Python frames in one stack, without root.
//!
//! [`record`] starts the program with the sampling agent loaded, collects the records that the
//! agent writes to shared memory, and builds a profile from them. Its native frames are addresses;
//! `laggard_symbols::resolve` symbolizes them later. [`here`] samples a block of the calling
//! process.
#![allow(unsafe_code, reason = "shared memory and clock_gettime have no safe interface")]

pub(crate) mod code;
pub(crate) mod collect;
pub mod here;
mod merge;
mod python;
pub(crate) mod shared;

use crate::child::{Child, Ended};
use crate::error::Error;
use crate::started::{self, Started};
use crate::{program, unpack};
use collect::Collector;
use laggard_agent::wire::{RING_VARIABLE, Trigger, options};
use laggard_core::model::profile::{About, Event, Profile, Unit};
use shared::SharedFile;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

/// Sampling options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sampling rate of each thread, in samples per second.
    pub rate: f64,
    /// The clock.
    pub clock: Clock,
    /// Maximum stack bytes copied per sample.
    pub stack_size: u64,
    /// Preferred trigger; others are tried if it is not available.
    pub trigger: Trigger,
    /// Whether to sample forked and exec'ed processes too.
    pub children: bool,
    /// Whether new threads always share one event, not only if there are many threads.
    pub inherit: bool,
    /// CPUs to run on; empty means all.
    pub cpus: Vec<usize>,
    /// Time after which the program is ended.
    pub duration: Option<Duration>,
    /// Size of the ring in bytes, a power of two.
    pub ring_size: u64,
    /// Event to count instead of a clock.
    pub event: Option<PerfEvent>,
    /// Whether the output of the program is discarded.
    pub quiet: bool,
    /// Take no samples but still deliver the signals, to measure the overhead of the signals alone.
    pub empty: bool,
}

/// An event of the kernel or the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfEvent {
    /// Its name.
    pub name: String,
    /// Its perf event type.
    pub kind: u32,
    /// Its configuration within that type.
    pub config: u64,
}

impl PerfEvent {
    /// Names that [`PerfEvent::named`] accepts.
    pub const NAMES: [&str; 12] = [
        "cycles",
        "instructions",
        "cache-references",
        "cache-misses",
        "branches",
        "branch-misses",
        "cpu-clock",
        "task-clock",
        "page-faults",
        "context-switches",
        "minor-faults",
        "major-faults",
    ];

    /// The event that perf knows by this name.
    pub fn named(name: &str) -> Option<PerfEvent> {
        const HARDWARE: u32 = 0;
        const SOFTWARE: u32 = 1;
        let (kind, config) = match name {
            "cycles" => (HARDWARE, 0),
            "instructions" => (HARDWARE, 1),
            "cache-references" => (HARDWARE, 2),
            "cache-misses" => (HARDWARE, 3),
            "branches" => (HARDWARE, 4),
            "branch-misses" => (HARDWARE, 5),
            "cpu-clock" => (SOFTWARE, 0),
            "task-clock" => (SOFTWARE, 1),
            "page-faults" => (SOFTWARE, 2),
            "context-switches" => (SOFTWARE, 3),
            "minor-faults" => (SOFTWARE, 5),
            "major-faults" => (SOFTWARE, 6),
            _ => return None,
        };
        Some(PerfEvent { name: name.to_owned(), kind, config })
    }

    fn is_clock(&self) -> bool {
        self.kind == 1 && self.config < 2
    }
}

/// The clock that drives the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// CPU time: waiting threads are not sampled.
    Cpu,
    /// Wall time.
    Wall,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            rate: 999.0,
            clock: Clock::Cpu,
            stack_size: 64 << 10,
            trigger: Trigger::SigTrap,
            children: false,
            inherit: false,
            cpus: vec![],
            duration: None,
            ring_size: 8 << 20,
            event: None,
            quiet: false,
            empty: false,
        }
    }
}

/// Interval at which the growing profile is passed on.
const BATCH: Duration = Duration::from_secs(1);
/// Maximum time between two checks of the ring.
const NAP: Duration = Duration::from_millis(100);

/// Runs a command and samples it. `batch` receives the growing profile about once a second.
pub fn record(
    command: &[OsString],
    options: &Options,
    batch: &mut dyn FnMut(&Profile),
) -> Result<(Profile, Ended), Error> {
    let program = program::check_sampled(command)?;
    let mut sampling = Sampling::open(options)?;
    let mut child = started::command(command, options.quiet);
    child.envs(sampling.environment(std::env::var_os(PRELOAD)));
    let started = Started::now(command);
    let bell = Arc::clone(&sampling.shared);
    let mut child = Child::start(child, &options.cpus, move || bell.wake())
        .map_err(|source| Error::Start { program: program.path.clone(), source })?;
    sampling.collector.profile.about = started.so_far();
    let ended = sampling.collect(batch, || {
        let ended = child.ended();
        if let Some(most) = options.duration.filter(|_| ended.is_none()) {
            child.end_after(most, started.elapsed());
        }
        ended
    });
    if !sampling.was_loaded() {
        return Err(Error::NotLoaded { program: program.path });
    }
    let about = started.about(&ended, started.elapsed(), "agent");
    let spent = (ended.user_ns + ended.system_ns).max(1);
    let children = sampling.collector.children(sampling.shared.header());
    let mut profile = sampling.finish(about, ended.user_ns as f64 / spent as f64);
    profile.quality.children = Some(children);
    Ok((profile, ended))
}

/// Samples of all programs that are started with its environment.
pub(crate) struct Sampling {
    shared: Arc<SharedFile>,
    collector: Collector,
    agent: PathBuf,
    options: Options,
    /// Number of interpreters announced to agents.
    interpreters: usize,
}

const PRELOAD: &str = "LD_PRELOAD";

impl Sampling {
    pub(crate) fn open(options: &Options) -> Result<Sampling, Error> {
        let agent = unpack::library("sample", laggard_agent::SAMPLE).map_err(Error::Unpack)?;
        let shared = Arc::new(SharedFile::create(options.ring_size).map_err(Error::Shared)?);
        configure(&shared, options);
        let (event, weight) = counted(options);
        let collector = Collector::new(monotonic_ns(), event, weight);
        Ok(Sampling { shared, collector, agent, options: options.clone(), interpreters: 0 })
    }

    /// Environment variables that a program needs to be sampled, given the libraries it already
    /// preloads.
    pub(crate) fn environment(&self, preloaded: Option<OsString>) -> [(OsString, OsString); 2] {
        [
            (PRELOAD.into(), with_agent(self.agent.as_os_str(), preloaded)),
            (RING_VARIABLE.into(), self.shared.path().into()),
        ]
    }

    /// Takes all finished samples; if the run `is_over`, also skips unfinished ones.
    pub(crate) fn take(&mut self, is_over: bool) {
        let collector = &mut self.collector;
        let skipped = self.shared.drain(is_over, |kind, payload| collector.take(kind, payload));
        collector.profile.quality.lost += skipped;
        if is_over {
            return;
        }
        for (pid, born_ns, interpreter) in collector.new_interpreters() {
            let posted = interpreter.post(self.shared.header(), pid, born_ns, self.interpreters);
            self.interpreters += usize::from(posted);
        }
    }

    /// Takes samples until `ended` returns how the run ended. `batch` receives the growing profile
    /// about once a second.
    fn collect<T>(
        &mut self,
        batch: &mut dyn FnMut(&Profile),
        mut ended: impl FnMut() -> Option<T>,
    ) -> T {
        let mut last_batch = Instant::now();
        loop {
            let ended = ended();
            self.take(ended.is_some());
            if let Some(ended) = ended {
                return ended;
            }
            if last_batch.elapsed() >= BATCH {
                self.collector.refresh_names();
                batch(&self.collector.profile);
                last_batch = Instant::now();
            }
            self.shared.wait(NAP);
        }
    }

    /// Takes samples periodically until `is_over` is set.
    pub(crate) fn take_until(&mut self, is_over: &AtomicBool) {
        while !is_over.load(Acquire) {
            self.take(false);
            self.shared.wait(NAP);
        }
        self.take(true);
    }

    /// Time since the start of sampling, on the clock of the samples.
    pub(crate) fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.collector.origin_ns())
    }

    /// Whether any agent has started.
    pub(crate) fn was_loaded(&self) -> bool {
        self.shared.header().root_pid.load(Relaxed) != 0
    }

    /// The profile of a run described by `about`. `user_share` is the share of its CPU time in user
    /// code.
    pub(crate) fn finish(mut self, about: About, user_share: f64) -> Profile {
        // Processes that are still running must not write any more.
        self.shared.header().options.fetch_or(options::EMPTY, Relaxed);
        let corrected = self.collector.correct_inherited(user_share);
        let (mut profile, _) = self.collector.finish();
        if let Some((threads, factor)) = corrected {
            profile.quality.warnings.push(format!(
                "{threads} threads shared one event, which is cheaper for many threads; their \
                 samples were weighted by {factor:.2} to match their CPU time"
            ));
        }
        profile.about = About { rate: self.options.rate, ..about };
        count(&self.shared, &mut profile);
        profile
    }
}

/// Runs a command without an agent, for comparison.
pub fn bare(command: &[OsString], options: &Options) -> Result<Ended, Error> {
    let program = program::check(command)?;
    let child = Child::start(started::command(command, options.quiet), &options.cpus, || ())
        .map_err(|source| Error::Start { program: program.path, source })?;
    Ok(child.wait())
}

/// The event of the samples, and the amount that each sample represents.
fn counted(options: &Options) -> (Event, u64) {
    let period = (1e9 / options.rate) as u64;
    match &options.event {
        Some(event) if !event.is_clock() => {
            (Event { name: event.name.clone(), unit: Unit::Count }, 1)
        }
        _ if options.clock == Clock::Wall => {
            (Event { name: "wall-clock".into(), unit: Unit::Nanos }, period)
        }
        _ => (Event { name: "task-clock".into(), unit: Unit::Nanos }, period),
    }
}

/// Before Linux 5.19, the kernel kills a thread whose event fires while it blocks SIGTRAP.
fn trigger(asked: Trigger) -> Trigger {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (asked, numbers.next(), numbers.next()) {
        (Trigger::SigTrap, Some(Ok(major)), Some(Ok(minor))) if (major, minor) < (5, 19) => {
            Trigger::Overflow
        }
        _ => asked,
    }
}

fn configure(shared: &SharedFile, asked: &Options) {
    let header = shared.header();
    header.period_ns.store((1e9 / asked.rate) as u64, Relaxed);
    header.stack_size.store(asked.stack_size, Relaxed);
    header.trigger.store(trigger(asked.trigger) as u32, Relaxed);
    if let Some(event) = asked.event.as_ref().filter(|event| !event.is_clock()) {
        // Type 0 means the clock, so all others are incremented by one.
        header.event_type.store(u64::from(event.kind) + 1, Relaxed);
        header.event_config.store(event.config, Relaxed);
        header.rate.store(asked.rate as u64, Relaxed);
    }
    // If there are enough CPUs for all threads, they rarely migrate.
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let many = if asked.inherit { 0 } else { (2 * processors).max(4) };
    header.many_threads.store(many, Relaxed);
    let bits = [
        (asked.children, options::CHILDREN),
        (asked.clock == Clock::Wall, options::WALL),
        (asked.empty, options::EMPTY),
    ];
    let bits = bits.into_iter().filter(|(set, _)| *set).fold(0, |all, (_, bit)| all | bit);
    header.options.store(bits, Release);
}

/// Copies the counters of the agents, and the trigger that they use.
fn count(shared: &SharedFile, profile: &mut Profile) {
    let header = shared.header();
    let quality = &mut profile.quality;
    quality.lost += header.dropped.load(Relaxed);
    quality.late = header.late.load(Relaxed);
    quality.unsampled_threads = u64::from(header.unarmed.load(Relaxed));
    quality.handler_ns = header.handler_ns.load(Relaxed);
    let got = header.got_trigger.load(Relaxed).checked_sub(1).and_then(Trigger::from_number);
    let error = header.trigger_error.load(Relaxed);
    profile.about.method = match got {
        Some(Trigger::SigTrap) => "agent, per-thread perf events (SIGTRAP)",
        Some(Trigger::Overflow) => "agent, per-thread perf events (signal)",
        Some(Trigger::Timer) => "agent, per-thread CPU timers",
        Some(Trigger::Wall) => "agent, wall-clock timer",
        None => "agent",
    }
    .into();
    for (threads, why) in [
        (
            header.blocked.load(Relaxed),
            "block the sampling signal and were sampled rarely or never",
        ),
        (header.unseen.load(Relaxed), "started during the recording and were not found"),
    ] {
        if threads > 0 {
            quality.warnings.push(format!("threads that {why}: {threads}"));
        }
    }
    if header.taken_over.load(Relaxed) != 0 {
        quality.warnings.push(
            "the program replaced the handler of the sampling signal: no samples after that".into(),
        );
    }
    if header.event_type.load(Relaxed) != 0 && error != 0 {
        let why = std::io::Error::from_raw_os_error(error as i32);
        quality.warnings.push(format!("the event cannot be counted on this machine: {why}"));
    } else if error != 0 && got == Some(Trigger::Timer) {
        let why = std::io::Error::from_raw_os_error(error as i32);
        quality.warnings.push(format!(
            "perf events are not available ({why}), so timers took the samples; the kernel tick \
             limits their rate, often to 250 Hz; `laggard doctor` shows how to change that"
        ));
    }
}

/// The agent, followed by the libraries that are already preloaded.
fn with_agent(agent: &OsStr, others: Option<OsString>) -> OsString {
    let mut all = agent.to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes during the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
