//! The shared file between the driver and its agents: made, configured, read and removed here.

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

/// The file, mapped. It is removed when this is dropped.
pub(crate) struct SharedFile {
    path: PathBuf,
    /// Locked as long as we live, so that others know it is in use.
    _file: File,
    map: MmapRaw,
    capacity: u64,
    /// Place of the record that holds up the others, and since when.
    held_up: Mutex<Option<(u64, Instant)>>,
}

/// Time that a writer has to finish a record, which takes it microseconds: one that no longer
/// exists, as far as we see (it may only have another number for itself), and one that does.
const PATIENCE_WITH_DEAD: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(2);

const PREFIX: &str = "laggard-";
const SUFFIX: &str = ".ring";

impl SharedFile {
    /// Makes a file with a ring of `capacity` bytes, a power of two.
    pub(crate) fn create(capacity: u64) -> io::Result<SharedFile> {
        // Containers often have little shared memory; a file on disk does too, if slower.
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
        // Room is taken now: running out of it later would kill whoever writes.
        // SAFETY: a call on our own descriptor.
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
        // SAFETY: the mapping is longer than the header, aligned to a page, and all of it atomics.
        unsafe { &*self.map.as_ptr().cast::<Header>() }
    }

    /// Gives every finished record to `each`, and its room back to the writers. Records that
    /// nobody will finish, as none will once the run `is_over`, are skipped; their number is
    /// returned.
    pub(crate) fn drain(&self, is_over: bool, mut each: impl FnMut(u64, &[u8])) -> u64 {
        let header = self.header();
        let mut skipped = 0;
        let mut tail = header.tail.load(Relaxed);
        // What is written meanwhile waits for the next time.
        let head = header.head.load(Acquire);
        while tail < head {
            let at = (tail & (self.capacity - 1)) as usize;
            // SAFETY: inside the ring.
            let place = unsafe { self.map.as_mut_ptr().add(HEADER_SIZE + at) };
            let word = self.word(tail).load(Acquire);
            let (length, kind, pid) =
                ((word >> 8) as usize & (LONGEST_RECORD | 7), word & 0xff, (word >> 32) as u32);
            let fits = length >= 8 && length % 8 == 0 && at + length <= self.capacity as usize;
            if (!fits || kind == kind::PENDING) && !is_over && !self.is_given_up(tail, pid) {
                break;
            }
            if !fits {
                // Reserved and never marked, or written over by a program gone astray.
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

    /// The word of the ring that this many bytes since the start lie before.
    fn word(&self, position: u64) -> &AtomicU64 {
        let at = (position & (self.capacity - 1)) as usize;
        // SAFETY: inside the ring and aligned to 8, as all records are; writers use it as an
        // atomic too.
        unsafe { &*self.map.as_mut_ptr().add(HEADER_SIZE + at).cast::<AtomicU64>() }
    }

    /// The first word from here on that somebody wrote: room is all zeros when it is given away.
    fn next_word(&self, mut position: u64, head: u64) -> u64 {
        while position < head && self.word(position).load(Acquire) == 0 {
            position += 8;
        }
        position
    }

    /// Whether the writer of the record here has had its time to finish it.
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
            // It goes on when it is let.
            Some('T' | 't') => return false,
            _ => PATIENCE,
        };
        since.elapsed() >= patience
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

/// Makes a file that nobody else has, locked.
fn create_locked(directory: &Path) -> io::Result<(PathBuf, File)> {
    const MOST_ATTEMPTS: u32 = 1000;
    for attempt in 0..MOST_ATTEMPTS {
        let path = directory.join(format!("{PREFIX}{}-{attempt}{SUFFIX}", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        match options.open(&path) {
            // Another driver may take it for a dead one's before it is locked.
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

/// The state of a process in one letter; none when there is no such process.
fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Its name, in brackets, may hold anything.
    stat.rsplit_once(") ")?.1.chars().next()
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
            && let Ok(file) = OpenOptions::new()
                .read(true)
                .write(true)
                // Others may put what they like there: a link, a pipe.
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
        let skipped = shared.drain(false, |kind, payload| seen.push((kind, payload.to_vec())));
        assert_eq!((skipped, seen.len()), (0, 1), "an unfinished record holds up the rest");
        let skipped = shared.drain(true, |kind, payload| seen.push((kind, payload.to_vec())));
        assert_eq!(skipped, 1);
        assert_eq!(seen[1].0, kind::SAMPLE);
        assert_eq!(&seen[1].1[..6], b"behind");
    }

    #[test]
    fn what_nobody_finishes_holds_up_the_rest_for_a_while_only() {
        /// No process has this number.
        const NOBODY: u64 = 0x00ff_ffff;
        let shared = SharedFile::create(1 << 16).unwrap();
        write(&shared, kind::PENDING, NOBODY, b"of a process that is gone");
        // Reserved by a writer that was killed before it could mark it.
        shared.header().head.fetch_add(64, Relaxed);
        write(&shared, kind::SAMPLE, 7, b"behind");
        let (mut skipped, mut seen) = (0, 0);
        let began = Instant::now();
        while seen == 0 && began.elapsed() < 10 * PATIENCE {
            skipped += shared.drain(false, |_, _| seen += 1);
            std::thread::sleep(PATIENCE_WITH_DEAD);
        }
        assert_eq!((skipped, seen), (2, 1));
        // What is written over is lost with what lies behind it, and nothing after that.
        write(&shared, kind::SAMPLE, 7, b"whole");
        shared.word(shared.header().tail.load(Relaxed)).store(u64::MAX, Relaxed);
        assert_eq!(shared.drain(true, |_, _| seen += 1), 1);
        write(&shared, kind::SAMPLE, 7, b"after");
        assert_eq!(shared.drain(false, |_, _| seen += 1), 0);
        assert_eq!(seen, 2);
    }

    #[test]
    fn many_drivers_can_start_at_once() {
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
