//! The command line of laggard: `main(args) -> ExitCode`.

pub mod cli;

use std::process::ExitCode;

/// Runs the program with these arguments.
pub fn main(args: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let _ = cli::command().get_matches_from(args);
    ExitCode::SUCCESS
}
