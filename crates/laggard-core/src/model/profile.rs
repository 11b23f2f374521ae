//! `Profile`: which stacks were seen, when, on which thread, and how well they could be read.
//!
//! Tables are vectors of small rows that point to each other by number. Stacks are a tree: a
//! [`Node`] is a frame and the node of its caller, so that equal beginnings are kept once.

use super::NONE;
use rustc_hash::FxHashMap;

/// Everything one recording saw.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// All names and paths.
    pub texts: Texts,
    /// Programs and libraries.
    pub modules: Vec<Module>,
    /// Places in code.
    pub frames: Vec<Frame>,
    /// The tree of stacks.
    pub stacks: Vec<Node>,
    /// Threads that were seen.
    pub threads: Vec<Thread>,
    /// What samples count.
    pub events: Vec<Event>,
    /// The samples, by time.
    pub samples: Vec<Sample>,
    /// What was run, and how.
    pub about: About,
    /// How well it went.
    pub quality: Quality,
}

/// Texts by number, each kept once. Number 0 is the empty text.
#[derive(Clone, Debug)]
pub struct Texts {
    all: Vec<Box<str>>,
    numbers: FxHashMap<Box<str>, u32>,
}

impl Default for Texts {
    fn default() -> Self {
        let mut texts = Texts { all: vec![], numbers: FxHashMap::default() };
        texts.add("");
        texts
    }
}

impl Texts {
    /// The number of a text, new or known.
    pub fn add(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.all.len() as u32;
        self.all.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    /// The text with this number; empty when there is none.
    pub fn get(&self, number: u32) -> &str {
        self.all.get(number as usize).map_or("", |text| text)
    }

    /// The number of a text, if it is known.
    pub fn find(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// All texts in order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.all.iter().map(|text| &**text)
    }
}

/// A program or library.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// Text: its path, or a name in brackets (`[vdso]`, `[kernel]`).
    pub path: u32,
    /// Text: its build-id in hexadecimal digits, or `xxh3:` and a hash of its content.
    pub id: u32,
}

/// A place in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// What kind of code.
    pub kind: FrameKind,
    /// Number of its module, or `NONE`.
    pub module: u32,
    /// Address as the module's own tables have it; 0 for Python. Of a caller, that of the call,
    /// not of the return.
    pub address: u64,
    /// Text: the function; empty while (or when) unknown.
    pub function: u32,
    /// Text: the source file; empty when unknown.
    pub file: u32,
    /// The source line; 0 when unknown.
    pub line: u32,
}

/// What kind of code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum FrameKind {
    /// Machine code.
    Native = 0,
    /// Machine code that the compiler put into its caller.
    Inlined = 1,
    /// A Python function.
    Python = 2,
    /// The kernel.
    Kernel = 3,
    /// No code: a remark between frames, such as the border between a worker thread and the call
    /// it works for.
    Mark = 4,
}

impl FrameKind {
    /// The kind with this number.
    pub fn from_number(number: u8) -> Option<FrameKind> {
        use FrameKind::*;
        [Native, Inlined, Python, Kernel, Mark].get(number as usize).copied()
    }
}

/// A frame and who called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The caller's node; `NONE` for the outermost frame. Always less than the node's own number.
    pub parent: u32,
    /// Number of the frame.
    pub frame: u32,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
    /// Text: its name.
    pub name: u32,
    /// Text: the name of its program.
    pub process: u32,
    /// CPU time it used, as far as known; 0 when not.
    pub cpu_ns: u64,
}

/// What samples count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its name: `task-clock`, `wall-clock`, `cycles`, …
    pub name: String,
    /// What the weight of its samples is.
    pub unit: Unit,
}

/// What weights of samples are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Unit {
    /// How often something happened.
    #[default]
    Count = 0,
    /// Nanoseconds.
    Nanos = 1,
    /// Bytes.
    Bytes = 2,
}

impl Unit {
    /// The unit with this number.
    pub fn from_number(number: u8) -> Option<Unit> {
        [Unit::Count, Unit::Nanos, Unit::Bytes].get(number as usize).copied()
    }

    /// As JSON has it.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Count => "count",
            Unit::Nanos => "ns",
            Unit::Bytes => "bytes",
        }
    }
}

impl Event {
    /// Whether the weight of its samples is nanoseconds.
    pub fn is_time(&self) -> bool {
        self.unit == Unit::Nanos
    }
}

