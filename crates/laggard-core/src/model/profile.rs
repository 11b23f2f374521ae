//! `Profile`: samples with stack, time and thread, and the quality of the recording.
//!
//! Tables are vectors of small rows that refer to each other by index. Stacks form a tree: a
//! [`Node`] is a frame and the node of its caller, so that common prefixes are stored once.

use super::NONE;
use rustc_hash::FxHashMap;

/// A recording or another profile.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// All names and paths.
    pub texts: Texts,
    /// Programs and libraries.
    pub modules: Vec<Module>,
    /// Code locations.
    pub frames: Vec<Frame>,
    /// The tree of stacks.
    pub stacks: Vec<Node>,
    /// Threads.
    pub threads: Vec<Thread>,
    /// Events that were sampled.
    pub events: Vec<Event>,
    /// The samples, by time.
    pub samples: Vec<Sample>,
    /// The command and how it was recorded.
    pub about: About,
    /// Quality of the recording.
    pub quality: Quality,
}

/// String table without duplicates. Number 0 is the empty string.
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
    /// Adds a string if it is new, and returns its number.
    pub fn add(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.all.len() as u32;
        self.all.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    /// The string with this number; empty if out of range.
    pub fn get(&self, number: u32) -> &str {
        self.all.get(number as usize).map_or("", |text| text)
    }

    /// The number of a string, if it exists.
    pub fn find(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// All strings in order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.all.iter().map(|text| &**text)
    }
}

/// A program or library.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// Text: its path, or a name in brackets (`[vdso]`, `[kernel]`).
    pub path: u32,
    /// Text: its build ID in hexadecimal digits, or `xxh3:` and a hash of its content.
    pub id: u32,
}

/// A code location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Kind of code.
    pub kind: FrameKind,
    /// Number of its module, or `NONE`.
    pub module: u32,
    /// Address in the module's address space; 0 for Python. For a caller, the address of the call,
    /// not the return address.
    pub address: u64,
    /// Text: the function; empty if unknown or not yet symbolized.
    pub function: u32,
    /// Text: the source file; empty if unknown.
    pub file: u32,
    /// The source line; 0 if unknown.
    pub line: u32,
}

/// Kind of code of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum FrameKind {
    /// Native code.
    Native = 0,
    /// Native code inlined into its caller.
    Inlined = 1,
    /// A Python function.
    Python = 2,
    /// The kernel.
    Kernel = 3,
    /// Not code: a marker between frames, such as between a worker thread and the call that it
    /// works for.
    Mark = 4,
}

impl FrameKind {
    /// The kind with this number.
    pub fn from_number(number: u8) -> Option<FrameKind> {
        use FrameKind::*;
        [Native, Inlined, Python, Kernel, Mark].get(number as usize).copied()
    }
}

/// A frame and the node of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Node of the caller; `NONE` for the outermost frame. Always less than the node's own number.
    pub parent: u32,
    /// Number of the frame.
    pub frame: u32,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
    /// Text: its name.
    pub name: u32,
    /// Text: the name of its program.
    pub process: u32,
    /// Its CPU time; 0 if unknown.
    pub cpu_ns: u64,
}

/// A sampled event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its name: `task-clock`, `wall-clock`, `cycles`, …
    pub name: String,
    /// Unit of the weight of its samples.
    pub unit: Unit,
}

/// Unit of sample weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Unit {
    /// Number of occurrences.
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

    /// The word used in JSON.
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

/// One sample of a thread, or `count` identical ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Number of the thread.
    pub thread: u32,
    /// Number of the innermost node; `NONE` if the stack could not be read.
    pub stack: u32,
    /// Number of the event.
    pub event: u32,
    /// Number of samples: 1 in recordings, more for files that contain only sums.
    pub count: u64,
    /// Its weight, in the unit of the event.
    pub weight: u64,
    /// See [`state`].
    pub state: u32,
}

