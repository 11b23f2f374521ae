//! What calls across a language border cost: every binding, every category, both ways of building,
//! launch by launch, as it was measured.

use super::timings::{Batch, Counter};
use crate::stats::ratio::Interval;

/// One run of the suite.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ffi {
    /// The command line that measured it.
    pub command: Vec<String>,
    /// Who measured it, with its version.
    pub tool: String,
    /// When, in seconds since 1970.
    pub started_unix: f64,
    /// The machine and its compilers: name and value.
    pub facts: Vec<(String, String)>,
    /// Interpreters, in the order asked for.
    pub pythons: Vec<Python>,
    /// Names of ways to build, the first is the one that others are held against.
    pub profiles: Vec<Profile>,
    /// Bindings, the first is the floor; and the user's own functions.
    pub bindings: Vec<Binding>,
    /// What was built, or found in the cache.
    pub builds: Vec<Build>,
    /// Bindings that are left out, and why.
    pub skipped: Vec<Skipped>,
    /// What is measured.
    pub categories: Vec<Category>,
    /// What was measured.
    pub cells: Vec<Cell>,
    /// What profiling costs, and how good its stacks are.
    pub overheads: Vec<Overhead>,
    /// What went wrong and was not fatal.
    pub warnings: Vec<String>,
}

/// An interpreter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Python {
    /// What it is called in tables, as `3.11`.
    pub name: String,
    /// The program.
    pub path: String,
    /// Version, implementation and packages: name and value.
    pub facts: Vec<(String, String)>,
}

/// A way to build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// `fast` or `instrumented`.
    pub name: String,
    /// Flags of the C and C++ compilers.
    pub c_flags: String,
    /// What cargo is told.
    pub rust_flags: String,
}

/// A way to call C from Python.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// As `pybind11`.
    pub name: String,
    /// In a sentence.
    pub about: String,
    /// Whether it is a function that the user brought.
    pub is_users: bool,
}

/// A binding, built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Build {
    /// Place in [`Ffi::bindings`].
    pub binding: usize,
    /// Place in [`Ffi::pythons`].
    pub python: usize,
    /// Place in [`Ffi::profiles`].
    pub profile: usize,
    /// Version of the package that makes it; empty where there is none.
    pub version: String,
    /// The exact commands, in order.
    pub commands: Vec<String>,
    /// The directory it is in.
    pub directory: String,
    /// Whether it was there already.
    pub is_cached: bool,
    /// Its libraries, looked at after building.
    pub libraries: Vec<Library>,
}

/// What a look at a library tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    /// Its file's name.
    pub name: String,
    /// Functions that set up a frame pointer, and all whose code could be read.
    pub frame_setups: (u64, u64),
    /// The same of functions that call others.
    pub of_callers: (u64, u64),
    /// How much debug info it has, in words.
    pub debug_info: String,
}

/// A binding that is not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Its name.
    pub binding: String,
    /// Place in [`Ffi::pythons`].
    pub python: usize,
    /// The way to build, where it is only that one.
    pub profile: Option<usize>,
    /// The reason.
    pub why: String,
    /// What helps; may be empty.
    pub hint: String,
}

/// Something that is measured through every binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Category {
    /// As `noop`.
    pub name: String,
    /// As `no-op and returns`.
    pub group: String,
    /// In a sentence.
    pub about: String,
    /// Calls across the border in one statement.
    pub calls: u64,
    /// Elements that the call works on, where the same call is measured with several numbers of them.
    pub size: Option<u64>,
}

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// Nobody: the loop alone. It is taken off all others.
    Loop,
    /// A function of Python that does nothing: the null control.
    Null,
    /// C itself, in a loop of its own.
    C,
    /// A binding, by its place in [`Ffi::bindings`].
    Binding(usize),
}

/// What was measured of one caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Place in [`Ffi::categories`].
    pub category: usize,
    /// Place in [`Ffi::pythons`].
    pub python: usize,
    /// Place in [`Ffi::profiles`].
    pub profile: usize,
    /// Who calls.
    pub who: Who,
    /// The statement.
    pub statement: String,
    /// Calls across the border in one statement.
    pub calls: u64,
    /// Where it does not do quite the same as others.
    pub note: String,
    /// Launch by launch.
    pub launches: Vec<Launch>,
    /// What else was counted, for a statement.
    pub counters: Vec<Counter>,
    /// Why it was not measured.
    pub trouble: Option<String>,
}

/// What was measured in one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// The first call of all, in nanoseconds.
    pub first_ns: f64,
    /// Every batch after that.
    pub batches: Vec<Batch>,
}

/// What it costs to profile a build in one way, and what comes of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overhead {
    /// Place in [`Ffi::profiles`].
    pub profile: usize,
    /// `agent`, `fp`, `dwarf` or `lbr`.
    pub method: String,
    /// What was run.
    pub workload: String,
    /// CPU time of a call with profiling over that without; none when it cannot be done here.
    pub ratio: Option<Interval>,
    /// CPU time of whole runs, of the program and its recorder, over that of the program alone.
    pub whole: f64,
    /// Pairs of runs.
    pub n: usize,
    /// Samples of one run.
    pub samples: u64,
    /// The share of stacks that reach the program's start.
    pub complete: Option<f64>,
    /// Bytes that were recorded, where there is a file.
    pub bytes: Option<u64>,
    /// Why it cannot be done here.
    pub why_not: String,
}
