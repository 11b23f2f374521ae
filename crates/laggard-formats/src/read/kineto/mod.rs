//! Reads PyTorch profiler traces: Kineto's Chrome trace JSON, plain or compressed.
//!
//! The scanner fills columns directly, without a tree of JSON values. Three paths read events, each
//! the fallback of the previous one: learned layouts ([`layout`]), a structural walk ([`walk`]) and
//! a careful parser ([`careful`]). They produce equal rows. A mapped file is read by several
//! threads ([`scan`]). A stream is decompressed by one thread and scanned by another ([`stream`]).

mod about;
mod careful;
mod event;
mod intern;
mod join;
mod json;
mod layout;
mod number;
mod part;
mod scan;
mod simd;
mod stream;
mod top;
mod walk;

pub use scan::Paths;
pub use simd::Isa;

use crate::error::Error;
use crate::source::{Bytes, Source};
use json::Stop;
use laggard_core::model::timeline::{About, LossReason, Timeline};
use part::{Losses, Part};
use scan::{End, Scanned, Scanner};
use std::path::Path;
use top::{Item, Top};

/// Options of the reader.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of threads for a mapped file.
    pub threads: usize,
    /// Instruction set.
    pub isa: Isa,
    /// Allowed paths.
    pub paths: Paths,
    /// Minimum size of a chunk per thread.
    pub smallest_chunk: usize,
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(16);
        Options { threads, isa: Isa::detect(), paths: Paths::Any, smallest_chunk: 4 << 20 }
    }
}

/// Reads a trace. `progress` receives the number of bytes every few megabytes.
///
/// The columns that linking fills are left empty: see [`laggard_core::trace::link`].
pub fn read(
    source: Source,
    options: &Options,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Timeline, Error> {
    let path = source.path;
    match source.bytes {
        Bytes::Mapped(map) => {
            let trace = read_text(&map, options, progress);
            if !map.is_whole() {
                return Err(Error::Shrank { path });
            }
            trace.into_timeline(&path, map.len() as u64, &map)
        }
        Bytes::Stream(stream) => {
            let (trace, bytes, head) =
                stream::read(stream, options, progress).map_err(Error::io("read", &path))?;
            trace.into_timeline(&path, bytes, &head)
        }
    }
}

/// Maximum number of top-level keys kept for error messages.
const KEYS_FOR_DETECTION: usize = 100;

/// The content of a file of any kind.
struct Trace {
    parts: Vec<Part>,
    about: About,
    losses: Losses,
    /// Whether an event array was found.
    has_events: bool,
    /// Top-level keys other than `traceEvents`.
    keys: Vec<String>,
    /// Broken events without a complete event after them.
    broken_last: u64,
    /// Whether the top level is an array instead of an object.
    is_bare_array: bool,
}

impl Trace {
    fn new() -> Trace {
        Trace {
            parts: vec![],
            about: About::default(),
            losses: Losses::default(),
            has_events: false,
            keys: vec![],
            broken_last: 0,
            is_bare_array: false,
        }
    }

    fn add_value(&mut self, key: &[u8], value: &[u8], at: u64) {
        let key = String::from_utf8_lossy(key);
        if !about::add(&mut self.about, &key, value) {
            self.losses.add(LossReason::BadMetadata, at);
        }
        if self.keys.len() < KEYS_FOR_DETECTION {
            self.keys.push(key.into_owned());
        }
    }

    /// Finds the start of the events if the metadata before them is damaged or truncated.
    fn damaged_top(&mut self, b: &[u8], at: usize, place: u64, stop: Stop) -> Option<usize> {
        if self.has_events {
            let cut = stop == Stop::Incomplete;
            let reason = if cut { LossReason::Truncated } else { LossReason::BadMetadata };
            self.losses.add(reason, place);
            return None;
        }
        let events = Top::find_events(b, at);
        if events.is_some() {
            self.losses.add(LossReason::BadMetadata, place);
        }
        events
    }

    /// Finds where the top level continues after the events, which ended at `at`.
    fn behind_events(&mut self, b: &[u8], at: usize, place: u64, end: End) -> Option<usize> {
        match end {
            End::Array => Some(at + 1),
            End::Limit | End::Window => None,
            End::Text => {
                self.losses.add(LossReason::Truncated, place);
                None
            }
            End::Garbage => {
                self.losses.add(LossReason::NotJson, place);
                self.broken_last += 1;
                Some(Top::find_array_end(b, at)? + 1)
            }
        }
    }

    fn into_timeline(self, path: &Path, bytes: u64, head: &[u8]) -> Result<Timeline, Error> {
        let has_elements =
            |part: &Part| part.events > 0 || part.losses.has(LossReason::NotAnObject);
        let has_events = self.parts.iter().any(|part| part.with_phase > 0);
        let has_others = self.is_bare_array || self.parts.iter().any(has_elements);
        if !self.has_events || (has_others && !has_events) {
            return Err(Error::UnknownFormat {
                path: path.into(),
                looks_like: crate::read::looks_like(head, &self.keys),
            });
        }
        let mut timeline = join::timeline(self.parts, self.about, &self.losses, bytes);
        timeline.events += self.broken_last;
        Ok(timeline)
    }
}

fn read_text(b: &[u8], options: &Options, progress: &(dyn Fn(u64) + Sync)) -> Trace {
    let mut trace = Trace::new();
    let mut top = Top::default();
    let mut rest = Scanner::new(options.isa, options.paths);
    let mut at = 0;
    loop {
        let start = match top.next(b, at) {
            Ok(Item::Value { key, value }) => {
                trace.add_value(&b[key.0..key.1], &b[value.0..value.1], key.0 as u64);
                at = value.1;
                continue;
            }
            Ok(Item::End) => break,
            Ok(Item::Events(start)) => start,
            Err(stop) => match trace.damaged_top(b, at, at as u64, stop) {
                Some(start) => start,
                None => break,
            },
        };
        trace.is_bare_array |= top.is_bare_array();
        // Threads are used for the first array only. Only synthetic files have a second one.
        let scanned = if trace.has_events {
            let (at, end) = rest.scan(b, 0, start, usize::MAX, true);
            Scanned { parts: vec![], at, end }
        } else {
            scan::scan_all(b, start, options, progress)
        };
        trace.has_events = true;
        trace.parts.extend(scanned.parts);
        match trace.behind_events(b, scanned.at, scanned.at as u64, scanned.end) {
            Some(behind) => at = behind,
            None => break,
        }
    }
    trace.parts.push(rest.part);
    trace
}
