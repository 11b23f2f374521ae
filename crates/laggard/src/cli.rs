//! Every verb and flag, defined once: parsing, help, man pages and completions come from here.

mod compare;
mod ffi;
mod package;
mod sides;
mod suites;
mod traces;

pub use compare::{
    BY_FUNCTION, BY_LIBRARY, Calls, CompareArgs, CompareSamples, CompareTraces, ScaleArg, SideArg,
};
pub use ffi::{FfiArgs, FfiBuildArgs, FfiRunArgs, FfiVerb, FfiWhyArgs, ProfileArg};
pub use package::{
    Engine, FleetArgs, FleetCompareArgs, FleetFormat, FleetIngestArgs, FleetOutput,
    FleetReportArgs, FleetVerb, QueryArgs, QueryFormat,
};
pub use sides::{EachSideArgs, EffortArgs, Parameter, Set, Setting, SidesArgs};
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

/// Finds out why one implementation lags behind another.
#[derive(Parser, Debug)]
#[command(name = "laggard", version, disable_help_subcommand = true, infer_subcommands = false)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Find out why B is slower than A: time both, sample both, look at their code, name the culprit
    Why(Box<WhyArgs>),
    /// Time Python statements or commands against each other: which is faster, by how much, how sure
    Bench(Box<BenchArgs>),
    /// Sample a program: native and Python frames in one stack
    Record(RecordArgs),
    /// Count and time a program's calls into libraries: which functions, from where, how often, how long
    Calls(CallsArgs),
    /// Say what ran: libraries, functions and lines of a recording; devices, kernels and phases of a trace
    Report(Box<ReportArgs>),
    /// Say what differs between two files of one kind, and by how much: A is the reference, B the one asked about
    Compare(Box<CompareArgs>),
    /// Draw a flame graph of a profile, or of how B differs from A
    Flame(FlameArgs),
    /// Look at any file, or at how B differs from A, in a browser: one page that needs nothing else
    View(ViewArgs),
    /// Measure what a call from Python costs: every binding, every category, with frame pointers and without
    Ffi(Box<FfiArgs>),
    /// Ask any file in SQL (in the Python package)
    Query(Box<QueryArgs>),
    /// Many ranks: their traces into Parquet, and who lags among them (in the Python package)
    Fleet(Box<FleetArgs>),
    /// Turn a profile into another format: collapsed stacks, speedscope, pprof, Firefox Profiler, …
    Convert(ConvertArgs),
    /// List the indexes that make later loads of traces instant, or clear them
    Index(IndexArgs),
    /// Say how a library is built: frame pointers, debug info, symbols, SIMD mix by function
    Inspect(InspectArgs),
    /// Show what a running Python program does at this moment
    Dump(DumpArgs),
    /// Say what this machine allows, what makes its timings noisy, and the exact fix
    Doctor(DoctorArgs),
    /// Take the samples of a process that records a block of itself, which starts this
    #[command(hide = true)]
    Drive(DriveArgs),
}

/// Flags that every verb has.
#[derive(Args, Debug, Clone, Copy)]
pub struct Talk {
    /// When to colour the output
    #[arg(long, global = true, display_order = 100, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
    /// Say nothing but results and errors
    #[arg(short, long, global = true, display_order = 100)]
    pub quiet: bool,
    /// Say more about what is done
    #[arg(short, long, global = true, display_order = 100, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Show no progress bar
    #[arg(long, global = true, display_order = 100)]
    pub no_progress: bool,
}

/// When to colour the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Where results go and in which form.
#[derive(Args, Debug, Clone)]
pub struct Output {
    /// Write to a file whose suffix says its form (.txt, .json, .csv, .md); `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Form of standard output, or of a file whose suffix says nothing
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<Format>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
}

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For reading in a terminal
    Text,
    /// For programs, with a versioned schema
    Json,
    /// One table for a spreadsheet
    Csv,
    /// For a web page or an issue
    #[value(alias = "markdown")]
    Md,
    /// Part of a page, for notebooks
    #[value(skip)]
    Html,
}

