//! Reads callgrind and cachegrind files: a call graph with call counts and costs.
//!
//! You give bytes, you get a [`Graph`], and from graphs [`Calls`]. Names can be compressed (`fn=(1)
//! main`, later `fn=(1)`), positions can be relative (`+3`, `-3`, `*`), and a file can have several
//! parts. A damaged file is read as far as possible; [`Losses`] counts the rest.

mod profile;

pub use profile::{profile, read_profile};

use crate::error::Error;
use crate::source::{Bytes, Source};
use laggard_core::model::NONE;
use laggard_core::model::calls::{CallRow, Calls, Function, InstructionRow};
use laggard_core::model::profile::{Frame, FrameKind, Interner, Module, Texts, Thread};
use rustc_hash::FxHashMap;
use std::fmt;
use std::io::Read;
use std::path::PathBuf;

/// Maximum number of events. More are not read.
const MOST_EVENTS: usize = 32;
/// Longer names are truncated.
const LONGEST_NAME: usize = 1 << 14;
/// Lines used for format detection.
const LINES_FOR_DETECTION: usize = 64;

/// The content of one file.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Names, object paths and source file paths. Number 0 means unknown.
    pub texts: Texts,
    /// The program that wrote the file, such as `callgrind-3.19.0`.
    pub creator: String,
    /// The command line, as in the file.
    pub command: String,
    /// The process id; 0 if unknown.
    pub pid: u32,
    /// Names of the events, usually starting with `Ir` (instructions).
    pub events: Vec<String>,
    /// Functions, unique by object and name.
    pub functions: Vec<GraphFunction>,
    /// Calls, unique by caller, call site and callee.
    pub calls: Vec<GraphCall>,
    /// Total costs as stated in the file, summed over its parts. Empty if not stated.
    pub totals: Vec<u64>,
    /// Losses of the file.
    pub losses: Losses,
    /// Self cost of each function: `events.len()` values each.
    own: Vec<u64>,
    /// Inclusive cost of each call: `events.len()` values each.
    inclusive: Vec<u64>,
    /// Lines with self cost, each once. Empty unless requested.
    lines: Vec<GraphLine>,
    /// Self cost of each line: `events.len()` values each.
    of_lines: Vec<u64>,
}

/// A source line of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct GraphLine {
    function: u32,
    /// Text: the source file. Differs from that of the function for inlined code.
    file: u32,
    line: u32,
}

/// A function in a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GraphFunction {
    /// Text: path of the object.
    pub object: u32,
    /// Text: name, without callgrind's suffix for recursion levels.
    pub name: u32,
}

/// Calls of one function from one call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphCall {
    /// Function number of the caller.
    pub caller: u32,
    /// Function number of the callee.
    pub callee: u32,
    /// Text: source file of the call.
    pub file: u32,
    /// Source line of the call; 0 if unknown.
    pub line: u32,
    /// Address of the call, relative to the object; 0 if unknown.
    pub address: u64,
    /// Number of calls.
    pub count: u64,
}

/// Losses of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Number of unreadable lines.
    pub lines: u64,
    /// Line number of the first one, counted from 1.
    pub first_line: u64,
    /// Number of name ids without a definition.
    pub names: u64,
    /// The file states no total, usually because it is truncated.
    pub is_cut: bool,
    /// The sum of the costs and the stated total, if they differ.
    pub mismatch: Option<(u64, u64)>,
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = vec![];
        if self.lines > 0 {
            let (n, first) = (self.lines, self.first_line);
            said.push(format!("unreadable lines: {n}, first at line {first}"));
        }
        if self.names > 0 {
            said.push(format!("undefined name ids: {}", self.names));
        }
        if self.is_cut {
            said.push("the file has no total and may be truncated".to_owned());
        }
        if let Some((read, total)) = self.mismatch {
            said.push(format!("costs add up to {read}, but the total in the file is {total}"));
        }
        f.write_str(&said.join("; "))
    }
}

