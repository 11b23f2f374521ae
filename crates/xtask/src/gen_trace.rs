//! `cargo xtask gen`: writes a synthetic PyTorch profiler trace of any size.

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use laggard_samples::Style;
use laggard_samples::compress::Sink;
use laggard_samples::kineto::{self, Gpu, Recipe, Totals, Workload};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Write a synthetic PyTorch profiler trace of any size
#[derive(clap::Args)]
pub(crate) struct Args {
    /// File to write; compressed if the name ends in .gz or .zst. {rank} is replaced by the rank
    out: PathBuf,
    /// Approximate size before compression, in MB
    #[arg(long, value_name = "N")]
    mb: f64,
    /// JSON layout
    #[arg(long, value_enum, default_value = "native")]
    style: StyleArg,
    /// Vendor of the device
    #[arg(long, value_enum, default_value = "amd")]
    gpu: GpuArg,
    /// Seed of the random durations
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Mostly kernels and launches, like an inference server
    #[arg(long)]
    kernels_heavy: bool,
    /// Number of ranks; one file is written per rank
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    ranks: u32,
    /// Write the exact totals to this JSON file. {rank} is replaced by the rank
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum StyleArg {
    Native,
    Compact,
    Spaced,
    Indent2,
}

#[derive(Clone, Copy, ValueEnum)]
enum GpuArg {
    Amd,
    Nvidia,
}

impl From<StyleArg> for Style {
    fn from(arg: StyleArg) -> Style {
        match arg {
            StyleArg::Native => Style::Native,
            StyleArg::Compact => Style::Compact,
            StyleArg::Spaced => Style::Spaced,
            StyleArg::Indent2 => Style::Indent2,
        }
    }
}

impl From<GpuArg> for Gpu {
    fn from(arg: GpuArg) -> Gpu {
        match arg {
            GpuArg::Amd => Gpu::Amd,
            GpuArg::Nvidia => Gpu::Nvidia,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.ranks > 1 && !args.out.to_string_lossy().contains(RANK) {
        bail!("{} ranks require {RANK} in the file name, such as rank{RANK}.json.gz", args.ranks);
    }
    for rank in 0..args.ranks {
        let recipe = Recipe {
            style: args.style.into(),
            seed: args.seed,
            workload: if args.kernels_heavy { Workload::Decode } else { Workload::Training },
            rank,
            ranks: args.ranks,
            ..Recipe::new((args.mb * 1e6) as u64, args.gpu.into())
        };
        let path = of_rank(&args.out, rank);
        let start = Instant::now();
        let totals = write(&recipe, &path)?;
        let rate = totals.bytes as f64 / 1e6 / start.elapsed().as_secs_f64();
        eprintln!(
            "{}: {} events, {} kernels, {:.1} MB of JSON at {rate:.0} MB/s",
            path.display(),
            totals.events,
            totals.kernels,
            totals.bytes as f64 / 1e6,
        );
        if let Some(expect) = &args.expect {
            let path = of_rank(expect, rank);
            std::fs::write(&path, format!("{:#}\n", json(&totals)))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a trace, compressed according to the suffix. Creates the directory.
pub(crate) fn write(recipe: &Recipe, path: &Path) -> Result<Totals> {
    let written = || {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let mut sink = Sink::create(path)?;
        let totals = kineto::write(recipe, &mut sink)?;
        sink.finish()?;
        std::io::Result::Ok(totals)
    };
    written().with_context(|| format!("cannot write {}", path.display()))
}

fn json(totals: &Totals) -> Value {
    Value::Object(
        totals
            .named()
            .into_iter()
            .map(|(key, count)| (key.to_owned(), count.into()))
            .collect::<Map<_, _>>(),
    )
}

const RANK: &str = "{rank}";

fn of_rank(path: &Path, rank: u32) -> PathBuf {
    path.to_string_lossy().replace(RANK, &rank.to_string()).into()
}