/// Arguments of `record`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard record -- python train.py
  laggard record -o run.svg -- python train.py      (a flame graph at once)
  laggard record --clock wall --rate 200 -- ./server
  laggard record --children -- make test
  laggard record --overhead -- python step.py       (and what recording costs)
  laggard record --pid 4242 --duration 10           (a process that runs, through perf)
  laggard record --event cycles --event cache-misses -- ./solve
  laggard record --case broadcast_add:512x512:float32 --side numpy   (a side of a case of a suite)

The program's own output passes through; what laggard has to say goes to standard error. The exit
code is the program's, or 125 when laggard itself failed.")]
pub struct RecordArgs {
    /// The program and its arguments
    #[arg(required_unless_present_any = ["pid", "case"], last = true, conflicts_with_all = ["case", "suite", "simd_mode", "side", "python"], value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Record a process that runs already, with perf, until --duration or Ctrl-C
    #[arg(long, value_name = "PID", conflicts_with_all = ["command", "case", "overhead", "cpus"])]
    pub pid: Option<u32>,
    /// Write the recording here; the suffix says the form (.lag, .svg, .html, .folded, …)
    /// [default: laggard-<program>-<pid>.lag]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Samples per second of each thread's clock
    #[arg(long, value_name = "HZ", default_value_t = 999.0, value_parser = rate)]
    pub rate: f64,
    /// The clock that drives the samples: CPU time, or wall time, which sees threads that wait
    #[arg(long, value_enum, default_value_t = ClockArg::Cpu)]
    pub clock: ClockArg,
    /// Count an event instead of time (cycles, cache-misses, page-faults, …); may be given again
    #[arg(long, value_name = "EVENT")]
    pub event: Vec<String>,
    /// What takes the samples: an agent in the program, or the perf that is installed
    #[arg(long, value_enum, default_value_t = BackendArg::Auto)]
    pub backend: BackendArg,
    /// How callers are found; all but `auto` and `agent` are perf's ways
    #[arg(long, value_enum, default_value_t = UnwindArg::Auto)]
    pub unwind: UnwindArg,
    /// Sample forked processes and the programs they run too
    #[arg(long)]
    pub children: bool,
    /// Keep only samples whose thread held Python's global lock
    #[arg(long)]
    pub gil: bool,
    /// Most of a stack that is copied for a sample
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = size)]
    pub stack_size: u64,
    /// End the program after this time (90, 90s, 500ms, 2m); call a case's side for this time [default
    /// with --case: 3s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Processors to run on (0-3,8)
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<Cpus>,
    /// Measure what recording costs: run the command bare and recorded in turns, this often each
    #[arg(long, value_name = "ROUNDS", num_args = 0..=1, require_equals = true, default_missing_value = "5", value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub overhead: Option<u16>,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
    // Last, because what follows would stand under its heading.
    /// A side of a case, in place of a command
    #[command(flatten)]
    pub side: CaseSideArgs,
}

/// Arguments of `drive`, which no person types.
#[derive(Args, Debug)]
pub struct DriveArgs {
    /// The process
    #[arg(long, value_name = "PID")]
    pub pid: u32,
    /// Write the recording here; the suffix says the form
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Samples per second of each thread's clock
    #[arg(long, value_name = "HZ", default_value_t = 999.0, value_parser = rate)]
    pub rate: f64,
    /// The clock that drives the samples
    #[arg(long, value_enum, default_value_t = ClockArg::Cpu)]
    pub clock: ClockArg,
    /// Keep only samples whose thread held Python's global lock
    #[arg(long)]
    pub gil: bool,
    /// Most of a stack that is copied for a sample
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = size)]
    pub stack_size: u64,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `calls`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard calls --lib openblas -- python step.py
  laggard calls --lib openblas --args 6 -- python step.py   (with the sizes of products)
  laggard calls --fn 'pthread_cond_*' -- ./server
  laggard calls --from _multiarray_umath -- python step.py
  laggard calls --case matmul:512x512:float64 --side numpy   (a side of a case of a suite)

