//! `Counters`: what the processor and the kernel counted over a run, as sums; no samples, no stacks.

/// What one run of a counting tool (`perf stat`) said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// What wrote it: `perf stat`.
    pub tool: String,
    /// The command that was counted, as the file has it; empty when it does not say.
    pub command: String,
    /// When it started, as the file has it; empty when it does not say.
    pub started: String,
    /// How often the command was run; None when not said. Values are means over runs.
    pub runs: Option<u64>,
    /// Wall time of a run in seconds.
    pub elapsed: Option<Seconds>,
    /// CPU time of a run in user code, seconds.
    pub user_s: Option<f64>,
    /// CPU time of a run in the kernel, seconds.
    pub system_s: Option<f64>,
    /// The counters, in the order of the file.
    pub rows: Vec<Counter>,
    /// What could not be read, or has to be known to read the rest.
    pub warnings: Vec<String>,
}

/// A time and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seconds {
    /// The time, a mean where there were several runs.
    pub value: f64,
    /// Standard error of the mean, as a share of it.
    pub spread: Option<f64>,
}

/// One counter: of the whole run, or of a processor, a thread or an interval of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counter {
    /// What was counted, without the unit of the processor that did and without modifiers:
    /// `cycles` of `cpu_core/cycles/u`.
    pub name: String,
    /// Modifiers, such as `u` for user code only.
    pub modifiers: String,
    /// The unit of the processor that counted (`cpu_core`); empty when not said or several.
    pub pmu: String,
    /// What it came to.
    pub reading: Reading,
    /// Unit of the value (`msec`, `Joules`); empty for a plain count.
    pub unit: String,
    /// Nanoseconds in which it was counted.
    pub run_ns: Option<u64>,
    /// Share of the time in which it was counted; the value is scaled up to all of it. Less than 1
    /// where counters took turns.
    pub counted: Option<f64>,
    /// Standard error of the mean over runs, as a share of the value.
    pub spread: Option<f64>,
    /// What the tool itself derived from it.
    pub metrics: Vec<Metric>,
    /// Whom it is about, as the tool writes it: `CPU0`, `S0-D0-C1`, `python-1234`; empty for all.
    pub of: String,
    /// End of the interval, nanoseconds since the start; None for the whole run.
    pub time_ns: Option<u64>,
    /// What was added up to it: one row for each kind of core of a hybrid processor.
    pub parts: Vec<Counter>,
}

/// What a counter came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Reading {
    /// A value, in the unit of the counter.
    Value(f64),
    /// The counter never ran.
    #[default]
    NotCounted,
    /// Kernel or processor do not have it.
    NotSupported,
}

impl Reading {
    /// The value, if there is one.
    pub fn value(self) -> Option<f64> {
        match self {
            Reading::Value(value) => Some(value),
            Reading::NotCounted | Reading::NotSupported => None,
        }
    }

    /// In words: why there is no value, or that there is.
    pub fn word(self) -> &'static str {
        match self {
            Reading::Value(_) => "counted",
            Reading::NotCounted => "not counted",
            Reading::NotSupported => "not supported",
        }
    }
}

/// A figure that the tool derived from a counter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metric {
    /// The figure, if it is one.
    pub value: Option<f64>,
    /// What it is, as the tool writes it: `insn per cycle`, `K/sec`.
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

    /// The value in seconds, where it is a time.
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