/// Whether a file with this head is a callgrind or cachegrind file.
pub fn is_callgrind(head: &[u8]) -> bool {
    if head.starts_with(b"# callgrind format") {
        return true;
    }
    let starts: &[&[u8]] =
        &[b"version:", b"creator:", b"positions:", b"desc:", b"cmd:", b"pid:", b"part:", b"#"];
    let mut known = 0;
    for line in head.split(|byte| *byte == b'\n').take(LINES_FOR_DETECTION) {
        if line.starts_with(b"events:") {
            return known > 0;
        }
        match starts.iter().any(|start| line.starts_with(start)) {
            true => known += 1,
            false if line.trim_ascii().is_empty() => {}
            false => return false,
        }
    }
    false
}

/// Reads a file.
pub fn read(source: Source) -> Result<Graph, Error> {
    read_with(source, false)
}

fn read_with(source: Source, keeps_lines: bool) -> Result<Graph, Error> {
    let path = source.path;
    match source.bytes {
        Bytes::Mapped(map) => {
            let graph = parse_with(&map, keeps_lines);
            if !map.is_whole() {
                return Err(Error::Shrank { path });
            }
            graph.ok_or_else(|| other_kind(path, &map))
        }
        Bytes::Stream(mut stream) => {
            let mut bytes = vec![];
            stream.read_to_end(&mut bytes).map_err(Error::io("read", &path))?;
            parse_with(&bytes, keeps_lines).ok_or_else(|| other_kind(path, &bytes))
        }
    }
}

fn other_kind(path: PathBuf, bytes: &[u8]) -> Error {
    let head = &bytes[..bytes.len().min(super::HEAD_FOR_DETECTION)];
    Error::NotCallgrind { path, looks_like: super::looks_like(head, &[]) }
}

/// Parses a file. `None` if it is of another kind.
pub fn parse(bytes: &[u8]) -> Option<Graph> {
    parse_with(bytes, false)
}

/// Same as [`parse`], with the costs of lines, which [`profile`] needs.
pub fn parse_lines(bytes: &[u8]) -> Option<Graph> {
    parse_with(bytes, true)
}

fn parse_with(bytes: &[u8], keeps_lines: bool) -> Option<Graph> {
    is_callgrind(&bytes[..bytes.len().min(super::HEAD_FOR_DETECTION)]).then(|| {
        let mut reader = Reader { keeps_lines, ..Reader::default() };
        let mut at = 0;
        // Most lines have less than ten bytes, so a plain search is as fast as `memchr`.
        while let Some(length) = bytes[at..].iter().position(|byte| *byte == b'\n') {
            reader.line(&bytes[at..at + length]);
            at += length + 1;
        }
        reader.line(&bytes[at..]);
        reader.finish()
    })
}

impl Graph {
    /// Self cost of a function, by event.
    pub fn own(&self, function: u32) -> &[u64] {
        costs_of(&self.own, self.events.len(), function as usize)
    }

    /// Inclusive cost of a call, by event. `call` is an index into `calls`.
    pub fn inclusive(&self, call: usize) -> &[u64] {
        costs_of(&self.inclusive, self.events.len(), call)
    }

    /// Index of the event that counts instructions.
    pub fn instructions(&self) -> Option<usize> {
        self.events.iter().position(|name| name == "Ir")
    }

    /// Returns the selected calls. `is_wanted` receives the path of the caller's object, the path
    /// of the callee's object and the name of the callee.
    pub fn calls(&self, is_wanted: &mut dyn FnMut(&str, &str, &str) -> bool) -> Calls {
        calls([self], is_wanted)
    }
}

fn costs_of(all: &[u64], events: usize, number: usize) -> &[u64] {
    all.get(number * events..(number + 1) * events).unwrap_or_default()
}

