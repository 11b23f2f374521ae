//! Definitions of all verbs and options. Parsing, help, man pages and completions derive from them.

mod compare;
mod ffi;
mod overview;
mod package;
mod sides;
mod suites;
mod traces;

pub use compare::{
    BY_FUNCTION, BY_LIBRARY, Calls, CompareArgs, CompareSamples, CompareTraces, ScaleArg, SideArg,
};
pub use ffi::{FfiArgs, FfiBuildArgs, FfiRunArgs, FfiVerb, FfiWhyArgs, ProfileArg};
pub(crate) use overview::OVERVIEW;
pub use package::{
    Engine, FleetArgs, FleetCompareArgs, FleetFormat, FleetIngestArgs, FleetOutput,
    FleetReportArgs, FleetVerb, QueryArgs, QueryFormat,
};
pub use sides::{EachSideArgs, EffortArgs, Parameter, Set, Setting, SideName, SidesArgs};
pub use suites::{CaseArgs, CaseSideArgs, LayoutArg, SimdArg, SuiteArgs};
pub use traces::TraceArgs;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use laggard_core::model::profile::Profile;
use laggard_core::trace::By;
use laggard_core::{calls, profile};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Find out why one implementation is slower than another
#[derive(Parser, Debug)]
#[command(name = "laggard", version, disable_help_subcommand = true, infer_subcommands = false)]
pub struct Cli {
    /// The verb to run.
    #[command(subcommand)]
    pub verb: Verb,
    /// Options for terminal output.
    #[command(flatten)]
    pub talk: Talk,
}

/// A verb with its arguments.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Explain why B is slower than A: time and sample both, inspect their code, name the culprit
    Why(Box<WhyArgs>),
    /// Time Python statements or commands against each other, with confidence intervals
    Bench(Box<BenchArgs>),
    /// Sample a program, with native and Python frames in one stack
    Record(RecordArgs),
    /// Count and time the calls of a program into libraries
    Calls(CallsArgs),
    /// Summarize a recording, call trace, profile, benchmark result or PyTorch trace
    Report(Box<ReportArgs>),
    /// Compare two files of the same kind: A is the reference, B the side to explain
    Compare(Box<CompareArgs>),
    /// Draw a flame graph of a profile, or of the difference between two
    Flame(FlameArgs),
    /// Show any file, or the difference between two, as an HTML page
    View(ViewArgs),
    /// Measure the cost of calling native code from Python, for every binding
    Ffi(Box<FfiArgs>),
    /// Query any file with SQL (Python package only)
    Query(Box<QueryArgs>),
    /// Find stragglers and slow hosts in the traces of many ranks (Python package only)
    Fleet(Box<FleetArgs>),
    /// Convert a profile to another format, such as collapsed stacks, speedscope or pprof
    Convert(ConvertArgs),
    /// List or delete the indexes that speed up loading of traces
    Index(IndexArgs),
    /// Show how a library is built: frame pointers, debug info, symbols, SIMD use by function
    Inspect(InspectArgs),
    /// Print the current Python stacks of a running process
    Dump(DumpArgs),
    /// Check what this machine supports, what makes its timings noisy, and how to fix it
    Doctor(DoctorArgs),
    /// Sample the process that started this one to record a block of itself
    #[command(hide = true)]
    Drive(DriveArgs),
}

/// Options of every verb.
#[derive(Args, Debug, Default, Clone, Copy)]
pub struct Talk {
    /// When to use color in the output
    #[arg(long, global = true, display_order = 100, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
    /// Print only results and errors
    #[arg(short, long, global = true, display_order = 100)]
    pub quiet: bool,
    /// Print more details
    #[arg(short, long, global = true, display_order = 100, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Hide progress bars
    #[arg(long, global = true, display_order = 100)]
    pub no_progress: bool,
}

/// When to colour the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On terminals, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Destination and format of results.
#[derive(Args, Debug, Clone)]
pub struct Output {
    /// Write to FILE; the suffix selects the format (.txt, .json, .csv, .md); `-` is standard
    /// output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Format of standard output, or of FILE if its suffix selects none
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
}

/// Format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for terminals
    Text,
    /// JSON with a versioned schema
    Json,
    /// One table, for spreadsheets
    Csv,
    /// Markdown, for issues and web pages
    #[value(alias = "markdown")]
    Md,
    /// HTML fragment for notebooks; not selectable on the command line
    #[value(skip)]
    Html,
}

