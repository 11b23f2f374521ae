//! The shared file between the driver and its agents.

use laggard_agent::wire::{HEADER_SIZE, Header, LONGEST_RECORD, MAGIC, kind};
use memmap2::{MmapOptions, MmapRaw};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The mapped file, which is removed on drop.
pub(crate) struct SharedFile {
    path: PathBuf,
    /// Locked for the lifetime of this value, so that other drivers know that it is in use.
    _file: File,
    map: MmapRaw,
    capacity: u64,
    /// Position of an unfinished record that blocks the following ones, and since when.
    held_up: Mutex<Option<(u64, Instant)>>,
}

/// Time that a writer has to finish a record, which takes microseconds: for a process that no
/// longer exists (or has another ID in its own PID namespace), and for one that does.
const PATIENCE_WITH_DEAD: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(2);

const PREFIX: &str = "laggard-";
const SUFFIX: &str = ".ring";

impl SharedFile {
    /// Creates a file with a ring of `capacity` bytes, a power of two.
    pub(crate) fn create(capacity: u64) -> io::Result<SharedFile> {
        // Containers often have little shared memory; a file on disk also works, but is slower.
        let memory = Path::new("/dev/shm");
        let first = memory.is_dir().then(|| SharedFile::create_in(memory, capacity));
        match first {
            Some(Ok(shared)) => Ok(shared),
            _ => SharedFile::create_in(&std::env::temp_dir(), capacity),
        }
    }

    fn create_in(directory: &Path, capacity: u64) -> io::Result<SharedFile> {
        remove_stale(directory);
        let (path, file) = create_locked(directory)?;
        let size = HEADER_SIZE as u64 + capacity;
        // Allocated in advance, because running out of space later would kill the writer.
        // SAFETY: the descriptor is open, and the call accesses no memory.
        let error = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, size as i64) };
        if error != 0 {
            let _ = std::fs::remove_file(&path);
            return Err(io::Error::from_raw_os_error(error));
        }
        let map = MmapOptions::new().map_raw(&file)?;
        let shared = SharedFile { path, _file: file, map, capacity, held_up: Mutex::new(None) };
        shared.header().capacity.store(capacity, Relaxed);
        shared.header().magic.store(MAGIC, Release);
        Ok(shared)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the mapping is longer than the header and page-aligned, and the header consists
        // of atomics.
        unsafe { &*self.map.as_ptr().cast::<Header>() }
    }

    /// Passes every finished record to `each`, and returns its space to the writers. Records that
    /// will not be finished are skipped; once the run `is_over`, that is every unfinished one.
    /// Returns the number of skipped records.
    pub(crate) fn drain(&self, is_over: bool, mut each: impl FnMut(u64, &[u8])) -> u64 {
        let header = self.header();
        let mut skipped = 0;
        let mut tail = header.tail.load(Relaxed);
        // Records written from here on are left for the next call.
        let head = header.head.load(Acquire);
        while tail < head {
            let at = (tail & (self.capacity - 1)) as usize;
            // SAFETY: `at` is below the capacity, so the pointer is inside the ring.
            let place = unsafe { self.map.as_mut_ptr().add(HEADER_SIZE + at) };
            let word = self.word(tail).load(Acquire);
            let (length, kind, pid) =
                ((word >> 8) as usize & (LONGEST_RECORD | 7), word & 0xff, (word >> 32) as u32);
            let fits = length >= 8 && length % 8 == 0 && at + length <= self.capacity as usize;
            if (!fits || kind == kind::PENDING) && !is_over && !self.is_given_up(tail, pid) {
                break;
            }
            if !fits {
                // Reserved but never marked, or overwritten by a misbehaving program.
                let next = if word == 0 { self.next_word(tail, head) } else { head };
                while tail < next {
                    self.word(tail).store(0, Relaxed);
                    tail += 8;
                }
                skipped += 1;
                header.tail.store(tail, Release);
                continue;
            }
            if kind == kind::PENDING {
                skipped += 1;
            } else {
                // SAFETY: the record lies inside the ring, and a finished record is not written
                // until `tail` moves.
                each(kind, unsafe { std::slice::from_raw_parts(place.add(8), length - 8) });
            }
            // SAFETY: as above. Writers rely on zeroed space.
            unsafe { place.write_bytes(0, length) };
            tail += length as u64;
            header.tail.store(tail, Release);
        }
        skipped
    }

    /// The word of the ring at this position, which counts bytes since the start.
    fn word(&self, position: u64) -> &AtomicU64 {
        let at = (position & (self.capacity - 1)) as usize;
        // SAFETY: inside the ring, and aligned to 8 as all records are. Writers also access it as
        // an atomic.
        unsafe { &*self.map.as_mut_ptr().add(HEADER_SIZE + at).cast::<AtomicU64>() }
    }

    /// The first non-zero word from here on: space is zeroed before it is given to writers.
    fn next_word(&self, mut position: u64, head: u64) -> u64 {
        while position < head && self.word(position).load(Acquire) == 0 {
            position += 8;
        }
        position
    }

    /// Whether the writer of this record has exceeded its time.
    fn is_given_up(&self, tail: u64, pid: u32) -> bool {
        let mut held_up = self.held_up.lock().unwrap_or_else(PoisonError::into_inner);
        let since = match *held_up {
            Some((place, since)) if place == tail => since,
            _ => {
                *held_up = Some((tail, Instant::now()));
                return false;
            }
        };
        let patience = match state_of(pid) {
            None | Some('Z' | 'X') if pid != 0 => PATIENCE_WITH_DEAD,
            // A stopped process will continue later.
            Some('T' | 't') => return false,
            _ => PATIENCE,
        };
        since.elapsed() >= patience
    }

    /// Sleeps until a writer finds the ring a quarter full, [`SharedFile::wake`] is called, or the
    /// time is over.
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
            // SAFETY: the futex word lies in the mapping, and `time` outlives the call.
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
        // SAFETY: the futex word lies in the mapping.
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

