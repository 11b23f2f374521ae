//! Runs a program and counts and times its calls between libraries.
//!
//! The input is a command and what to trace; the output is [`Calls`], however the program ended.
//! The *calls* agent counts inside the program; the dynamic linker loads it because `LD_AUDIT`
//! names it. Callers are not symbolized: frames have a module and an address.
//!
//! Not visible are calls inside a library that bypass its symbol table, calls through function
//! pointers stored in data, and statically linked programs.

mod clock;
mod read;
mod shared;
mod stacks;

use crate::child::{Child, Ended};
use crate::error::Error;
use crate::started::{self, Started};
use crate::{program, unpack};
use clock::Clock;
use laggard_agent::calls_wire::{MOST_ARGUMENTS, VARIABLE};
use laggard_core::model::calls::Calls;
use shared::Shared;
use stacks::Stacks;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// What to trace.
///
/// A pattern with `*` or `?` must match the whole name. Otherwise, a module pattern matches any
/// part of the file name, and a function pattern must equal the whole name.
#[derive(Clone, Debug)]
pub struct Options {
    /// Called libraries.
    pub libraries: Vec<String>,
    /// Calling modules.
    pub from: Vec<String>,
    /// Called functions.
    pub functions: Vec<String>,
    /// Number of integer arguments to record, 0 to 6. Slows down every traced call.
    pub arguments: usize,
    /// Also trace programs that the program starts. Processes that it forks are always traced.
    pub children: bool,
    /// Record the full stack of one in this many calls; 0 records none.
    pub stack_every: u32,
    /// Maximum memory for counts, in bytes.
    pub memory: u64,
    /// CPUs to run on; empty means all.
    pub cpus: Vec<usize>,
    /// Whether the output of the program is discarded.
    pub quiet: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            libraries: vec![],
            from: vec![],
            functions: vec![],
            arguments: 0,
            children: false,
            stack_every: 16384,
            memory: 1 << 30,
            cpus: vec![],
            quiet: false,
        }
    }
}

/// Bytes reserved for the static TLS of libraries; glibc's default is 512 (its bug 31991). They are
/// taken from every thread's stack, so a larger value would break threads with small stacks.
const STATIC_TLS: usize = 32768;

/// Runs a command to its end and traces its calls.
pub fn trace(command: &[OsString], options: &Options) -> Result<(Calls, Ended), Error> {
    let program = program::check(command)?;
    let tracing = Tracing::open(options)?;
    let mut run = started::command(command, options.quiet);
    run.envs(tracing.environment(|name| std::env::var_os(name)));
    let ring = match options.stack_every {
        0 => None,
        every => Some(stacks::open(&tracing.shared, every)?),
    };
    let started = Started::now(command);
    let bell = ring.clone();
    let on_end = move || {
        if let Some(bell) = &bell {
            bell.wake();
        }
    };
    let child = Child::start(run, &options.cpus, on_end)
        .map_err(|source| Error::Start { program: program.path.clone(), source })?;
    let (ended, stacks) = match &ring {
        Some(ring) => stacks::collect(ring, &child),
        None => (child.wait(), Stacks::default()),
    };
    let duration = started.elapsed();
    if !tracing.was_loaded() {
        return Err(Error::NotLoaded { program: program.path });
    }
    let mut calls = read::calls(&tracing.shared, &tracing.clock.rate(), stacks);
    if !clock::is_trusted() {
        let warning = "the kernel marked the TSC as unreliable: times may be wrong";
        calls.profile.quality.warnings.push(warning.into());
    }
    calls.profile.about = started.about(&ended, duration, "agent, calls between libraries");
    Ok((calls, ended))
}

/// Shared memory in which programs that are started with its environment count calls.
pub(crate) struct Tracing {
    agent: PathBuf,
    shared: Shared,
    clock: Clock,
}

impl Tracing {
    pub(crate) fn open(options: &Options) -> Result<Tracing, Error> {
        if options.arguments > MOST_ARGUMENTS {
            return Err(Error::Arguments { most: MOST_ARGUMENTS });
        }
        let agent = unpack::library("calls", laggard_agent::CALLS).map_err(Error::Unpack)?;
        Ok(Tracing { agent, shared: Shared::create(options)?, clock: Clock::start() })
    }

    /// Environment variables that a program needs, based on their previous values.
    pub(crate) fn environment(
        &self,
        old: impl Fn(&str) -> Option<OsString>,
    ) -> [(OsString, OsString); 3] {
        [
            ("LD_AUDIT".into(), joined(old("LD_AUDIT"), self.agent.as_os_str())),
            ("GLIBC_TUNABLES".into(), tunables(old("GLIBC_TUNABLES"))),
            (VARIABLE.into(), self.shared.path().into()),
        ]
    }

    /// Whether any program has loaded the agent.
    pub(crate) fn was_loaded(&self) -> bool {
        self.shared.said_hello()
    }

    /// The calls so far.
    pub(crate) fn so_far(&self) -> Calls {
        read::calls(&self.shared, &self.clock.rate(), Stacks::default())
    }
}

/// Appends the agent to existing auditors.
fn joined(old: Option<OsString>, agent: &OsStr) -> OsString {
    match old {
        Some(mut list) if !list.is_empty() => {
            list.push(":");
            list.push(agent);
            list
        }
        _ => agent.to_owned(),
    }
}

/// With an auditor, glibc lays out the TLS of the first thread before it knows the libraries that a
/// program links. Libraries with much static TLS then fail to load, unless more is reserved.
fn tunables(old: Option<OsString>) -> OsString {
    const NAME: &str = "glibc.rtld.optional_static_tls";
    match old {
        Some(list) if list.to_string_lossy().contains(NAME) => list,
        Some(mut list) if !list.is_empty() => {
            list.push(format!(":{NAME}={STATIC_TLS}"));
            list
        }
        _ => format!("{NAME}={STATIC_TLS}").into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;
    use crate::program::Refusal;

    #[test]
    fn existing_auditors_are_kept() {
        let check = |old: Option<&str>| joined(old.map(OsString::from), OsStr::new("/a.so"));
        assert_eq!(check(None), "/a.so");
        assert_eq!(check(Some("")), "/a.so");
        assert_eq!(check(Some("/b.so")), "/b.so:/a.so");
    }

    #[test]
    fn existing_tunables_are_kept() {
        let check = |old: &str| tunables(Some(old.into())).into_string().unwrap();
        assert_eq!(check(""), "glibc.rtld.optional_static_tls=32768");
        assert_eq!(check("a=1"), "a=1:glibc.rtld.optional_static_tls=32768");
        let own = "glibc.rtld.optional_static_tls=7";
        assert_eq!(check(own), own);
    }

    #[test]
    fn an_empty_command_is_an_error() {
        let refused = trace(&[], &Options::default());
        assert!(matches!(refused, Err(Error::Refused(Refusal::NoCommand))));
    }
}