/// Arguments of `record`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard record -o run.lag -- python app.py
  laggard record -o run.svg -- python app.py   # write a flame graph
  laggard record --clock wall --rate 200 -- python app.py
  laggard record --pid 4242 --duration 10s   # needs a running process and perf

The output of the program is passed through. Messages of laggard go to standard error. The exit
status is that of the program, or 125 if laggard fails. A program that reaches --duration receives
SIGTERM; a process given with --pid continues to run.")]
pub struct RecordArgs {
    /// Program to run, with its arguments
    #[arg(required_unless_present_any = ["pid", "case"], trailing_var_arg = true, conflicts_with_all = ["case", "suite", "simd_mode", "side", "python"], value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Record a running process with perf, until --duration or Ctrl-C
    #[arg(long, value_name = "PID", conflicts_with_all = ["command", "case", "overhead", "cpus"])]
    pub pid: Option<u32>,
    /// Write to FILE; the suffix selects the format (.lag, .svg, .html, .folded, …) [default:
    /// laggard-<program>-<pid>.lag]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Sampling rate of each thread, in samples per second
    #[arg(long, value_name = "HZ", default_value_t = 999.0, value_parser = rate)]
    pub rate: f64,
    /// Clock that triggers samples
    #[arg(long, value_enum, default_value_t = ClockArg::Cpu)]
    pub clock: ClockArg,
    /// Sample on an event instead of time, such as cycles or page-faults; repeatable
    #[arg(long, value_name = "EVENT")]
    pub event: Vec<String>,
    /// Sampling backend
    #[arg(long, value_enum, default_value_t = BackendArg::Auto)]
    pub backend: BackendArg,
    /// Stack unwinding method
    #[arg(long, value_enum, default_value_t = UnwindArg::Auto)]
    pub unwind: UnwindArg,
    /// Do not sample child processes
    #[arg(long)]
    pub no_children: bool,
    /// Keep only samples of threads that held the GIL
    #[arg(long)]
    pub gil: bool,
    /// Maximum stack bytes copied per sample
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = size)]
    pub stack_size: u64,
    /// Stop after TIME, such as 90, 90s, 500ms or 2m [default with --case: 3s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// CPUs to run on, such as 0-3,8
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<Cpus>,
    /// Measure the overhead in ROUNDS runs with and without recording [default ROUNDS: 5]
    #[arg(long, value_name = "ROUNDS", num_args = 0..=1, require_equals = true, default_missing_value = "5", value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub overhead: Option<u16>,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
    // Flattened last: options after it would be listed under its heading.
    /// A side of a case, instead of a command
    #[command(flatten)]
    pub side: CaseSideArgs,
}

/// Arguments of `drive`, which laggard runs internally.
#[derive(Args, Debug)]
pub struct DriveArgs {
    /// Process ID
    #[arg(long, value_name = "PID")]
    pub pid: u32,
    /// Write to FILE; the suffix selects the format
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Sampling rate of each thread, in samples per second
    #[arg(long, value_name = "HZ", default_value_t = 999.0, value_parser = rate)]
    pub rate: f64,
    /// Clock that triggers samples
    #[arg(long, value_enum, default_value_t = ClockArg::Cpu)]
    pub clock: ClockArg,
    /// Keep only samples of threads that held the GIL
    #[arg(long)]
    pub gil: bool,
    /// Maximum stack bytes copied per sample
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = size)]
    pub stack_size: u64,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `calls`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard calls -o calls.lag -- python app.py
  laggard calls --lib openblas --args 6 -- python app.py   # with matrix sizes
  laggard calls --from _multiarray_umath --fn '*cblas_*' -- python app.py

By default, calls between extension modules and libraries are traced, except calls by the main
program and calls into system libraries (libc, libm, libstdc++, libpython, …). If several of --lib,
--from and --fn are given, a call must match all of them. Name a library with both --from and --lib
to trace its internal calls. Patterns with * or ? match whole names; without them, --lib and --from
match part of a file name and --fn a whole function name.