Without --lib, --from and --fn, calls between extension modules and libraries are traced; not those
of the program itself, and not those into the libraries that every process has (libc, libm,
libstdc++, libpython, …). --lib traces all calls into a library, --from all that a module makes to
others, --fn calls of these functions wherever they are; together they narrow each other. Calls
within a library are traced when it is named with both --from and --lib.

A pattern with * or ? matches a whole name. Without them --lib and --from take any part of a file's
name, and --fn the whole name of a function.

The program's own output passes through; what laggard has to say goes to standard error. The exit
code is the program's, or 125 when laggard itself failed.")]
pub struct CallsArgs {
    /// The program and its arguments
    #[arg(required_unless_present_any = ["pid", "case"], last = true, conflicts_with_all = ["case", "suite", "simd_mode", "side", "python"], value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Trace calls into this library; may be given again
    #[arg(long, value_name = "NAME")]
    pub lib: Vec<String>,
    /// Trace calls that this module makes; may be given again
    #[arg(long, value_name = "MODULE")]
    pub from: Vec<String>,
    /// Trace calls of these functions; may be given again
    #[arg(long = "fn", value_name = "GLOB")]
    pub function: Vec<String>,
    /// Keep the values of the first integer arguments, at most 6; slows every traced call
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=6))]
    pub args: u8,
    /// Of this many calls, keep the whole stack of one; 0 keeps none
    #[arg(long, value_name = "N", default_value_t = 16384)]
    pub stacks: u32,
    /// Count calls inside the library too, exactly: by callgrind, which is 50 to 300 times slower and
    /// gives instructions in place of times, or by uprobes, as root
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "auto", conflicts_with_all = ["args", "stacks"])]
    pub inside: Option<InsideArg>,
    /// Count and time system calls instead
    #[arg(long, conflicts_with_all = ["inside", "args", "stacks", "lib"])]
    pub syscalls: bool,
    /// Trace the programs that the program starts too
    #[arg(long)]
    pub children: bool,
    /// Processors to run on (0-3,8)
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<Cpus>,
    /// Write the calls here [default: laggard-<program>-<pid>.lag]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
    /// A running program, which cannot be traced: says why
    #[arg(long, value_name = "PID", hide = true)]
    pub pid: Option<u32>,
    // Last, because what follows would stand under its heading.
    /// A side of a case, in place of a command
    #[command(flatten)]
    pub side: CaseSideArgs,
    /// How often the side of the case is called
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,
}

/// How calls inside a library are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InsideArg {
    /// The way that fits what is asked for and what the machine allows
    Auto,
    /// A simulated processor: exact, with callers, slow
    Callgrind,
    /// Breakpoints of the kernel: counts only, needs root
    Uprobes,
}

/// Arguments of `why`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard why --setup 'import numpy as np; a = np.ones((512, 512), np.float32); b = a.astype(np.float64)' 'a.sum()' 'b.sum()'
  laggard why --b-env OPENBLAS_CORETYPE=Nehalem --setup 'import numpy as np; a = np.ones((256, 256))' 'a @ a' 'a @ a'
  laggard why --commands './solve' './solve --safe'
  laggard why --case broadcast_add:512x512:float32     (raptors against NumPy)
  laggard why -o why.html --setup 'x = list(range(1000))' 'sum(x)' 'sum(i for i in x)'

