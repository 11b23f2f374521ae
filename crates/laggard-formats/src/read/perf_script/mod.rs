//! Reads output of `perf script`: a header line per sample, then its frames, innermost first.
//!
//! You give a [`Source`], you get a [`Profile`] with times, threads and events as far as they were
//! printed (`-F`). Symbols and source lines (`-F +srcline`) are those found by perf. Addresses in
//! user code are relative to the module. perf prints the return address for frame pointers and the
//! call address for DWARF; both are kept. Other records, such as mappings, are ignored;
//! unrecognized lines are counted.

mod line;

use super::label;
use crate::error::Error;
use crate::source::{Bytes, Source};
use laggard_core::model::NONE;
use laggard_core::model::profile::{
    Event, Frame, FrameKind, Interner, Profile, Sample, Thread, Unit, state,
};
use line::{Code, Head, code_of, head_of, place_of};
use rustc_hash::FxHashMap;
use std::io::{self, BufRead, BufReader};

/// Maximum length of a line. Longer lines are truncated.
const LONGEST_LINE: usize = 1 << 20;
/// Maximum depth of a stack, far above that of perf. Deeper stacks are truncated.
const DEEPEST: usize = 1 << 14;
/// Bytes between progress reports.
const STEP: u64 = 4 << 20;
/// Lines used for format detection.
const LINES_FOR_DETECTION: usize = 400;

/// Whether a file with this head is `perf script` output: the first header line is followed by a
/// frame or contains one.
pub fn is_perf_script(head: &[u8]) -> bool {
    let mut lines = head
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty() && line[0] != b'#')
        .take(LINES_FOR_DETECTION);
    let is_frame = |line: &[u8]| line[0] == b'\t' && code_of(line).is_some();
    while let Some(line) = lines.next() {
        if is_frame(line) {
            return lines.next().is_none_or(is_frame);
        }
        match head_of(line) {
            Some(Head { is_sample: false, .. }) => {}
            Some(head) => return head.code.is_some() || lines.next().is_some_and(is_frame),
            None => return false,
        }
    }
    false
}

/// Reads a file. `progress` receives the number of bytes every few megabytes.
pub fn read(source: Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Profile, Error> {
    let Source { path, bytes } = source;
    let mut reader = Reader::default();
    let mut done = 0;
    let mut tell = |read: usize| {
        done += read as u64;
        if done >= STEP {
            progress(std::mem::take(&mut done));
        }
    };
    let end = match bytes {
        Bytes::Mapped(map) => {
            let mut at = 0;
            while at < map.len() {
                let length = memchr::memchr(b'\n', &map[at..]).unwrap_or(map.len() - at);
                reader.line(&map[at..at + length.min(LONGEST_LINE)]);
                at += length + 1;
                tell(length + 1);
            }
            if !map.is_whole() {
                return Err(Error::Shrank { path });
            }
            Ok(())
        }
        Bytes::Stream(stream) => each_line(BufReader::with_capacity(1 << 20, stream), |line, n| {
            reader.line(line);
            tell(n);
        }),
    };
    progress(done);
    let mut profile = reader.finish();
    if profile.samples.is_empty() {
        if let Err(why) = end {
            return Err(Error::io("read", path)(why));
        }
        let what = "no perf script samples found".to_owned();
        return Err(Error::NotARecording { path, what });
    }
    if let Err(why) = end {
        profile.quality.warnings.push(format!("the file could not be read to its end: {why}"));
    }
    Ok(profile)
}

/// Calls `take` with each line, truncated to the maximum, and its size in bytes.
fn each_line(mut text: impl BufRead, mut take: impl FnMut(&[u8], usize)) -> io::Result<()> {
    let mut line = vec![];
    let mut length = 0;
    loop {
        let block = match text.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            block => block?,
        };
        if block.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', block);
        let piece = &block[..end.unwrap_or(block.len())];
        line.extend_from_slice(&piece[..piece.len().min(LONGEST_LINE - line.len())]);
        let used = end.map_or(block.len(), |end| end + 1);
        length += used;
        text.consume(used);
        if end.is_some() {
            take(&line, length);
            line.clear();
            length = 0;
        }
    }
    take(&line, length);
    Ok(())
}

