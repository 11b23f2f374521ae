//! The bytes of a file: mapped, or in memory.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

/// The bytes of a file.
pub(crate) enum Content {
    Mapped(memmap2::Mmap),
    Kept(Vec<u8>),
}

impl Content {
    /// Maps a regular file; large libraries have hundreds of megabytes, of which few are read.
    pub(crate) fn open(path: &Path) -> io::Result<Content> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        // SAFETY: the map is only read, as untrusted bytes. A library that is cut short while it
        // is in use ends the program that runs it, too; whoever installs one replaces the file.
        #[allow(unsafe_code)]
        let map = unsafe { memmap2::Mmap::map(&file)? };
        Ok(Content::Mapped(map))
    }
}

impl Deref for Content {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Content::Mapped(map) => map,
            Content::Kept(bytes) => bytes,
        }
    }
}
