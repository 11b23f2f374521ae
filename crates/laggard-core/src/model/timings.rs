//! `Timings`: raw benchmark timings of one or more sides, by batch.

/// Results of a benchmark, from `laggard bench` or from the file of another tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timings {
    /// The command line of the benchmark.
    pub command: Vec<String>,
    /// Name and version of the tool.
    pub tool: String,
    /// Start time, in seconds since 1970.
    pub started_unix: f64,
    /// Facts about the machine and others common to all sides: name and value.
    pub facts: Vec<(String, String)>,
    /// The sides; the first is the reference.
    pub sides: Vec<Side>,
    /// The cases.
    pub cases: Vec<Case>,
    /// Cases without measurements.
    pub unmeasured: Vec<Unmeasured>,
    /// Problems that were not fatal.
    pub warnings: Vec<String>,
}

/// A side of the comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// `A`, `B`, or a name given by the user.
    pub name: String,
    /// Its statement or command, as written by the user.
    pub runs: String,
    /// Interpreter, environment, directory, threads, versions: name and value.
    pub facts: Vec<(String, String)>,
}

/// A case, measured on every side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    /// Its name; empty if there is only one case.
    pub name: String,
    /// Parameters: name and value, such as `n` and `100`.
    pub parameters: Vec<(String, String)>,
    /// Measurements, in the order of the sides.
    pub series: Vec<Series>,
}

/// A case without measurements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmeasured {
    /// Its name with parameters.
    pub case: String,
    /// Whether it was skipped because a side does not support it. Otherwise it failed.
    pub is_skipped: bool,
    /// The reason.
    pub why: String,
}

/// Measurements of one side in one case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The statement or command of this case; empty if [`Side::runs`] applies.
    pub runs: String,
    /// Facts specific to this case: name and value.
    pub facts: Vec<(String, String)>,
    /// Measured batches, one per round.
    pub batches: Vec<Batch>,
    /// Warm-up batches.
    pub warm_up: Vec<Batch>,
    /// Peak resident memory of the process, in bytes; 0 if unknown.
    pub peak_memory: u64,
    /// Threads of the process during the measurement; 0 if unknown.
    pub threads: u32,
    /// Counters per call.
    pub counters: Vec<Counter>,
}

/// A counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Such as `instructions` or `allocations`.
    pub name: String,
    /// Value per call.
    pub per_call: f64,
    /// Such as `callgrind` or `perf_event`.
    pub source: String,
}

/// Consecutive calls, timed as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Its round, from 0.
    pub round: u32,
    /// Its position in that round; 0 was measured first.
    pub place: u32,
    /// Start, in nanoseconds since the first batch.
    pub start_ns: u64,
    /// Number of calls.
    pub calls: u64,
    /// Wall time of all calls.
    pub wall_ns: u64,
    /// User CPU time of all threads.
    pub user_ns: u64,
    /// System CPU time of all threads.
    pub system_ns: u64,
    /// Page faults without disk access.
    pub minor_faults: u64,
    /// Page faults with disk access.
    pub major_faults: u64,
    /// Voluntary context switches.
    pub waits: u64,
    /// Involuntary context switches.
    pub preemptions: u64,
    /// Time in which the main thread could run but other threads or programs used the CPU (run-queue
    /// delay); 0 if unknown.
    pub queued_ns: u64,
}

impl Series {
    /// Wall time per call of every batch, in nanoseconds.
    pub fn wall(&self) -> Vec<f64> {
        self.batches.iter().map(|batch| batch.per_call(batch.wall_ns)).collect()
    }

    /// CPU time per call of every batch, in nanoseconds.
    pub fn cpu(&self) -> Vec<f64> {
        self.batches.iter().map(|batch| batch.per_call(batch.user_ns + batch.system_ns)).collect()
    }
}

impl Batch {
    /// A total of the batch, divided by the number of calls.
    pub fn per_call(&self, whole: u64) -> f64 {
        whole as f64 / self.calls.max(1) as f64
    }
}
