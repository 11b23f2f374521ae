//! `cargo xtask man`: writes a manual page for the program and for each subcommand.

use crate::project;
use anyhow::{Context, Result};
use std::process::ExitCode;

/// Write manual pages to target/man
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Result<ExitCode> {
    let directory = project::target()?.join("man");
    let written = std::fs::create_dir_all(&directory)
        .and_then(|()| clap_mangen::generate_to(laggard::cli::command(), &directory));
    written.with_context(|| format!("cannot write {}", directory.display()))?;
    eprintln!("wrote manual pages to {}", project::short(&directory));
    Ok(ExitCode::SUCCESS)
}
