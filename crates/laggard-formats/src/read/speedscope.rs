//! Reads speedscope files, which py-spy, rbspy, laggard and many others write: shared frames, and
//! for each thread either samples or open and close events of functions.
//!
//! You give a [`Source`], you get a [`Profile`] with one event per unit in the file. Unbalanced
//! open and close events are counted.

use super::json::{self, Number, Row};
use super::label;
use crate::error::Error;
use crate::source::Source;
use laggard_core::model::NONE;
use laggard_core::model::profile::{Event, Interner, Profile, Sample, Thread, Unit, state};
use serde::Deserialize;

/// Maximum depth of open functions. Deeper ones are skipped, because stacks are walked later.
const DEEPEST: usize = 1 << 12;

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    exporter: Option<String>,
    shared: Shared,
    profiles: Vec<OneThread>,
    /// Wall time of the recording, in files that laggard wrote.
    #[serde(default, rename = "laggardDurationNs")]
    duration_ns: u64,
}

#[derive(Deserialize)]
struct Shared {
    frames: Vec<SharedFrame>,
}

#[derive(Deserialize)]
struct SharedFrame {
    name: String,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    line: Number,
}

#[derive(Deserialize)]
struct OneThread {
    #[serde(default)]
    name: String,
    #[serde(default)]
    unit: String,
    #[serde(default, rename = "startValue")]
    start: Number,
    #[serde(default, rename = "endValue")]
    end: Number,
    #[serde(default)]
    samples: Vec<Vec<Row>>,
    #[serde(default)]
    weights: Vec<Number>,
    #[serde(default)]
    events: Vec<Step>,
}

/// A function is opened or closed.
#[derive(Deserialize)]
struct Step {
    #[serde(rename = "type")]
    kind: String,
    frame: Row,
    at: Number,
}

/// Whether a file with this head is a speedscope file.
pub fn is_speedscope(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let has = |text: &[u8]| memchr::memmem::find(head, text).is_some();
    head.first() == Some(&b'{')
        && !has(b"\"traceEvents\"")
        && (has(b"speedscope.app/file-format-schema.json")
            || has(b"\"shared\"") && has(b"\"frames\"") && has(b"\"startValue\""))
}

