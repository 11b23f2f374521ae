//! `cargo xtask demo`: explains why a small array library is slower than NumPy.

use crate::{project, python, subjects};
use anyhow::Result;
use std::process::{Command, ExitCode};

/// Explain why raptors is slower than NumPy, and write an HTML page
#[derive(clap::Args)]
pub(crate) struct Args {}

const SETUP: &str = "import numpy as np, raptors
a = np.random.default_rng(1).random((512, 512), dtype=np.float32)
r = raptors.array(a)";

pub(crate) fn run(_: &Args) -> Result<ExitCode> {
    eprintln!("demo: preparing a Python environment with NumPy and raptors");
    let python = python::ready()?;
    let raptors = subjects::install_raptors(&python)?;
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
    eprintln!("demo: comparing NumPy (A) with raptors without SIMD (B): scaling an array");
    project::must(&mut why)?;
    eprintln!("demo: wrote {}", page.display());
    let mut inspect = Command::new(&program);
    inspect.args(["inspect", "--fn", "*scale_f32*"]).arg(&raptors);
    eprintln!("demo: list the scalar and SIMD versions of the function with");
    eprintln!("  {}", project::spell_full(&inspect));
    Ok(ExitCode::SUCCESS)
}
