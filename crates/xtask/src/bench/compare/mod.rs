//! `cargo xtask bench compare`: speed of comparing two large traces, and accuracy of the verdict on
//! pairs with a planted cause.

mod quality;
mod speed;

use super::{document, machine};
use crate::{project, python};
use anyhow::{Context, Result};
use laggard_samples::compress::Sink;
use laggard_samples::pairs::{self, Plan};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Benchmark speed and accuracy of comparing two traces
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs of each program; Python runs twice
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Small traces, few rounds, no update of docs/benchmarks.md
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let rounds = if args.quick { args.rounds.min(3) } else { args.rounds };
    let megabytes = if args.quick { 100 } else { 1000 };
    let lab = Lab::new()?;
    machine::warn_of_load();
    let speed = speed::section(&lab, rounds, megabytes)?;
    println!("{speed}");
    let quality = quality::section(&lab)?;
    println!("{quality}");
    if args.quick {
        eprintln!("bench: docs/benchmarks.md not updated (--quick)");
    } else {
        let path = document::replace_section("compare", &format!("{speed}\n{quality}"))?;
        eprintln!("bench: wrote {}", project::short(&path));
    }
    Ok(ExitCode::SUCCESS)
}

/// Programs, and the directory for pairs.
struct Lab {
    program: PathBuf,
    python: PathBuf,
    place: PathBuf,
}

impl Lab {
    fn new() -> Result<Lab> {
        let place = project::target()?.join("bench").join("compare");
        std::fs::create_dir_all(&place)
            .with_context(|| format!("cannot create {}", place.display()))?;
        // A copy, so that a concurrent build does not change the measured program.
        let program = place.join("laggard");
        std::fs::copy(project::laggard()?, &program)
            .with_context(|| format!("cannot write {}", program.display()))?;
        Ok(Lab { program, python: python::ready()?, place })
    }

    fn laggard(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args([verb, "--no-progress"]);
        command
    }

    /// Writes a pair; overwrites the previous one.
    fn write(&self, plan: &Plan) -> Result<[PathBuf; 2]> {
        let files = ["a.json", "b.json"].map(|name| self.place.join(name));
        let written = || {
            let (mut a, mut b) = (Sink::create(&files[0])?, Sink::create(&files[1])?);
            pairs::write(plan, &mut a, &mut b)?;
            a.finish()?;
            b.finish()
        };
        written().with_context(|| format!("cannot write to {}", self.place.display()))?;
        Ok(files)
    }
}