#[derive(Default)]
struct Reader {
    profile: Profile,
    interner: Interner,
    /// Cache of frames by the text of their line, because lines repeat.
    frames: FxHashMap<Box<[u8]>, u32>,
    threads: FxHashMap<(u32, u32, u32), u32>,
    events: FxHashMap<String, u32>,
    /// The sample whose frames are being read.
    sample: Option<Sample>,
    /// Its frames, innermost first.
    stack: Vec<u32>,
    /// Whether the following frames belong to a record that is not a sample.
    is_other: bool,
    bad_lines: u64,
}

impl Reader {
    fn line(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match line.first() {
            None => self.end_sample(),
            Some(b'#') => self.remark(&line[1..]),
            Some(b'\t') if self.frame(line) => {}
            Some(b'\t' | b' ') if line.trim_ascii().is_empty() => self.end_sample(),
            Some(b'\t' | b' ') if self.source_line(line) => {}
            _ => match head_of(line) {
                Some(head) => self.head(&head),
                None if self.frame(line) => {}
                None => {
                    self.end_sample();
                    self.is_other = true;
                    self.bad_lines += 1;
                }
            },
        }
    }

    /// Handles a header line.
    fn head(&mut self, head: &Head) {
        self.end_sample();
        self.is_other = !head.is_sample;
        if self.is_other {
            return;
        }
        let name = self.profile.texts.add(&String::from_utf8_lossy(head.comm));
        let (pid, tid) = (head.pid.unwrap_or(head.tid), head.tid);
        let threads = &mut self.profile.threads;
        let thread = *self.threads.entry((pid, tid, name)).or_insert_with(|| {
            threads.push(Thread { pid, tid, name, process: name, cpu_ns: 0 });
            threads.len() as u32 - 1
        });
        let event = match head.event {
            b"" => "samples".into(),
            name => String::from_utf8_lossy(name),
        };
        let event = self.event(&event, head.period.is_some());
        let weight = head.period.unwrap_or(1);
        let time_ns = head.time_ns.unwrap_or(0);
        self.sample =
            Some(Sample { time_ns, thread, stack: NONE, event, count: 1, weight, state: 0 });
        if let Some(code) = &head.code {
            // In a header line perf prints a process address, which is not in any symbol table.
            let frame = self.made(&Code { address: 0, ..*code });
            self.stack.push(frame);
        }
    }

    fn event(&mut self, name: &str, has_period: bool) -> u32 {
        if let Some(&number) = self.events.get(name) {
            return number;
        }
        let is_clock = matches!(name.split([':', '/']).next(), Some("cpu-clock" | "task-clock"));
        let unit = if is_clock && has_period { Unit::Nanos } else { Unit::Count };
        let number = self.profile.events.len() as u32;
        self.profile.events.push(Event { name: name.to_owned(), unit });
        self.events.insert(name.to_owned(), number);
        number
    }

    /// Handles a frame line. Returns whether the line is one.
    fn frame(&mut self, line: &[u8]) -> bool {
        if let Some(&known) = self.frames.get(line) {
            self.push(known);
            return true;
        }
        let Some(code) = code_of(line) else { return false };
        let number = self.made(&code);
        self.frames.insert(line.into(), number);
        self.push(number);
        true
    }

    fn push(&mut self, frame: u32) {
        if self.is_other {
            return;
        }
        // With `-F ip,sym`, samples have no header lines.
        if self.sample.is_none() {
            self.head(&Head { is_sample: true, ..Head::default() });
        }
        if self.stack.len() < DEEPEST {
            self.stack.push(frame);
        }
    }