/// Creates and locks a new file.
fn create_locked(directory: &Path) -> io::Result<(PathBuf, File)> {
    const MOST_ATTEMPTS: u32 = 1000;
    for attempt in 0..MOST_ATTEMPTS {
        let path = directory.join(format!("{PREFIX}{}-{attempt}{SUFFIX}", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        match options.open(&path) {
            // Another driver may consider it stale and remove it before it is locked.
            Ok(file) if lock(&file) && is_still_there(&file, &path) => return Ok((path, file)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn is_still_there(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(theirs)) = (file.metadata(), path.symlink_metadata()) else { return false };
    ours.ino() == theirs.ino()
}

/// The state letter of a process; `None` if the process does not exist.
fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name, in parentheses, may contain any characters.
    stat.rsplit_once(") ")?.1.chars().next()
}

fn lock(file: &File) -> bool {
    // SAFETY: the descriptor is open, and the call accesses no memory.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Removes files of drivers that were killed.
fn remove_stale(directory: &Path) {
    let Ok(entries) = directory.read_dir() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours =
            name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if is_ours
            && let Ok(file) = OpenOptions::new()
                .read(true)
                .write(true)
                // Other users may create anything there, such as symbolic links or pipes.
                .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
                .open(entry.path())
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

    /// Writes a record at the head, as an agent does.
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
    fn an_unfinished_record_of_a_killed_writer_is_skipped() {
        let shared = SharedFile::create(1 << 16).unwrap();
        write(&shared, kind::CODE, 7, b"whole");
        write(&shared, kind::PENDING, 8, b"half");
        write(&shared, kind::SAMPLE, 7, b"behind");
        let mut seen = vec![];
        let skipped = shared.drain(false, |kind, payload| seen.push((kind, payload.to_vec())));
        assert_eq!((skipped, seen.len()), (0, 1), "an unfinished record blocks the rest");
        let skipped = shared.drain(true, |kind, payload| seen.push((kind, payload.to_vec())));
        assert_eq!(skipped, 1);
        assert_eq!(seen[1].0, kind::SAMPLE);
        assert_eq!(&seen[1].1[..6], b"behind");
    }

    #[test]
    fn abandoned_records_block_the_rest_only_for_a_limited_time() {
        /// No process has this ID.
        const NOBODY: u64 = 0x00ff_ffff;
        let shared = SharedFile::create(1 << 16).unwrap();
        write(&shared, kind::PENDING, NOBODY, b"of a process that is gone");
        // Reserved by a writer that was killed before it could mark the record.
        shared.header().head.fetch_add(64, Relaxed);
        write(&shared, kind::SAMPLE, 7, b"behind");
        let (mut skipped, mut seen) = (0, 0);
        let began = Instant::now();
        while seen == 0 && began.elapsed() < 10 * PATIENCE {
            skipped += shared.drain(false, |_, _| seen += 1);
            std::thread::sleep(PATIENCE_WITH_DEAD);
        }
        assert_eq!((skipped, seen), (2, 1));
        // An overwritten record is lost together with those behind it, but later ones are not.
        write(&shared, kind::SAMPLE, 7, b"whole");
        shared.word(shared.header().tail.load(Relaxed)).store(u64::MAX, Relaxed);
        assert_eq!(shared.drain(true, |_, _| seen += 1), 1);
        write(&shared, kind::SAMPLE, 7, b"after");
        assert_eq!(shared.drain(false, |_, _| seen += 1), 0);
        assert_eq!(seen, 2);
    }

    #[test]
    fn drivers_can_start_concurrently() {
        let rings: Vec<SharedFile> = std::thread::scope(|scope| {
            let all: Vec<_> =
                (0..8).map(|_| scope.spawn(|| SharedFile::create(1 << 13).unwrap())).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(rings.iter().all(|ring| ring.path().exists()));
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
