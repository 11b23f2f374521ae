//! Errors of ELF files and modules.

use std::path::PathBuf;

/// Why a file could not be read as ELF.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system reported an error.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not an ELF file.
    #[error("{name} is not an ELF file: the magic bytes 7f 45 4c 46 are missing")]
    NotElf {
        /// The path, or a name for it.
        name: String,
    },
    /// The file is ELF, but its headers are invalid.
    #[error("the ELF file {name} is damaged: {what}")]
    Damaged {
        /// The path, or a name for it.
        name: String,
        /// The reason.
        what: String,
    },
}

/// Why the file of a module is missing.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    /// The file could not be read.
    #[error(transparent)]
    Error(#[from] Error),
    /// The file is not the one that was recorded.
    #[error(
        "{} has changed since the recording: its build ID or content hash is {found}, not {wanted}",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// The id of the recorded file.
        wanted: String,
        /// The id of the file found.
        found: String,
    },
    /// The module is not a file.
    #[error("{name} is not a file")]
    NoFile {
        /// The module's name.
        name: String,
    },
}
