//! `cargo xtask bench capture`: overhead and quality of sampling and tracing, compared with perf
//! and py-spy.
//!
//! Every round runs all tools in random order, so that noise on the machine affects all of them.

mod calls;
mod cost;
mod figures;
mod quality;
mod threads;
mod tools;
mod turns;
mod whole;

use super::{document, machine};
use crate::{project, python};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use tools::Tools;

/// Benchmark overhead and quality of sampling and tracing
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Parts to measure [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,
    /// Runs of each tool; also the number of processes per row in `cost`
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Pairs of chunks in `cost`, over all processes
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u32).range(4..))]
    pairs: u32,
    /// Few rounds and pairs, no update of docs/benchmarks.md
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Sampling toggled within one process, compared with an empty handler
    Cost,
    /// Whole programs, compared with perf and py-spy
    Whole,
    /// Correct stacks, compared with perf and py-spy
    Quality,
    /// Overhead of a traced call
    Calls,
    /// A program with 160 threads
    Threads,
}

/// Shared state of all parts.
struct Lab {
    /// Newest first; each has NumPy.
    pythons: Vec<PathBuf>,
    tools: Tools,
    rounds: u32,
    pairs: u32,
    /// Directory for output of programs.
    scratch: tempfile::TempDir,
}

impl Lab {
    /// The interpreter for parts that use only one.
    fn python(&self) -> &PathBuf {
        &self.pythons[0]
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut pythons = python::subjects(usize::MAX)?;
    pythons.retain(|python| python::has_packages(python, &["numpy"]));
    if pythons.is_empty() {
        bail!("no Python with NumPy found");
    }
    let lab = Lab {
        pythons,
        tools: Tools::find(&python::ready()?),
        rounds: if args.quick { args.rounds.min(3) } else { args.rounds },
        pairs: if args.quick { args.pairs.min(30) } else { args.pairs },
        scratch: tempfile::tempdir().context("cannot create a temporary directory")?,
    };
    machine::warn_of_load();
    let all = [Part::Cost, Part::Whole, Part::Quality, Part::Calls, Part::Threads];
    for part in all.into_iter().filter(|part| args.part.is_empty() || args.part.contains(part)) {
        let (name, section) = match part {
            Part::Cost => ("capture-cost", cost::section(&lab)?),
            Part::Whole => ("capture-whole", whole::section(&lab)?),
            Part::Quality => ("capture-quality", quality::section(&lab)?),
            Part::Calls => ("capture-calls", calls::section(&lab)?),
            Part::Threads => ("capture-threads", threads::section(&lab)?),
        };
        println!("{section}");
        if !args.quick {
            let path = document::replace_section(name, &section)?;
            eprintln!("bench: wrote section {name} to {}", project::short(&path));
        }
    }
    if args.quick {
        eprintln!("bench: docs/benchmarks.md not updated (--quick)");
    }
    Ok(ExitCode::SUCCESS)
}
