//! `cargo xtask gen-pair`: writes two traces, B slower than A by something that is known.

use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use laggard_samples::compress::Sink;
use laggard_samples::pairs::{self, Length, Plan, Planted, Truth};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write two made-up traces, B slower than A by something that is known
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What B does otherwise than A
    #[arg(value_name = "KIND", value_parser = planted())]
    planted: Planted,
    /// The reference; compressed when it ends in .gz or .zst
    a: PathBuf,
    /// What lags
    b: PathBuf,
    /// Steps of each side
    #[arg(long, value_name = "N", default_value_t = 10)]
    steps: u64,
    /// As many steps as make texts of about so many megabytes
    #[arg(long, value_name = "N", conflicts_with = "steps")]
    mb: Option<f64>,
    /// Decides all durations
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Leave out Python functions, and with them the modules
    #[arg(long)]
    no_python: bool,
}

fn planted() -> impl TypedValueParser<Value = Planted> {
    PossibleValuesParser::new(Planted::ALL.map(Planted::word)).try_map(|word| {
        let found = Planted::ALL.into_iter().find(|planted| planted.word() == word);
        found.with_context(|| format!("{word} is no kind of pair"))
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
    eprintln!("{a}, {b}: {steps} steps each; B minus A in one step: {:+.3} ms", gap_ns / 1e6);
    if !class.is_empty() {
        eprintln!("kernels of {class}: {:+.3} ms", class_gap_ns / 1e6);
    }
    Ok(ExitCode::SUCCESS)
}