The output of the program is passed through. Messages of laggard go to standard error. The exit
status is that of the program, or 125 if laggard fails.")]
pub struct CallsArgs {
    /// Program to run, with its arguments
    #[arg(required_unless_present_any = ["pid", "case"], trailing_var_arg = true, conflicts_with_all = ["case", "suite", "simd_mode", "side", "python"], value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Trace calls into this library; repeatable
    #[arg(long, value_name = "NAME")]
    pub lib: Vec<String>,
    /// Trace calls from this module to others; repeatable
    #[arg(long, value_name = "MODULE")]
    pub from: Vec<String>,
    /// Trace calls to functions that match GLOB; repeatable
    #[arg(long = "fn", value_name = "GLOB")]
    pub function: Vec<String>,
    /// Number of integer arguments to record per call, 0 to 6 (slows down traced calls)
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=6))]
    pub args: u8,
    /// Record the full stack of one in N calls; 0 disables stacks
    #[arg(long, value_name = "N", default_value_t = 16384)]
    pub stacks: u32,
    /// Also count calls inside libraries; records call or instruction counts, but no times
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "auto", conflicts_with_all = ["args", "stacks"])]
    pub inside: Option<InsideArg>,
    /// Count and time system calls instead of library calls
    #[arg(long, conflicts_with_all = ["inside", "args", "stacks", "lib"])]
    pub syscalls: bool,
    /// Do not trace programs started by the program
    #[arg(long)]
    pub no_children: bool,
    /// CPUs to run on, such as 0-3,8
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<Cpus>,
    /// Write to FILE (.lag) [default: laggard-<program>-<pid>.lag]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
    /// Rejected with an explanation: a running process cannot be traced
    #[arg(long, value_name = "PID", hide = true)]
    pub pid: Option<u32>,
    // Flattened last: options after it would be listed under its heading.
    /// A side of a case, instead of a command
    #[command(flatten)]
    pub side: CaseSideArgs,
    /// Number of times to call the side of the case
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,
}

/// Method of counting calls inside a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InsideArg {
    /// Best method that this machine supports
    Auto,
    /// CPU simulator: exact, with callers and instruction counts; 50 to 300 times slower
    Callgrind,
    /// Kernel breakpoints: counts only; needs root
    Uprobes,
}

/// Help of `-o` for verbs that write HTML pages.
const OUTPUT_WITH_PAGES: &str = "Write to FILE; the suffix selects the format (.txt, .json, .csv, \
                                 .md, .html); `-` is standard output";

/// Arguments of `why`.
#[derive(Args, Debug)]
#[command(mut_arg("output", |arg| arg.help(OUTPUT_WITH_PAGES)))]
#[command(after_help = "Examples:
  laggard why --setup 'x = list(range(1000))' 'sum(x)' 'sum(i for i in x)'
  laggard why -o why.html --setup 'import numpy as np; a = np.ones(9999)' 'a.sum()' 'a.copy().sum()'
  laggard why --commands 'python -c 1' 'python -c \"import json\"'
  laggard why --param n=500,1000,2000 --setup 'x = [*range(n)]' 'x[:]' '[y for y in x if y in x]'
  laggard why --from a.lag b.lag   # use two recordings

A culprit is named only if B is detectably slower than A. With -o FILE.html, laggard writes an HTML
page in addition to the text on standard output.")]
pub struct WhyArgs {
    /// Reference: a Python statement; a command line with --commands; a library or a side of the
    /// case with --case
    #[arg(value_name = "A", required_unless_present_any = ["case", "from"], requires = "b")]
    pub a: Option<String>,
    /// Side to explain, of the same kind as A
    #[arg(value_name = "B", required_unless_present_any = ["case", "from"])]
    pub b: Option<String>,
    /// Use existing files: recordings of A and B (.lag), or the JSON output of an earlier run
    #[arg(long, value_name = "FILE", num_args = 1..=2, conflicts_with_all = ["a", "case"])]
    pub from: Vec<PathBuf>,
    /// Total time for all measurements, such as 20, 20s or 2m
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration)]
    pub time: Duration,
    /// Abort a side that does not respond within TIME
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub timeout: Duration,
    /// Fit how the time grows with a Python variable, or with {NAME} in commands (at least three
    /// numbers), and explain the largest value
    #[arg(
        long,
        value_name = "NAME=V1,V2,…",
        value_parser = sides::numbers,
        conflicts_with_all = ["case", "from"]
    )]
    pub param: Option<Parameter>,
    /// Leave source text out of all output
    #[arg(long)]
    pub no_source: bool,
    /// Store source text in the JSON file of -o
    #[arg(long, conflicts_with = "no_source")]
    pub keep_source: bool,
    /// Destination and format; HTML pages are supported too
    #[command(flatten)]
    pub output: Output,
    // Flattened last: options after them would be listed under their headings.
    /// Options of all sides and of individual sides
    #[command(flatten)]
    pub shared: SidesArgs,
    /// The case to take the sides from
    #[command(flatten)]
    pub of: CaseArgs,
}