A is the reference, B the one asked about. Where B does not lag detectably, nothing is named.")]
pub struct WhyArgs {
    /// The reference: a Python statement, or with --commands a command line; with --case a library, or a
    /// side of the case
    #[arg(value_name = "A", required_unless_present_any = ["case", "from"], requires = "b")]
    pub a: Option<String>,
    /// The one asked about
    #[arg(value_name = "B", required_unless_present_any = ["case", "from"])]
    pub b: Option<String>,
    /// Judge what is kept in files: recordings of A and of B (.lag), or one verdict (.json)
    #[arg(long, value_name = "FILE", num_args = 1..=2, conflicts_with_all = ["a", "case"])]
    pub from: Vec<PathBuf>,
    /// Time for all of it (20, 20s, 2m)
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration)]
    pub time: Duration,
    /// Give a side up that does not answer for this time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub timeout: Duration,
    /// Where to; a file may be a page too (.html).
    #[command(flatten)]
    pub output: Output,
    // Last, because what follows would stand under their headings.
    /// What the sides share, and what each has of its own
    #[command(flatten)]
    pub shared: SidesArgs,
    /// Sides of a case
    #[command(flatten)]
    pub of: CaseArgs,
}

/// Arguments of `bench`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard bench --setup 'import numpy as np; a = np.ones(10**6)' 'a.sum()' 'np.add.reduce(a)'
  laggard bench --a-python python3.11 --b-python python3.13 'sorted(range(1000))' 'sorted(range(1000))'
  laggard bench --b-env OMP_NUM_THREADS=1 --setup 'import numpy as np; a = np.ones((512, 512))' 'a @ a' 'a @ a'
  laggard bench --commands --prepare 'sync' 'gzip -k -f big.txt' 'zstd -f big.txt'
  laggard bench --setup 'x = list(range(n))' --param n=10,100,1000,10000 'sum(x)' 'max(x)'
  laggard bench -o bench.json --json 'sum(range(100))'      (keep the samples, and print them too)
  laggard bench --baseline bench.json --fail-above 5% 'sum(range(100))'
  laggard bench --suite 2d --dtype float32                  (raptors against NumPy)
  laggard bench --suite 2d --operations sum,mean numpy torch
  laggard bench                                             (the cases of laggard-bench.toml)

A is the first side and the reference, B the second; a ratio is the time of a side over that of A.
Sides run in processes of their own, in turns and in random order, so that what disturbs the machine
disturbs all of them alike. Statements are compared by their results before they are timed.")]
pub struct BenchArgs {
    /// What to time: Python statements, or with --commands command lines; with a suite libraries, or
    /// sides of it; the first is the reference
    #[arg(value_name = "SIDE")]
    pub sides: Vec<String>,
    /// Scan a parameter: a variable of statements and set-up, or {NAME} in commands; may be given again
    #[arg(long, value_name = "NAME=V1,V2,…", value_parser = sides::parameter)]
    pub param: Vec<Parameter>,
    /// Processors to run on (0-3,8)
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<Cpus>,
    /// Count the instructions of a call too, with callgrind
    #[arg(long)]
    pub instructions: bool,
    /// Compare with an earlier bench: of a reference side the ratio, so that a file of another machine
    /// still means something
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Exit 1 when a case got slower than the baseline by more than this: detectably so, and by the
    /// middle of its interval
    #[arg(long, value_name = "PERCENT", requires = "baseline", value_parser = percent)]
    pub fail_above: Option<f64>,
    /// Cases of a table [default: 20]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// All cases
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Where to.
    #[command(flatten)]
    pub output: Output,
    // Last, because what follows would stand under their headings.
    /// What the sides share, and what each has of its own
    #[command(flatten)]
    pub shared: SidesArgs,
    /// Cases of a suite
    #[command(flatten)]
    pub suite: SuiteArgs,
    /// How long and how exactly to measure
    #[command(flatten)]
    pub effort: EffortArgs,
}

/// A clock that samples can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClockArg {
    /// CPU time: only what runs is seen
    Cpu,
    /// Wall time: threads that wait are seen too
    Wall,
}

/// What takes samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendArg {
    /// The agent where it can, else perf
    Auto,
    /// A small library inside the program: native and Python frames
    Agent,
    /// The perf that is installed: kernel, running processes, several events; no Python frames
    Perf,
}

