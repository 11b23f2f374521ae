//! Options of `compare`.

use super::{Output, TraceArgs, percent};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use laggard_core::trace::By;
use std::path::PathBuf;

/// Arguments of `compare`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard compare a.lag b.lag
  laggard compare --label old --label new before.json.gz after.json.gz
  laggard compare before/ after/   # all ranks of two jobs
  laggard compare --fail-above 5% before.json after.json || echo 'a case is slower'

Reads two files of the same kind: profiles, call traces, PyTorch traces, counters of perf stat, or
results of laggard bench, hyperfine, pyperf or pytest-benchmark. Benchmark results with a reference
side are compared by their ratios to it, so that they can come from different machines.

Give several profiles per side with --a and --b to get confidence intervals. --fail-above checks the
cases of benchmarks, the steps of traces, and the total of profiles or, with --fn, each selected
function. It ignores differences that are not statistically detectable.")]
pub struct CompareArgs {
    /// Reference: a file, or a directory of ranks
    #[arg(value_name = "A", required_unless_present_any = ["more_a", "more_b"], requires = "b")]
    pub a: Option<PathBuf>,
    /// Side to explain, of the same kind as A
    #[arg(value_name = "B", required_unless_present_any = ["more_a", "more_b"])]
    pub b: Option<PathBuf>,
    /// Several profiles or traces of A, instead of the argument A
    #[arg(long = "a", value_name = "FILE", num_args = 1.., requires = "more_b", conflicts_with_all = ["a", "b"])]
    pub more_a: Vec<PathBuf>,
    /// Several profiles or traces of B, instead of the argument B
    #[arg(long = "b", value_name = "FILE", num_args = 1.., requires = "more_a", conflicts_with_all = ["a", "b"])]
    pub more_b: Vec<PathBuf>,
    /// Exit with status 1 if B is slower than A by more than PERCENT
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_above: Option<f64>,
    /// Keep only samples in a library and its callees, or calls into it
    #[arg(long, value_name = "NAME")]
    pub lib: Option<String>,
    /// Keep only functions whose name matches or contains GLOB
    #[arg(long = "fn", value_name = "GLOB")]
    pub function: Option<String>,
    /// Show one table, grouped by WHAT
    #[arg(long, value_parser = by(), value_name = "WHAT", conflicts_with = "shown")]
    pub by: Option<String>,
    /// Maximum rows per table [default: 10, or 20 for benchmarks and counters]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show all rows of each table
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Destination and format.
    #[command(flatten)]
    pub output: Output,
    // Flattened last: options after them would be listed under their headings.
    /// Options for profiles
    #[command(flatten)]
    pub samples: CompareSamples,
    /// Options for PyTorch traces
    #[command(flatten)]
    pub traces: CompareTraces,
}

/// Options of `compare` for PyTorch traces.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options for PyTorch traces")]
pub struct CompareTraces {
    /// Name of a side; give it twice, for A and for B [default: their devices, or A and B]
    #[arg(long, value_name = "NAME")]
    pub label: Vec<String>,
    /// Compare the layers of the model
    #[arg(long, group = "shown")]
    pub layers: bool,
    /// Show kernel sequences that one side runs as fewer kernels
    #[arg(long, group = "shown")]
    pub fusion: bool,
    /// Show the kernels, operators and Python lines of each class
    #[arg(long, group = "shown")]
    pub stacks: bool,
    /// Options for reading traces.
    #[command(flatten)]
    pub trace: TraceArgs,
}

impl CompareTraces {
    /// Options of this group that were given.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("--label", !self.label.is_empty()),
            ("--layers", self.layers),
            ("--fusion", self.fusion),
            ("--stacks", self.stacks),
            ("--phase", self.trace.phase.is_some()),
            ("--phase-pattern", !self.trace.phase_pattern.is_empty()),
            ("--rules", self.trace.rules.is_some()),
            ("--no-index", self.trace.no_index),
            ("--threads", self.trace.threads.is_some()),
        ]
        .into_iter()
        .filter_map(|(flag, is_given)| is_given.then_some(flag))
    }
}

/// Value of `--by` that compares libraries.
pub const BY_LIBRARY: &str = "library";
/// Value of `--by` that compares functions.
pub const BY_FUNCTION: &str = "function";

