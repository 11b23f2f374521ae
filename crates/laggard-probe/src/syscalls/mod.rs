//! Runs a program and counts and times its system calls.
//!
//! You give a command, you get [`Calls`] whose functions are the kernel's (module `[kernel]`), by
//! thread and by the place that entered the kernel, with the ways in which calls failed. Callers are
//! not yet named: frames have a module and an address, as a rule in the C library.
//!
//! The program is watched by ptrace, which needs no rights beyond those over one's own children and
//! works everywhere; it stops the thread twice at every system call. The trace points
//! `raw_syscalls` of the kernel cost far less, but need root and tracefs, and a program that loses
//! events when it is not read in time; they are not used. What a stop costs is measured before each
//! run and is part of the result: shorter calls than that are known by count and not by time.
//!
//! A program with set-user-id runs without its rights when it is traced.

mod names;
mod sums;
mod tracer;

use crate::child::Ended;
use crate::error::Error;
use crate::held::Held;
use crate::started::{self, Started};
use crate::{program, ptrace};
use laggard_core::model::calls::Calls;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Instant;
use tracer::Cost;

/// What to trace.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names of system calls, with `*` and `?` as in [`crate::calls::Options`]; none means all.
    pub functions: Vec<String>,
    /// Modules that enter the kernel, likewise; none means all.
    pub from: Vec<String>,
    /// Trace the processes that the program starts too.
    pub children: bool,
    /// Processors to run on; none means all.
    pub cpus: Vec<usize>,
    /// Whether the program's own output goes nowhere.
    pub quiet: bool,
}

/// Runs a command to its end with its system calls traced.
///
/// It ends when the command does; processes that it leaves behind run on untraced.
pub fn trace(command: &[OsString], options: &Options) -> Result<(Calls, Ended), Error> {
    let program = program::runnable(command)?;
    // Whatever is still traced when the thread ends is let go by the kernel.
    std::thread::scope(|scope| {
        scope.spawn(|| run(command, &program, options)).join().unwrap_or_else(|_| {
            let source = io::Error::other("the tracing thread failed");
            Err(Error::Start { program: program.clone(), source })
        })
    })
}

fn run(command: &[OsString], program: &Path, options: &Options) -> Result<(Calls, Ended), Error> {
    let refused = |source: io::Error| match ptrace::refusal(&source) {
        Some(why) => Error::Unavailable { what: "ptrace", why },
        None => Error::Start { program: program.into(), source },
    };
    let cost = tracer::cost().map_err(refused)?;
    let run = started::command(command, options.quiet);
    let started = Started::now(command);
    let held = Held::start(run, &options.cpus).map_err(refused)?;
    let start = Instant::now();
    let (mut calls, ended) = tracer::follow(held, options).map_err(refused)?;
    calls.quality.cost_ns = cost.call_ns;
    calls.profile.about =
        started.about(&ended, start.elapsed(), "ptrace, two stops at every system call");
    calls.profile.about.facts = facts(&cost);
    Ok((calls, ended))
}

fn facts(cost: &Cost) -> Vec<(String, String)> {
    let us = |ns: f64| format!("{:.1} µs", ns / 1000.0);
    [
        (
            "why ptrace",
            "it needs no rights; trace points of the kernel cost less, need root and are not used \
             by this version"
                .to_owned(),
        ),
        ("a traced system call takes longer by", us(cost.call_ns)),
        ("of which its time here includes", us(cost.included_ns)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Refusal;

    #[test]
    fn an_empty_command_is_an_error() {
        let refused = trace(&[], &Options::default());
        assert!(matches!(refused, Err(Error::Refused(Refusal::NoCommand))));
    }
}
