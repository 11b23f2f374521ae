//! Reads massif.out: heap snapshots of valgrind's heap profiler, with allocation sites.
//!
//! You give a [`Source`], you get a [`Profile`] with one event per detailed snapshot: first the
//! peak (`heap at peak`), then the others. Weights are bytes allocated and not yet freed. Massif's
//! trees grow from the allocation to its callers. They become stacks whose innermost frame called
//! the allocator. Bytes of a node beyond those of its children have unknown callers and stay with
//! the node. Places below massif's threshold become a [`FrameKind::Mark`] in place of their
//! callers. Snapshots without a tree only contribute to the facts.
//!
//! Addresses belong to the process, not to a file, so frames have none.

use crate::error::Error;
use crate::source::Source;
use laggard_core::model::NONE;
use laggard_core::model::profile::{
    Event, Frame, FrameKind, Interner, Module, Profile, Sample, Thread, Unit, state,
};

/// Maximum size of a file. A snapshot has some kilobytes, and there are hundreds of them.
const LARGEST: u64 = 1 << 30;
/// Lines used for format detection.
const LINES_FOR_DETECTION: usize = 16;
/// Maximum depth of a tree: more than valgrind supports.
const DEEPEST: usize = 1000;

/// Whether a file with this head is a massif file.
pub fn is_massif(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n').take(LINES_FOR_DETECTION);
    let mut has_unit = false;
    // The description can have several lines or be missing.
    lines.any(|line| {
        has_unit |= line.starts_with(b"time_unit:");
        has_unit && line.starts_with(b"snapshot=")
    })
}

