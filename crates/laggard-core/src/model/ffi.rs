//! `Ffi`: measurements of calls across a language boundary, by binding, category, build profile and
//! process launch.

use super::timings::{Batch, Counter};
use crate::stats::ratio::Interval;

/// One run of the suite.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ffi {
    /// The command line of the run.
    pub command: Vec<String>,
    /// Name and version of the tool.
    pub tool: String,
    /// Start time, in seconds since 1970.
    pub started_unix: f64,
    /// Facts about the machine and compilers: name and value.
    pub facts: Vec<(String, String)>,
    /// Interpreters, in the requested order.
    pub pythons: Vec<Python>,
    /// Build profiles; the first is the reference.
    pub profiles: Vec<Profile>,
    /// Bindings, of which the first is the floor, and the user's own functions.
    pub bindings: Vec<Binding>,
    /// Builds, new or cached.
    pub builds: Vec<Build>,
    /// Skipped bindings, with reasons.
    pub skipped: Vec<Skipped>,
    /// Categories of calls.
    pub categories: Vec<Category>,
    /// Measurements.
    pub cells: Vec<Cell>,
    /// Profiling overhead and stack quality.
    pub overheads: Vec<Overhead>,
    /// Problems that were not fatal.
    pub warnings: Vec<String>,
}

/// An interpreter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Python {
    /// Name in tables, such as `3.11`.
    pub name: String,
    /// Path of the interpreter.
    pub path: String,
    /// Version, implementation and packages: name and value.
    pub facts: Vec<(String, String)>,
}

/// A build profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// `fast` or `instrumented`.
    pub name: String,
    /// Flags of the C and C++ compilers.
    pub c_flags: String,
    /// Settings of the cargo profile.
    pub rust_flags: String,
}

/// A binding, or a function of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// Such as `pybind11`.
    pub name: String,
    /// Description.
    pub about: String,
    /// Whether it is the user's own function.
    pub is_users: bool,
}

/// A built binding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Build {
    /// Place in [`Ffi::bindings`].
    pub binding: usize,
    /// Place in [`Ffi::pythons`].
    pub python: usize,
    /// Place in [`Ffi::profiles`].
    pub profile: usize,
    /// Version of the binding's package; empty if it has none.
    pub version: String,
    /// The build commands, in order.
    pub commands: Vec<String>,
    /// The build directory.
    pub directory: String,
    /// Whether it was in the cache.
    pub is_cached: bool,
    /// Its libraries.
    pub libraries: Vec<Library>,
}

/// Facts about a built library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    /// File name.
    pub name: String,
    /// Functions that set up a frame pointer, and all disassembled functions.
    pub frame_setups: (u64, u64),
    /// The same for non-leaf functions.
    pub of_callers: (u64, u64),
    /// Level of debug info, in words.
    pub debug_info: String,
}

/// A binding that was not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Its name.
    pub binding: String,
    /// Place in [`Ffi::pythons`].
    pub python: usize,
    /// The build profile, if only one was skipped.
    pub profile: Option<usize>,
    /// The reason.
    pub why: String,
    /// How to fix it; may be empty.
    pub hint: String,
}

/// A kind of call that is measured with every binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Category {
    /// Such as `noop`.
    pub name: String,
    /// Group of related categories, such as `no-op and returns`.
    pub group: String,
    /// Description.
    pub about: String,
    /// Calls across the language boundary per statement.
    pub calls: u64,
    /// Number of elements, if the call is measured with several array sizes.
    pub size: Option<u64>,
}

/// The caller of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// The empty loop, whose time is subtracted from all others.
    Loop,
    /// The null control: an empty Python function.
    Null,
    /// C, in its own loop.
    C,
    /// A binding, as index into [`Ffi::bindings`].
    Binding(usize),
}

/// Measurements of one caller in one category.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Place in [`Ffi::categories`].
    pub category: usize,
    /// Place in [`Ffi::pythons`].
    pub python: usize,
    /// Place in [`Ffi::profiles`].
    pub profile: usize,
    /// The caller.
    pub who: Who,
    /// The statement.
    pub statement: String,
    /// Calls across the language boundary per statement.
    pub calls: u64,
    /// How its work differs from that of other bindings; may be empty.
    pub note: String,
    /// Process launches.
    pub launches: Vec<Launch>,
    /// Counters per statement.
    pub counters: Vec<Counter>,
    /// Why it was not measured.
    pub trouble: Option<String>,
}

/// Measurements of one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// The very first call, in nanoseconds.
    pub first_ns: f64,
    /// All batches after it.
    pub batches: Vec<Batch>,
}

/// Overhead and result of profiling a build with one method.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overhead {
    /// Place in [`Ffi::profiles`].
    pub profile: usize,
    /// `agent`, `fp`, `dwarf` or `lbr`.
    pub method: String,
    /// The profiled workload.
    pub workload: String,
    /// CPU time per call with profiling divided by that without; `None` if not available.
    pub ratio: Option<Interval>,
    /// CPU time of whole runs including the recorder, divided by that of the program alone.
    pub whole: f64,
    /// Pairs of runs.
    pub n: usize,
    /// Samples per run.
    pub samples: u64,
    /// Share of stacks that reach the program's entry point.
    pub complete: Option<f64>,
    /// Size of the recording, if there is a file.
    pub bytes: Option<u64>,
    /// Why the method is not available.
    pub why_not: String,
}