/// How callers are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnwindArg {
    /// The best that works
    Auto,
    /// All registers and the stack, copied by the agent
    Agent,
    /// The processor's branch records, of perf: 16 to 32 callers, on some processors
    Lbr,
    /// Frame pointers, of perf: cheap, for programs built with them
    Fp,
    /// Copies of the stack, of perf: works without frame pointers
    Dwarf,
}

/// A list of processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(pub Vec<usize>);

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.1..=20_000.0).contains(&rate) => Ok(rate),
        Ok(_) => Err("give 0.1 to 20000 samples a second".into()),
        Err(_) => Err("give a number".into()),
    }
}

fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = text.split_at(text.trim_end_matches(|c: char| !c.is_ascii_digit()).len());
    let factor = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        _ => return Err("give bytes, or a number with K or M".into()),
    };
    match digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)) {
        Some(size) if (1024..=1 << 20).contains(&size) => Ok(size),
        _ => Err("give 1K to 1M".into()),
    }
}

/// A share, given in percent: `5%` or `5` is 0.05.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=1e6).contains(&percent) => Ok(percent / 100.0),
        _ => Err("give percent, as 5% or 0.5%".into()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let end = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len();
    let (digits, unit) = text.split_at(end);
    let factor = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("give seconds, or a number with us, ms, s, m or h".into()),
    };
    let seconds = digits.parse::<f64>().map_err(|_| "give a number".to_owned())? * factor;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn cpus(text: &str) -> Result<Cpus, String> {
    let number = |text: &str| text.trim().parse::<usize>().map_err(|_| format!("no CPU {text:?}"));
    let mut all = vec![];
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last || last > 4096 {
            return Err(format!("no range of CPUs {part:?}"));
        }
        all.extend(first..=last);
    }
    Ok(Cpus(all))
}

/// Arguments of `report`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard report run.lag
  laggard report --lib openblas run.lag        (who calls it, and what it does)
  laggard report --callers memcpy run.lag
  laggard report --histogram cblas_dgemm64_ calls.lag   (how long traced calls took)
  laggard report bench.json                    (a bench, or results of hyperfine, pyperf, pytest-benchmark)
  laggard report trace.json.gz
  laggard report --by python --top 20 trace.json
  laggard report --phase decode trace.json.gz -o decode.json
  laggard report rank0.json.gz rank1.json.gz   (ranks of one job, side by side)
  zcat trace.json.gz | laggard report -")]
pub struct ReportArgs {
    /// A recording or traced calls (.lag), a profile of another program (perf.data, pprof, collapsed stacks, …), counters of perf stat, results of a benchmark, or PyTorch traces (plain or compressed); `-` for standard input, or a directory of ranks
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Show one table: samples of a recording, traced calls, or device time of a trace by this
    #[arg(long, value_parser = by(), value_name = "WHAT")]
    pub by: Option<String>,
    /// Rows of each table [default: 10; all ranks]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// All rows of each table
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Show the Python stacks that launched the most device time
    #[arg(long)]
    pub stacks: bool,
    /// List the kernels that no rule caught, by time
    #[arg(long)]
    pub unclassified: bool,
    /// How traces are read.
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Where to.
    #[command(flatten)]
    pub output: Output,
    // Last, because what follows would stand under their headings.
    /// Of a recording
    #[command(flatten)]
    pub samples: SampleArgs,
    /// Of traced calls
    #[command(flatten)]
    pub calls: CallViewArgs,
}

/// What to show of a recording.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Options for recordings and calls")]
pub struct SampleArgs {
    /// Which samples.
    #[command(flatten)]
    pub narrow: NarrowArgs,
    /// Of which part of the run.
    #[command(flatten)]
    pub time: TimeArgs,
    /// Show who calls a function
    #[arg(long, value_name = "FUNCTION", group = "shown_as")]
    pub callers: Option<String>,
    /// Show what a function calls
    #[arg(long, value_name = "FUNCTION", group = "shown_as")]
    pub callees: Option<String>,
    /// Show calls as a tree; the same as --by tree
    #[arg(long, group = "shown_as", conflicts_with = "by")]
    pub tree: bool,
    /// Show which library calls into which
    #[arg(long, group = "shown_as", conflicts_with = "by")]
    pub module_graph: bool,
}

