//! Every verb and flag, defined once: parsing, help, man pages and completions come from here.

use clap::{CommandFactory, Parser};

/// Finds out why one implementation lags behind another.
#[derive(Parser, Debug)]
#[command(name = "laggard", version)]
pub struct Cli {}

/// The command tree, for man pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}
