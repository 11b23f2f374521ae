//! `Counters`: totals of hardware and software counters over a run, without samples or stacks.

/// Output of a counting tool (`perf stat`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// The tool: `perf stat`.
    pub tool: String,
    /// The measured command as written in the file; empty if unknown.
    pub command: String,
    /// Start time as written in the file; empty if unknown.
    pub started: String,
    /// Number of runs, if known. Values are means over runs.
    pub runs: Option<u64>,
    /// Wall time per run, in seconds.
    pub elapsed: Option<Seconds>,
    /// User CPU time per run, in seconds.
    pub user_s: Option<f64>,
    /// System CPU time per run, in seconds.
    pub system_s: Option<f64>,
    /// The counters, in file order.
    pub rows: Vec<Counter>,
    /// Unreadable parts of the file, and notes needed to interpret it.
    pub warnings: Vec<String>,
}

/// A time with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seconds {
    /// The time; the mean of several runs.
    pub value: f64,
    /// Standard error of the mean, as a share of it.
    pub spread: Option<f64>,
}

/// One counter of the whole run, of a CPU, of a thread or of an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counter {
    /// Event name without PMU and modifiers: `cycles` for `cpu_core/cycles/u`.
    pub name: String,
    /// Modifiers, such as `u` for user code only.
    pub modifiers: String,
    /// The PMU (`cpu_core`); empty if unknown or several.
    pub pmu: String,
    /// The value, if there is one.
    pub reading: Reading,
    /// Unit of the value (`msec`, `Joules`); empty for a plain count.
    pub unit: String,
    /// Nanoseconds during which it was counted.
    pub run_ns: Option<u64>,
    /// Share of the time in which it was counted. Less than 1 if counters were multiplexed; then
    /// the value is scaled up.
    pub counted: Option<f64>,
    /// Standard error of the mean over runs, as a share of the value.
    pub spread: Option<f64>,
    /// Metrics that the tool derived from it.
    pub metrics: Vec<Metric>,
    /// Scope as the tool writes it: `CPU0`, `S0-D0-C1`, `python-1234`; empty for the whole run.
    pub of: String,
    /// End of the interval in nanoseconds since the start; `None` for the whole run.
    pub time_ns: Option<u64>,
    /// The counters it is the sum of: one per core type of a hybrid CPU.
    pub parts: Vec<Counter>,
}

/// Result of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Reading {
    /// A value, in the unit of the counter.
    Value(f64),
    /// The counter never ran.
    #[default]
    NotCounted,
    /// Not supported by the kernel or CPU.
    NotSupported,
}

impl Reading {
    /// The value, if it was counted.
    pub fn value(self) -> Option<f64> {
        match self {
            Reading::Value(value) => Some(value),
            Reading::NotCounted | Reading::NotSupported => None,
        }
    }

    /// The word used in reports and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Reading::Value(_) => "counted",
            Reading::NotCounted => "not counted",
            Reading::NotSupported => "not supported",
        }
    }
}

/// A metric that the tool derived from a counter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metric {
    /// The value, if it is a number.
    pub value: Option<f64>,
    /// Its description as the tool writes it: `insn per cycle`, `K/sec`.
    pub text: String,
}

impl Counter {
    /// Name with modifiers: `cycles:u`.
    pub fn label(&self) -> String {
        match self.modifiers.as_str() {
            "" => self.name.clone(),
            modifiers => format!("{}:{modifiers}", self.name),
        }
    }

    /// The value, if there is one.
    pub fn value(&self) -> Option<f64> {
        self.reading.value()
    }

    /// The value in seconds, if it is a time.
    pub fn seconds(&self) -> Option<f64> {
        let in_a_second = match self.unit.as_str() {
            "msec" | "ms" => 1e3,
            "usec" | "us" => 1e6,
            "nsec" | "ns" => 1e9,
            "sec" | "s" => 1.0,
            _ => return None,
        };
        self.value().map(|value| value / in_a_second)
    }
}
