//! The content of a file, mapped or in memory.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

/// The content of a file.
pub(crate) enum Content {
    Mapped(memmap2::Mmap),
    Kept(Vec<u8>),
}

impl Content {
    /// Maps a regular file. Large libraries have hundreds of megabytes, but only a small part is
    /// read.
    pub(crate) fn open(path: &Path) -> io::Result<Content> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        // SAFETY: the map is only read, as untrusted bytes. Truncating a library in use would also
        // crash the programs that use it, so installers replace the file instead.
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