    fn made(&mut self, code: &Code) -> u32 {
        let name = String::from_utf8_lossy(code.name);
        let module = String::from_utf8_lossy(code.module);
        let mut frame = Frame {
            kind: FrameKind::Native,
            module: NONE,
            address: code.address,
            function: 0,
            file: 0,
            line: 0,
        };
        if let Some(python) = name.strip_prefix("py::") {
            let (name, file) = python.split_once(':').unwrap_or((python, ""));
            (frame.kind, frame.address) = (FrameKind::Python, 0);
            frame.function = self.profile.texts.add(name);
            frame.file = self.profile.texts.add(file);
            return self.interner.frame(&mut self.profile, frame);
        }
        if code.is_kernel() || label::is_kernel(&module) {
            frame.kind = FrameKind::Kernel;
        } else if code.is_inlined {
            frame.kind = FrameKind::Inlined;
        }
        if !code.is_inlined && module != "[unknown]" {
            frame.module = label::module_number(&module, &mut self.profile, &mut self.interner);
        }
        if name != "[unknown]" {
            frame.function = self.profile.texts.add(&name);
        }
        self.interner.frame(&mut self.profile, frame)
    }

    /// Handles a source location of the previous frame. Returns whether the line is one.
    fn source_line(&mut self, line: &[u8]) -> bool {
        let Some((file, number)) = place_of(line) else { return false };
        if self.is_other {
            return true;
        }
        let Some(last) = self.stack.last_mut() else { return false };
        let mut frame = self.profile.frames[*last as usize];
        if frame.kind != FrameKind::Python {
            frame.file = self.profile.texts.add(&String::from_utf8_lossy(file));
            frame.line = number;
            *last = self.interner.frame(&mut self.profile, frame);
        }
        true
    }

    fn end_sample(&mut self) {
        self.is_other = false;
        let Some(mut sample) = self.sample.take() else { return };
        self.place_inlined();
        let frames = self.stack.iter().rev().copied();
        sample.stack = self.interner.stack(&mut self.profile, frames);
        if self.stack.is_empty() {
            sample.state = state::CUT;
        }
        self.stack.clear();
        self.profile.samples.push(sample);
    }

    /// Sets the module of inlined functions to that of the function at the same address, which
    /// contains them. perf sometimes omits that function; then the module of the previous frame is
    /// used.
    fn place_inlined(&mut self) {
        let mut outer = None;
        for at in (0..self.stack.len()).rev() {
            let mut frame = self.profile.frames[self.stack[at] as usize];
            if frame.kind != FrameKind::Inlined {
                outer = Some((frame.address, frame.module));
                continue;
            }
            let before = at.checked_sub(1).map(|at| self.profile.frames[self.stack[at] as usize]);
            frame.module = match outer {
                Some((address, module)) if address == frame.address => module,
                _ => before.map_or(NONE, |before| before.module),
            };
            self.stack[at] = self.interner.frame(&mut self.profile, frame);
        }
    }

    /// Handles a line of `perf script --header`.
    fn remark(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let Some((key, value)) = text.split_once(':') else { return };
        let value = value.trim();
        let about = &mut self.profile.about;
        let fact = match key.trim() {
            "hostname" => "host",
            "os release" => "kernel",
            "cpudesc" => "processor",
            "cmdline" => {
                // The program follows `--`. Without it, the program cannot be separated from perf's
                // flags.
                let program = value.split_once(" -- ").map_or(value, |(_, program)| program);
                about.command = program.split_whitespace().map(str::to_owned).collect();
                return;
            }
            "perf version" => {
                about.tool = format!("perf {value}");
                return;
            }
            _ => return,
        };
        if about.facts.iter().all(|(known, _)| known != fact) {
            about.facts.push((fact.to_owned(), value.to_owned()));
        }
    }

    fn finish(mut self) -> Profile {
        self.end_sample();
        let mut profile = self.profile;
        profile.samples.sort_by_key(|sample| sample.time_ns);
        let first = profile.samples.first().map_or(0, |sample| sample.time_ns);
        for sample in &mut profile.samples {
            sample.time_ns -= first;
        }
        profile.about.duration_ns = profile.samples.last().map_or(0, |sample| sample.time_ns);
        profile.about.method = "perf, printed by perf script".to_owned();
        match self.bad_lines {
            0 => {}
            1 => profile.quality.warnings.push("skipped 1 unrecognized line".into()),
            n => {
                let text = format!("skipped {n} unrecognized lines");
                profile.quality.warnings.push(text);
            }
        }
        profile
    }
}
