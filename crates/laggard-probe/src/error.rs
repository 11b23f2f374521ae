//! Why a program could not be measured.

use crate::bench::{Differ, Trouble};
use crate::program::Refusal;
use crate::sample::here;
use std::io;
use std::path::PathBuf;

/// Why a program could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program is of a kind that cannot be.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// This process is one that cannot be, or not now.
    #[error(transparent)]
    RefusedHere(#[from] here::Refusal),
    /// The driver of a recording does not answer.
    #[error("the driver that was to keep the samples does not answer")]
    Driver(#[source] io::Error),
    /// The driver of a recording says why it failed.
    #[error("the driver that was to keep the samples failed: {0}")]
    DriverFailed(String),
    /// The agent could not be put on disk.
    #[error("cannot unpack the agent")]
    Unpack(#[source] io::Error),
    /// Too many or too long patterns.
    #[error("the patterns for {0} are too long together")]
    Patterns(&'static str),
    /// More arguments than there are registers for.
    #[error("at most {most} arguments can be kept")]
    Arguments {
        /// How many can.
        most: usize,
    },
    /// There is no room for the shared memory.
    #[error("cannot make the shared file that the agent writes to")]
    Shared(#[source] io::Error),
    /// The operating system did not start it.
    #[error("cannot start {}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Its answer.
        source: io::Error,
    },
    /// It ran, and the agent was never heard of.
    #[error("{} ran without the agent: nothing was recorded", program.display())]
    NotLoaded {
        /// The program.
        program: PathBuf,
    },
    /// perf is needed and not there.
    #[error("perf is not installed, or not in PATH")]
    NoPerf,
    /// The system does not let perf do it.
    #[error("the system refuses perf (perf_event_paranoid is {paranoid}): {said}")]
    PerfRefused {
        /// perf's words.
        said: String,
        /// The setting.
        paranoid: String,
    },
    /// An event that perf does not know, or that cannot be counted here.
    #[error("perf cannot count {events} here: {said}")]
    UnknownEvent {
        /// The events asked for.
        events: String,
        /// perf's words.
        said: String,
    },
    /// The processor keeps no branch records, or this machine does not show them.
    #[error("there are no branch records here to find callers by: {said}")]
    NoBranchRecords {
        /// perf's words.
        said: String,
    },
    /// No such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// Its number.
        pid: u32,
    },
    /// A process of somebody else.
    #[error("process {pid} belongs to another user")]
    NotOurs {
        /// Its number.
        pid: u32,
    },
    /// perf failed in some other way.
    #[error("perf failed: {said}")]
    PerfFailed {
        /// perf's words.
        said: String,
    },
    /// The memory of a process may not be read.
    #[error("the memory of process {pid} may not be read: {why}")]
    Unreadable {
        /// Its number.
        pid: u32,
        /// What stands in the way.
        why: String,
        /// What to type.
        help: Option<String>,
    },
    /// A Python whose structures are not known.
    #[error("process {pid} runs a Python {version}: known are CPython 3.9 to 3.14")]
    UnknownPython {
        /// Its number.
        pid: u32,
        /// The version, as far as known.
        version: String,
    },
    /// The user has ended it.
    #[error("interrupted")]
    Interrupted,
    /// A program that does the work is not there.
    #[error("there is no {tool} here: install the package {package}")]
    NoTool {
        /// The program.
        tool: &'static str,
        /// What has it, under the same name in most distributions.
        package: &'static str,
    },
    /// This machine or this user has no such means.
    #[error("{what} cannot be used here: {why}")]
    Unavailable {
        /// What.
        what: &'static str,
        /// The reason.
        why: String,
    },
    /// The program has an instruction that the simulated processor does not.
    #[error(
        "valgrind does not know an instruction of {} ({bytes}): it may be built for a newer processor",
        program.display()
    )]
    Instruction {
        /// The program.
        program: PathBuf,
        /// The instruction's bytes.
        bytes: String,
    },
    /// A tool ran and left nothing to read.
    #[error("{tool} counted nothing of {}: {why}", program.display())]
    NoResult {
        /// The tool.
        tool: &'static str,
        /// The program.
        program: PathBuf,
        /// What it said.
        why: String,
    },
    /// What a tool left cannot be read.
    #[error("cannot read what {tool} left")]
    Result {
        /// The tool.
        tool: &'static str,
        /// Why not.
        source: laggard_formats::Error,
    },
    /// No function fits the patterns.
    #[error("{0}")]
    Nothing(String),
    /// More functions than can be watched one by one.
    #[error("{found} functions fit, and at most {most} can be counted by uprobes")]
    TooMany {
        /// How many fit.
        found: usize,
        /// How many can be.
        most: usize,
    },
    /// A side of a bench cannot be measured.
    #[error("side {side} {trouble}")]
    Side {
        /// What the side is called.
        side: String,
        /// Why not.
        trouble: Trouble,
    },
    /// A case of a bench cannot be measured.
    #[error("{}case {case}: {error}", if *of > 1 { format!("none of {of} cases can be measured; ") } else { String::new() })]
    Case {
        /// How many there are, of which none can.
        of: usize,
        /// What the case is called.
        case: String,
        /// Why not.
        error: Box<Error>,
    },
    /// A side says that it cannot do the only case there is, or none of them.
    #[error("{} cannot be measured: {why}", if case.is_empty() { "this".into() } else { format!("case {case}") })]
    Cannot {
        /// What the first case is called; empty when it has no name.
        case: String,
        /// What the side says.
        why: String,
    },
    /// Two sides of a bench do not do the same.
    #[error(transparent)]
    Differ(Box<Differ>),
}
