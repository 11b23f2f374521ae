//! Why a side cannot be measured, told so that the name of the side goes before it.

use super::worker::SETUP;
use crate::program::Refusal;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a side cannot be measured. Each is a statement about the side: "did not finish …".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// There is no such program.
    #[error("cannot start: {0}")]
    Missing(#[from] Refusal),
    /// The operating system did not start it.
    #[error("cannot start {}: {step}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system was asked for.
        step: &'static str,
        /// Its answer.
        source: io::Error,
    },
    /// It is too slow, or hangs.
    #[error("did not finish {what} within {}", seconds(limit))]
    Timeout {
        /// What it was doing.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// A signal ended it.
    #[error("was killed by signal {}{}{}", number, name(*number), after(said))]
    Killed {
        /// The signal.
        number: i32,
        /// The end of what it wrote to standard error.
        said: String,
    },
    /// It ended.
    #[error("ended with code {code} {when}{}", after(said))]
    Ended {
        /// Its code.
        code: i32,
        /// What it should have done instead.
        when: &'static str,
        /// The end of what it wrote to standard error.
        said: String,
    },
    /// Text that is no Python.
    #[error("is not valid Python: {0}")]
    Syntax(String),
    /// Python raised an exception.
    #[error("failed in {place}: {last}")]
    Raised {
        /// Set-up or statement.
        place: &'static str,
        /// The last line of Python's words.
        last: String,
        /// All of them.
        traceback: String,
    },
    /// The connection to its process is broken.
    #[error("cannot be talked to: {0}")]
    Wire(io::Error),
    /// What it is told to do makes no sense.
    #[error("{0}")]
    Plan(String),
}

/// Two sides that do not do the same.
#[derive(Debug, thiserror::Error)]
#[error(
    "sides {} and {} give different results{}: {} and {}",
    sides.0, sides.1, known(" at ", at), values.0, values.1
)]
pub struct Differ {
    /// What they are called.
    pub sides: (String, String),
    /// Where in the result; empty is all of it.
    pub at: String,
    /// What each gives there.
    pub values: (String, String),
}

/// The exception by which a set-up says that its side cannot do a case.
const CANNOT: &str = "NotImplementedError";

impl Trouble {
    /// Why the side cannot do the case, if that is what its set-up says.
    pub fn cannot(&self) -> Option<&str> {
        let Trouble::Raised { place: SETUP, last, .. } = self else { return None };
        let why = last.strip_prefix(CANNOT)?;
        Some(why.strip_prefix(": ").filter(|why| !why.is_empty()).unwrap_or("it cannot do this"))
    }

    /// Of a process that ended when it should not have.
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
    known("; it said:\n", said)
}

/// Words before a text, if there is one.
fn known(before: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{before}{text}") }
}

/// A signal's name in brackets, if it is one that ends programs.
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
