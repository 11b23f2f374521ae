//! The shared file between the driver and its agents: made, configured, read and removed here.

use laggard_agent::wire::{HEADER_SIZE, Header, LONGEST_RECORD, MAGIC, kind};
use memmap2::{MmapOptions, MmapRaw};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::Duration;

/// The file, mapped. It is removed when this is dropped.
pub(crate) struct SharedFile {
    path: PathBuf,
    /// Locked as long as we live, so that others know it is in use.
    _file: File,
    map: MmapRaw,
    capacity: u64,
}

const PREFIX: &str = "laggard-";
const SUFFIX: &str = ".ring";

impl SharedFile {
    /// Makes a file with a ring of `capacity` bytes, a power of two.
    pub(crate) fn create(capacity: u64) -> io::Result<SharedFile> {
        let directory = directory();
        remove_stale(&directory);
        let mut attempt = 0;
        let (path, file) = loop {
            let name = format!("{PREFIX}{}-{attempt}{SUFFIX}", std::process::id());
            let path = directory.join(name);
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(0o600);
            match options.open(&path) {
                Ok(file) => break (path, file),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        };
        lock(&file);
        file.set_len(HEADER_SIZE as u64 + capacity)?;
        // Room is taken now: running out of it later would kill whoever writes.
        // SAFETY: a call on our own descriptor.
        let error = unsafe {
            libc::posix_fallocate(file.as_raw_fd(), 0, (HEADER_SIZE as u64 + capacity) as i64)
        };
        if error != 0 {
            let _ = std::fs::remove_file(&path);
            return Err(io::Error::from_raw_os_error(error));
        }
        let map = MmapOptions::new().map_raw(&file)?;
        let shared = SharedFile { path, _file: file, map, capacity };
        shared.header().capacity.store(capacity, Relaxed);
        shared.header().magic.store(MAGIC, Release);
        Ok(shared)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the mapping is longer than the header, aligned to a page, and all of it atomics.
        unsafe { &*self.map.as_ptr().cast::<Header>() }
    }

    /// Gives every finished record to `each`, and its room back to the writers. Records of
    /// processes that are `gone` without finishing them are skipped; their number is returned.
    pub(crate) fn drain(
        &self,
        gone: impl Fn(u32) -> bool,
        mut each: impl FnMut(u64, &[u8]),
    ) -> u64 {
        let header = self.header();
        let mut skipped = 0;
        let mut tail = header.tail.load(Relaxed);
        // What is written meanwhile waits for the next time.
        let head = header.head.load(Acquire);
        while tail < head {
            let at = (tail & (self.capacity - 1)) as usize;
            // SAFETY: inside the ring and aligned to 8, as all records are.
            let place = unsafe { self.map.as_mut_ptr().add(HEADER_SIZE + at) };
            // SAFETY: as above; writers use it as an atomic too.
            let word = unsafe { &*place.cast::<AtomicU64>() }.load(Acquire);
            let (length, kind, pid) =
                ((word >> 8) as usize & (LONGEST_RECORD | 7), word & 0xff, (word >> 32) as u32);
            let fits = length >= 8 && length % 8 == 0 && at + length <= self.capacity as usize;
            if !fits {
                // Reserved and not yet marked, or written over by a program gone astray.
                break;
            }
            if kind == kind::PENDING {
                if !gone(pid) {
                    break;
                }
                skipped += 1;
            } else {
                // SAFETY: a finished record is ours until `tail` moves.
                each(kind, unsafe { std::slice::from_raw_parts(place.add(8), length - 8) });
            }
            // SAFETY: the same; writers rely on finding zeros.
            unsafe { place.write_bytes(0, length) };
            tail += length as u64;
            header.tail.store(tail, Release);
        }
        skipped
    }

    /// Sleeps until a writer finds the ring a quarter full, someone calls [`SharedFile::wake`],
    /// or the time is over.
    pub(crate) fn wait(&self, most: Duration) {
        let header = self.header();
        let bell = header.bell.load(Acquire);
        header.asleep.store(1, Release);
        let used = header.head.load(Acquire).wrapping_sub(header.tail.load(Relaxed));
        if used <= self.capacity / 4 {
            let time = libc::timespec {
                tv_sec: most.as_secs() as i64,
                tv_nsec: i64::from(most.subsec_nanos()),
            };
            // SAFETY: sleeps on a word of the mapping while it has this value.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    header.bell.as_ptr(),
                    libc::FUTEX_WAIT,
                    bell,
                    &raw const time,
                );
            }
        }
        header.asleep.store(0, Release);
    }

    /// Ends a [`SharedFile::wait`] of another thread.
    pub(crate) fn wake(&self) {
        let header = self.header();
        header.bell.fetch_add(1, Release);
        // SAFETY: wakes sleepers on a word of the mapping.
        unsafe {
            libc::syscall(libc::SYS_futex, header.bell.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
        }
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn directory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.into() } else { std::env::temp_dir() }
}

fn lock(file: &File) -> bool {
    // SAFETY: a call on an open descriptor.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Removes what drivers left behind that were killed.
fn remove_stale(directory: &Path) {
    let Ok(entries) = directory.read_dir() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours =
            name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if is_ours
            && let Ok(file) = OpenOptions::new().read(true).write(true).open(entry.path())
            && lock(&file)
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    /// Writes a record as an agent does, at the head.
    fn write(shared: &SharedFile, kind: u64, pid: u64, payload: &[u8]) {
        let header = shared.header();
        let length = (payload.len() as u64 + 8).next_multiple_of(8);
        let at = header.head.fetch_add(length, Relaxed) & (shared.capacity - 1);
        // SAFETY: the test keeps records inside the ring.
        unsafe {
            let place = shared.map.as_mut_ptr().add(HEADER_SIZE + at as usize);
            std::ptr::copy_nonoverlapping(payload.as_ptr(), place.add(8), payload.len());
            (*place.cast::<AtomicU64>()).store(length << 8 | pid << 32 | kind, Release);
        }
    }

    #[test]
    fn a_killed_writer_leaves_a_hole_and_nothing_else() {
        let shared = SharedFile::create(1 << 16).unwrap();
        write(&shared, kind::CODE, 7, b"whole");
        write(&shared, kind::PENDING, 8, b"half");
        write(&shared, kind::SAMPLE, 7, b"behind");
        let mut seen = vec![];
        let skipped = shared.drain(|_| false, |kind, payload| seen.push((kind, payload.to_vec())));
        assert_eq!((skipped, seen.len()), (0, 1), "an unfinished record holds up the rest");
        let skipped =
            shared.drain(|pid| pid == 8, |kind, payload| seen.push((kind, payload.to_vec())));
        assert_eq!(skipped, 1);
        assert_eq!(seen[1].0, kind::SAMPLE);
        assert_eq!(&seen[1].1[..6], b"behind");
    }

    #[test]
    fn files_of_dead_drivers_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let stale = directory.path().join("laggard-1-0.ring");
        std::fs::write(&stale, b"").unwrap();
        let used = directory.path().join("laggard-2-0.ring");
        let file = File::create(&used).unwrap();
        assert!(lock(&file));
        remove_stale(directory.path());
        assert!(!stale.exists());
        assert!(used.exists());
    }
}
