//! Errors that keep a program from being measured.

use crate::bench::{Differ, Trouble};
use crate::program::Refusal;
use crate::sample::here;
use std::io;
use std::path::PathBuf;

/// An error that keeps a program from being measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kind of program cannot be measured.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// This process cannot record itself, or not at this time.
    #[error(transparent)]
    RefusedHere(#[from] here::Refusal),
    /// The driver of a recording does not respond.
    #[error("the driver process that collects the samples does not respond")]
    Driver(#[source] io::Error),
    /// The driver of a recording reported an error.
    #[error("the driver process that collects the samples failed: {0}")]
    DriverFailed(String),
    /// The agent could not be written to disk.
    #[error("cannot write the agent library to disk")]
    Unpack(#[source] io::Error),
    /// The patterns do not fit into the agent's buffer.
    #[error("the patterns for {0} exceed the agent's total length limit")]
    Patterns(&'static str),
    /// More arguments than argument registers.
    #[error("at most {most} arguments of a call can be recorded")]
    Arguments {
        /// Maximum number of arguments.
        most: usize,
    },
    /// The shared memory file could not be created.
    #[error("cannot create the shared memory file for the agent")]
    Shared(#[source] io::Error),
    /// The operating system did not start the program.
    #[error("cannot start {}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The program ran, but the agent never reported.
    #[error("{} ran, but the agent was not loaded: nothing was recorded", program.display())]
    NotLoaded {
        /// The program.
        program: PathBuf,
    },
    /// perf is required and missing.
    #[error("perf is not installed or not in PATH")]
    NoPerf,
    /// The kernel denies perf access.
    #[error("the kernel denies access to perf (perf_event_paranoid is {paranoid}): {said}")]
    PerfRefused {
        /// perf's message.
        said: String,
        /// The value of `perf_event_paranoid`.
        paranoid: String,
    },
    /// perf does not know the event, or this machine cannot count it.
    #[error("perf cannot count {events} on this machine: {said}")]
    UnknownEvent {
        /// The requested events.
        events: String,
        /// perf's message.
        said: String,
    },
    /// The CPU has no LBR, or this machine does not expose it.
    #[error("LBR call stacks are not supported on this machine: {said}")]
    NoBranchRecords {
        /// perf's message.
        said: String,
    },
    /// The process does not exist.
    #[error("process {pid} does not exist")]
    NoProcess {
        /// Process ID.
        pid: u32,
    },
    /// The process belongs to another user.
    #[error("process {pid} belongs to another user")]
    NotOurs {
        /// Process ID.
        pid: u32,
    },
    /// perf failed for another reason.
    #[error("perf failed: {said}")]
    PerfFailed {
        /// perf's message.
        said: String,
    },
    /// The memory of the process cannot be read.
    #[error("cannot read the memory of process {pid}: {why}")]
    Unreadable {
        /// Process ID.
        pid: u32,
        /// The reason.
        why: String,
        /// A command that helps.
        help: Option<String>,
    },
    /// The data structures of this Python version are unknown.
    #[error(
        "process {pid} runs Python {version}: only CPython 3.9 to 3.14 with the GIL is supported"
    )]
    UnknownPython {
        /// Process ID.
        pid: u32,
        /// The version, as far as known.
        version: String,
    },
    /// The user interrupted the measurement.
    #[error("interrupted")]
    Interrupted,
    /// A required program is missing.
    #[error("{tool} is not installed: install the package {package}")]
    NoTool {
        /// The program.
        tool: &'static str,
        /// The package that contains it, which has the same name in most distributions.
        package: &'static str,
    },
    /// A mechanism is unavailable to this machine or this user.
    #[error("cannot use {what}: {why}")]
    Unavailable {
        /// The mechanism.
        what: &'static str,
        /// The reason.
        why: String,
    },
    /// The program contains an instruction that valgrind cannot decode.
    #[error(
        "valgrind cannot decode an instruction of {} ({bytes}): it may be built for a newer CPU",
        program.display()
    )]
    Instruction {
        /// The program.
        program: PathBuf,
        /// The instruction's bytes.
        bytes: String,
    },
    /// A tool ran but wrote no results.
    #[error("{tool} wrote no counts for {}: {why}", program.display())]
    NoResult {
        /// The tool.
        tool: &'static str,
        /// The program.
        program: PathBuf,
        /// The tool's message.
        why: String,
    },
    /// The output of a tool cannot be read.
    #[error("cannot read the output of {tool}")]
    Result {
        /// The tool.
        tool: &'static str,
        /// The read error.
        source: laggard_formats::Error,
    },
    /// The request matches nothing that can be measured.
    #[error("{0}")]
    Nothing(String),
    /// More functions match than uprobes can be set on.
    #[error("{found} functions match, but at most {most} can be counted with uprobes")]
    TooMany {
        /// Number of matching functions.
        found: usize,
        /// Maximum number of functions.
        most: usize,
    },
    /// A side of a benchmark cannot be measured.
    #[error("side {side} {trouble}")]
    Side {
        /// Name of the side.
        side: String,
        /// The reason.
        trouble: Trouble,
    },
    /// A case of a benchmark cannot be measured.
    #[error("{}case {case}: {error}", if *of > 1 { format!("none of {of} cases could be measured; for example, ") } else { String::new() })]
    Case {
        /// Number of cases, all of which failed.
        of: usize,
        /// Name of the case.
        case: String,
        /// The reason.
        error: Box<Error>,
    },
    /// A side reported that it does not support the only case, or any of the cases.
    #[error("{} cannot be measured: {why}", if case.is_empty() { "the benchmark".into() } else { format!("case {case}") })]
    Cannot {
        /// Name of the first case; empty if it has no name.
        case: String,
        /// The reason that the side reported.
        why: String,
    },
    /// Two sides of a benchmark return different results.
    #[error(transparent)]
    Differ(Box<Differ>),
}
