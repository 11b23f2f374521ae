//! Options of `ffi`.

use super::{Cpus, OUTPUT_WITH_PAGES, Output, cpus, duration};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `ffi`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    mut_arg("output", |arg| arg.help(OUTPUT_WITH_PAGES)),
    after_help = "Examples:
  laggard ffi --quick
  laggard ffi --quick --bindings ctypes --categories noop -o ffi.html   # also write an HTML page
  laggard ffi --quick --fn math:hypot --args '(3.0, 4.0)'   # compare a function with the C API
  laggard ffi why capi ctypes noop   # explain why ctypes is slower

Bindings: capi, cython, nanobind, pyo3, pybind11, cffi-api, cffi-abi, ctypes-pydll and ctypes. The
names cffi and ctypes select both of their variants. The C API binding (capi) is always measured.
Bindings without their compiler or package are skipped with a notice.

Times are per call, without the loop overhead. All bindings are measured in turns in one process.
This is repeated in several process launches, from which confidence intervals are computed."
)]
pub struct FfiArgs {
    /// Task other than measuring.
    #[command(subcommand)]
    pub verb: Option<FfiVerb>,
    /// Bindings to measure, such as pyo3,ctypes [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub bindings: Vec<String>,
    /// Categories by name or group, with * and ? as wildcards [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub categories: Vec<String>,
    /// Build profile of the bindings
    #[arg(long, value_enum, default_value_t = ProfileArg::Both)]
    pub profile: ProfileArg,
    /// Measure for a shorter time, without instruction counts and profiling overhead
    #[arg(long)]
    pub quick: bool,
    /// Approximate number of calls per function, regardless of time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub iterations: Option<u64>,
    /// Number of process launches [default: 8, or 3 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub launches: Option<u32>,
    /// CPUs to run on, such as 0-3,8 [default: the last CPU]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<Cpus>,
    /// Python interpreter: a version, name or path; repeatable [default: python3]
    #[arg(long, value_name = "PYTHON")]
    pub python: Vec<String>,
    /// Measure your own function and compare it with the C API binding
    #[arg(long = "fn", value_name = "MODULE:NAME", value_parser = function, conflicts_with_all = ["bindings", "categories"])]
    pub function: Option<(String, String)>,
    /// Arguments of the function: a Python tuple, or one argument
    #[arg(long, value_name = "EXPRESSION", default_value = "()", requires = "function")]
    pub args: String,
    /// Set-up code: Python that runs once before timing; repeatable
    #[arg(long, value_name = "STATEMENT", requires = "function")]
    pub setup: Vec<String>,
    /// Show all rows, with ranks and confidence intervals; files always contain them
    #[arg(long)]
    pub all: bool,
    /// Abort an interpreter that does not respond within TIME
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub timeout: Duration,
    /// Destination and format; HTML pages are supported too
    #[command(flatten)]
    pub output: Output,
}

/// Tasks of `ffi` other than measuring.
#[derive(Subcommand, Debug)]
pub enum FfiVerb {
    /// Explain why a call through binding B is slower than through A
    Why(FfiWhyArgs),
    /// Call functions through one binding, for use under a profiler
    Run(FfiRunArgs),
    /// Build bindings and print the commands and libraries used
    Build(FfiBuildArgs),
    /// Delete all built bindings from the cache
    Clear,
}

/// Build profile of bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfileArg {
    /// Optimized for speed
    Fast,
    /// Optimized for speed, with frame pointers
    Instrumented,
    /// Both profiles
    Both,
}

/// Arguments of `ffi why`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard ffi why capi ctypes noop
  laggard ffi why -o why.html ctypes-pydll ctypes noop")]
pub struct FfiWhyArgs {
    /// Reference binding
    #[arg(value_name = "A")]
    pub a: String,
    /// Binding to explain
    #[arg(value_name = "B")]
    pub b: String,
    /// Category of the call, such as noop
    #[arg(value_name = "CATEGORY")]
    pub category: String,
    /// Build profile of the bindings
    #[arg(long, value_enum, default_value_t = ProfileArg::Fast)]
    pub profile: ProfileArg,
    /// Python interpreter: a version, name or path
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    pub python: String,
    /// Total time for all measurements, such as 20, 20s or 2m
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration)]
    pub time: Duration,
    /// Abort a side that does not respond within TIME
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub timeout: Duration,
    /// Destination and format; HTML pages are supported too
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `ffi run`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard ffi run ctypes --categories noop
  laggard record -o ffi.lag -- laggard ffi run ctypes --iterations 100000")]
pub struct FfiRunArgs {
    /// Binding to call
    #[arg(value_name = "BINDING")]
    pub binding: String,
    /// Categories by name or group, with * and ? as wildcards [default: first of each group]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub categories: Vec<String>,
    /// Number of calls per function
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Build profile of the binding
    #[arg(long, value_enum, default_value_t = ProfileArg::Fast)]
    pub profile: ProfileArg,
    /// Python interpreter: a version, name or path
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    pub python: String,
}

/// Arguments of `ffi build`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard ffi build --bindings capi,ctypes
  laggard ffi build --bindings capi --profile fast --to bindings")]
pub struct FfiBuildArgs {
    /// Bindings to build, such as pyo3,ctypes [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub bindings: Vec<String>,
    /// Build profile of the bindings
    #[arg(long, value_enum, default_value_t = ProfileArg::Both)]
    pub profile: ProfileArg,
    /// Python interpreter: a version, name or path; repeatable [default: python3]
    #[arg(long, value_name = "PYTHON")]
    pub python: Vec<String>,
    /// Copy each binding, with a program that calls it, to a subdirectory of DIRECTORY; requires
    /// one profile and one interpreter
    #[arg(long, value_name = "DIRECTORY")]
    pub to: Option<PathBuf>,
}

fn function(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((module, name)) if !module.is_empty() && !name.is_empty() => {
            Ok((module.to_owned(), name.to_owned()))
        }
        _ => Err("expected MODULE:NAME".into()),
    }
}