/// Arguments of `bench`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard bench --setup 'import numpy as np; a = np.ones(10**6)' 'a.sum()' 'np.add.reduce(a)'
  laggard bench --setup 'x = list(range(n))' --param n=10,100,1000 'sum(x)' 'sum(i for i in x)'
  laggard bench --commands -o bench.json 'python -c 1' 'python -S -c 1'
  laggard bench --suite 2d --shape 512x512 --operations sum,mean --time 1s numpy

The first side (A) is the reference; ratios are times relative to it. Each side runs in its own
process. Sides alternate in random order, so that noise affects all of them equally. Results of
statements are compared before timing unless --no-check is given: different values are reported,
and different types or shapes are errors. With --baseline, --fail-above or a suite, any difference
is an error.

--fail-above ignores differences that are not statistically detectable. With a reference side,
--baseline compares ratios to it, so that results of another machine can be used.")]
pub struct BenchArgs {
    /// Sides to time, the reference first: Python statements; command lines with --commands;
    /// libraries or sides of the suite with --suite [default: installed array libraries, or all sides
    /// of the suite file]
    #[arg(value_name = "SIDE")]
    pub sides: Vec<String>,
    /// Benchmark every value of a Python variable, or of {NAME} in commands; repeatable
    #[arg(long, value_name = "NAME=V1,V2,…", value_parser = sides::parameter)]
    pub param: Vec<Parameter>,
    /// CPUs to run on, such as 0-3,8
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<Cpus>,
    /// Also count instructions per call with callgrind
    #[arg(long)]
    pub instructions: bool,
    /// Compare with an earlier benchmark result
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Exit with status 1 if a case is slower than the baseline by more than PERCENT
    #[arg(long, value_name = "PERCENT", requires = "baseline", value_parser = percent)]
    pub fail_above: Option<f64>,
    /// Maximum rows per table [default: 20]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show all rows of each table
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Destination and format.
    #[command(flatten)]
    pub output: Output,
    // Flattened last: options after them would be listed under their headings.
    /// Options of all sides and of individual sides
    #[command(flatten)]
    pub shared: SidesArgs,
    /// The suite to take the cases from
    #[command(flatten)]
    pub suite: SuiteArgs,
    /// Limits and precision
    #[command(flatten)]
    pub effort: EffortArgs,
}

/// Clock that triggers samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClockArg {
    /// CPU time: sample running threads only
    Cpu,
    /// Wall time: sample waiting threads too
    Wall,
}

/// Sampling backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendArg {
    /// The agent if possible, otherwise perf
    Auto,
    /// A library loaded into the program: native and Python frames
    Agent,
    /// The installed perf: kernel frames, running processes, several events; no Python frames
    Perf,
}

/// Stack unwinding method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnwindArg {
    /// Best available method
    Auto,
    /// The agent copies the registers and the stack
    Agent,
    /// perf with last branch records (LBR): at most 16 or 32 callers, only on some CPUs
    Lbr,
    /// perf with frame pointers: cheap, for programs built with them
    Fp,
    /// perf with copied stacks: works without frame pointers
    Dwarf,
}

/// A list of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(pub Vec<usize>);

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.1..=20_000.0).contains(&rate) => Ok(rate),
        Ok(_) => Err("expected 0.1 to 20000 samples per second".into()),
        Err(_) => Err("expected a number".into()),
    }
}

fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = text.split_at(text.trim_end_matches(|c: char| !c.is_ascii_digit()).len());
    let factor = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        _ => return Err("expected a number of bytes, optionally with the suffix K or M".into()),
    };
    match digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)) {
        Some(size) if (1024..=1 << 20).contains(&size) => Ok(size),
        _ => Err("expected 1K to 1M".into()),
    }
}

/// Parses a percentage as a fraction: `5%` and `5` are 0.05.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=1e6).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a percentage, such as 5% or 0.5%".into()),
    }
}