/// Reads a file. `progress` receives the number of bytes read, once.
pub fn read(source: Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Profile, Error> {
    let (path, text) = source.whole(LARGEST)?;
    if !is_massif(&text[..text.len().min(super::HEAD_FOR_DETECTION)]) {
        let head = &text[..text.len().min(super::HEAD_FOR_DETECTION)];
        let what = format!("not a massif file; it looks like {}", super::looks_like(head, &[]));
        return Err(Error::NotARecording { path, what });
    }
    progress(text.len() as u64);
    parse(&text).map_err(|what| Error::NotARecording { path, what })
}

/// Parses a file. The error describes why it is unusable.
pub fn parse(bytes: &[u8]) -> Result<Profile, String> {
    let text = String::from_utf8_lossy(bytes);
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(text.lines()) {
        if reader.line(line).is_none() {
            reader.lost.get_or_insert((0, number)).0 += 1;
        }
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    profile: Profile,
    interner: Interner,
    unit: String,
    snapshots: Vec<Snapshot>,
    /// Nodes from the root of the tree to the last one read.
    open: Vec<Open>,
    /// Number of unreadable lines, and the first one.
    lost: Option<(u64, u64)>,
}

/// A heap snapshot.
#[derive(Default)]
struct Snapshot {
    number: String,
    time: u64,
    heap: u64,
    extra: u64,
    stacks: u64,
    is_peak: bool,
    has_tree: bool,
    /// Stacks: bytes, innermost node, state.
    rows: Vec<(u64, u32, u32)>,
}

/// A node whose children are being read.
struct Open {
    frame: u32,
    bytes: u64,
    children: u64,
    /// Whether it represents several places.
    is_mark: bool,
}

impl Reader {
    fn line(&mut self, line: &str) -> Option<()> {
        let trimmed = line.trim_start_matches(' ');
        let digits = trimmed.strip_prefix('n').unwrap_or_default();
        if digits.starts_with(|c: char| c.is_ascii_digit()) {
            return self.node(line.len() - trimmed.len(), trimmed);
        }
        if line.is_empty() || line.starts_with('#') {
            return Some(());
        }
        if let Some((key, value)) = line.split_once(": ").filter(|_| self.snapshots.is_empty()) {
            match key {
                "desc" => self.fact("massif options", value),
                "cmd" => {
                    let words = value.split_whitespace().map(str::to_owned);
                    self.profile.about.command = words.collect();
                }
                "time_unit" => value.trim().clone_into(&mut self.unit),
                _ => return None,
            }
            return Some(());
        }
        let (key, value) = line.split_once('=')?;
        if key == "snapshot" {
            self.close(0);
            let number = value.trim().to_owned();
            self.snapshots.push(Snapshot { number, ..Snapshot::default() });
            return Some(());
        }
        let snapshot = self.snapshots.last_mut()?;
        match key {
            "time" => snapshot.time = value.trim().parse().ok()?,
            "mem_heap_B" => snapshot.heap = value.trim().parse().ok()?,
            "mem_heap_extra_B" => snapshot.extra = value.trim().parse().ok()?,
            "mem_stacks_B" => snapshot.stacks = value.trim().parse().ok()?,
            "heap_tree" => match value.trim() {
                "empty" => {}
                "detailed" => snapshot.has_tree = true,
                "peak" => (snapshot.has_tree, snapshot.is_peak) = (true, true),
                _ => return None,
            },
            _ => return None,
        }
        Some(())
    }

    /// Parses `n3: 1234 0xADDR: func (file.c:12)` at a depth of the tree.
    fn node(&mut self, depth: usize, line: &str) -> Option<()> {
        let (children, rest) = line.strip_prefix('n')?.split_once(": ")?;
        children.parse::<u32>().ok()?;
        let (bytes, what) = rest.split_once(' ')?;
        let bytes: u64 = bytes.parse().ok()?;
        if depth > self.open.len() || depth > DEEPEST || !self.snapshots.last()?.has_tree {
            return None;
        }
        self.close(depth);
        let frame = self.frame(what);
        let is_mark = frame.kind == FrameKind::Mark;
        let frame = self.interner.frame(&mut self.profile, frame);
        if let Some(parent) = self.open.last_mut() {
            parent.children = parent.children.saturating_add(bytes);
        }
        self.open.push(Open { frame, bytes, children: 0, is_mark });
        Some(())
    }

    /// Closes all nodes from this depth on. Bytes that their children do not have stay with them.
    fn close(&mut self, depth: usize) {
        while self.open.len() > depth {
            let Some(node) = self.open.last() else { return };
            let own = node.bytes.saturating_sub(node.children);
            let is_cut = node.is_mark || node.children > 0;
            if own > 0 {
                // The root is the allocator, which is part of every stack, so it is omitted.
                let nodes = if self.open.len() > 1 { &self.open[1..] } else { &self.open[..] };
                let frames = nodes.iter().rev().map(|node| node.frame);
                let stack = self.interner.stack(&mut self.profile, frames);
                let state = if is_cut { state::CUT } else { 0 };
                if let Some(snapshot) = self.snapshots.last_mut() {
                    snapshot.rows.push((own, stack, state));
                }
            }
            self.open.pop();
        }
    }

    /// The frame of a node.
    fn frame(&mut self, what: &str) -> Frame {
        let texts = &mut self.profile.texts;
        let named =
            |kind, function| Frame { kind, module: NONE, address: 0, function, file: 0, line: 0 };
        let place = what.strip_prefix("0x").and_then(|rest| rest.split_once(": "));
        let Some((address, place)) = place else {
            // `(heap allocation functions) …` or `in 3 places, all below massif's threshold
            // (1.00%)`.
            return named(FrameKind::Mark, texts.add(what.trim()));
        };
        let (function, at) = match place.strip_suffix(')').and_then(|of| of.rsplit_once(" (")) {
            Some((function, at)) => (function, at),
            None => (place, ""),
        };
        let function = match function.trim() {
            "???" | "" => texts.add(&format!("0x{address}")),
            function => texts.add(function),
        };
        let mut frame = named(FrameKind::Native, function);
        if let Some(path) = at.strip_prefix("in ") {
            let module = Module { path: texts.add(path), id: 0 };
            frame.module = self.interner.module(&mut self.profile, module);
        } else if let Some((file, line)) = at.rsplit_once(':') {
            frame.file = texts.add(file);
            frame.line = line.parse().unwrap_or(0);
        }
        frame
    }

    fn fact(&mut self, name: &str, value: &str) {
        self.profile.about.facts.push((name.to_owned(), value.trim().to_owned()));
    }

    fn finish(mut self) -> Result<Profile, String> {
        self.close(0);
        if self.snapshots.iter().all(|snapshot| snapshot.rows.is_empty()) {
            return Err(match self.snapshots.len() {
                0 => "no snapshots found".to_owned(),
                n => format!("none of its {n} snapshots has an allocation tree"),
            });
        }
        let snapshots = std::mem::take(&mut self.snapshots);
        let unit = std::mem::take(&mut self.unit);
        let moment = |time: u64| match unit.as_str() {
            "i" => format!("{time} instructions"),
            "B" => format!("{time} bytes allocated"),
            unit => format!("{time} {unit}"),
        };
        let nanos = |time: u64| if unit == "ms" { time.saturating_mul(1_000_000) } else { 0 };
        self.facts(&snapshots, &moment);
        let profile = &mut self.profile;
        let program = profile.about.command.first().map_or("", |path| path.as_str());
        let name = profile.texts.add(program.rsplit('/').next().unwrap_or_default());
        profile.threads.push(Thread { name, process: name, ..Thread::default() });
        profile.about.tool = "massif".into();
        profile.about.method = "massif, every allocation".into();
        profile.about.duration_ns = snapshots.last().map_or(0, |last| nanos(last.time));
        // The peak comes first, or the largest snapshot if there is no peak.
        let mut detailed: Vec<&Snapshot> =
            snapshots.iter().filter(|snapshot| !snapshot.rows.is_empty()).collect();
        let greatest = (0..detailed.len())
            .rev()
            .max_by_key(|&at| (detailed[at].is_peak, detailed[at].heap))
            .unwrap_or(0);
        detailed[..=greatest].rotate_right(1);
        for (event, snapshot) in (0..).zip(&detailed) {
            let name = match snapshot.is_peak {
                true => "heap at peak".to_owned(),
                false => {
                    format!("heap at snapshot {} ({})", snapshot.number, moment(snapshot.time))
                }
            };
            profile.events.push(Event { name, unit: Unit::Bytes });
            profile.samples.extend(snapshot.rows.iter().map(|&(weight, stack, state)| Sample {
                time_ns: nanos(snapshot.time),
                thread: 0,
                stack,
                event,
                count: 1,
                weight,
                state,
            }));
        }
        profile.samples.sort_by_key(|sample| sample.time_ns);
        let warnings = &mut profile.quality.warnings;
        if !detailed.iter().any(|snapshot| snapshot.is_peak) {
            warnings.push("the file has no peak snapshot and may be truncated".to_owned());
        }
        if let Some((lines, first)) = self.lost {
            warnings.push(format!("unreadable lines: {lines}, first at line {first}"));
        }
        Ok(self.profile)
    }

    /// Facts from the sizes of snapshots.
    fn facts(&mut self, snapshots: &[Snapshot], moment: &dyn Fn(u64) -> String) {
        let trees = snapshots.iter().filter(|snapshot| snapshot.has_tree).count();
        self.fact("snapshots", &format!("{}, {trees} with an allocation tree", snapshots.len()));
        let greatest = snapshots.iter().max_by_key(|of| (of.is_peak, of.heap));
        if let Some(peak) = greatest {
            self.fact("heap at peak", &format!("{} bytes", peak.heap));
            self.fact("allocator overhead at peak", &format!("{} bytes", peak.extra));
            if peak.stacks > 0 {
                self.fact("stacks at peak", &format!("{} bytes", peak.stacks));
            }
            self.fact("time of peak", &moment(peak.time));
        }
        if let Some(last) = snapshots.last() {
            self.fact("heap at the last snapshot", &format!("{} bytes", last.heap));
        }
    }
}
