//! Flags of `compare`.

use super::{Output, TraceArgs, percent};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use laggard_core::trace::By;
use std::path::PathBuf;

/// Arguments of `compare`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard compare numpy.lag mine.lag                       (two recordings, or two records of calls)
  laggard compare --a a1.lag a2.lag a3.lag --b b1.lag b2.lag b3.lag   (with intervals and verdicts)
  laggard compare --only b before.lag after.lag            (what B reaches and A does not)
  laggard compare --scale call --calls 100,50 a.lag b.lag  (time of one call of each)
  laggard compare --lib openblas before.lag after.lag
  laggard compare before.json after.json                   (two benches)
  laggard compare --fail-above 5% baseline.json now.json   (exit 1 when a case got slower)
  laggard compare h100.json.gz mi300.json.gz               (two PyTorch traces, of any devices)
  laggard compare before/ after/                           (the ranks of two jobs)
  laggard compare --layers --label old --label new a.json b.json

Functions of recordings are the same by library and name, through other versions, clones and
directories. Results of benchmarks may be those of laggard bench, hyperfine, pyperf or
pytest-benchmark. Of those with a reference side its ratio to the others is compared, so that a file
of another machine still means something; of others, the times.")]
pub struct CompareArgs {
    /// The reference: a file, or a directory of ranks
    #[arg(value_name = "A", required_unless_present_any = ["more_a", "more_b"], requires = "b")]
    pub a: Option<PathBuf>,
    /// The one asked about
    #[arg(value_name = "B", required_unless_present_any = ["more_a", "more_b"])]
    pub b: Option<PathBuf>,
    /// Several recordings of the reference; gaps get intervals when both sides have two or more
    #[arg(long = "a", value_name = "FILE", num_args = 1.., requires = "more_b", conflicts_with_all = ["a", "b"])]
    pub more_a: Vec<PathBuf>,
    /// Several recordings of the one asked about
    #[arg(long = "b", value_name = "FILE", num_args = 1.., requires = "more_a", conflicts_with_all = ["a", "b"])]
    pub more_b: Vec<PathBuf>,
    /// Exit 1 when a case of a bench got slower by more than this, all of B's recordings (with --fn: one
    /// of the functions), or a step of B's traces: detectably so, and by the middle of its interval
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_above: Option<f64>,
    /// Keep calls into a library, or samples below it, on both sides
    #[arg(long, value_name = "NAME")]
    pub lib: Option<String>,
    /// Keep calls of these functions, or rows of them, on both sides
    #[arg(long = "fn", value_name = "GLOB")]
    pub function: Option<String>,
    /// Show one kind of rows: of recordings library or function, of traces what device time is for
    #[arg(long, value_parser = by(), value_name = "WHAT", conflicts_with = "shown")]
    pub by: Option<String>,
    /// Rows of each table [default: 10]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// All rows of each table
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Where to.
    #[command(flatten)]
    pub output: Output,
    // Last, because what follows would stand under its heading.
    /// What of samples to keep and show
    #[command(flatten)]
    pub samples: CompareSamples,
    /// What of traces to keep and show
    #[command(flatten)]
    pub traces: CompareTraces,
}

/// Flags for PyTorch traces.
#[derive(Args, Debug)]
#[command(next_help_heading = "PyTorch traces")]
pub struct CompareTraces {
    /// What to call A, and given again what to call B; else their devices or files
    #[arg(long, value_name = "NAME")]
    pub label: Vec<String>,
    /// Show the layers of the model
    #[arg(long, group = "shown")]
    pub layers: bool,
    /// Show which sequences of kernels one side runs as one
    #[arg(long, group = "shown")]
    pub fusion: bool,
    /// Show the kernels, operators and Python lines behind each operation
    #[arg(long, group = "shown")]
    pub stacks: bool,
    /// How they are read.
    #[command(flatten)]
    pub trace: TraceArgs,
}