impl SampleArgs {
    /// The flags of this group that were given.
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

/// Which samples to keep.
#[derive(Args, Debug, Default)]
pub struct NarrowArgs {
    /// Keep samples inside a library (a report then shows who calls it and what it does)
    #[arg(long, value_name = "NAME")]
    pub lib: Option<String>,
    /// Keep samples of this event
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,
    /// Keep samples of threads with this in their name, or with this number
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// Keep samples of processes with this in their name, or with this number
    #[arg(long, value_name = "PROCESS")]
    pub comm: Option<String>,
    /// Keep samples of the process with this number
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// With --lib, keep imports and what libraries do when they are loaded
    #[arg(long)]
    pub start_up: bool,
    /// In trees and flame graphs, keep the frames of Python's interpreter that only pass calls on
    #[arg(long)]
    pub interpreter: bool,
    /// Count inlined functions as those they were inlined into
    #[arg(long)]
    pub no_inline: bool,
}

impl NarrowArgs {
    /// The flags of this group that were given.
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

    /// Leaves frames out that are not to be shown, before anything is summed up: inlined ones, and in
    /// trees the interpreter's.
    pub(crate) fn fold(&self, found: &mut Profile, is_tree: bool) {
        if self.no_inline {
            profile::fold_inlined(found);
        }
        // Whoever names the interpreter wants to see it.
        let is_asked_for = self.lib.as_deref().is_some_and(is_interpreters);
        if is_tree && !self.interpreter && !is_asked_for {
            profile::fold_interpreter(found);
        }
    }

    /// The same for a profile.
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

/// Whether a name is that of the interpreter or of one of its own functions.
pub(crate) fn is_interpreters(name: &str) -> bool {
    ["Py", "_Py", "pymain", "python", "libpython"].iter().any(|start| name.starts_with(start))
}

/// Which part of the run.
#[derive(Args, Debug, Default)]
pub struct TimeArgs {
    /// Keep samples from this time of the run on, as 1.5s or 200ms; a bare number is seconds
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub from: Option<u64>,
    /// Keep samples before this time of the run
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub to: Option<u64>,
}

impl TimeArgs {
    /// The flags of this group that were given.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> + use<> {
        [("--from", self.from.is_some()), ("--to", self.to.is_some())]
            .into_iter()
            .filter_map(|(flag, given)| given.then_some(flag))
    }

    /// A filter of this part of the run too.
    pub(crate) fn of(&self, filter: profile::Filter) -> profile::Filter {
        profile::Filter { from_ns: self.from, to_ns: self.to, ..filter }
    }
}

/// What to show of traced calls alone.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Options for calls")]
pub struct CallViewArgs {
    /// Keep calls of functions with this name, pattern or part of a name
    #[arg(long = "fn", value_name = "GLOB")]
    pub function: Option<String>,
    /// Show how long the calls of a function took
    #[arg(long, value_name = "FUNCTION", group = "shown_as")]
    pub histogram: Option<String>,
}

impl CallViewArgs {
    /// The flags of this group that were given.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        [("--fn", self.function.is_some()), ("--histogram", self.histogram.is_some())]
            .into_iter()
            .filter_map(|(flag, given)| given.then_some(flag))
    }
}

/// The word for values of arguments, among what calls are by.
pub(crate) const BY_ARGUMENTS: &str = "arguments";

/// The word for lines of Python, which samples and calls are by.
pub(crate) const BY_PYTHON_LINE: &str = "python-line";

/// The word for calls as a tree, among what tables are by.
pub(crate) const BY_TREE: &str = "tree";

