//! `Calls`: every call across a library's border, inside it or into the kernel, counted, and timed
//! or weighed in instructions.

use super::profile::Profile;

/// What one run called.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Names, modules, frames and threads; its samples are the calls whose whole stack was kept,
    /// their event the number of the function and their weight the number of calls they stand
    /// for.
    pub profile: Profile,
    /// Functions that were called or could have been.
    pub functions: Vec<Function>,
    /// Calls by function, place and thread.
    pub rows: Vec<CallRow>,
    /// Values of arguments, where they were asked for.
    pub arguments: Vec<ArgumentRow>,
    /// Calls that said that they failed, where that is known: system calls.
    pub failures: Vec<FailureRow>,
    /// Instructions of functions themselves, where instructions were counted.
    pub instructions: Vec<InstructionRow>,
    /// How well it went.
    pub quality: CallQuality,
}

/// A function that is traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Text: its name as the libraries bind it.
    pub name: u32,
    /// Number of the module it is in.
    pub module: u32,
}

/// Calls of one function from one place on one thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallRow {
    /// Number of the function.
    pub function: u32,
    /// Number of the frame that holds the call.
    pub caller: u32,
    /// Number of the thread.
    pub thread: u32,
    /// Calls begun.
    pub count: u64,
    /// Calls that did not return: left by an exception or a jump, or still running at the end.
    pub unfinished: u64,
    /// Time in calls that returned.
    pub total_ns: u64,
    /// The same without traced calls below.
    pub self_ns: u64,
    /// Shortest.
    pub min_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// How long calls took: lower bound of a class in nanoseconds, and its count; by time.
    pub histogram: Vec<(u64, u64)>,
    /// Instructions in these calls and whatever they called, where instructions were counted. Those
    /// of a function that calls itself are in the outer calls too.
    pub instructions: Option<u64>,
}

/// How often a function was called with these first integer arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentRow {
    /// Number of the function.
    pub function: u32,
    /// The values.
    pub values: Vec<i64>,
    /// Calls.
    pub count: u64,
    /// Time in them.
    pub total_ns: u64,
}

/// How often calls of a function failed in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureRow {
    /// Number of the function.
    pub function: u32,
    /// Number of the thread.
    pub thread: u32,
    /// Text: how, such as `ENOENT`.
    pub error: u32,
    /// Calls.
    pub count: u64,
}

/// What a function did itself, without what it called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionRow {
    /// Number of the function.
    pub function: u32,
    /// Instructions.
    pub own: u64,
}

/// How well tracing went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallQuality {
    /// Calls that were not timed because traced calls were nested too deep; they are counted.
    pub too_deep: u64,
    /// Calls not counted by place because a table was full; they are counted by function.
    pub table_full: u64,
    /// Functions bound and not wrapped, with the reason.
    pub not_wrapped: Vec<(String, String)>,
    /// What one traced call costs, measured at the start of the run.
    pub cost_ns: f64,
}