/// Returns the selected calls of several processes; see [`Graph::calls`].
///
/// All threads of a process are merged into one. Calls have no times, and instructions only if the
/// files count them. Losses are included as warnings.
pub fn calls<'a>(
    graphs: impl IntoIterator<Item = &'a Graph>,
    is_wanted: &mut dyn FnMut(&str, &str, &str) -> bool,
) -> Calls {
    let mut calls = Calls::default();
    let mut interner = Interner::default();
    let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut own: FxHashMap<u32, u64> = FxHashMap::default();
    for graph in graphs {
        let said = graph.losses.to_string();
        if !said.is_empty() {
            calls.profile.quality.warnings.push(said);
        }
        let thread = calls.profile.threads.len() as u32;
        let program = graph.command.split_whitespace().next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default();
        let process = calls.profile.texts.add(program);
        calls.profile.threads.push(Thread {
            pid: graph.pid,
            tid: graph.pid,
            name: process,
            process,
            cpu_ns: 0,
        });
        let event = graph.instructions();
        // By function number in this graph.
        let mut numbers = vec![NONE; graph.functions.len()];
        for (at, call) in graph.calls.iter().enumerate() {
            let (from, to) =
                (graph.functions[call.caller as usize], graph.functions[call.callee as usize]);
            let (caller, object) = (graph.texts.get(from.object), graph.texts.get(to.object));
            if !is_wanted(caller, object, graph.texts.get(to.name)) {
                continue;
            }
            let mut module = |path: &str| {
                let path = calls.profile.texts.add(path);
                match path {
                    0 => NONE,
                    _ => interner.module(&mut calls.profile, Module { path, id: 0 }),
                }
            };
            let (from_module, to_module) = (module(caller), module(object));
            let number = &mut numbers[call.callee as usize];
            if *number == NONE {
                let name = calls.profile.texts.add(graph.texts.get(to.name));
                *number = *known.entry((to_module, name)).or_insert_with(|| {
                    calls.functions.push(Function { name, module: to_module });
                    calls.functions.len() as u32 - 1
                });
                if let Some(cost) = event.and_then(|event| graph.own(call.callee).get(event)) {
                    let sum = own.entry(*number).or_default();
                    *sum = sum.saturating_add(*cost);
                }
            }
            let frame = Frame {
                kind: FrameKind::Native,
                module: from_module,
                address: call.address,
                function: calls.profile.texts.add(graph.texts.get(from.name)),
                file: calls.profile.texts.add(graph.texts.get(call.file)),
                line: call.line,
            };
            calls.rows.push(CallRow {
                function: *number,
                caller: interner.frame(&mut calls.profile, frame),
                thread,
                count: call.count,
                instructions: event.and_then(|event| graph.inclusive(at).get(event).copied()),
                ..CallRow::default()
            });
        }
    }
    let mut own: Vec<(u32, u64)> = own.into_iter().collect();
    own.sort_unstable();
    calls.instructions =
        own.into_iter().map(|(function, own)| InstructionRow { function, own }).collect();
    calls
}

/// Definitions of name ids, for objects, source files and functions.
type Names = FxHashMap<u64, u32>;

#[derive(Default)]
struct Reader {
    graph: Graph,
    objects: Names,
    files: Names,
    names: Names,
    functions: FxHashMap<GraphFunction, u32>,
    calls: FxHashMap<(u32, u32, u32, u32, u64), u32>,
    keeps_lines: bool,
    lines: FxHashMap<GraphLine, usize>,
    /// Index in the graph of each event of the current part.
    events: Vec<Option<usize>>,
    /// Whether each position of the current part is an address (otherwise a line).
    positions: Vec<bool>,
    /// The previous position.
    at: [u64; 2],
    object: u32,
    file: u32,
    name: u32,
    function: Option<u32>,
    called_object: Option<u32>,
    called_name: Option<u32>,
    /// Call whose cost is on the next line.
    pending: Option<u64>,
    line: u64,
    summary: Vec<u64>,
    /// Costs of the current line.
    costs: Vec<u64>,
}

impl Reader {
    fn line(&mut self, line: &[u8]) {
        self.line += 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let read = match line.first() {
            None | Some(b'#') => Some(()),
            Some(b'0'..=b'9' | b'+' | b'-' | b'*') => self.cost(line),
            _ => self.words(line),
        };
        if read.is_none() {
            if self.graph.losses.lines == 0 {
                self.graph.losses.first_line = self.line;
            }
            self.graph.losses.lines += 1;
            self.pending = None;
        }
    }

