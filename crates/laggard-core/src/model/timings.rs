//! Timings: how long calls of two or more sides took, batch by batch, as they were measured.

/// What was measured in one `bench`, or read from the file of another harness.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timings {
    /// The command line that measured it.
    pub command: Vec<String>,
    /// Who measured it, with its version.
    pub tool: String,
    /// When, in seconds since 1970.
    pub started_unix: f64,
    /// The machine, and all else that is the same for all sides: name and value.
    pub facts: Vec<(String, String)>,
    /// What is measured against what. The first is the reference.
    pub sides: Vec<Side>,
    /// What was measured of every side.
    pub cases: Vec<Case>,
    /// Cases that should have been measured too.
    pub unmeasured: Vec<Unmeasured>,
    /// What went wrong and was not fatal.
    pub warnings: Vec<String>,
}

/// One of what is compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// What it is called: `A`, `B`, or a name the user gave.
    pub name: String,
    /// What it runs, as the user wrote it.
    pub runs: String,
    /// Interpreter, environment, directory, threads, versions: name and value.
    pub facts: Vec<(String, String)>,
}

/// One thing that was measured on every side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    /// What it is called; empty when there is only one.
    pub name: String,
    /// Values that make it differ from the other cases: name and value, as `n` and `100`.
    pub parameters: Vec<(String, String)>,
    /// What was measured, in the order of the sides.
    pub series: Vec<Series>,
}

/// A case of which there are no figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmeasured {
    /// What it is called, with its parameters.
    pub case: String,
    /// Whether it was left out because a side cannot do it. Else something went wrong.
    pub is_skipped: bool,
    /// The reason.
    pub why: String,
}

/// What was measured of one side in one case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What was run, where every case has its own; else empty, and the side says it.
    pub runs: String,
    /// What of the side is so in this case alone: name and value.
    pub facts: Vec<(String, String)>,
    /// Every batch that counts, in the order of rounds. Sides have one batch in every round.
    pub batches: Vec<Batch>,
    /// Batches before, while the side was getting warm.
    pub warm_up: Vec<Batch>,
    /// Most memory that the side's process had resident, in bytes; 0 is not known.
    pub peak_memory: u64,
    /// Threads that the process had when it was measured; 0 is not known.
    pub threads: u32,
    /// What else was counted, for a call: name, value and unit.
    pub counters: Vec<Counter>,
}

/// Something that was counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// What, as `instructions` or `allocations`.
    pub name: String,
    /// How much of it a call takes.
    pub per_call: f64,
    /// How it was counted, as `callgrind` or `perf_event`.
    pub source: String,
}

/// Some calls in a row, timed as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Number of its round, from 0.
    pub round: u32,
    /// Its place in that round: 0 was measured first.
    pub place: u32,
    /// When it began, in nanoseconds since the first one.
    pub start_ns: u64,
    /// How many calls.
    pub calls: u64,
    /// How long they took together.
    pub wall_ns: u64,
    /// CPU time of all threads outside the kernel.
    pub user_ns: u64,
    /// CPU time of all threads in the kernel.
    pub system_ns: u64,
    /// Page faults that needed no disk.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
    /// Times that a thread gave its processor up to wait.
    pub waits: u64,
    /// Times that a thread's processor was given to another.
    pub preemptions: u64,
}

impl Series {
    /// Wall time of a call in every batch, in nanoseconds.
    pub fn wall(&self) -> Vec<f64> {
        self.batches.iter().map(|batch| batch.per_call(batch.wall_ns)).collect()
    }

    /// CPU time of a call in every batch, in nanoseconds.
    pub fn cpu(&self) -> Vec<f64> {
        self.batches.iter().map(|batch| batch.per_call(batch.user_ns + batch.system_ns)).collect()
    }
}

impl Batch {
    /// The share of one call in something of the whole batch.
    pub fn per_call(&self, whole: u64) -> f64 {
        whole as f64 / self.calls.max(1) as f64
    }
}
