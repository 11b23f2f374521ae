//! Flags of `ffi`.

use super::{Cpus, Output, cpus, duration};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `ffi`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  laggard ffi --quick
  laggard ffi -o ffi.html                                 (all of it, as a page)
  laggard ffi --bindings pyo3,pybind11 --categories 'struct*'
  laggard ffi --python 3.9 --python 3.13 --quick          (side by side)
  laggard ffi --fn mymodule:fast_add --args '(1, 2)'      (your own function against the floor)
  laggard ffi why capi pyo3 noop                          (why does PyO3 take longer)
  laggard record -- laggard ffi run ctypes --iterations 1000000

Times are of one call without the loop around it, which is measured and taken off. Everything is
measured in one process of the interpreter, in turns, and again in several processes; ranges are
over these. Bindings whose compiler or package is missing are left out, with the reason."
)]
pub struct FfiArgs {
    /// Something else than measuring
    #[command(subcommand)]
    pub verb: Option<FfiVerb>,
    /// Bindings, of capi, cython, nanobind, pyo3, pybind11, cffi-api, cffi-abi, ctypes-pydll and
    /// ctypes; cffi and ctypes mean both of theirs; the floor, capi, is always measured [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub bindings: Vec<String>,
    /// Categories, by name or group; * and ? stand for any letters [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub categories: Vec<String>,
    /// How bindings are built
    #[arg(long, value_enum, default_value_t = ProfileArg::Both)]
    pub profile: ProfileArg,
    /// Less time for each, and neither instructions nor the cost of profiling
    #[arg(long)]
    pub quick: bool,
    /// Call every function about so often, whatever time it takes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub iterations: Option<u64>,
    /// Processes that everything is measured in, one after the other [default: 8, or 3 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub launches: Option<u32>,
    /// Processors to run on (0-3,8) [default: the last]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<Cpus>,
    /// An interpreter: a version, a name or a path; may be given again [default: python3]
    #[arg(long, value_name = "PYTHON")]
    pub python: Vec<String>,
    /// A function of your own, measured against the floor
    #[arg(long = "fn", value_name = "MODULE:NAME", value_parser = function, conflicts_with_all = ["bindings", "categories"])]
    pub function: Option<(String, String)>,
    /// Its arguments, in Python: a tuple, or one argument
    #[arg(long, value_name = "EXPRESSION", default_value = "()", requires = "function")]
    pub args: String,
    /// Python that runs before, for its arguments; may be given again
    #[arg(long, value_name = "STATEMENT", requires = "function")]
    pub setup: Vec<String>,
    /// Show every row, with ranks and ranges; files always have them
    #[arg(long)]
    pub all: bool,
    /// Give up an interpreter that does not answer for this time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub timeout: Duration,
    /// Where to; a file may be a page too (.html).
    #[command(flatten)]
    pub output: Output,
}

/// What `ffi` does beside measuring.
#[derive(Subcommand, Debug)]
pub enum FfiVerb {
    /// Find out why B takes longer than A for the same call
    Why(FfiWhyArgs),
    /// Call functions through one binding and nothing else, to be put under a profiler
    Run(FfiRunArgs),
    /// Build bindings, and say how
    Build(FfiBuildArgs),
    /// Remove all that was built from the cache
    Clear,
}

/// How bindings are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfileArg {
    /// As fast as the compilers can
    Fast,
    /// The same with frame pointers
    Instrumented,
    /// Each
    Both,
}

/// Arguments of `ffi why`.
#[derive(Args, Debug)]
pub struct FfiWhyArgs {
    /// The reference: a binding
    #[arg(value_name = "A")]
    pub a: String,
    /// The one asked about
    #[arg(value_name = "B")]
    pub b: String,
    /// What is called
    #[arg(value_name = "CATEGORY")]
    pub category: String,
    /// How they are built
    #[arg(long, value_enum, default_value_t = ProfileArg::Fast)]
    pub profile: ProfileArg,
    /// The interpreter: a version, a name or a path
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    pub python: String,
    /// Time for all of it (20, 20s, 2m)
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration)]
    pub time: Duration,
    /// Give a side up that does not answer for this time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub timeout: Duration,
    /// Where to; a file may be a page too (.html).
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `ffi run`.
#[derive(Args, Debug)]
pub struct FfiRunArgs {
    /// The binding
    #[arg(value_name = "BINDING")]
    pub binding: String,
    /// What is called [default: the first category of each group]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub categories: Vec<String>,
    /// Calls of every function
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// How it is built
    #[arg(long, value_enum, default_value_t = ProfileArg::Fast)]
    pub profile: ProfileArg,
    /// The interpreter: a version, a name or a path
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    pub python: String,
}

/// Arguments of `ffi build`.
#[derive(Args, Debug)]
pub struct FfiBuildArgs {
    /// Bindings [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub bindings: Vec<String>,
    /// How
    #[arg(long, value_enum, default_value_t = ProfileArg::Both)]
    pub profile: ProfileArg,
    /// An interpreter: a version, a name or a path; may be given again [default: python3]
    #[arg(long, value_name = "PYTHON")]
    pub python: Vec<String>,
    /// Put each binding into a directory of its own below this one, with a program that calls it; of
    /// one profile and one interpreter
    #[arg(long, value_name = "DIRECTORY")]
    pub to: Option<PathBuf>,
}

fn function(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((module, name)) if !module.is_empty() && !name.is_empty() => {
            Ok((module.to_owned(), name.to_owned()))
        }
        _ => Err("give it as MODULE:NAME".into()),
    }
}
