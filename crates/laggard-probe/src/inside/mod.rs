//! Counts calls inside a library, where no table of symbols lies between caller and function.
//!
//! Two means, each exact: [`callgrind`] runs the program on a simulated processor and knows every
//! call with its caller and its instructions, but is 50 to 300 times slower and hides AVX-512;
//! [`uprobes`] lets the kernel count the entries of up to some hundred functions at nearly full
//! speed, but needs rights and does not know who calls. [`choose`] picks one and says why; [`count`]
//! looks at the machine, chooses and runs.

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
    /// Libraries (or the program) whose functions are counted; none means all.
    pub libraries: Vec<String>,
    /// Modules that call; none means all. Only callgrind knows them.
    pub from: Vec<String>,
    /// Functions that are counted, by the names of the symbol table (not demangled); none means
    /// all.
    pub functions: Vec<String>,
    /// The means; none lets [`choose`] pick.
    pub way: Option<Way>,
    /// Whether it matters who calls. Only callgrind knows.
    pub callers: bool,
    /// Probe functions too that start with an instruction the kernel must step over, at about
    /// 20 µs a call.
    pub slow_probes: bool,
    /// Most functions that are probed.
    pub most_probes: usize,
    /// Count in programs that the program starts too.
    pub children: bool,
    /// Processors to run on; none means all.
    pub cpus: Vec<usize>,
    /// Whether the program's own output goes nowhere.
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

/// A means to count calls inside a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Valgrind's callgrind.
    Callgrind,
    /// Probes of the kernel.
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

/// Runs a command to its end with calls counted by the means that fits best. Why it was chosen is
/// among the facts of the result.
pub fn count(command: &[OsString], options: &Options) -> Result<(Calls, Ended), Error> {
    let choice = choose(options, &Situation::look(command, options))?;
    let (mut calls, ended) = match choice.way {
        Way::Callgrind => callgrind::count(command, options)?,
        Way::Uprobes => uprobes::count(command, options)?,
    };
    calls.profile.about.facts.insert(0, ("means".into(), choice.why));
    Ok((calls, ended))
}