/// Bits of [`Sample::state`].
pub mod state {
    /// The stack is truncated: it ends before the program's entry point.
    pub const CUT: u32 = 1;
    /// The Python frames could not be read.
    pub const NO_PYTHON: u32 = 2;
    /// The thread was waiting.
    pub const WAITING: u32 = 4;
    /// The thread held the GIL.
    pub const GIL: u32 = 8;
    /// The frames above the marker belong to the caller, which was found by time.
    pub const JOINED: u32 = 16;
}

/// The command and how it was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The command line arguments.
    pub command: Vec<String>,
    /// Exit status of the program; 128 plus the number of a signal. `None` if it is still running.
    pub exit_code: Option<i32>,
    /// Start of the run, seconds since 1970.
    pub started_unix: f64,
    /// Wall time of the run, nanoseconds.
    pub duration_ns: u64,
    /// User CPU time of the run, nanoseconds; 0 if unknown.
    pub user_ns: u64,
    /// System CPU time of the run, nanoseconds; 0 if unknown.
    pub system_ns: u64,
    /// Requested samples per second.
    pub rate: f64,
    /// Sampling method: `sigtrap`, `overflow`, `timer`, `wall`, `perf`, …
    pub method: String,
    /// Name and version of the tool that wrote it.
    pub tool: String,
    /// Other facts: host, kernel, CPU, flags.
    pub facts: Vec<(String, String)>,
}

/// Quality of the samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quality {
    /// Lost samples: the buffer was full.
    pub lost: u64,
    /// Samples delayed because the thread had blocked signals.
    pub late: u64,
    /// Threads that could not be sampled.
    pub unsampled_threads: u64,
    /// Samples whose Python frames did not match the native frames.
    pub mismatched: u64,
    /// Samples with Python frames.
    pub with_python: u64,
    /// Nanoseconds spent in the signal handler.
    pub handler_ns: u64,
    /// Overhead of the recording, if measured: time with it divided by time without, and the
    /// confidence interval.
    pub overhead: Option<[f64; 3]>,
    /// Truncated stacks by the module they end in: text, count, reason (text).
    pub cut: Vec<(u32, u64, u32)>,
    /// Whether truncated stacks and lost samples are unknown, as in most files of other programs.
    pub is_unknown: bool,
    /// Processes that the program started; `None` if unknown.
    pub children: Option<Children>,
    /// Other warnings.
    pub warnings: Vec<String>,
}

/// Processes that a recorded program started, and the CPU time of those that could be sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Children {
    /// Whether they were to be sampled.
    pub are_followed: bool,
    /// Number of processes that could be sampled, without the program itself.
    pub followed: u64,
    /// Programs that could not be sampled: path (text), reason (text), number of starts.
    pub excluded: Vec<(u32, u32, u64)>,
    /// User CPU time of the program and the processes that could be sampled, nanoseconds; 0 if the
    /// program did not report it, because it was killed.
    pub user_ns: u64,
    /// The same in the kernel, where no samples are taken.
    pub system_ns: u64,
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

    /// Path of a frame's module; empty if it has none.
    pub fn module_path(&self, frame: &Frame) -> &str {
        match self.modules.get(frame.module as usize) {
            Some(module) => self.texts.get(module.path),
            None => "",
        }
    }
}

/// Adds modules, frames and stacks without duplicates.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    frames: FxHashMap<Frame, u32>,
    nodes: FxHashMap<Node, u32>,
    modules: FxHashMap<Module, u32>,
}

impl Interner {
    /// Adds a module if it is new, and returns its number.
    pub fn module(&mut self, profile: &mut Profile, module: Module) -> u32 {
        intern(&mut self.modules, &mut profile.modules, module)
    }

    /// Adds a frame if it is new, and returns its number.
    pub fn frame(&mut self, profile: &mut Profile, frame: Frame) -> u32 {
        intern(&mut self.frames, &mut profile.frames, frame)
    }

    /// Adds a node if it is new, and returns its number.
    pub fn node(&mut self, profile: &mut Profile, parent: u32, frame: u32) -> u32 {
        intern(&mut self.nodes, &mut profile.stacks, Node { parent, frame })
    }

    /// Adds a stack, given outermost frame first, and returns its number; `NONE` if it is empty.
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