    /// Parses a line of positions and costs.
    #[inline]
    fn cost(&mut self, line: &[u8]) -> Option<()> {
        let mut rest = line;
        let mut at = self.at;
        for (number, _) in self.positions.iter().enumerate() {
            let position = at.get_mut(number)?;
            *position = relative(word(&mut rest)?, *position)?;
        }
        self.at = at;
        self.costs.clear();
        while let Some(text) = word(&mut rest) {
            self.costs.push(number(text)?);
        }
        // More costs than announced events are an error.
        if self.costs.len() > self.events.len() {
            return None;
        }
        let caller = self.current()? as usize;
        let events = self.graph.events.len();
        let is_own = self.pending.is_none();
        let sums = match self.pending.take() {
            None => self.graph.own.get_mut(caller * events..(caller + 1) * events)?,
            Some(times) => {
                let call = self.call(caller as u32, times)?;
                self.graph.inclusive.get_mut(call * events..(call + 1) * events)?
            }
        };
        add(sums, &self.events, &self.costs);
        if self.keeps_lines && is_own {
            self.cost_of_line(caller as u32);
        }
        Some(())
    }

    /// Adds the costs of the current line of the file to its source line.
    fn cost_of_line(&mut self, function: u32) {
        let events = self.graph.events.len();
        let line = self.positions.iter().position(|is_address| !is_address);
        let line = line.and_then(|at| u32::try_from(*self.at.get(at)?).ok()).unwrap_or(0);
        let line = GraphLine { function, file: self.file, line };
        let number = *self.lines.entry(line).or_insert_with(|| {
            self.graph.lines.push(line);
            self.graph.lines.len() - 1
        });
        self.graph.of_lines.resize(self.graph.lines.len() * events, 0);
        if let Some(sums) = self.graph.of_lines.get_mut(number * events..(number + 1) * events) {
            add(sums, &self.events, &self.costs);
        }
    }

    /// The function that the current lines belong to.
    fn current(&mut self) -> Option<u32> {
        if self.function.is_none() {
            self.function = self.known(GraphFunction { object: self.object, name: self.name });
        }
        self.function
    }

    fn known(&mut self, function: GraphFunction) -> Option<u32> {
        let new = self.graph.functions.len() as u32;
        let number = *self.functions.entry(function).or_insert(new);
        if number == new {
            self.graph.functions.push(function);
            self.graph.own.resize(self.graph.functions.len() * self.graph.events.len(), 0);
        }
        Some(number)
    }

    /// Adds calls at the current position and returns their row.
    fn call(&mut self, caller: u32, times: u64) -> Option<usize> {
        let object = self.called_object.take().unwrap_or(self.object);
        let name = self.called_name.take()?;
        let callee = self.known(GraphFunction { object, name })?;
        let (mut line, mut address) = (0, 0);
        for (is_address, value) in self.positions.iter().zip(self.at) {
            match is_address {
                true => address = value,
                false => line = u32::try_from(value).unwrap_or(0),
            }
        }
        let file = self.file;
        let new = self.graph.calls.len() as u32;
        let number = *self.calls.entry((caller, callee, file, line, address)).or_insert(new);
        if number == new {
            self.graph.calls.push(GraphCall { caller, callee, file, line, address, count: 0 });
            self.graph.inclusive.resize(self.graph.calls.len() * self.graph.events.len(), 0);
        }
        let call = self.graph.calls.get_mut(number as usize)?;
        call.count = call.count.saturating_add(times);
        Some(number as usize)
    }

