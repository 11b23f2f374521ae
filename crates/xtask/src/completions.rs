//! `cargo xtask completions`: writes completion scripts for shells.

use crate::project;
use anyhow::{Context, Result};
use clap_complete::{Shell, generate_to};
use std::process::ExitCode;

/// Write shell completions to target/completions
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Result<ExitCode> {
    let directory = project::target()?.join("completions");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let path = generate_to(shell, &mut laggard::cli::command(), "laggard", &directory)
            .with_context(|| format!("cannot write completions to {}", directory.display()))?;
        eprintln!("{}", project::short(&path));
    }
    Ok(ExitCode::SUCCESS)
}
