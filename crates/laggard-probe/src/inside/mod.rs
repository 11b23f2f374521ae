//! Counts calls inside a library, which do not go through a symbol table.
//!
//! There are two methods, and both are exact. [`callgrind`] runs the program on a simulated CPU and
//! records every call with its caller and its instructions, but is 50 to 300 times slower and hides
//! AVX-512. [`uprobes`] lets the kernel count the entries of up to a few hundred functions at
//! nearly full speed, but needs privileges and does not record callers. [`choose`] selects a method
//! and gives the reason; [`count`] inspects the machine, selects a method and runs it.

pub mod callgrind;
mod choice;
mod kernels;
pub mod uprobes;

pub use choice::{Choice, Situation, choose};

use crate::child::Ended;
use crate::error::Error;
use laggard_agent::patterns;
use laggard_core::model::calls::Calls;
use std::ffi::OsString;

/// What to count. Patterns are those of [`crate::calls::Options`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Libraries (or the program) whose functions are counted; empty means all.
    pub libraries: Vec<String>,
    /// Calling modules; empty means all. Only callgrind records them.
    pub from: Vec<String>,
    /// Functions to count, by symbol name (not demangled); empty means all.
    pub functions: Vec<String>,
    /// The method; `None` lets [`choose`] select it.
    pub way: Option<Way>,
    /// Whether callers are needed. Only callgrind records them.
    pub callers: bool,
    /// Also probe functions that start with an instruction that the kernel must single-step, at
    /// about 20 µs per call.
    pub slow_probes: bool,
    /// Maximum number of probed functions.
    pub most_probes: usize,
    /// Also count in programs that the program starts.
    pub children: bool,
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
            way: None,
            callers: true,
            slow_probes: false,
            most_probes: 200,
            children: false,
            cpus: vec![],
            quiet: false,
        }
    }
}

/// A method of counting calls inside a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Valgrind's callgrind.
    Callgrind,
    /// Kernel uprobes.
    Uprobes,
}

impl Options {
    fn wants_module(&self, path: &str) -> bool {
        fits(&self.libraries, |pattern| patterns::module(pattern, path))
    }

    fn wants_function(&self, name: &str) -> bool {
        fits(&self.functions, |pattern| patterns::function(pattern, name))
    }

    fn wants_caller(&self, path: &str) -> bool {
        fits(&self.from, |pattern| patterns::module(pattern, path))
    }
}

fn fits(all: &[String], is_fit: impl Fn(&str) -> bool) -> bool {
    all.is_empty() || all.iter().any(|pattern| is_fit(pattern))
}

/// Runs a command to its end and counts calls with the most suitable method. The reason for the
/// choice is in the facts of the result.
pub fn count(command: &[OsString], options: &Options) -> Result<(Calls, Ended), Error> {
    let choice = choose(options, &Situation::look(command, options))?;
    let (mut calls, ended) = match choice.way {
        Way::Callgrind => callgrind::count(command, options)?,
        Way::Uprobes => uprobes::count(command, options)?,
    };
    calls.profile.about.facts.insert(0, ("method".into(), choice.why));
    Ok((calls, ended))
}
