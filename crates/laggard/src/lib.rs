//! The command line of laggard: `main(args) -> ExitCode`.
//!
//! Exit status: 0 on success, 1 if a limit such as `--fail-above` is exceeded, 2 on errors.
//! `record` and `calls` return the exit status of the program they run, or 125 if they fail.

mod bench;
pub mod block;
mod calls;
pub mod cli;
mod commands;
mod compare_profile;
mod compare_trace;
mod counters;
mod evidence;
mod failure;
mod ffi;
pub mod library;
mod output;
mod page;
mod printer;
pub mod profile;
mod ranks;
mod script;
mod shell;
mod sides;
mod source_text;
mod suite;
mod trace;

pub use commands::package::Package;

use clap::Parser;
use cli::{Cli, OVERVIEW, Talk, Verb};
use printer::Printer;
use std::ffi::OsString;
use std::process::ExitCode;

/// Exit status for errors in the command line.
const USAGE: u8 = 2;

/// Exit status for errors of verbs that otherwise return the exit status of another program.
const TOOL_FAILED: u8 = 125;

/// Exit status after an interrupt by the user.
const INTERRUPTED: u8 = 130;

/// Runs laggard with these arguments. The first is the name of the program.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    main_in(None, args)
}

/// Runs laggard as part of the Python package, which implements some of the verbs.
pub fn main_in(package: Option<Package>, args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    if args.len() < 2 {
        Printer::new(Talk::default()).note(OVERVIEW);
        return ExitCode::from(USAGE);
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(help) => {
            let _ = help.print();
            return ExitCode::from(help.exit_code() as u8);
        }
    };
    let printer = Printer::new(cli.talk);
    let fine = |()| ExitCode::SUCCESS;
    let (done, failed) = match cli.verb {
        Verb::Why(args) => (commands::why::run(&args, &printer), 2),
        Verb::Bench(args) => (commands::bench::run(&args, &printer), 2),
        Verb::Record(args) => (commands::record::run(args, &printer), TOOL_FAILED),
        Verb::Calls(args) => (commands::calls::run(args, &printer), TOOL_FAILED),
        Verb::Report(args) => (commands::report::run(&args, &printer).map(fine), 2),
        Verb::Compare(args) => (commands::compare::run(&args, &printer), 2),
        Verb::Flame(args) => (commands::flame::run(&args, &printer).map(fine), 2),
        Verb::View(args) => (commands::view::run(&args, &printer).map(fine), 2),
        Verb::Ffi(args) => (commands::ffi::run(&args, &printer), 2),
        Verb::Convert(args) => (commands::convert::run(&args, &printer).map(fine), 2),
        Verb::Index(args) => (commands::index::run(&args, &printer).map(fine), 2),
        Verb::Inspect(args) => (commands::inspect::run(&args, &printer).map(fine), 2),
        Verb::Dump(args) => (commands::dump::run(&args, &printer).map(fine), 2),
        Verb::Query(args) => (commands::package::run("query", &args, cli.talk, package), 2),
        Verb::Fleet(args) => (commands::package::run("fleet", &args, cli.talk, package), 2),
        Verb::Doctor(args) => (commands::doctor::run(&args, &printer), 2),
        Verb::Drive(args) => (commands::drive::run(&args, &printer).map(fine), 2),
    };
    match done {
        Ok(code) => code,
        Err(error) if failure::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if failure::is_interrupted(&error) => {
            printer.error(&error, None);
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => {
            printer.error(&error, failure::hint(&error).as_deref());
            ExitCode::from(failed)
        }
    }
}
