//! `cargo xtask bench verdicts`: how often verdicts are right, where the truth is known.

mod planted;
mod same;
mod tools;

use super::{document, machine};
use crate::{project, python, subjects};
use anyhow::Result;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Measure how often verdicts are right: pairs of which the difference, or that there is none, is known
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Parts to measure; all if none is given
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,
    /// Comparisons of a side with itself, half of them under load
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(2..))]
    comparisons: u32,
    /// The same for each of the other tools, under load
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    of_others: u32,
    /// Time of a `why`, in seconds
    #[arg(long, default_value_t = 20)]
    why: u32,
    /// Keep the evidence of planted pairs as fixtures, with which judges are tested
    #[arg(long)]
    keep: bool,
    /// docs/benchmarks.md stays as it is
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Pairs with one planted cause each, and innocent ones
    Planted,
    /// A side against itself, beside hyperfine, pyperf and timing one after the other
    Same,
    /// A side that takes 2 % longer
    Small,
}

/// What all parts need.
struct Lab {
    program: PathBuf,
    python: PathBuf,
    culprits: subjects::Culprits,
}

impl Lab {
    /// The program with a verb, where planted pairs can be imported.
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
    let all = [Part::Planted, Part::Small, Part::Same];
    for part in all.into_iter().filter(|part| args.part.is_empty() || args.part.contains(part)) {
        let (name, section) = match part {
            Part::Planted => ("verdicts-planted", planted::section(&lab, args)?),
            Part::Small => ("verdicts-small", same::small(&lab)?),
            Part::Same => ("verdicts-same", same::section(&lab, args)?),
        };
        println!("{section}");
        if !args.quick {
            let path = document::replace_section(name, &section)?;
            eprintln!("bench: wrote {name} of {}", project::short(&path));
        }
    }
    Ok(ExitCode::SUCCESS)
}