/// Parses a time as seconds or with a unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let end = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len();
    let (digits, unit) = text.split_at(end);
    let factor = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected seconds, or a number with the suffix us, ms, s, m or h".into()),
    };
    let seconds = digits.parse::<f64>().map_err(|_| "expected a number".to_owned())? * factor;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn cpus(text: &str) -> Result<Cpus, String> {
    let number = |text: &str| {
        text.trim().parse::<usize>().map_err(|_| format!("{text:?} is not a CPU number"))
    };
    let mut all = vec![];
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last || last > 4096 {
            return Err(format!("{part:?} is not a range of CPUs"));
        }
        all.extend(first..=last);
    }
    Ok(Cpus(all))
}

/// Arguments of `report`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard report run.lag
  laggard report --by python-line --top 20 run.lag
  laggard report --by kernel -o kernels.csv trace.json.gz
  laggard report ranks/   # all ranks of a job, side by side

Reads recordings and call traces of laggard (.lag), profiles (perf.data, pprof, collapsed stacks,
…), counters of perf stat, results of laggard bench, hyperfine, pyperf and pytest-benchmark, and
PyTorch traces, plain or compressed.")]
pub struct ReportArgs {
    /// File of any kind listed below, traces of several ranks, or a directory of them; `-` is
    /// standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Show one table, grouped by WHAT
    #[arg(long, value_parser = by(), value_name = "WHAT")]
    pub by: Option<String>,
    /// Maximum rows per table [default: 10, or 20 for benchmarks and counters; no limit for ranks]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show all rows of each table
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Show the Python stacks that launched the most device time
    #[arg(long)]
    pub stacks: bool,
    /// List unclassified kernels, most time first
    #[arg(long)]
    pub unclassified: bool,
    /// Options for reading traces.
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Destination and format.
    #[command(flatten)]
    pub output: Output,
    // Flattened last: options after them would be listed under their headings.
    /// Options for profiles and call traces
    #[command(flatten)]
    pub samples: SampleArgs,
    /// Options for call traces
    #[command(flatten)]
    pub calls: CallViewArgs,
}

/// Options of `report` for profiles and call traces.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Options for profiles and call traces")]
pub struct SampleArgs {
    /// Filters of samples.
    #[command(flatten)]
    pub narrow: NarrowArgs,
    /// Time range.
    #[command(flatten)]
    pub time: TimeArgs,
    /// Show the callers of a function
    #[arg(long, value_name = "FUNCTION", group = "shown_as")]
    pub callers: Option<String>,
    /// Show the callees of a function
    #[arg(long, value_name = "FUNCTION", group = "shown_as")]
    pub callees: Option<String>,
    /// Show the call tree; same as --by tree
    #[arg(long, group = "shown_as", conflicts_with = "by")]
    pub tree: bool,
    /// Show the calls between libraries
    #[arg(long, group = "shown_as", conflicts_with = "by")]
    pub module_graph: bool,
}

impl SampleArgs {
    /// Options of this group that were given.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        let shown = [
            ("--callers", self.callers.is_some()),
            ("--callees", self.callees.is_some()),
            ("--tree", self.tree),
            ("--module-graph", self.module_graph),
        ];
        let shown = shown.into_iter().filter_map(|(flag, given)| given.then_some(flag));
        self.narrow.given().chain(self.time.given()).chain(shown)
    }
}

/// Filters of samples.
#[derive(Args, Debug, Default)]
pub struct NarrowArgs {
    /// Keep only samples in a library and its callees, or calls into it
    #[arg(long, value_name = "NAME")]
    pub lib: Option<String>,
    /// Keep only samples of this event [default: the event with the most samples]
    #[arg(long, value_name = "EVENT")]
    pub event: Option<String>,
    /// Keep only samples of threads with ID THREAD or with THREAD in their name
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// Keep only samples of processes with ID PROCESS or with PROCESS in their name
    #[arg(long, value_name = "PROCESS")]
    pub comm: Option<String>,
    /// Keep only samples of the process with this ID
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// With --lib, also keep imports and the initialization of libraries
    #[arg(long)]
    pub start_up: bool,
    /// Show interpreter frames in call trees and flame graphs
    #[arg(long)]
    pub interpreter: bool,
    /// Attribute inlined functions to the functions that contain them
    #[arg(long)]
    pub no_inline: bool,
}

