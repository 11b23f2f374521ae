//! Why a file could not be read or written.

use std::io;
use std::path::PathBuf;

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system said no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried ("open", "read", "write").
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
    /// The file is of a kind that is not asked for here.
    #[error("{} is not a PyTorch trace: it looks like {looks_like}", path.display())]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// What it seems to be.
        looks_like: String,
    },
    /// The file was to be of callgrind's kind and is not.
    #[error("{} is not a file of callgrind: it looks like {looks_like}", path.display())]
    NotCallgrind {
        /// The file.
        path: PathBuf,
        /// What it seems to be.
        looks_like: String,
    },
    /// The file was to have a verdict of `laggard why` and has none that can be read.
    #[error("{} is not a verdict of laggard why: {why}", path.display())]
    NotWhy {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file was to have a run of `laggard ffi` and has none that can be read.
    #[error("{} is not a run of laggard ffi: {why}", path.display())]
    NotFfi {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file was to have results of a benchmark and has none.
    #[error("{} has no results of a benchmark: it looks like {looks_like}", path.display())]
    NotABench {
        /// The file.
        path: PathBuf,
        /// What it seems to be.
        looks_like: String,
    },
    /// Results of a benchmark cannot be used.
    #[error("{} has no usable results of a benchmark: {what}", path.display())]
    BadBench {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A mapped file became shorter while it was read.
    #[error("{} was truncated while it was being read", path.display())]
    Shrank {
        /// The file.
        path: PathBuf,
    },
    /// A run file is of another kind or version.
    #[error("{} is a run file of the format {format}, not {}", path.display(), crate::lag::INDEX_SCHEMA)]
    OtherRunFile {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: String,
    },
    /// A file is no recording, or of a version that is not known.
    #[error("{} is no recording of the format {}, but {format}", path.display(), crate::lag::RUN_SCHEMA)]
    NotARun {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: String,
    },
    /// A recording of another profiler has nothing that can be used.
    #[error("{} is no recording that can be read: {what}", path.display())]
    NotARecording {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A run file is damaged.
    #[error("{} is not a usable run file: {reason}", path.display())]
    BadRunFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
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
