//! The shared file in which traced processes count calls.
#![allow(unsafe_code, reason = "shared memory has no safe interface")]

use super::Options;
use crate::error::Error;
use laggard_agent::calls_wire::{Chunk, Entry, MAGIC, Tables, options};
use laggard_core::calls::blas;
use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use tempfile::NamedTempFile;

/// The mapped file, which is removed on drop.
pub(super) struct Shared {
    file: NamedTempFile,
    map: MmapRaw,
}

impl Shared {
    pub(super) fn create(options: &Options) -> Result<Shared, Error> {
        let shared =
            Shared::allocate(options.memory, options.arguments > 0).map_err(Error::Shared)?;
        let header = &shared.tables().header;
        fill(&header.from, &options.from).ok_or(Error::Patterns("calling modules"))?;
        fill(&header.library, &options.libraries).ok_or(Error::Patterns("libraries"))?;
        fill(&header.function, &options.functions).ok_or(Error::Patterns("functions"))?;
        let signatures: Vec<String> = blas::signatures().collect();
        fill(&header.signatures, &signatures).ok_or(Error::Patterns("signatures"))?;
        header.arguments.store(options.arguments as u32, Relaxed);
        header.options.store(if options.children { options::CHILDREN } else { 0 }, Relaxed);
        header.used.store((size_of::<Tables>() as u64).next_multiple_of(4096), Relaxed);
        header.size.store(shared.map.len() as u64, Relaxed);
        header.magic.store(MAGIC, Release);
        Ok(shared)
    }

    /// In `/dev/shm` if there is room for the fixed part, otherwise in the temporary directory.
    fn allocate(memory: u64, arguments: bool) -> io::Result<Shared> {
        let mut file = None;
        let fixed =
            if arguments { size_of::<Tables>() } else { std::mem::offset_of!(Tables, arguments) };
        let mut last = None;
        for directory in [Path::new("/dev/shm"), &std::env::temp_dir()] {
            let made = NamedTempFile::with_prefix_in("laggard-calls-", directory)
                .and_then(|file| reserve(&file, fixed as u64).map(|()| file));
            match made {
                Ok(made) => {
                    file = Some(made);
                    break;
                }
                Err(error) => last = Some(error),
            }
        }
        let file = match (file, last) {
            (Some(file), _) => file,
            (None, error) => return Err(error.unwrap_or_else(io::Error::last_os_error)),
        };
        let size = memory.max(2 * size_of::<Tables>() as u64).next_multiple_of(4096);
        file.as_file().set_len(size)?;
        let map = MmapOptions::new().map_raw(file.as_file())?;
        Ok(Shared { file, map })
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(super) fn tables(&self) -> &Tables {
        // SAFETY: the mapping is larger than `Tables` and page-aligned, and `Tables` consists of
        // atomics, for which any bytes are valid.
        unsafe { &*self.map.as_ptr().cast::<Tables>() }
    }

    /// Whether any process has loaded the agent.
    pub(super) fn said_hello(&self) -> bool {
        self.tables().header.images.load(Acquire) != 0
    }

    /// The text that a row refers to.
    pub(super) fn text(&self, start: u32, size: u32) -> String {
        let end = start.saturating_add(size) as usize;
        let cells = self.tables().texts.get(start as usize..end).unwrap_or_default();
        let bytes: Vec<u8> = cells.iter().map(|cell| cell.load(Relaxed)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The entries of a thread, starting at the offset of its first chunk.
    pub(super) fn entries(&self, first: u64) -> impl Iterator<Item = &Entry> {
        let mut next = first;
        // Bounded by the number of chunks that fit in the file, so that a damaged chain ends.
        let most = self.map.len() / size_of::<Chunk>();
        std::iter::from_fn(move || {
            let chunk: &Chunk = self.at(next)?;
            let used = u64::from(chunk.used.load(Acquire).min(chunk.capacity.load(Relaxed)));
            let start = next + size_of::<Chunk>() as u64;
            next = chunk.next.load(Acquire);
            Some((0..used).map_while(move |number| {
                self.at::<Entry>(start + number * size_of::<Entry>() as u64)
            }))
        })
        .take(most)
        .flatten()
    }

    /// The value at an offset after the fixed part, if it lies within the file.
    fn at<T>(&self, offset: u64) -> Option<&T> {
        let end = offset.checked_add(size_of::<T>() as u64)?;
        let is_inside = offset >= size_of::<Tables>() as u64 && end <= self.map.len() as u64;
        if !is_inside || !offset.is_multiple_of(align_of::<T>() as u64) {
            return None;
        }
        // SAFETY: inside the mapping and aligned; `T` is only instantiated with types made of
        // atomics.
        Some(unsafe { &*self.map.as_ptr().add(offset as usize).cast::<T>() })
    }
}

/// Allocates the first bytes of a file, so that writing them cannot fail later.
fn reserve(file: &NamedTempFile, bytes: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the call accesses no memory.
    match unsafe { libc::posix_fallocate(file.as_file().as_raw_fd(), 0, bytes as i64) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Writes null-terminated patterns one after the other; `None` if they are too long.
fn fill(cells: &[AtomicU8], patterns: &[String]) -> Option<()> {
    let bytes: Vec<u8> = patterns
        .iter()
        .filter(|pattern| !pattern.is_empty())
        .flat_map(|pattern| pattern.bytes().chain([0]))
        .collect();
    if bytes.len() >= cells.len() {
        return None;
    }
    for (cell, byte) in cells.iter().zip(bytes) {
        cell.store(byte, Relaxed);
    }
    Some(())
}