impl NarrowArgs {
    /// Options of this group that were given.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> + use<> {
        [
            ("--lib", self.lib.is_some()),
            ("--event", self.event.is_some()),
            ("--thread", self.thread.is_some()),
            ("--comm", self.comm.is_some()),
            ("--pid", self.pid.is_some()),
            ("--start-up", self.start_up),
            ("--interpreter", self.interpreter),
            ("--no-inline", self.no_inline),
        ]
        .into_iter()
        .filter_map(|(flag, given)| given.then_some(flag))
    }

    /// Removes hidden frames before totals are computed: inlined functions, and interpreter frames
    /// in call trees.
    pub(crate) fn fold(&self, found: &mut Profile, is_tree: bool) {
        if self.no_inline {
            profile::fold_inlined(found);
        }
        // --lib libpython selects the interpreter, so its frames stay visible.
        let is_asked_for = self.lib.as_deref().is_some_and(is_interpreters);
        if is_tree && !self.interpreter && !is_asked_for {
            profile::fold_interpreter(found);
        }
    }

    /// Filter of a profile for these options.
    pub(crate) fn filter(&self) -> profile::Filter {
        profile::Filter {
            library: self.lib.clone(),
            thread: self.thread.clone(),
            process: self.comm.clone(),
            pid: self.pid,
            event: self.event.clone(),
            from_ns: None,
            to_ns: None,
            start_up: self.start_up,
        }
    }
}

/// Whether this is the name of the Python interpreter or of one of its functions.
pub(crate) fn is_interpreters(name: &str) -> bool {
    ["Py", "_Py", "pymain", "python", "libpython"].iter().any(|start| name.starts_with(start))
}

/// Time range of a profile.
#[derive(Args, Debug, Default)]
pub struct TimeArgs {
    /// Keep only samples from TIME on, such as 1.5s, 200ms or 1.5 (seconds)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub from: Option<u64>,
    /// Keep only samples before TIME
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub to: Option<u64>,
}

impl TimeArgs {
    /// Options of this group that were given.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> + use<> {
        [("--from", self.from.is_some()), ("--to", self.to.is_some())]
            .into_iter()
            .filter_map(|(flag, given)| given.then_some(flag))
    }

    /// Adds this time range to a filter.
    pub(crate) fn of(&self, filter: profile::Filter) -> profile::Filter {
        profile::Filter { from_ns: self.from, to_ns: self.to, ..filter }
    }
}

/// Options of `report` for call traces only.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Options for call traces")]
pub struct CallViewArgs {
    /// Keep only functions whose name matches or contains GLOB
    #[arg(long = "fn", value_name = "GLOB")]
    pub function: Option<String>,
    /// Show the distribution of call durations of a function
    #[arg(long, value_name = "FUNCTION", group = "shown_as")]
    pub histogram: Option<String>,
}

impl CallViewArgs {
    /// Options of this group that were given.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        [("--fn", self.function.is_some()), ("--histogram", self.histogram.is_some())]
            .into_iter()
            .filter_map(|(flag, given)| given.then_some(flag))
    }
}

/// Value of `--by` that groups calls by the values of their arguments.
pub(crate) const BY_ARGUMENTS: &str = "arguments";

/// Value of `--by` that groups samples or calls by Python line.
pub(crate) const BY_PYTHON_LINE: &str = "python-line";

/// Value of `--by` that shows the call tree.
pub(crate) const BY_TREE: &str = "tree";

fn by() -> impl TypedValueParser<Value = String> {
    let of_profile = profile::By::ALL.map(|by| PossibleValue::new(by.word()).help(by.meaning()));
    let tree = PossibleValue::new(BY_TREE).help("Call tree from the start of the program");
    let caller = PossibleValue::new(calls::By::Caller.word()).help("Functions that make the calls");
    let arguments = PossibleValue::new(BY_ARGUMENTS).help("Values of recorded arguments");
    let of_trace = By::ALL.map(|by| PossibleValue::new(by.word()).help(by.meaning()));
    PossibleValuesParser::new(
        of_profile.into_iter().chain([tree, caller, arguments]).chain(of_trace),
    )
}

/// Parses a time into nanoseconds; a number without a unit is seconds.
fn moment(text: &str) -> Result<u64, String> {
    let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("min", 60e9), ("s", 1e9)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(name, ns)| Some((text.strip_suffix(name)?, ns)))
        .unwrap_or((text, 1e9));
    match number.trim().parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok((number * unit) as u64),
        _ => Err("expected a time, such as 1.5s, 200ms or 1.5".into()),
    }
}

/// Arguments of `flame`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard flame run.lag   # writes run.svg
  laggard flame -o cpu.svg perf.data
  laggard flame -o diff.svg a.lag b.lag   # difference between A and B

