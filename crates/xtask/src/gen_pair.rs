//! `cargo xtask gen-pair`: writes two synthetic traces in which B is slower than A for a known
//! reason.

use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use laggard_samples::compress::Sink;
use laggard_samples::pairs::{self, Length, Plan, Planted, Truth};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write two synthetic traces in which B is slower than A for a known reason
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Difference between B and A
    #[arg(value_name = "KIND", value_parser = planted())]
    planted: Planted,
    /// File of the reference, A; compressed if the name ends in .gz or .zst
    a: PathBuf,
    /// File of the slower side, B
    b: PathBuf,
    /// Steps per side
    #[arg(long, value_name = "N", default_value_t = 10)]
    steps: u64,
    /// Approximate size of each file before compression, in MB
    #[arg(long, value_name = "N", conflicts_with = "steps")]
    mb: Option<f64>,
    /// Seed of the random durations
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Omit Python functions and therefore modules
    #[arg(long)]
    no_python: bool,
}

fn planted() -> impl TypedValueParser<Value = Planted> {
    PossibleValuesParser::new(Planted::ALL.map(Planted::word)).try_map(|word| {
        let found = Planted::ALL.into_iter().find(|planted| planted.word() == word);
        found.with_context(|| format!("unknown kind of pair: {word}"))
    })
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let plan = Plan {
        planted: args.planted,
        length: match args.mb {
            Some(mb) => Length::Bytes((mb * 1e6) as u64),
            None => Length::Steps(args.steps),
        },
        seed: args.seed,
        python: !args.no_python,
    };
    let (a, b) = (args.a.display(), args.b.display());
    let written = || {
        let (mut to_a, mut to_b) = (Sink::create(&args.a)?, Sink::create(&args.b)?);
        let truth = pairs::write(&plan, &mut to_a, &mut to_b)?;
        to_a.finish()?;
        to_b.finish()?;
        io::Result::Ok(truth)
    };
    let Truth { steps, gap_ns, class, class_gap_ns, .. } =
        written().with_context(|| format!("cannot write {a} and {b}"))?;
    eprintln!("{a}, {b}: {steps} steps each; difference per step: {:+.3} ms", gap_ns / 1e6);
    if !class.is_empty() {
        eprintln!("of which {class} kernels: {:+.3} ms", class_gap_ns / 1e6);
    }
    Ok(ExitCode::SUCCESS)
}
