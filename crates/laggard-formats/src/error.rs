//! The error type of all readers and writers.

use std::io;
use std::path::PathBuf;

/// An error of a reader or writer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system reported an error.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation that failed ("open", "read", "write").
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// No reader exists for the file.
    #[error("{} is not a format laggard reads: it looks like {looks_like}", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// What the file looks like.
        looks_like: String,
    },
    /// The file is not a callgrind file.
    #[error("{} is not a callgrind file: it looks like {looks_like}", path.display())]
    NotCallgrind {
        /// The file.
        path: PathBuf,
        /// What the file looks like.
        looks_like: String,
    },
    /// The file does not contain a readable verdict of `laggard why`.
    #[error("{} is not a result of laggard why: {why}", path.display())]
    NotWhy {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file does not contain a readable result of `laggard ffi`.
    #[error("{} is not a result of laggard ffi: {why}", path.display())]
    NotFfi {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file does not contain benchmark results.
    #[error("{} has no benchmark results: it looks like {looks_like}", path.display())]
    NotABench {
        /// The file.
        path: PathBuf,
        /// What the file looks like.
        looks_like: String,
    },
    /// The benchmark results are invalid.
    #[error("cannot use the benchmark results in {}: {what}", path.display())]
    BadBench {
        /// The file.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// A mapped file was truncated while it was read.
    #[error("{} was truncated while it was being read", path.display())]
    Shrank {
        /// The file.
        path: PathBuf,
    },
    /// A run file has another kind or version.
    #[error(
        "{} is a .lag file in format {format}, not {}",
        path.display(),
        crate::lag::INDEX_SCHEMA
    )]
    OtherRunFile {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        format: String,
    },
    /// The run file is not a recording, or has an unsupported version.
    #[error(
        "{} is not a recording in format {}: its format is {format}",
        path.display(),
        crate::lag::RUN_SCHEMA
    )]
    NotARun {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        format: String,
    },
    /// A file of another profiler contains no usable data.
    #[error("cannot read {}: {what}", path.display())]
    NotARecording {
        /// The file.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// A run file is damaged.
    #[error("{} is not a valid .lag file: {reason}", path.display())]
    BadRunFile {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { action, path, source }
    }
}