fn by() -> impl TypedValueParser<Value = String> {
    let of_samples = [
        PossibleValue::new(BY_LIBRARY).help("Programs and libraries"),
        PossibleValue::new(BY_FUNCTION).help("Functions"),
    ];
    let of_traces = By::ALL.map(|by| PossibleValue::new(by.word()).help(by.meaning()));
    PossibleValuesParser::new(of_samples.into_iter().chain(of_traces))
}

/// Options of `compare` for profiles.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Options for profiles")]
pub struct CompareSamples {
    /// Unit of the comparison [default: time, else weight of a common event, else share]
    #[arg(long, value_enum, value_name = "SCALE")]
    pub scale: Option<ScaleArg>,
    /// Number of calls in each profile of A and of B, for --scale call; one number applies to both
    #[arg(long, value_name = "N,M", value_parser = calls)]
    pub calls: Option<Calls>,
    /// Show functions that only one side runs
    #[arg(long, value_enum, value_name = "SIDE", conflicts_with = "by")]
    pub only: Option<SideArg>,
    /// Keep only samples of this event [default: the event with the most samples]
    #[arg(long, value_name = "EVENT")]
    pub event: Option<String>,
    /// Keep only samples of threads with ID THREAD or with THREAD in their name
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// Keep only samples of processes with ID PROCESS or with PROCESS in their name
    #[arg(long, value_name = "PROCESS")]
    pub comm: Option<String>,
    /// With --lib, also keep imports and the initialization of libraries
    #[arg(long)]
    pub start_up: bool,
}

impl CompareSamples {
    /// Options of this group that were given.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("--scale", self.scale.is_some()),
            ("--calls", self.calls.is_some()),
            ("--only", self.only.is_some()),
            ("--event", self.event.is_some()),
            ("--thread", self.thread.is_some()),
            ("--comm", self.comm.is_some()),
            ("--start-up", self.start_up),
        ]
        .into_iter()
        .filter_map(|(flag, is_given)| is_given.then_some(flag))
    }
}

impl CompareArgs {
    /// Rejects options that do not apply to these files.
    pub fn ensure_only_for(&self, what: &str, of_samples: bool) -> anyhow::Result<()> {
        if let Some(flag) = self.traces.given().next() {
            anyhow::bail!("{flag} applies to traces; these are {what}");
        }
        let is_of_samples = |by: &str| [BY_LIBRARY, BY_FUNCTION].contains(&by);
        if let Some(by) = self.by.as_deref()
            && !(of_samples && is_of_samples(by))
        {
            let whose = if is_of_samples(by) { "profiles" } else { "traces" };
            anyhow::bail!("--by {by} applies to {whose}; these are {what}");
        }
        match self.samples.given().next().filter(|_| !of_samples) {
            Some(flag) => anyhow::bail!("{flag} applies to profiles; these are {what}"),
            None => Ok(()),
        }
    }

    /// Files of A and of B.
    pub fn files(&self) -> [Vec<PathBuf>; 2] {
        let of = |one: &Option<PathBuf>, more: &[PathBuf]| -> Vec<PathBuf> {
            one.iter().chain(more).cloned().collect()
        };
        [of(&self.a, &self.more_a), of(&self.b, &self.more_b)]
    }

    /// First file of A and of B, as given on the command line.
    pub fn paths(&self) -> [String; 2] {
        self.files()
            .map(|files| files.first().map_or_else(String::new, |f| f.display().to_string()))
    }
}

/// Unit in which profiles are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScaleArg {
    /// Time
    Time,
    /// Count of the sampled event, such as cycles or bytes
    Weight,
    /// Number of samples
    Samples,
    /// Share of the side's total
    Share,
    /// Time per call, with --calls
    Call,
}

/// Side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SideArg {
    /// Reference
    A,
    /// Side to explain
    B,
}

/// Calls per profile of A and of B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calls(pub [f64; 2]);

fn calls(text: &str) -> Result<Calls, String> {
    let number = |text: &str| match text.trim().parse::<f64>() {
        Ok(n) if n > 0.0 && n.is_finite() => Ok(n),
        _ => Err("expected the numbers of calls of A and B, such as 100,50".to_owned()),
    };
    let (a, b) = text.split_once(',').unwrap_or((text, text));
    Ok(Calls([number(a)?, number(b)?]))
}