    /// Parses a line that starts with a keyword.
    fn words(&mut self, line: &[u8]) -> Option<()> {
        let end = line.iter().position(|byte| matches!(byte, b'=' | b':'));
        let Some(end) = end else { return line.trim_ascii().is_empty().then_some(()) };
        let (key, value) = (&line[..end], &line[end + 1..]);
        let losses = &mut self.graph.losses;
        let texts = &mut self.graph.texts;
        let text = || String::from_utf8_lossy(value.trim_ascii()).into_owned();
        match (key, line[end]) {
            (b"ob", b'=') => {
                self.object = name(value, &mut self.objects, texts, losses)?;
                self.function = None;
            }
            (b"fl" | b"fi" | b"fe", b'=') => {
                self.file = name(value, &mut self.files, texts, losses)?;
            }
            (b"fn", b'=') => {
                self.name = name(without_level(value), &mut self.names, texts, losses)?;
                self.function = None;
            }
            (b"cob", b'=') => {
                self.called_object = Some(name(value, &mut self.objects, texts, losses)?);
            }
            (b"cfi" | b"cfl" | b"jfi", b'=') => {
                name(value, &mut self.files, texts, losses)?;
            }
            (b"cfn", b'=') => {
                let value = without_level(value);
                self.called_name = Some(name(value, &mut self.names, texts, losses)?);
            }
            (b"calls", b'=') => {
                let mut rest = value;
                self.pending = Some(number(word(&mut rest)?)?);
            }
            (b"jfn", b'=') => {
                name(without_level(value), &mut self.names, texts, losses)?;
            }
            (b"jump" | b"jcnd", b'=') => {}
            (b"creator", b':') => self.graph.creator = text(),
            (b"cmd", b':') => self.graph.command = text(),
            (b"pid", b':') => self.graph.pid = text().parse().ok()?,
            (b"events", b':') => self.announce(value),
            (b"positions", b':') => {
                self.part();
                let mut rest = value;
                self.positions.clear();
                while let Some(word) = word(&mut rest) {
                    match word {
                        b"instr" | b"addr" => self.positions.push(true),
                        b"line" => self.positions.push(false),
                        _ => return None,
                    }
                }
                (self.positions.len() <= 2).then_some(())?;
            }
            (b"summary", b':') => self.summary = numbers(value)?,
            (b"totals", b':') => {
                self.summary.clear();
                self.add_totals(&numbers(value)?);
            }
            (b"version" | b"part" | b"thread" | b"desc" | b"event" | b"rcalls", _) => {}
            _ => return None,
        }
        Some(())
    }

    /// Starts a new part.
    fn part(&mut self) {
        self.at = [0; 2];
        self.pending = None;
        let summary = std::mem::take(&mut self.summary);
        self.add_totals(&summary);
    }

    /// Sets the events of the new part. A later part can have events that earlier parts did not
    /// have.
    fn announce(&mut self, names: &[u8]) {
        self.part();
        if self.positions.is_empty() {
            self.positions.push(false);
        }
        self.events.clear();
        let before = self.graph.events.len();
        let mut rest = names;
        while let Some(name) = word(&mut rest) {
            let name = String::from_utf8_lossy(name);
            let known = self.graph.events.iter().position(|event| *event == name);
            if known.is_none() && self.graph.events.len() < MOST_EVENTS {
                self.graph.events.push(name.into_owned());
                self.events.push(Some(self.graph.events.len() - 1));
            } else {
                self.events.push(known);
            }
        }
        self.events.truncate(MOST_EVENTS);
        let now = self.graph.events.len();
        if now != before {
            widen(&mut self.graph.own, before, now, self.graph.functions.len());
            widen(&mut self.graph.inclusive, before, now, self.graph.calls.len());
            widen(&mut self.graph.of_lines, before, now, self.graph.lines.len());
        }
    }

    fn add_totals(&mut self, totals: &[u64]) {
        if totals.is_empty() {
            return;
        }
        self.graph.totals.resize(self.graph.events.len(), 0);
        for (event, total) in self.events.iter().zip(totals) {
            if let Some(sum) = event.and_then(|event| self.graph.totals.get_mut(event)) {
                *sum = sum.saturating_add(*total);
            }
        }
    }

    fn finish(mut self) -> Graph {
        let has_totals = !self.graph.totals.is_empty();
        // Cachegrind writes a summary at the end of the file. Callgrind writes it before the costs,
        // where it proves completeness only if the costs add up to it.
        let has_summary = !self.summary.is_empty();
        self.part();
        let mut graph = self.graph;
        graph.losses.is_cut = !(has_totals || has_summary && is_summed(&graph));
        let events = graph.events.len();
        if let Some(&said) = graph.totals.first() {
            let own = graph.own.iter().step_by(events.max(1));
            let read = own.fold(0u64, |sum, cost| sum.saturating_add(*cost));
            graph.losses.mismatch = (read != said).then_some((read, said));
        }
        graph
    }
}

