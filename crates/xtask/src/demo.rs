//! `cargo xtask demo`: makes two traces of one model on two machines and looks at them.

use crate::{gen_trace, project};
use anyhow::Result;
use laggard_samples::kineto::{Gpu, Recipe};
use std::process::{Command, ExitCode};

/// Make two traces and look at them
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Result<ExitCode> {
    let directory = project::target()?.join("demo");
    eprintln!(
        "demo: two made-up traces of the same model, on an NVIDIA and on an AMD machine, 20 MB each"
    );
    let mut traces = Vec::new();
    for (seed, gpu) in (1..).zip([Gpu::Nvidia, Gpu::Amd]) {
        let path = directory.join(format!("{}.json", gpu.word()));
        let totals = gen_trace::write(&Recipe { seed, ..Recipe::new(20_000_000, gpu) }, &path)?;
        eprintln!(
            "demo: {}: {} events, {} kernels",
            project::short(&path),
            totals.events,
            totals.kernels
        );
        traces.push(path);
    }
    eprintln!("demo: building laggard");
    let program = project::laggard()?;
    for trace in &traces {
        project::must(
            Command::new(&program).current_dir(project::root()).arg("report").arg(trace),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
