//! Reads pprof profiles, which Go, gperftools, jemalloc, Parca, Pyroscope and many others write.
//!
//! You give a [`Source`], you get a [`Profile`] with an event for each value type, the default one
//! first. pprof stores sums, so samples have no times. The count of each row comes from the value
//! type that counts samples or objects. A truncated file is read up to the truncation.
//!
//! The parser is written by hand instead of using `prost`: only ten kinds of fields matter, damaged
//! files must be read as far as possible, and the build needs no code generation.

mod tables;
mod wire;

use crate::error::Error;
use crate::source::{Bytes, Source};
use laggard_core::model::NONE;
use laggard_core::model::profile::{Event, Interner, Profile, Sample, Thread, Unit, state};
use rustc_hash::FxHashMap;
use std::io::Read;
use tables::{File, Frames};
use wire::{Fields, Value, each_number};

/// Maximum depth. Outer callers of deeper stacks are dropped.
const DEEPEST: usize = 1 << 14;
/// Maximum number of nodes. Further samples are skipped, to limit memory on hostile files.
const MOST_NODES: usize = 1 << 26;
/// Maximum number of value types.
const MOST_EVENTS: usize = 64;

/// Whether a file with this (decompressed) head is a pprof profile: only fields of a profile,
/// starting with value types or the string table.
pub fn is_pprof(head: &[u8]) -> bool {
    let mut fields = Fields::of(head);
    let (mut all, mut types) = (0, 0);
    for (field, value) in fields.by_ref() {
        let is_fit = match (field, value) {
            (1 | 11, Value::Block(block)) => is_message(block, 2),
            (2..=5, Value::Block(block)) => is_message(block, 10),
            (6, Value::Block(text)) => std::str::from_utf8(text).is_ok(),
            (13, Value::Block(_)) => true,
            (7..=10 | 12..=15, Value::Varint(_)) => true,
            _ => false,
        };
        if !is_fit {
            return false;
        }
        types += u32::from(field == 1 && !value.block().is_empty());
        all += 1;
    }
    // The head can end within a field. A whole file cannot, unless it is truncated.
    let is_begun = types > 0 || head.starts_with(&[0x32, 0x00, 0x32]);
    is_begun && all >= 3 && (!fields.is_cut || fields.left() < head.len() / 2 || all > 8)
}

/// Whether bytes are a message with field numbers up to `most`.
fn is_message(block: &[u8], most: u64) -> bool {
    let mut fields = Fields::of(block);
    let fits = fields.by_ref().all(|(field, _)| field <= most);
    fits && !fields.is_cut
}

