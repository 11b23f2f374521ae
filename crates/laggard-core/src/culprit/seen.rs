//! What judges see of one side, all of it for one call.

use super::Role;
use crate::model::code::Mix;
use crate::model::counts::Simulated;
use serde::{Deserialize, Serialize};

/// The two sides of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The reference.
    pub a: &'a Seen,
    /// The one asked about.
    pub b: &'a Seen,
}

/// What was seen of one side, for one call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// How long it takes, in nanoseconds.
    pub wall_ns: f64,
    /// CPU time of all threads outside the kernel.
    pub user_ns: f64,
    /// CPU time of all threads in the kernel.
    pub system_ns: f64,
    /// Page faults.
    pub faults: f64,
    /// Times that a thread waited.
    pub waits: f64,
    /// Threads of the process.
    pub threads: u32,
    /// Rounds that these were measured in.
    pub rounds: u64,
    /// Where the CPU time outside the kernel went: sums up to `user_ns`.
    pub work: Vec<Work>,
    /// The way to most of the time: frames from the statement inwards, as people read them.
    pub path: Vec<String>,
    /// Calls across library borders, where they were traced.
    pub calls: Option<Vec<Called>>,
    /// Instructions and misses, where they were counted.
    pub counted: Option<Simulated>,
    /// Names of functions in the libraries that have work: what else could have run.
    pub available: Vec<(String, String)>,
}

/// Time of one function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// Its name.
    pub name: String,
    /// The file name of its program or library.
    pub library: String,
    /// What it is for.
    pub role: Role,
    /// Its source file and line; empty when not known.
    pub place: String,
    /// The nearest function of another role that called it, as people read it.
    pub caller: String,
    /// The function that called it.
    pub parent: String,
    /// CPU time, in nanoseconds of a call.
    pub ns: f64,
    /// Samples that this comes from.
    pub samples: u64,
    /// Instructions that were executed, weighed by samples; none where the code is not at hand.
    pub mix: Option<Mix>,
    /// What a simulator counted of it.
    pub counted: Option<Simulated>,
}

impl Work {
    /// Where it is, for people.
    pub fn at(&self) -> String {
        match self.place.as_str() {
            "" => format!("{} ({})", self.name, self.library),
            place => format!("{}, {place}", self.name),
        }
    }
}

/// Calls of one function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Called {
    /// The function.
    pub name: String,
    /// The file name of its library.
    pub library: String,
    /// How often.
    pub count: f64,
    /// Time in them, in nanoseconds.
    pub ns: f64,
}

impl Called {
    /// Whether Python, or what binds it, calls what somebody wrote: neither the system's libraries
    /// nor the interpreter.
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

/// What rounding and other threads' small change may make of one thread at work.
pub(super) const SURELY_PARALLEL: f64 = 1.15;

impl Seen {
    /// Threads at work at a time, on average; 1 for what is not parallel.
    pub fn parallelism(&self) -> f64 {
        let busy = self.cpu_ns() / self.wall_ns.max(1.0);
        if busy < SURELY_PARALLEL { 1.0 } else { busy }
    }

    /// CPU time of a call.
    pub fn cpu_ns(&self) -> f64 {
        self.user_ns + self.system_ns
    }

    /// Time in which no thread worked.
    pub fn waiting_ns(&self) -> f64 {
        self.wall_ns - self.cpu_ns() / self.parallelism()
    }

    /// CPU time outside the kernel of a role.
    pub fn ns_of(&self, role: Role) -> f64 {
        self.work.iter().filter(|work| work.role == role).map(|work| work.ns).sum()
    }

    /// Samples of all work.
    pub fn samples(&self) -> u64 {
        self.work.iter().map(|work| work.samples).sum()
    }
}