The width of a frame is its total time, or its count of the sampled event. With two files, it is the
larger total of the two sides. The color and the signed number show the difference, B minus A.")]
pub struct FlameArgs {
    /// Profile in any format; if two are given, A is the reference and B the side to explain
    #[arg(required = true, num_args = 1..=2, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write to FILE (.svg); `-` is standard output [default: PROFILE.svg in the current
    /// directory]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Title of the flame graph [default: the recorded command]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
    // Flattened last: options after it would be listed under its heading.
    /// Filters of samples.
    #[command(flatten)]
    pub narrow: NarrowArgs,
    /// Time range.
    #[command(flatten)]
    pub time: TimeArgs,
}

/// Arguments of `view`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard view run.lag   # opens a browser
  laggard view -o trace.html trace.json.gz
  laggard view -o diff.html a.lag b.lag   # A, B and their difference

The page is a single file. It can be sent by mail and opened without a network connection.")]
pub struct ViewArgs {
    /// Any file that `report` reads; if two are given, A is the reference and B the side to explain
    #[arg(required = true, num_args = 1..=2, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write to FILE (.html); `-` is standard output [default: a file in the cache directory,
    /// opened in a browser]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Open the page in a browser
    #[arg(long, conflicts_with = "no_open")]
    pub open: bool,
    /// Do not open the page
    #[arg(long)]
    pub no_open: bool,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
    // Flattened last: options after it would be listed under its heading.
    /// Filters of samples.
    #[command(flatten)]
    pub narrow: NarrowArgs,
    /// Time range.
    #[command(flatten)]
    pub time: TimeArgs,
}

/// Arguments of `convert`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard convert run.lag run.speedscope.json
  laggard convert --to firefox perf.data profile.json.gz
  laggard convert --to collapsed run.lag - | sort")]
pub struct ConvertArgs {
    /// Recording, call trace or profile (.lag, perf.data, pprof, collapsed stacks, …)
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// Output file; the suffix selects the format; `-` is standard output
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// Output format [default: selected by the suffix of OUT]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: Option<ProfileForm>,
    /// Filters of samples.
    #[command(flatten)]
    pub narrow: NarrowArgs,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
}

/// Format that a profile can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfileForm {
    /// Recording (.lag)
    Lag,
    /// Flame graph (.svg)
    Svg,
    /// HTML page with a flame graph and a table (.html)
    Html,
    /// Collapsed stacks, one per line (.folded, .collapsed, .txt)
    Collapsed,
    /// speedscope (.speedscope.json)
    Speedscope,
    /// Firefox Profiler (.profile.json, .profile.json.gz)
    Firefox,
    /// pprof (.pb.gz)
    Pprof,
    /// Chrome trace, for Perfetto and chrome://tracing (.trace.json, .trace.json.gz)
    Chrome,
    /// One row per sample (.csv)
    Csv,
}

/// Arguments of `index`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard index   # list indexes here and in the cache directory
  laggard index --clear --stale
  laggard index --clear ranks/")]
pub struct IndexArgs {
    /// Traces, indexes or directories [default: the current directory and the cache directory]
    #[arg(value_name = "PATH")]
    pub places: Vec<PathBuf>,
    /// Delete the indexes instead of listing them
    #[arg(long)]
    pub clear: bool,
    /// Select only indexes that are damaged or from an earlier version, or whose trace was changed or deleted
    #[arg(long)]
    pub stale: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `inspect`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard inspect --python numpy --by file
  laggard inspect libc.so.6 libm.so.6   # side by side
  laggard inspect --fn 'mem*' --sort vector libc.so.6
  laggard inspect --profile run.lag   # code that was executed")]
pub struct InspectArgs {
    /// Libraries or programs: paths, or names that the dynamic loader finds
    #[arg(value_name = "LIB")]
    pub files: Vec<PathBuf>,
    /// Also inspect the native code of a Python package; repeatable
    #[arg(long, value_name = "PACKAGE")]
    pub python: Vec<String>,
    /// Weight functions by the samples of a profile
    #[arg(long, value_name = "RUN")]
    pub profile: Option<PathBuf>,
    /// Show only files or only functions
    #[arg(long, value_enum, value_name = "WHAT")]
    pub by: Option<InspectBy>,
    /// Keep only functions that match GLOB; repeatable
    #[arg(long = "fn", value_name = "GLOB")]
    pub functions: Vec<String>,
    /// Sort order of functions [default: size, or samples with --profile]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub sort: Option<InspectSort>,
    /// Maximum rows per table [default: 15]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show all rows of each table
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Disassemble a function, given by name, pattern or address; repeatable
    #[arg(long, value_name = "FUNCTION")]
    pub asm: Vec<String>,
    /// With --asm, also show instruction bytes
    #[arg(long, requires = "asm")]
    pub bytes: bool,
    /// Destination and format.
    #[command(flatten)]
    pub output: Output,
}

/// Selection of tables of `inspect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InspectBy {
    /// Properties of the files only
    File,
    /// Functions only
    Function,
}