impl CompareTraces {
    /// The flags that were given.
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

/// What rows of a comparison of recordings are.
pub const BY_LIBRARY: &str = "library";
/// The same.
pub const BY_FUNCTION: &str = "function";

fn by() -> impl TypedValueParser<Value = String> {
    let of_samples = [
        PossibleValue::new(BY_LIBRARY).help("Programs and libraries"),
        PossibleValue::new(BY_FUNCTION).help("Functions"),
    ];
    let of_traces = By::ALL.map(|by| PossibleValue::new(by.word()).help(by.meaning()));
    PossibleValuesParser::new(of_samples.into_iter().chain(of_traces))
}

/// Flags for recordings of samples.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Recordings of samples")]
pub struct CompareSamples {
    /// What to compare: by itself, time where both sides have it, else shares
    #[arg(long, value_enum, value_name = "SCALE")]
    pub scale: Option<ScaleArg>,
    /// Calls in each recording of A and of B, for --scale call; one number is for both
    #[arg(long, value_name = "N,M", value_parser = calls)]
    pub calls: Option<Calls>,
    /// Show functions that only one side reaches
    #[arg(long, value_enum, value_name = "SIDE", conflicts_with = "by")]
    pub only: Option<SideArg>,
    /// Keep samples of this event
    #[arg(long, value_name = "EVENT")]
    pub event: Option<String>,
    /// Keep samples of threads with this name, or number
    #[arg(long, value_name = "NAME")]
    pub thread: Option<String>,
    /// Keep samples of this program, or process number
    #[arg(long, value_name = "NAME")]
    pub comm: Option<String>,
    /// With --lib: keep imports and what libraries do when they are loaded
    #[arg(long)]
    pub start_up: bool,
}

impl CompareSamples {
    /// The flags that were given.
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
    /// Fails for flags that are for other files than these.
    pub fn ensure_only_for(&self, what: &str, of_samples: bool) -> anyhow::Result<()> {
        if let Some(flag) = self.traces.given().next() {
            anyhow::bail!("{flag} is for traces; these are {what}");
        }
        let is_of_samples = |by: &str| [BY_LIBRARY, BY_FUNCTION].contains(&by);
        if let Some(by) = self.by.as_deref()
            && !(of_samples && is_of_samples(by))
        {
            let whose = if is_of_samples(by) { "recordings of samples" } else { "traces" };
            anyhow::bail!("--by {by} is for {whose}; these are {what}");
        }
        match self.samples.given().next().filter(|_| !of_samples) {
            Some(flag) => anyhow::bail!("{flag} is for recordings of samples; these are {what}"),
            None => Ok(()),
        }
    }

    /// The files of A and of B.
    pub fn files(&self) -> [Vec<PathBuf>; 2] {
        let of = |one: &Option<PathBuf>, more: &[PathBuf]| -> Vec<PathBuf> {
            one.iter().chain(more).cloned().collect()
        };
        [of(&self.a, &self.more_a), of(&self.b, &self.more_b)]
    }

    /// The first file of A and of B, as it was named.
    pub fn paths(&self) -> [String; 2] {
        self.files()
            .map(|files| files.first().map_or_else(String::new, |f| f.display().to_string()))
    }
}

/// What recordings are scaled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScaleArg {
    /// Time of a recording
    Time,
    /// What the event counts: cycles, bytes
    Weight,
    /// Samples of a recording
    Samples,
    /// The share of each side's own whole
    Share,
    /// One call, with --calls
    Call,
}

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SideArg {
    /// The reference
    A,
    /// The one asked about
    B,
}

/// Calls in a recording of A and of B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calls(pub [f64; 2]);

fn calls(text: &str) -> Result<Calls, String> {
    let number = |text: &str| match text.trim().parse::<f64>() {
        Ok(n) if n > 0.0 && n.is_finite() => Ok(n),
        _ => Err("give the calls of A and of B, as 100,50".to_owned()),
    };
    let (a, b) = text.split_once(',').unwrap_or((text, text));
    Ok(Calls([number(a)?, number(b)?]))
}