/// Adds the costs of a line to sums, by the events of its part.
#[inline]
fn add(sums: &mut [u64], events: &[Option<usize>], costs: &[u64]) {
    for (event, cost) in events.iter().zip(costs) {
        if let Some(sum) = event.and_then(|event| sums.get_mut(event)) {
            *sum = sum.saturating_add(*cost);
        }
    }
}

/// Whether the costs add up to the stated total.
fn is_summed(graph: &Graph) -> bool {
    let own = graph.own.iter().step_by(graph.events.len().max(1));
    graph.totals.first() == Some(&own.fold(0, |sum, cost| sum.saturating_add(*cost)))
}

/// Makes room for more events in each row.
fn widen(costs: &mut Vec<u64>, before: usize, now: usize, rows: usize) {
    let old = std::mem::replace(costs, vec![0; rows * now]);
    if before > 0 {
        for (row, old) in costs.chunks_exact_mut(now).zip(old.chunks_exact(before)) {
            row[..before].copy_from_slice(old);
        }
    }
}

/// Resolves a name, which can be an id.
fn name(value: &[u8], names: &mut Names, texts: &mut Texts, losses: &mut Losses) -> Option<u32> {
    let value = value.trim_ascii();
    let Some(inner) = value.strip_prefix(b"(") else { return Some(text(value, texts)) };
    let end = memchr::memchr(b')', inner)?;
    // A name can itself start with a parenthesis: `(below main)`.
    let Some(key) = number(&inner[..end]) else { return Some(text(value, texts)) };
    let rest = inner[end + 1..].trim_ascii();
    if rest.is_empty() {
        return Some(names.get(&key).copied().unwrap_or_else(|| {
            losses.names += 1;
            text(value, texts)
        }));
    }
    let number = text(rest, texts);
    names.insert(key, number);
    Some(number)
}

fn text(name: &[u8], texts: &mut Texts) -> u32 {
    match name {
        b"???" => 0,
        _ => texts.add(&String::from_utf8_lossy(&name[..name.len().min(LONGEST_NAME)])),
    }
}

/// A function name without its recursion level (`walk'2`).
fn without_level(name: &[u8]) -> &[u8] {
    let name = name.trim_ascii();
    match name.iter().rposition(|byte| !byte.is_ascii_digit()) {
        Some(at) if name[at] == b'\'' && at > 0 && at + 1 < name.len() => &name[..at],
        _ => name,
    }
}

/// The next word of a line.
#[inline]
fn word<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
    let line = &rest[start..];
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
    *rest = &line[end..];
    Some(&line[..end])
}

/// Parses a decimal number, or a hexadecimal one with `0x`.
#[inline]
fn number(text: &[u8]) -> Option<u64> {
    /// This many decimal digits always fit.
    const SAFE: usize = 19;
    let (digits, base) = match text.strip_prefix(b"0x") {
        Some(digits) => (digits, 16),
        None if (1..=SAFE).contains(&text.len()) => {
            return text.iter().try_fold(0u64, |sum, &byte| {
                let digit = byte.wrapping_sub(b'0');
                (digit < 10).then(|| sum * 10 + u64::from(digit))
            });
        }
        None => (text, 10),
    };
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, &byte| {
        let digit = char::from(byte).to_digit(base)?;
        sum.checked_mul(u64::from(base))?.checked_add(u64::from(digit))
    })
}

fn numbers(mut rest: &[u8]) -> Option<Vec<u64>> {
    let mut all = vec![];
    while let Some(word) = word(&mut rest) {
        all.push(number(word)?);
    }
    Some(all)
}

/// Parses a position, which can be relative to the previous one.
#[inline]
fn relative(text: &[u8], before: u64) -> Option<u64> {
    match text.split_first()? {
        (b'*', []) => Some(before),
        (b'+', rest) => Some(before.wrapping_add(number(rest)?)),
        (b'-', rest) => Some(before.wrapping_sub(number(rest)?)),
        _ => number(text),
    }
}
