//! Runs a program and counts and times its system calls.
//!
//! The input is a command, the output is [`Calls`] whose functions are system calls (module
//! `[kernel]`), by thread and by the address that entered the kernel, with the errors of failed
//! calls. Callers are not symbolized: frames have a module and an address, usually in the C
//! library.
//!
//! The program is traced with ptrace, which needs no privileges for child processes and works
//! everywhere. It stops the thread twice per system call. The kernel's `raw_syscalls` tracepoints
//! have much less overhead, but need root and tracefs, and lose events if they are not read in
//! time; they are not used. The overhead of a stop is measured before each run and is part of the
//! result: for calls that are shorter than the overhead, only the count is meaningful.
//!
//! A set-user-ID program runs without its privileges when it is traced.

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
    /// Names of system calls, with `*` and `?` as in [`crate::calls::Options`]; empty means all.
    pub functions: Vec<String>,
    /// Modules that enter the kernel, likewise; empty means all.
    pub from: Vec<String>,
    /// Also trace processes that the program starts.
    pub children: bool,
    /// CPUs to run on; empty means all.
    pub cpus: Vec<usize>,
    /// Whether the output of the program is discarded.
    pub quiet: bool,
}

/// Runs a command to its end and traces its system calls.
///
/// Returns when the command ends; processes that it leaves behind continue untraced.
pub fn trace(command: &[OsString], options: &Options) -> Result<(Calls, Ended), Error> {
    let program = program::runnable(command)?;
    // The kernel detaches from all remaining tracees when the thread ends.
    std::thread::scope(|scope| {
        scope.spawn(|| run(command, &program, options)).join().unwrap_or_else(|_| {
            let source = io::Error::other("the tracing thread panicked");
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
        started.about(&ended, start.elapsed(), "ptrace, two stops per system call");
    calls.profile.about.facts = facts(&cost);
    Ok((calls, ended))
}

fn facts(cost: &Cost) -> Vec<(String, String)> {
    let us = |ns: f64| format!("{:.1} µs", ns / 1000.0);
    [
        (
            "method",
            "ptrace, which needs no privileges; kernel tracepoints have less overhead, but need \
             root and are not supported"
                .to_owned(),
        ),
        ("overhead per traced call", us(cost.call_ns)),
        ("overhead included in the times", us(cost.included_ns)),
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
