//! The command line of laggard: `main(args) -> ExitCode`.
//!
//! Exit codes: 0 fine, 2 usage or tool error.

pub mod cli;
mod commands;
mod failure;
mod output;
mod printer;
mod ranks;
mod trace;

use clap::Parser;
use cli::{Cli, Verb};
use printer::Printer;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the program with these arguments, of which the first is its name.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(help) => {
            let _ = help.print();
            return ExitCode::from(help.exit_code() as u8);
        }
    };
    let printer = Printer::new(cli.talk);
    let done = match cli.verb {
        Verb::Report(args) => commands::report::run(&args, &printer),
        Verb::Index(args) => commands::index::run(&args, &printer),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if failure::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            printer.error(&error, failure::hint(&error).as_deref());
            ExitCode::from(2)
        }
    }
}
