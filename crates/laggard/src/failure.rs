//! Errors with hints.

use laggard_formats::Error;
use std::fmt;

/// An error with a hint.
#[derive(Debug)]
struct Failure {
    what: String,
    hint: String,
    /// The original error, if it came from the probe.
    of: Option<laggard_probe::Error>,
}

/// Creates an error with a hint.
pub(crate) fn with_hint(what: String, hint: String) -> anyhow::Error {
    anyhow::Error::new(Failure { what, hint, of: None })
}

/// The user interrupted the work.
#[derive(Debug)]
struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Creates the error for interrupted work.
pub(crate) fn interrupted() -> anyhow::Error {
    anyhow::Error::new(Interrupted)
}

/// Whether an error means that the user interrupted the work.
pub(crate) fn is_interrupted(error: &anyhow::Error) -> bool {
    error.is::<Interrupted>()
}

/// Adds a hint to a probe error.
pub(crate) fn caused(error: laggard_probe::Error, hint: String) -> anyhow::Error {
    anyhow::Error::new(Failure { what: error.to_string(), hint, of: Some(error) })
}

/// The probe error in the chain, if there is one.
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

/// The hint for an error, if one is known.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(failure) = error.chain().find_map(|cause| cause.downcast_ref::<Failure>()) {
        return Some(failure.hint.clone()).filter(|hint| !hint.is_empty());
    }
    let formats = error.chain().find_map(|cause| cause.downcast_ref::<Error>())?;
    match formats {
        Error::UnknownFormat { .. } => Some("laggard reads recordings and call traces (.lag), perf.data, profiles of other tools, benchmark results, perf stat counters and torch.profiler traces".into()),
        Error::Shrank { .. } => Some("wait until the program that writes the file has finished, then run the command again".into()),
        // An index can be recreated from its trace; a recording cannot.
        Error::BadRunFile { path, .. } if path.with_extension("").is_file() => Some(format!("delete the index: laggard index {} --clear", path.display())),
        _ => None,
    }
}

/// Whether the reader of standard output closed the pipe, which is not a failure.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
