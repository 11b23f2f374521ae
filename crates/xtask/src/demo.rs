//! `cargo xtask demo`: the main job. A small array library lags behind NumPy; laggard says why.

use crate::{project, python, subjects};
use anyhow::Result;
use std::process::{Command, ExitCode};

/// Let laggard find out why raptors lags behind NumPy
#[derive(clap::Args)]
pub(crate) struct Args {}

const SETUP: &str = "import numpy as np, raptors
a = np.random.default_rng(1).random((512, 512), dtype=np.float32)
r = raptors.array(a)";

pub(crate) fn run(_: &Args) -> Result<ExitCode> {
    eprintln!("demo: setting up a Python environment with NumPy and raptors");
    let python = python::ready()?;
    subjects::install_raptors(&python)?;
    eprintln!("demo: building laggard");
    let program = project::laggard()?;
    let page = project::target()?.join("demo").join("why.html");
    std::fs::create_dir_all(page.with_file_name(""))?;
    let mut why = Command::new(&program);
    why.current_dir(project::root())
        .args(["why", "--setup", SETUP, "--b-env", "RAPTORS_SIMD=scalar", "--python"])
        .arg(&python)
        .arg("-o")
        .arg(&page)
        .args(["a * 2.5", "r.scale(2.5)"]);
    eprintln!(
        "demo: why does raptors, told to do without SIMD, take longer than NumPy to scale an array?"
    );
    project::must(&mut why)?;
    eprintln!("demo: the page is {}", project::short(&page));
    Ok(ExitCode::SUCCESS)
}
