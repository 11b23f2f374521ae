//! The project's chores, `cargo xtask <verb>`: test, demo, generate traces, goldens, documents, benchmarks.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool: it talks to the terminal itself"
)]

mod gen_trace;
mod goldens;
mod project;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Chores of the laggard project.
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Gen(gen_trace::Args),
    Goldens(goldens::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Gen(args) => gen_trace::run(&args),
        Verb::Goldens(args) => goldens::run(&args),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("caused by: {cause}");
            }
            ExitCode::from(2)
        }
    }
}