fn by() -> impl TypedValueParser<Value = String> {
    let of_profile = profile::By::ALL.map(|by| PossibleValue::new(by.word()).help(by.meaning()));
    let tree = PossibleValue::new(BY_TREE).help("calls from the program's start inwards");
    let caller =
        PossibleValue::new(calls::By::Caller.word()).help("places that calls are made from");
    let arguments = PossibleValue::new(BY_ARGUMENTS).help("values that functions were called with");
    let of_trace = By::ALL.map(|by| PossibleValue::new(by.word()).help(by.meaning()));
    PossibleValuesParser::new(
        of_profile.into_iter().chain([tree, caller, arguments]).chain(of_trace),
    )
}

/// Nanoseconds of a time with its unit; a bare number is seconds.
fn moment(text: &str) -> Result<u64, String> {
    let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("min", 60e9), ("s", 1e9)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(name, ns)| Some((text.strip_suffix(name)?, ns)))
        .unwrap_or((text, 1e9));
    match number.trim().parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok((number * unit) as u64),
        _ => Err("give it as 1.5s, 200ms or 1.5".into()),
    }
}

/// Arguments of `flame`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard flame run.lag                     (writes run.svg)
  laggard flame perf.data -o why.svg --lib openblas
  laggard flame out.folded -o - > out.svg
  laggard flame before.lag after.lag        (how B differs from A)

Width is time, or what samples count. Of two files a frame is as wide as the side that takes more of it;
its colour and its signed number are how much more B takes than A, with all that it calls.")]
pub struct FlameArgs {
    /// A profile of any kind; of two, A is the reference and B the one asked about
    #[arg(required = true, num_args = 1..=2, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The picture to write (.svg); `-` is standard output [default: FILE.svg in this directory]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What stands above the picture [default: the command that was recorded]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
    // Last, because what follows would stand under its heading.
    /// Which samples.
    #[command(flatten)]
    pub narrow: NarrowArgs,
    /// Of which part of the run.
    #[command(flatten)]
    pub time: TimeArgs,
}

/// Arguments of `view`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard view run.lag
  laggard view perf.data -o page.html
  laggard view before.lag after.lag         (A, B and their difference in one page)
  laggard view trace.json.gz
  laggard view bench.json

The page is one file that needs nothing else: it can be mailed, and opened with the network off.")]
pub struct ViewArgs {
    /// Any file that report takes; of two, A is the reference and B the one asked about
    #[arg(required = true, num_args = 1..=2, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The page to write (.html); `-` is standard output [default: one in the cache directory, opened
    /// at once]
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
    // Last, because what follows would stand under its heading.
    /// Which samples.
    #[command(flatten)]
    pub narrow: NarrowArgs,
    /// Of which part of the run.
    #[command(flatten)]
    pub time: TimeArgs,
}

/// Arguments of `convert`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard convert run.lag run.svg
  laggard convert run.lag run.folded
  laggard convert run.lag run.speedscope.json
  laggard convert run.lag run.json.gz --to firefox
  laggard convert run.lag - --to collapsed | sort")]
pub struct ConvertArgs {
    /// A recording (.lag), or a profile of another program (perf.data, pprof, collapsed stacks, …)
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// The file to write, whose suffix says its format; `-` is standard output
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// Format of the file, where its suffix does not say it
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: Option<ProfileForm>,
    /// Which samples.
    #[command(flatten)]
    pub narrow: NarrowArgs,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
}

/// Formats that a recording can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfileForm {
    /// A recording (.lag)
    Lag,
    /// Flame graph, for any browser (.svg)
    Svg,
    /// Page with a flame graph and a table (.html)
    Html,
    /// A line a stack, for flame graph programs (.folded, .collapsed, .txt)
    Collapsed,
    /// For speedscope (.speedscope.json)
    Speedscope,
    /// For the Firefox Profiler (.profile.json, .profile.json.gz)
    Firefox,
    /// For pprof (.pb.gz)
    Pprof,
    /// For Perfetto and chrome://tracing (.trace.json, .trace.json.gz)
    Chrome,
    /// A row a sample (.csv)
    Csv,
}

