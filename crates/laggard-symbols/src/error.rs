//! What can go wrong with a file.

use std::path::PathBuf;

/// Why a file could not be read as ELF.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system refused.
    #[error("{} could not be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("{name} is no ELF file: it does not start with 7f 45 4c 46")]
    NotElf {
        /// The file, or what stands for it.
        name: String,
    },
    /// It is ELF, but its headers lead nowhere.
    #[error("the ELF file {name} is damaged: {what}")]
    Damaged {
        /// The file, or what stands for it.
        name: String,
        /// What does not hold.
        what: String,
    },
}

/// Why there is no file for a module.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    /// The file could not be read.
    #[error(transparent)]
    Error(#[from] Error),
    /// There is a file, but not the one that ran.
    #[error("{} has changed since it ran: its id is {found}, not {wanted}", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// The id of the file that ran.
        wanted: String,
        /// The id of the file there is.
        found: String,
    },
    /// The module never was a file.
    #[error("{name} is no file")]
    NoFile {
        /// The module's name.
        name: String,
    },
}
