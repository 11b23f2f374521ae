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
    /// Remarks about sides. Files keep only their texts, among the warnings.
    pub remarks: Vec<Remark>,
}

impl Timings {
    /// Results that differ between sides, one text per difference.
    pub fn differences(&self) -> impl Iterator<Item = String> {
        self.remarks.iter().filter(|remark| remark.is_difference()).map(|remark| self.text(remark))
    }

    /// All other remarks, and the warnings.
    pub fn notices(&self) -> impl Iterator<Item = String> {
        let remarks = self.remarks.iter().filter(|remark| !remark.is_difference());
        remarks.map(|remark| self.text(remark)).chain(self.warnings.iter().cloned())
    }

    /// All remarks and warnings, differences first.
    pub fn warning_texts(&self) -> Vec<String> {
        self.differences().chain(self.notices()).collect()
    }

    /// Exchanges the first two sides. The letters A and B stay in their places.
    pub fn exchange(&mut self) {
        if let [first, second, ..] = &mut self.sides[..] {
            std::mem::swap(first, second);
            for (side, was, is) in [(first, "B", "A"), (second, "A", "B")] {
                if side.name == was {
                    side.name = is.to_owned();
                }
            }
        }
        for case in &mut self.cases {
            case.series.swap(0, 1);
        }
        let exchange = |side: &mut usize| *side = [1, 0].get(*side).copied().unwrap_or(*side);
        for remark in &mut self.remarks {
            match remark {
                Remark::OfSide { side, .. } => exchange(side),
                Remark::DifferentResults { sides, values, .. } => {
                    sides.iter_mut().for_each(exchange);
                    if sides[0] > sides[1] {
                        sides.swap(0, 1);
                        values.swap(0, 1);
                    }
                }
            }
        }
    }

    fn text(&self, remark: &Remark) -> String {
        let name = |side: usize| self.sides.get(side).map_or("?", |side| &side.name);
        match remark {
            Remark::OfSide { side, text } => format!("side {} {text}", name(*side)),
            Remark::DifferentResults { sides: [a, b], at, values: [of_a, of_b] } => {
                let at = if at.is_empty() { String::new() } else { format!(" at {at}") };
                let sides = format!("{} and {}", name(*a), name(*b));
                format!("sides {sides} give different results{at}: {of_a} and {of_b}")
            }
        }
    }
}

/// A remark about sides, which names them by their index.
#[derive(Clone, Debug, PartialEq)]
pub enum Remark {
    /// Two sides return different results of the same type and shape.
    DifferentResults {
        /// The sides, in order.
        sides: [usize; 2],
        /// Position in the result; empty for the whole result.
        at: String,
        /// The values at this position.
        values: [String; 2],
    },
    /// Another remark, worded to follow the name of the side.
    OfSide {
        /// The side.
        side: usize,
        /// The remark.
        text: String,
    },
}

impl Remark {
    fn is_difference(&self) -> bool {
        matches!(self, Remark::DifferentResults { .. })
    }
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