/// Arguments of `index`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard index                    list the indexes here and in the cache directory
  laggard index traces/ --clear    remove those of a directory")]
pub struct IndexArgs {
    /// Traces, indexes or directories; with none, the current directory and the cache directory
    #[arg(value_name = "PLACE")]
    pub places: Vec<PathBuf>,
    /// Remove them
    #[arg(long)]
    pub clear: bool,
    /// Only those that are damaged, or whose trace has changed or is gone
    #[arg(long)]
    pub stale: bool,
    /// List as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `inspect`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard inspect libopenblas.so.0
  laggard inspect ./a.so ./b.so                    (side by side)
  laggard inspect --python numpy --by file
  laggard inspect liba.so --fn '*gemm*' --sort vector
  laggard inspect liba.so --asm dgemm_kernel_HASWELL
  laggard inspect --profile run.lag                (what was executed)
  laggard inspect liba.so --profile run.lag --asm my_loop")]
pub struct InspectArgs {
    /// Libraries or programs: paths, or names that are looked up as the loader does
    #[arg(value_name = "LIB")]
    pub files: Vec<PathBuf>,
    /// Look at the native code of a Python package too
    #[arg(long, value_name = "PACKAGE")]
    pub python: Vec<String>,
    /// Weigh by the samples of a recording: what was executed
    #[arg(long, value_name = "RUN")]
    pub profile: Option<PathBuf>,
    /// Show only this
    #[arg(long, value_enum, value_name = "WHAT")]
    pub by: Option<InspectBy>,
    /// Only functions whose name fits, with `*` for anything; may be given again
    #[arg(long = "fn", value_name = "GLOB")]
    pub functions: Vec<String>,
    /// Order of functions [default: size, or samples with --profile]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub sort: Option<InspectSort>,
    /// Functions to show [default: 15]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show all functions
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Show the instructions of a function, by name, pattern or address; may be given again
    #[arg(long, value_name = "FUNCTION")]
    pub asm: Vec<String>,
    /// With --asm: the bytes of instructions too
    #[arg(long, requires = "asm")]
    pub bytes: bool,
    /// Where to.
    #[command(flatten)]
    pub output: Output,
}

/// What `inspect` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InspectBy {
    /// Files, without their functions
    File,
    /// Functions, without facts about their files
    Function,
}

/// An order of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InspectSort {
    /// The largest first
    Size,
    /// The greatest share of vector instructions first
    Vector,
    /// The most samples first
    Samples,
    /// By name
    Name,
    /// By address
    Address,
}

/// Arguments of `dump`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard dump --pid 4242
  laggard dump --pid 4242 --json

The innermost function comes first. The process is not stopped.")]
pub struct DumpArgs {
    /// The process
    #[arg(long, value_name = "PID")]
    pub pid: u32,
    /// Print JSON (laggard.dump/1)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `doctor`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard doctor
  laggard doctor --strict=blocks   (exit 1 when something cannot be done here)
  laggard doctor -o doctor.md      (for an issue)")]
pub struct DoctorArgs {
    /// Exit 1 when anything is at least this bad
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "costs")]
    pub strict: Option<Strict>,
    /// Where to.
    #[command(flatten)]
    pub output: Output,
}

/// What trips `doctor --strict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Strict {
    /// Anything that costs or blocks
    Costs,
    /// Only what blocks
    Blocks,
}

fn phase_pattern(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, pattern)) if !name.is_empty() && !pattern.is_empty() => {
            Ok((name.to_owned(), pattern.to_owned()))
        }
        _ => Err("give it as NAME=PATTERN".into()),
    }
}

/// The command tree, for man pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

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
    fn a_bench_is_asked_for() {
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
    fn what_makes_no_sense_is_refused() {
        for args in [
            &["--fail-above", "5%", "a"][..],
            &["--fail-above", "x", "--baseline", "b", "a"],
            &["--prepare", "sync", "a"],
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