/// Reads a file. `progress` is called when the file is in memory.
pub fn read(source: Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Profile, Error> {
    let (path, file): (_, File) = json::read(source, progress)?;
    let mut reader = Reader::default();
    for shared in &file.shared.frames {
        let name = shared.file.as_deref().unwrap_or_default();
        let line = if shared.line.0 > 0.0 { shared.line.0 as u32 } else { 0 };
        let (profile, interner) = (&mut reader.profile, &mut reader.interner);
        let frame = label::frame_in(&shared.name, name, line, profile, interner);
        let number = reader.interner.frame(&mut reader.profile, frame);
        reader.frames.push(number);
    }
    let exporter = file.exporter.unwrap_or_default();
    reader.is_ours = exporter.starts_with("laggard ");
    // The times of all threads are relative to the earliest start.
    let timed = file.profiles.iter().filter(|one| scale(&one.unit).0 == Unit::Nanos);
    let starts = timed.map(|one| one.start.0 * scale(&one.unit).1);
    let origin = starts.filter(|start| start.is_finite()).fold(f64::INFINITY, f64::min);
    for one in &file.profiles {
        reader.thread(one, origin);
    }
    let mut profile = reader.finish();
    if profile.samples.is_empty() {
        let what = "no samples found".to_owned();
        return Err(Error::NotARecording { path, what });
    }
    if file.duration_ns > 0 {
        profile.about.duration_ns = file.duration_ns;
    }
    profile.about.tool = exporter;
    profile.about.method = "speedscope profile".to_owned();
    if let Some(name) = file.name.filter(|name| !name.is_empty()) {
        profile.about.facts.push(("name".to_owned(), name));
    }
    Ok(profile)
}

/// The event unit of a speedscope unit, and the factor to it.
fn scale(unit: &str) -> (Unit, f64) {
    match unit {
        "nanoseconds" => (Unit::Nanos, 1.0),
        "microseconds" => (Unit::Nanos, 1e3),
        "milliseconds" => (Unit::Nanos, 1e6),
        "seconds" => (Unit::Nanos, 1e9),
        "bytes" => (Unit::Bytes, 1.0),
        _ => (Unit::Count, 1.0),
    }
}

#[derive(Default)]
struct Reader {
    profile: Profile,
    interner: Interner,
    /// Frame numbers of the shared frames.
    frames: Vec<u32>,
    /// Whether laggard wrote the file.
    is_ours: bool,
    /// Number of references to missing frames.
    lost_frames: u64,
    /// Number of weights that are missing or not numbers.
    lost_weights: u64,
    /// Number of unbalanced open and close events.
    unbalanced: u64,
}

impl Reader {
    fn thread(&mut self, one: &OneThread, origin: f64) {
        let thread = thread(&one.name, &mut self.profile);
        self.profile.threads.push(thread);
        let (unit, scale) = scale(&one.unit);
        let name = match unit {
            Unit::Nanos => "time",
            Unit::Bytes => "bytes",
            Unit::Count => "samples",
        };
        let events = &mut self.profile.events;
        let event = events.iter().position(|event| event.unit == unit).unwrap_or_else(|| {
            events.push(Event { name: name.to_owned(), unit });
            events.len() - 1
        });
        let start = if one.start.0.is_finite() { one.start.0 } else { 0.0 };
        let row = Sample {
            time_ns: 0,
            thread: self.profile.threads.len() as u32 - 1,
            stack: NONE,
            event: event as u32,
            count: 1,
            weight: 0,
            state: 0,
        };
        let clock = Clock { unit, scale, origin };
        self.sampled(one, start, row, clock);
        self.evented(one, start, row, clock);
    }

    fn sampled(&mut self, one: &OneThread, start: f64, row: Sample, clock: Clock) {
        let mut at = start;
        for (number, frames) in one.samples.iter().enumerate() {
            let weight = match one.weights.get(number) {
                Some(Number(weight)) if weight.is_finite() && *weight >= 0.0 => *weight,
                // Without weights, samples are counted.
                None if one.weights.is_empty() && clock.unit == Unit::Count => 1.0,
                _ => {
                    self.lost_weights += 1;
                    0.0
                }
            };
            let mut stack = NONE;
            for Row(frame) in frames {
                match self.frames.get(*frame as usize) {
                    Some(frame) => stack = self.interner.node(&mut self.profile, stack, *frame),
                    None => self.lost_frames += 1,
                }
            }
            let mut sample = Sample { time_ns: clock.nanos(at), stack, ..row };
            sample.weight = (weight * clock.scale).round() as u64;
            if clock.unit == Unit::Count && !self.is_ours {
                sample.count = sample.weight;
            }
            if stack == NONE {
                sample.state = state::CUT;
            }
            at += weight;
            if sample.count > 0 {
                self.profile.samples.push(sample);
            }
        }
    }

    fn evented(&mut self, one: &OneThread, start: f64, row: Sample, clock: Clock) {
        // Node and frame of each open function.
        let mut open: Vec<(u32, u32)> = vec![];
        let mut too_deep = 0u64;
        let mut at = start;
        let last = one.end.0.is_finite().then_some(one.end.0);
        for step in &one.events {
            let now = if step.at.0.is_finite() { step.at.0.max(at) } else { at };
            self.spend(&open, at, now, row, clock);
            at = now;
            match step.kind.as_str() {
                "O" => match self.frames.get(step.frame.0 as usize) {
                    Some(_) if open.len() >= DEEPEST => too_deep += 1,
                    Some(frame) => {
                        let parent = open.last().map_or(NONE, |(node, _)| *node);
                        let node = self.interner.node(&mut self.profile, parent, *frame);
                        open.push((node, step.frame.0));
                    }
                    None => self.lost_frames += 1,
                },
                _ if too_deep > 0 => too_deep -= 1,
                _ => match open.iter().rposition(|(_, frame)| *frame == step.frame.0) {
                    // Inner functions that are still open end with it.
                    Some(depth) => {
                        self.unbalanced += (open.len() - depth - 1) as u64;
                        open.truncate(depth);
                    }
                    None => self.unbalanced += 1,
                },
            }
        }
        self.unbalanced += open.len() as u64 + too_deep;
        if let Some(last) = last {
            self.spend(&open, at, last, row, clock);
        }
    }

    /// Adds elapsed time to the innermost open function.
    fn spend(&mut self, open: &[(u32, u32)], from: f64, to: f64, row: Sample, clock: Clock) {
        let Some((stack, _)) = open.last() else { return };
        let weight = ((to - from) * clock.scale).round();
        if weight >= 1.0 {
            let sample = Sample { time_ns: clock.nanos(from), stack: *stack, ..row };
            self.profile.samples.push(Sample { weight: weight as u64, ..sample });
        }
    }

    fn finish(self) -> Profile {
        let mut profile = self.profile;
        profile.samples.sort_by_key(|sample| sample.time_ns);
        let is_time = |sample: &&Sample| profile.events[sample.event as usize].is_time();
        let ends = profile.samples.iter().filter(is_time);
        let ends = ends.map(|sample| sample.time_ns.saturating_add(sample.weight));
        profile.about.duration_ns = ends.max().unwrap_or(0);
        for (lost, what) in [
            (self.lost_frames, "references to missing frames"),
            (self.lost_weights, "samples without a weight"),
            (self.unbalanced, "unbalanced open and close events"),
        ] {
            if lost > 0 {
                profile.quality.warnings.push(format!("{what}: {lost}"));
            }
        }
        profile
    }
}

/// Converts times of a thread to nanoseconds.
#[derive(Clone, Copy)]
struct Clock {
    unit: Unit,
    scale: f64,
    origin: f64,
}

impl Clock {
    /// Samples have times only if weights are times.
    fn nanos(self, at: f64) -> u64 {
        match self.unit {
            Unit::Nanos => (at * self.scale - self.origin).round().max(0.0) as u64,
            _ => 0,
        }
    }
}

/// Parses a thread from the name of its profile: `name 12 (process app 10)` from laggard, `Process
/// 10 Thread 12 "name"` from py-spy.
fn thread(name: &str, profile: &mut Profile) -> Thread {
    let mut thread = Thread::default();
    let mut of_ours = || {
        let (own, process) = name.strip_suffix(')')?.rsplit_once(" (process ")?;
        let (own, tid) = own.rsplit_once(' ')?;
        let (process, pid) = process.rsplit_once(' ')?;
        (thread.pid, thread.tid) = (pid.parse().ok()?, tid.parse().ok()?);
        (thread.name, thread.process) = (profile.texts.add(own), profile.texts.add(process));
        Some(())
    };
    if of_ours().is_some() {
        return thread;
    }
    let mut of_py_spy = || {
        let rest = match name.strip_prefix("Process ") {
            Some(rest) => {
                let (pid, rest) = rest.split_once(' ')?;
                thread.pid = pid.parse().ok()?;
                rest
            }
            None => name,
        };
        let (tid, own) = rest.strip_prefix("Thread ")?.split_once(' ')?;
        thread.tid = tid.parse().ok()?;
        thread.name = profile.texts.add(own.trim_matches('"'));
        Some(())
    };
    if of_py_spy().is_none() {
        thread = Thread { name: profile.texts.add(name), ..Thread::default() };
    }
    thread
}
