//! `cargo xtask bench capture`: what sampling and tracing cost and find, beside perf and py-spy.
//!
//! Whatever is compared takes turns in random order, round by round, so that what disturbs the
//! machine disturbs all of it.

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

/// Measure what sampling and tracing cost and find
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Parts to measure; all if none is given
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,
    /// How often each peer runs, and how many blocks the pairs of `cost` are parted into
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Pairs of chunks in `cost`
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u32).range(4..))]
    pairs: u32,
    /// Few rounds and pairs, and docs/benchmarks.md stays as it is
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Sampling switched on and off inside one process, beside a handler that does nothing
    Cost,
    /// Whole programs, beside perf and py-spy
    Whole,
    /// How many stacks are right, beside perf and py-spy
    Quality,
    /// What a traced call costs
    Calls,
    /// A program of 160 threads
    Threads,
}

/// What all parts need.
struct Lab {
    /// Newest first; each has NumPy.
    pythons: Vec<PathBuf>,
    tools: Tools,
    rounds: u32,
    pairs: u32,
    /// For what programs leave behind.
    scratch: tempfile::TempDir,
}

impl Lab {
    /// The interpreter for what is measured with one only.
    fn python(&self) -> &PathBuf {
        &self.pythons[0]
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut pythons = python::subjects(usize::MAX)?;
    pythons.retain(|python| python::has_packages(python, &["numpy"]));
    if pythons.is_empty() {
        bail!("there is no Python with NumPy to measure");
    }
    let lab = Lab {
        pythons,
        tools: Tools::find(&python::ready()?),
        rounds: if args.quick { args.rounds.min(3) } else { args.rounds },
        pairs: if args.quick { args.pairs.min(30) } else { args.pairs },
        scratch: tempfile::tempdir().context("cannot make a temporary directory")?,
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
            eprintln!("bench: wrote {name} of {}", project::short(&path));
        }
    }
    if args.quick {
        eprintln!("bench: --quick, so docs/benchmarks.md stays as it is");
    }
    Ok(ExitCode::SUCCESS)
}
