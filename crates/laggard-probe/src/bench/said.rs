//! Standard error of a side, kept in a file and shown if the side fails.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

/// The file is emptied between rounds when it exceeds this many bytes.
const LARGEST: u64 = 1 << 20;
/// Limits of the part that is shown: bytes and lines.
const SHOWN: u64 = 4 << 10;
const LINES: usize = 12;

/// An unnamed file. Writers append to it, so it can be emptied while they have it open.
pub(super) struct Said {
    file: File,
}

impl Said {
    pub(super) fn new() -> io::Result<Said> {
        let named = tempfile::NamedTempFile::new()?;
        let file = File::options().append(true).read(true).open(named.path())?;
        Ok(Said { file })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Empties the file.
    pub(super) fn clear(&self) {
        let _ = self.file.set_len(0);
    }

    /// Empties the file if it is large. Call it only while the side is idle.
    pub(super) fn keep_small(&self) {
        if self.file.metadata().is_ok_and(|data| data.len() > LARGEST) {
            self.clear();
        }
    }

    /// The last lines, indented.
    pub(super) fn tail(&self) -> String {
        let length = self.file.metadata().map_or(0, |data| data.len());
        let from = length.saturating_sub(SHOWN);
        let mut bytes = vec![0; (length - from) as usize];
        if self.file.read_exact_at(&mut bytes, from).is_err() {
            return String::new();
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(LINES)..];
        last.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
    }
}
