//! `cargo xtask bench verdicts`: accuracy of verdicts on pairs with a known cause.

mod planted;
mod real;
mod same;
mod tools;

use super::{document, machine};
use crate::{project, python, subjects};
use anyhow::Result;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Benchmark the accuracy of verdicts on pairs with a known cause or without a difference
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Parts to measure [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,
    /// Comparisons of a side with itself, half of them under load
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(2..))]
    comparisons: u32,
    /// The same for each other tool, under load
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    of_others: u32,
    /// Time limit of each `why`, in seconds
    #[arg(long, default_value_t = 20)]
    why: u32,
    /// Measure only these real pairs; no update of docs/benchmarks.md
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    only: Vec<String>,
    /// Write the evidence of planted and real pairs to fixtures/, for the tests of judges
    #[arg(long)]
    keep: bool,
    /// No update of docs/benchmarks.md
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Pairs with one planted cause each, and pairs without a difference
    Planted,
    /// Real differences between public releases and between statements
    Real,
    /// A side compared with itself, also by hyperfine, pyperf and sequential timing
    Same,
    /// A side that takes 2 % longer
    Small,
}

/// Shared state of all parts.
struct Lab {
    program: PathBuf,
    python: PathBuf,
    culprits: subjects::Culprits,
}

impl Lab {
    /// laggard with a subcommand, set up so that the planted pairs can be imported.
    fn laggard(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args([verb, "--quiet", "--json", "--python"])
            .arg(&self.python)
            .current_dir(&self.culprits.package)
            .env("PYTHONPATH", &self.culprits.package)
            .env("LAGGARD_CULPRITS", &self.culprits.libraries);
        command
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let lab = Lab {
        program: project::laggard()?,
        python: python::ready()?,
        culprits: subjects::build_culprits()?,
    };
    machine::warn_of_load();
    let all = [Part::Planted, Part::Real, Part::Small, Part::Same];
    for part in all.into_iter().filter(|part| args.part.is_empty() || args.part.contains(part)) {
        let (name, section) = match part {
            Part::Planted => ("verdicts-planted", planted::section(&lab, args)?),
            Part::Real => ("verdicts-real", real::section(&lab, args)?),
            Part::Small => ("verdicts-small", same::small(&lab)?),
            Part::Same => ("verdicts-same", same::section(&lab, args)?),
        };
        println!("{section}");
        if !args.quick && args.only.is_empty() {
            let path = document::replace_section(name, &section)?;
            eprintln!("bench: wrote section {name} to {}", project::short(&path));
        }
    }
    Ok(ExitCode::SUCCESS)
}
