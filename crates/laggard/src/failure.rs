//! Errors that know what helps.

use laggard_formats::Error;
use std::fmt;

/// An error with a hint of its own.
#[derive(Debug)]
struct Failure {
    what: String,
    hint: String,
    /// What it was before it knew what helps.
    of: Option<laggard_probe::Error>,
}

/// An error that says what failed and what helps.
pub(crate) fn with_hint(what: String, hint: String) -> anyhow::Error {
    anyhow::Error::new(Failure { what, hint, of: None })
}

/// The user has ended what was going on.
#[derive(Debug)]
struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// The error of work that the user has ended.
pub(crate) fn interrupted() -> anyhow::Error {
    anyhow::Error::new(Interrupted)
}

/// Whether it is that error.
pub(crate) fn is_interrupted(error: &anyhow::Error) -> bool {
    error.is::<Interrupted>()
}

/// The same of an error that has its own words.
pub(crate) fn caused(error: laggard_probe::Error, hint: String) -> anyhow::Error {
    anyhow::Error::new(Failure { what: error.to_string(), hint, of: Some(error) })
}

/// What went wrong with live processes, if that is what the error is about.
pub(crate) fn of_probe(error: &anyhow::Error) -> Option<&laggard_probe::Error> {
    error.chain().find_map(|cause| {
        cause.downcast_ref().or_else(|| cause.downcast_ref::<Failure>()?.of.as_ref())
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

/// What helps against this error, if anything is known to.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(failure) = error.chain().find_map(|cause| cause.downcast_ref::<Failure>()) {
        return Some(failure.hint.clone()).filter(|hint| !hint.is_empty());
    }
    let formats = error.chain().find_map(|cause| cause.downcast_ref::<Error>())?;
    match formats {
        Error::NotATrace { .. } => Some("laggard reads recordings and calls (.lag), perf.data and profiles of other programs, results of benchmarks, counters of perf stat, and traces that torch.profiler wrote".into()),
        Error::Shrank { .. } => Some("wait until the program that writes it is done, then run this again".into()),
        // An index can be made again; a recording cannot.
        Error::BadRunFile { path, .. } if path.with_extension("").is_file() => Some(format!("remove it: laggard index {} --clear", path.display())),
        _ => None,
    }
}

/// Whether the reader of our output went away, which is no failure.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