/// One look at one thread, or as many as `count` says that saw the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Number of the thread.
    pub thread: u32,
    /// Number of the innermost node; `NONE` when nothing could be read.
    pub stack: u32,
    /// Number of the event.
    pub event: u32,
    /// Looks that it stands for: 1 in recordings, more where a file has sums only.
    pub count: u64,
    /// What it stands for, in the unit of the event.
    pub weight: u64,
    /// See [`state`].
    pub state: u32,
}

/// Bits of [`Sample::state`].
pub mod state {
    /// The stack ends before the program's first frame.
    pub const CUT: u32 = 1;
    /// The Python frames could not be read.
    pub const NO_PYTHON: u32 = 2;
    /// The thread was waiting.
    pub const WAITING: u32 = 4;
    /// The thread held the GIL.
    pub const GIL: u32 = 8;
    /// The frames above the mark are those of the caller, found by time.
    pub const JOINED: u32 = 16;
}

/// What was run, and how it was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The command, word by word.
    pub command: Vec<String>,
    /// Exit code of the program; a signal is 128 and its number. None while it runs.
    pub exit_code: Option<i32>,
    /// Start of the run, seconds since 1970.
    pub started_unix: f64,
    /// Wall time of the run, nanoseconds.
    pub duration_ns: u64,
    /// CPU time of the run, user and system, nanoseconds; 0 when not known.
    pub user_ns: u64,
    /// See `user_ns`.
    pub system_ns: u64,
    /// Samples asked for per second.
    pub rate: f64,
    /// What recorded it: `sigtrap`, `overflow`, `timer`, `wall`, `perf`, …, in words.
    pub method: String,
    /// The program that wrote it, with its version.
    pub tool: String,
    /// Other facts, for people: host, kernel, processor, flags.
    pub facts: Vec<(String, String)>,
}

/// How well samples could be taken and read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quality {
    /// Samples lost because nobody took them in time.
    pub lost: u64,
    /// Samples that came late because the thread had signals blocked.
    pub late: u64,
    /// Threads that could not be sampled.
    pub unsampled_threads: u64,
    /// Samples whose Python frames did not fit the native ones.
    pub mismatched: u64,
    /// Samples that had Python frames to fit.
    pub with_python: u64,
    /// Nanoseconds spent taking samples, in the program.
    pub handler_ns: u64,
    /// Cost of the recording: time with it over time without, when it was measured, with the
    /// interval around it.
    pub overhead: Option<[f64; 3]>,
    /// Stacks that end early, by the module they end in: text, count, reason (text).
    pub cut: Vec<(u32, u64, u32)>,
    /// Whether nobody says which stacks are whole and what was lost: files of other programs mostly do
    /// not.
    pub is_unknown: bool,
    /// Whatever else the reader should know.
    pub warnings: Vec<String>,
}

impl Profile {
    /// The frames of a stack, innermost first.
    pub fn frames_of(&self, stack: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = stack;
        std::iter::from_fn(move || {
            let node = self.stacks.get(at as usize)?;
            at = node.parent;
            Some(node.frame)
        })
    }

    /// The path of a frame's module; empty when it has none.
    pub fn module_path(&self, frame: &Frame) -> &str {
        match self.modules.get(frame.module as usize) {
            Some(module) => self.texts.get(module.path),
            None => "",
        }
    }
}

/// Adds frames and stacks, each once.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    frames: FxHashMap<Frame, u32>,
    nodes: FxHashMap<Node, u32>,
    modules: FxHashMap<Module, u32>,
}

impl Interner {
    /// The number of a module, new or known.
    pub fn module(&mut self, profile: &mut Profile, module: Module) -> u32 {
        intern(&mut self.modules, &mut profile.modules, module)
    }

    /// The number of a frame, new or known.
    pub fn frame(&mut self, profile: &mut Profile, frame: Frame) -> u32 {
        intern(&mut self.frames, &mut profile.frames, frame)
    }

    /// The number of a node, new or known.
    pub fn node(&mut self, profile: &mut Profile, parent: u32, frame: u32) -> u32 {
        intern(&mut self.nodes, &mut profile.stacks, Node { parent, frame })
    }

    /// The number of a stack given outermost frame first; `NONE` when it is empty.
    pub fn stack(&mut self, profile: &mut Profile, frames: impl Iterator<Item = u32>) -> u32 {
        frames.fold(NONE, |parent, frame| self.node(profile, parent, frame))
    }
}

fn intern<T: Clone + Eq + std::hash::Hash>(
    numbers: &mut FxHashMap<T, u32>,
    all: &mut Vec<T>,
    row: T,
) -> u32 {
    *numbers.entry(row).or_insert_with_key(|row| {
        all.push(row.clone());
        all.len() as u32 - 1
    })
}