/// Reads a file. `progress` is called when the file is in memory.
pub fn read(source: Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Profile, Error> {
    let Source { path, bytes } = source;
    let (profile, end) = match bytes {
        Bytes::Mapped(map) => {
            let profile = profile(&map);
            if !map.is_whole() {
                return Err(Error::Shrank { path });
            }
            progress(map.len() as u64);
            (profile, Ok(()))
        }
        Bytes::Stream(mut stream) => {
            let mut bytes = vec![];
            let end = stream.read_to_end(&mut bytes).map(|_| ());
            progress(bytes.len() as u64);
            (profile(&bytes), end)
        }
    };
    match (profile, end) {
        (Some(profile), Ok(())) => Ok(profile),
        (Some(mut profile), Err(why)) => {
            profile.quality.warnings.push(format!("the file could not be read to its end: {why}"));
            Ok(profile)
        }
        (None, Err(why)) => Err(Error::io("read", path)(why)),
        (None, Ok(())) => {
            let what = "no pprof samples found".to_owned();
            Err(Error::NotARecording { path, what })
        }
    }
}

/// Parses a profile. `None` if it has no usable samples.
fn profile(bytes: &[u8]) -> Option<Profile> {
    let file = File::of(bytes);
    let mut reader = Reader::default();
    let values = reader.events(&file);
    let frames = Frames::of(&file, &mut reader.profile, &mut reader.interner);
    for sample in &file.samples {
        reader.sample(sample, &file, &frames, &values);
    }
    reader.about(&file);
    let mut profile = reader.profile;
    for (lost, what) in [
        (reader.lost_locations, "references to missing locations"),
        (reader.negative, "negative values skipped"),
        (reader.left_out, "samples skipped because there are too many"),
        (frames.lost, "references to missing functions"),
    ] {
        if lost > 0 {
            profile.quality.warnings.push(format!("{what}: {lost}"));
        }
    }
    if file.is_cut {
        profile
            .quality
            .warnings
            .push("the file is truncated: its last field is incomplete".to_owned());
    }
    (!profile.samples.is_empty()).then_some(profile)
}

/// A value type.
struct ValueType {
    /// Number of its event.
    event: u32,
    /// Factor to our unit.
    scale: u64,
    /// Index of the value that is the number of samples.
    count: Option<usize>,
}

#[derive(Default)]
struct Reader {
    profile: Profile,
    interner: Interner,
    /// By process id, thread id, thread name and process name.
    threads: FxHashMap<(u32, u32, u32, u32), u32>,
    lost_locations: u64,
    negative: u64,
    left_out: u64,
}

impl Reader {
    /// Creates the events, the default one first. Returns the type of each value of a sample.
    fn events(&mut self, file: &File) -> Vec<ValueType> {
        let types: Vec<(String, String)> = file
            .types
            .iter()
            .take(MOST_EVENTS)
            .map(|(kind, unit)| (file.text(*kind).into_owned(), file.text(*unit).into_owned()))
            .collect();
        let mut order: Vec<usize> = (0..types.len()).collect();
        let default = file.text(file.default_type);
        // Like pprof, use the last one if the file names no default.
        match types.iter().any(|(name, _)| *name == default) && !default.is_empty() {
            true => order.sort_by_key(|at| types[*at].0 != default),
            false => order.rotate_right(1.min(types.len())),
        }
        for at in &order {
            let (name, unit) = &types[*at];
            let name = if name.is_empty() { "value" } else { name };
            self.profile.events.push(Event { name: name.to_owned(), unit: scale(unit).0 });
        }
        let is_count = |at: &usize| scale(&types[*at].1).0 == Unit::Count;
        let all = 0..types.len();
        let looks = all.clone().find(|at| types[*at].0 == "samples" && is_count(at));
        let looks = looks.or_else(|| all.clone().find(is_count));
        all.map(|at| ValueType {
            event: order.iter().position(|other| *other == at).unwrap_or(0) as u32,
            scale: scale(&types[at].1).1,
            count: if is_count(&at) {
                Some(at)
            } else {
                // Heap sizes have their own object counts.
                let objects = types[at].0.strip_suffix("_space").map(|of| format!("{of}_objects"));
                let own = types.iter().position(|(name, _)| Some(name) == objects.as_ref());
                own.or(looks)
            },
        })
        .collect()
    }

    fn sample(&mut self, message: &[u8], file: &File, frames: &Frames, types: &[ValueType]) {
        let mut values: Vec<i64> = vec![];
        let mut stack: Vec<u32> = vec![];
        let mut labels = vec![];
        for (field, value) in Fields::of(message) {
            match field {
                1 => each_number(value, |location| match frames.of_location(location) {
                    Some(found) if stack.len() < DEEPEST => stack.extend_from_slice(found),
                    Some(_) => {}
                    None => self.lost_locations += 1,
                }),
                2 => each_number(value, |value| values.push(value as i64)),
                3 => labels.push(value.block()),
                _ => {}
            }
        }
        if self.profile.stacks.len() > MOST_NODES {
            self.left_out += 1;
            return;
        }
        let thread = self.thread(&labels, file);
        let stack = self.interner.stack(&mut self.profile, stack.into_iter().rev());
        for (value_type, value) in types.iter().zip(&values) {
            if *value < 0 {
                self.negative += 1;
            }
            if *value <= 0 {
                continue;
            }
            let looks = value_type.count.and_then(|at| values.get(at)).copied();
            self.profile.samples.push(Sample {
                time_ns: 0,
                thread,
                stack,
                event: value_type.event,
                count: looks.filter(|looks| *looks > 0).unwrap_or(1) as u64,
                weight: (*value as u64).saturating_mul(value_type.scale),
                state: if stack == NONE { state::CUT } else { 0 },
            });
        }
    }

    /// The thread in the labels of a sample.
    fn thread(&mut self, labels: &[&[u8]], file: &File) -> u32 {
        let mut thread = Thread::default();
        for label in labels {
            let (mut key, mut text, mut number) = (0, 0, 0);
            for (field, value) in Fields::of(label) {
                match field {
                    1 => key = value.number(),
                    2 => text = value.number(),
                    3 => number = value.number(),
                    _ => {}
                }
            }
            let text = file.text(text);
            let number = match text.parse() {
                Ok(number) => number,
                Err(_) => u32::try_from(number).unwrap_or(0),
            };
            match &*file.text(key) {
                "tid" | "thread_id" | "thread id" => thread.tid = number,
                "pid" | "process_id" | "process id" => thread.pid = number,
                "thread" if text.is_empty() || number > 0 => thread.tid = number,
                "thread" | "thread_name" | "thread name" | "comm" => {
                    thread.name = self.profile.texts.add(&text);
                }
                "process" | "process_name" | "process name" => {
                    thread.process = self.profile.texts.add(&text);
                }
                _ => {}
            }
        }
        let key = (thread.pid, thread.tid, thread.name, thread.process);
        let threads = &mut self.profile.threads;
        *self.threads.entry(key).or_insert_with(|| {
            threads.push(thread);
            threads.len() as u32 - 1
        })
    }

    fn about(&mut self, file: &File) {
        let about = &mut self.profile.about;
        about.method = "pprof profile".to_owned();
        about.started_unix = file.time_ns as f64 / 1e9;
        about.duration_ns = file.duration_ns;
        let (kind, unit) = file.period_type;
        let (unit, scale) = scale(&file.text(unit));
        let period = file.period.saturating_mul(scale);
        if period > 0 && unit == Unit::Nanos {
            about.rate = 1e9 / period as f64;
        }
        if file.period > 0 {
            let kind = file.text(kind);
            about.facts.push(("period".to_owned(), format!("{period} {} of {kind}", unit.word())));
        }
        for comment in &file.comments {
            about.facts.push(("comment".to_owned(), file.text(*comment).into_owned()));
        }
    }
}

/// Our unit for a pprof unit, and the factor to it.
fn scale(unit: &str) -> (Unit, u64) {
    match unit {
        "nanoseconds" | "nanosecond" | "ns" => (Unit::Nanos, 1),
        "microseconds" | "microsecond" | "us" => (Unit::Nanos, 1000),
        "milliseconds" | "millisecond" | "ms" => (Unit::Nanos, 1_000_000),
        "seconds" | "second" | "s" => (Unit::Nanos, 1_000_000_000),
        "bytes" | "byte" => (Unit::Bytes, 1),
        "kilobytes" | "kilobyte" | "kb" => (Unit::Bytes, 1 << 10),
        "megabytes" | "megabyte" | "mb" => (Unit::Bytes, 1 << 20),
        "gigabytes" | "gigabyte" | "gb" => (Unit::Bytes, 1 << 30),
        _ => (Unit::Count, 1),
    }
}
