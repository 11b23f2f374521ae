//! Reasons why a side cannot be measured, worded to follow the name of the side.

use super::worker::SETUP;
use crate::program::Refusal;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// A reason why a side cannot be measured. Each message is a predicate of the side: "did not finish
/// …".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The program does not exist or cannot be run.
    #[error("cannot start: {0}")]
    Missing(#[from] Refusal),
    /// The operating system did not start the program.
    #[error("cannot start {}: {step} failed: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The step of the start that failed.
        step: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The side is too slow or hangs.
    #[error("did not finish {what} within {}", seconds(limit))]
    Timeout {
        /// The action that it did not finish.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// A signal ended the process.
    #[error("was killed by signal {}{}{}", number, name(*number), after(said))]
    Killed {
        /// Signal number.
        number: i32,
        /// The last lines that it wrote to standard error.
        said: String,
    },
    /// The process exited.
    #[error("exited with status {code} {when}{}", after(said))]
    Ended {
        /// Exit status.
        code: i32,
        /// The context of the exit, such as "in its first call".
        when: &'static str,
        /// The last lines that it wrote to standard error.
        said: String,
    },
    /// The set-up code or the statement is not valid Python.
    #[error("contains invalid Python code: {0}")]
    Syntax(String),
    /// Python raised an exception.
    #[error("failed in {place}: {last}")]
    Raised {
        /// Set-up or statement.
        place: &'static str,
        /// The last line of the traceback.
        last: String,
        /// The whole traceback.
        traceback: String,
    },
    /// The connection to the process is broken.
    #[error("failed with an I/O error: {0}")]
    Wire(io::Error),
    /// The plan for the side is inconsistent, or its output is unusable.
    #[error("{0}")]
    Plan(String),
}

/// Two sides with different results.
#[derive(Debug, thiserror::Error)]
#[error(
    "sides {} and {} give different results{}: {} and {}",
    sides.0, sides.1, known(" at ", at), values.0, values.1
)]
pub struct Differ {
    /// Names of the sides.
    pub sides: (String, String),
    /// Position in the result; empty for the whole result.
    pub at: String,
    /// The values at this position.
    pub values: (String, String),
}

/// The exception by which set-up code reports that its side does not support a case.
const CANNOT: &str = "NotImplementedError";

impl Trouble {
    /// The reason why the side does not support the case, if its set-up code reported that.
    pub fn cannot(&self) -> Option<&str> {
        let Trouble::Raised { place: SETUP, last, .. } = self else { return None };
        let why = last.strip_prefix(CANNOT)?;
        Some(
            why.strip_prefix(": ")
                .filter(|why| !why.is_empty())
                .unwrap_or("not supported by this side"),
        )
    }

    /// The trouble of a process that ended unexpectedly.
    pub(super) fn of(status: ExitStatus, when: &'static str, said: String) -> Trouble {
        match status.signal() {
            Some(number) => Trouble::Killed { number, said },
            None => Trouble::Ended { code: status.code().unwrap_or(-1), when, said },
        }
    }
}

fn seconds(limit: &Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}

fn after(said: &str) -> String {
    known("; standard error:\n", said)
}

/// The text with a prefix, or an empty string if the text is empty.
fn known(before: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{before}{text}") }
}

/// The signal name in parentheses, if the signal is one that ends programs.
fn name(number: i32) -> String {
    let name = match number {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGSYS => "SIGSYS",
        _ => return String::new(),
    };
    format!(" ({name})")
}
