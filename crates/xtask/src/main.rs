//! Development tasks: tests, demo, synthetic traces, fixtures, manual pages, benchmarks.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a development tool that prints directly"
)]

mod bench;
mod completions;
mod demo;
mod gen_pair;
mod gen_trace;
mod goldens;
mod man;
mod package;
mod project;
mod python;
mod subjects;
mod system;
mod test;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Development tasks of the laggard project
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Test(test::Args),
    Demo(demo::Args),
    Gen(gen_trace::Args),
    GenPair(gen_pair::Args),
    Goldens(goldens::Args),
    Man(man::Args),
    Completions(completions::Args),
    #[command(subcommand)]
    Bench(bench::Verb),
}

fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Test(args) => test::run(&args),
        Verb::Demo(args) => demo::run(&args),
        Verb::Gen(args) => gen_trace::run(&args),
        Verb::GenPair(args) => gen_pair::run(&args),
        Verb::Goldens(args) => goldens::run(&args),
        Verb::Man(args) => man::run(&args),
        Verb::Completions(args) => completions::run(&args),
        Verb::Bench(verb) => bench::run(&verb),
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
