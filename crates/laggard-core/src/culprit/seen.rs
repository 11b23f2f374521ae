//! Evidence for the judges: observations of one side, per call.

use super::{ModuleBuild, Role, Spot};
use crate::divergence::Stacks;
use crate::model::call_counts::CallCounts;
use crate::model::code::Mix;
use crate::model::counts::Simulated;
use crate::stats::growth::Growth;
use serde::{Deserialize, Serialize};

/// The two sides of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The reference side.
    pub a: &'a Seen,
    /// The side whose lag is explained.
    pub b: &'a Seen,
}

/// Observations of one side, per call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// Wall time, in nanoseconds.
    pub wall_ns: f64,
    /// User CPU time of all threads.
    pub user_ns: f64,
    /// System CPU time of all threads.
    pub system_ns: f64,
    /// Page faults.
    pub faults: f64,
    /// Time in which other programs used the CPU of the main thread. It is not part of `wall_ns`.
    pub queued_ns: f64,
    /// Number of times a thread waited.
    pub waits: f64,
    /// Threads of the process.
    pub threads: u32,
    /// Number of rounds measured.
    pub rounds: u64,
    /// User CPU time by function; adds up to `user_ns`.
    pub work: Vec<Work>,
    /// Hottest call path: frame labels from the statement inwards.
    pub path: Vec<String>,
    /// Calls across library boundaries, if traced.
    pub calls: Option<Vec<Called>>,
    /// Instructions and misses, if counted.
    pub counted: Option<Simulated>,
    /// Library and name of functions in the libraries that do computation: alternatives that
    /// could have run.
    pub available: Vec<(String, String)>,
    /// Compiler and options of the programs and libraries with the most samples.
    pub builds: Vec<ModuleBuild>,
    /// The stacks of the samples; [`crate::divergence::Spent::work`] is an index in `work`.
    pub stacks: Stacks,
    /// Exact numbers of calls of Python and C functions, if counted.
    pub call_counts: Option<CallCounts>,
    /// How the time grows with a parameter, if it was measured with several values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
    /// Where page faults happen, if sampled.
    pub fault_spots: Vec<Spot>,
    /// Where threads wait, if sampled.
    pub wait_spots: Vec<Spot>,
    /// Bytes that system calls read and write, if counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io: Option<Io>,
    /// The statement or command of the side.
    pub runs: String,
    /// When the side was measured, seconds since 1970; 0 if unknown.
    pub measured_unix: f64,
}

/// System calls that read or write, of files and sockets, and the bytes that they transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Io {
    /// Calls that read.
    pub reads: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Calls that write.
    pub writes: f64,
    /// Bytes written.
    pub written_bytes: f64,
}

impl Io {
    /// The weighted sum of counts, divided by `calls`.
    pub fn sum(counts: &[(Io, f64)], calls: u64) -> Io {
        let each = |of: fn(&Io) -> f64| {
            let sum: f64 = counts.iter().map(|(io, weight)| of(io) * weight).sum();
            // Less than a call in total: the worker's own calls vary a little.
            if sum < 0.5 { 0.0 } else { sum / calls.max(1) as f64 }
        };
        Io {
            reads: each(|io| io.reads),
            read_bytes: each(|io| io.read_bytes),
            writes: each(|io| io.writes),
            written_bytes: each(|io| io.written_bytes),
        }
    }
}

/// Time in one function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// Its name.
    pub name: String,
    /// The file name of its program or library.
    pub library: String,
    /// Its role.
    pub role: Role,
    /// Its source file and line; empty if unknown.
    pub place: String,
    /// Label of the nearest caller with another role.
    pub caller: String,
    /// Name of the direct caller.
    pub parent: String,
    /// CPU time, in nanoseconds per call.
    pub ns: f64,
    /// Number of samples.
    pub samples: u64,
    /// Executed instructions, weighted by samples; `None` if the code could not be disassembled.
    pub mix: Option<Mix>,
    /// Counts of a simulator.
    pub counted: Option<Simulated>,
}

impl Work {
    /// The function with its source line, or with its library if the line is unknown.
    pub fn at(&self) -> String {
        match self.place.as_str() {
            "" => format!("{} ({})", self.name, self.library),
            place => format!("{}, {place}", self.name),
        }
    }
}

/// Calls to one function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Called {
    /// The function.
    pub name: String,
    /// The file name of its library.
    pub library: String,
    /// Number of calls.
    pub count: f64,
    /// Total time in these calls, in nanoseconds.
    pub ns: f64,
}

impl Called {
    /// Whether the callee is application code, not a system library or the interpreter.
    pub(super) fn is_crossing(&self) -> bool {
        const SYSTEM: [&str; 10] = [
            "libc.so",
            "libm.so",
            "libpthread",
            "libdl.so",
            "ld-linux",
            "libgcc_s",
            "libstdc++",
            "libpython",
            "python",
            "libffi",
        ];
        !SYSTEM.iter().any(|system| self.library.starts_with(system))
    }
}

/// CPU time over wall time below this counts as one busy thread: rounding and background threads can
/// exceed 1.
pub(super) const SURELY_PARALLEL: f64 = 1.15;

impl Seen {
    /// Mean number of busy threads; 1 for single-threaded code.
    pub fn parallelism(&self) -> f64 {
        let busy = self.cpu_ns() / self.wall_ns.max(1.0);
        if busy < SURELY_PARALLEL { 1.0 } else { busy }
    }

    /// CPU time per call.
    pub fn cpu_ns(&self) -> f64 {
        self.user_ns + self.system_ns
    }

    /// Time with no thread running.
    pub fn waiting_ns(&self) -> f64 {
        self.wall_ns - self.cpu_ns() / self.parallelism()
    }

    /// User CPU time of a role.
    pub fn ns_of(&self, role: Role) -> f64 {
        self.work.iter().filter(|work| work.role == role).map(|work| work.ns).sum()
    }

    /// Number of samples of all functions.
    pub fn samples(&self) -> u64 {
        self.work.iter().map(|work| work.samples).sum()
    }
}