/// Sort order of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InspectSort {
    /// Largest first
    Size,
    /// Largest share of vector instructions first
    Vector,
    /// Most samples first
    Samples,
    /// By name
    Name,
    /// By address
    Address,
}

/// Arguments of `dump`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard dump --pid 4242          # needs a running process
  laggard dump --pid 4242 --json   # needs a running process

The innermost frame is printed first. The process is not stopped.")]
pub struct DumpArgs {
    /// Process ID
    #[arg(long, value_name = "PID")]
    pub pid: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `doctor`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard doctor
  laggard doctor -o doctor.md   # for a bug report
  laggard doctor --strict=blocks || echo 'some commands do not work here'")]
pub struct DoctorArgs {
    /// Exit with status 1 if a finding is at least this severe [default WHEN: costs]
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "costs")]
    pub strict: Option<Strict>,
    /// Destination and format.
    #[command(flatten)]
    pub output: Output,
}

/// Lowest severity that fails `doctor --strict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Strict {
    /// laggard works, but with less detail or more noise
    Costs,
    /// A command of laggard does not work
    Blocks,
}

fn phase_pattern(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, pattern)) if !name.is_empty() && !pattern.is_empty() => {
            Ok((name.to_owned(), pattern.to_owned()))
        }
        _ => Err("expected NAME=PATTERN".into()),
    }
}

/// Command definition, for man pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests fail by panicking

    use super::*;
    use clap::FromArgMatches;

    fn bench(args: &[&str]) -> Result<BenchArgs, String> {
        let command = BenchArgs::augment_args(clap::Command::new("bench"));
        command.clone().debug_assert();
        let found = command.try_get_matches_from([&["bench"], args].concat());
        let found = found.map_err(|error| error.to_string())?;
        BenchArgs::from_arg_matches(&found).map_err(|error| error.to_string())
    }

    #[test]
    fn bench_arguments_are_parsed() {
        let args = bench(&["a", "b"]).unwrap();
        assert_eq!((args.sides.len(), args.effort.precision), (2, 0.01));
        assert_eq!(args.effort.timeout, Duration::from_secs(60));
        let args = bench(&[
            "--param",
            "n=1,10,100",
            "--b-env",
            "OMP_NUM_THREADS=1",
            "--set",
            "c.env=K=V=W",
            "--set",
            "C.threads=2",
            "--baseline",
            "x.json",
            "--fail-above",
            "5%",
            "a",
        ])
        .unwrap();
        assert_eq!(args.param[0].values, ["1", "10", "100"]);
        assert_eq!(args.shared.each.b_env, [("OMP_NUM_THREADS".to_owned(), "1".to_owned())]);
        let settings: Vec<(usize, Set)> =
            args.shared.each.set.into_iter().map(|set| (set.side, set.what)).collect();
        assert_eq!(settings, [(2, Set::Env("K".into(), "V=W".into())), (2, Set::Threads(2))]);
        assert_eq!(args.fail_above, Some(0.05));
    }

    #[test]
    fn invalid_bench_arguments_are_rejected() {
        for args in [
            &["--fail-above", "5%", "a"][..],
            &["--fail-above", "x", "--baseline", "b", "a"],
            &["--commands", "--setup", "x = 1", "a"],
            &["--param", "n", "a"],
            &["--param", "n=1,,2", "a"],
            &["--param", "2=1", "a"],
            &["--set", "C.colour=red", "a"],
            &["--set", "CC.dir=x", "a"],
            &["--precision", "-1%", "a"],
            &["--rounds", "0", "a"],
            &["--shape", "512x"],
            &["--shape", "0x5"],
            &["--dtype", "float31"],
            &["--operations", "sum,subtract"],
            &["--layout", "diagonal"],
            &["--simd-mode", "neon"],
        ] {
            assert!(bench(args).is_err(), "{args:?}");
        }
    }
}
