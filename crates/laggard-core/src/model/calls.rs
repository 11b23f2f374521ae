//! `Calls`: exact counts of calls into a library, inside it or into the kernel, with times or
//! instruction counts.

use super::profile::Profile;

/// A call trace.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Names, modules, frames and threads. Its samples are calls with complete stacks: the event is
    /// the function number, the weight the number of calls.
    pub profile: Profile,
    /// Traced functions, called or not.
    pub functions: Vec<Function>,
    /// Calls by function, call site and thread.
    pub rows: Vec<CallRow>,
    /// Argument values, if requested.
    pub arguments: Vec<ArgumentRow>,
    /// Failed calls; known only for system calls.
    pub failures: Vec<FailureRow>,
    /// Self instructions of functions, if instructions were counted.
    pub instructions: Vec<InstructionRow>,
    /// Quality of the call trace.
    pub quality: CallQuality,
}

/// A traced function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Text: its symbol name.
    pub name: u32,
    /// Number of its module.
    pub module: u32,
}

/// Calls of one function from one call site on one thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallRow {
    /// Number of the function.
    pub function: u32,
    /// Number of the calling frame.
    pub caller: u32,
    /// Number of the thread.
    pub thread: u32,
    /// Calls started.
    pub count: u64,
    /// Calls that did not return: left by an exception or longjmp, or still running at the end.
    pub unfinished: u64,
    /// Time in calls that returned.
    pub total_ns: u64,
    /// Self time: without nested traced calls.
    pub self_ns: u64,
    /// Shortest call.
    pub min_ns: u64,
    /// Longest call.
    pub max_ns: u64,
    /// Histogram of durations: lower bound of a bin in nanoseconds and its count, ascending.
    pub histogram: Vec<(u64, u64)>,
    /// Instructions including callees, if instructions were counted. Recursive calls are also
    /// included in their outer calls.
    pub instructions: Option<u64>,
}

/// Calls of a function with these leading integer arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentRow {
    /// Number of the function.
    pub function: u32,
    /// Argument values.
    pub values: Vec<i64>,
    /// Calls.
    pub count: u64,
    /// Total time of these calls.
    pub total_ns: u64,
}

/// Failed calls of a function with one error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureRow {
    /// Number of the function.
    pub function: u32,
    /// Number of the thread.
    pub thread: u32,
    /// Text: the error, such as `ENOENT`.
    pub error: u32,
    /// Calls.
    pub count: u64,
}

/// Self instructions of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionRow {
    /// Number of the function.
    pub function: u32,
    /// Instructions.
    pub own: u64,
}

/// Quality of a call trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallQuality {
    /// Calls that were counted but not timed, because traced calls were nested too deeply.
    pub too_deep: u64,
    /// Calls counted by function but not by call site, because a table was full.
    pub table_full: u64,
    /// Functions that could not be traced, with the reason.
    pub not_wrapped: Vec<(String, String)>,
    /// Overhead of a traced call, measured at the start of the run.
    pub cost_ns: f64,
}
