//! Sampling a program: native and Python frames in one stack, without root.
//!
//! [`record`] starts the program with the sampling agent inside, takes the records it leaves in
//! shared memory, and makes a profile of them whose native frames are addresses; names are given
//! to it later, by `laggard_symbols::resolve`. [`here`] samples a block of the calling process.
#![allow(unsafe_code, reason = "shared memory and the clock of the agents")]

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

/// How to sample.
#[derive(Clone, Debug)]
pub struct Options {
    /// Samples per second of each thread's clock.
    pub rate: f64,
    /// Which clock.
    pub clock: Clock,
    /// Most bytes of stack to copy.
    pub stack_size: u64,
    /// How to be woken; others are tried when it cannot be had.
    pub trigger: Trigger,
    /// Whether to sample forked and exec'ed processes too.
    pub children: bool,
    /// Whether new threads share one event from the start, not only where there are many.
    pub inherit: bool,
    /// Processors to run on; none means all.
    pub cpus: Vec<usize>,
    /// End the program after this time.
    pub duration: Option<Duration>,
    /// Bytes of the ring, a power of two.
    pub ring_size: u64,
    /// What to count in place of a clock.
    pub event: Option<PerfEvent>,
    /// Whether the program's own output goes nowhere.
    pub quiet: bool,
    /// Take no samples and only let the signals come: measures what they cost by themselves.
    pub empty: bool,
}

/// An event of the kernel or the processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfEvent {
    /// What people call it.
    pub name: String,
    /// The kernel's type of it.
    pub kind: u32,
    /// Its number in that type.
    pub config: u64,
}

impl PerfEvent {
    /// Names that [`PerfEvent::named`] knows.
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

/// Which clock drives the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// CPU time: a thread that waits is not seen.
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

/// Time after which what was recorded is handed out.
const BATCH: Duration = Duration::from_secs(1);
/// Longest sleep between looks at the ring.
const NAP: Duration = Duration::from_millis(100);

/// Runs a command and samples it. `batch` sees the growing profile about once a second.
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
    Ok((sampling.finish(about, ended.user_ns as f64 / spent as f64), ended))
}

/// Samples of whatever is started in its environment.
pub(crate) struct Sampling {
    shared: Arc<SharedFile>,
    collector: Collector,
    agent: PathBuf,
    options: Options,
    /// Interpreters that agents were told of.
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

    /// Variables that a program must have to be sampled, when it has these preloaded already.
    pub(crate) fn environment(&self, preloaded: Option<OsString>) -> [(OsString, OsString); 2] {
        [
            (PRELOAD.into(), with_agent(self.agent.as_os_str(), preloaded)),
            (RING_VARIABLE.into(), self.shared.path().into()),
        ]
    }

    /// Takes the samples that there are by now; when all `is_over`, also those that were not
    /// finished.
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

    /// Takes samples until `ended` says that there will be no more, and how it ended. `batch` sees
    /// the growing profile about once a second.
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
                batch(&self.collector.profile);
                last_batch = Instant::now();
            }
            self.shared.wait(NAP);
        }
    }

    /// Takes samples from time to time until it is told to stop.
    pub(crate) fn take_until(&mut self, is_over: &AtomicBool) {
        while !is_over.load(Acquire) {
            self.take(false);
            self.shared.wait(NAP);
        }
        self.take(true);
    }

    /// Time since sampling began, as samples have it.
    pub(crate) fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.collector.origin_ns())
    }

    /// Whether an agent was ever heard of.
    pub(crate) fn was_loaded(&self) -> bool {
        self.shared.header().root_pid.load(Relaxed) != 0
    }

    /// The profile, of a run about which this is said. `user_share` is the part of its CPU time
    /// outside the kernel.
    pub(crate) fn finish(mut self, about: About, user_share: f64) -> Profile {
        // Processes that live on have nobody to write for.
        self.shared.header().options.fetch_or(options::EMPTY, Relaxed);
        let corrected = self.collector.correct_inherited(user_share);
        let (mut profile, _) = self.collector.finish();
        if let Some((threads, factor)) = corrected {
            profile.quality.warnings.push(format!(
                "{threads} threads shared one event, as is cheaper where there are many; their \
                 samples were given {factor:.2} times the weight, to fit the CPU time they used"
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

/// What samples count, and how much of it each stands for.
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

/// Before 5.19 the kernel kills a thread that has SIGTRAP blocked when its event is due.
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
        // Type 0 means the clock, so all others are one higher.
        header.event_type.store(u64::from(event.kind) + 1, Relaxed);
        header.event_config.store(event.config, Relaxed);
        header.rate.store(asked.rate as u64, Relaxed);
    }
    // Threads that have a processor each seldom change places.
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

/// Takes over what the agents counted, and says which trigger they got.
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
        Some(Trigger::SigTrap) => "agent, perf event of each thread with sigtrap",
        Some(Trigger::Overflow) => "agent, perf event of each thread with a signal",
        Some(Trigger::Timer) => "agent, timer of each thread's CPU time",
        Some(Trigger::Wall) => "agent, timer of the wall clock",
        None => "agent",
    }
    .into();
    for (threads, why) in [
        (header.blocked.load(Relaxed), "block the signal of samples, and were seen seldom or not"),
        (header.unseen.load(Relaxed), "were started in the block and not found"),
    ] {
        if threads > 0 {
            quality.warnings.push(format!("threads that {why}: {threads}"));
        }
    }
    if header.taken_over.load(Relaxed) != 0 {
        quality.warnings.push(
            "the program set an action of its own for the signal of samples: none came from then on"
                .into(),
        );
    }
    if header.event_type.load(Relaxed) != 0 && error != 0 {
        let why = std::io::Error::from_raw_os_error(error as i32);
        quality.warnings.push(format!("the event cannot be counted here: {why}"));
    } else if error != 0 && got == Some(Trigger::Timer) {
        let why = std::io::Error::from_raw_os_error(error as i32);
        quality.warnings.push(format!(
            "perf events cannot be had here ({why}), so a timer took the samples: the kernel's \
             tick bounds its rate, often to 250 a second; `laggard doctor` says how to change that"
        ));
    }
}

/// The agent before what is preloaded already.
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
    // SAFETY: the kernel fills in the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
