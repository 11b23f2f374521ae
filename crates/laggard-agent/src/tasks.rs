//! The threads of this process, read from `/proc` without libc and without allocation.

use crate::sys::{self, nr, syscall};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering::*};

/// Read buffers, for one reader at a time.
struct Scratch {
    is_taken: AtomicU32,
    list: UnsafeCell<[u8; 4096]>,
    text: UnsafeCell<[u8; 4096]>,
}

// SAFETY: only the holder of `is_taken` accesses the cells.
unsafe impl Sync for Scratch {}

static SCRATCH: Scratch = Scratch {
    is_taken: AtomicU32::new(0),
    list: UnsafeCell::new([0; 4096]),
    text: UnsafeCell::new([0; 4096]),
};

/// The exclusive right to read, until it is dropped.
pub(crate) struct Tasks(());

/// The kernel's status of a thread.
#[derive(Clone, Copy, Default)]
pub(crate) struct Status {
    /// Whether it is running or runnable.
    pub(crate) is_running: bool,
    /// Pending signals, and blocked signals.
    pub(crate) pending: u64,
    pub(crate) blocked: u64,
}

impl Tasks {
    /// Returns `None` while another reader holds the lock.
    pub(crate) fn try_lock() -> Option<Tasks> {
        SCRATCH.is_taken.compare_exchange(0, 1, Acquire, Relaxed).ok().map(|_| Tasks(()))
    }

    /// Waits for the lock. Must not be called in a signal handler, which may have interrupted the
    /// reader.
    pub(crate) fn lock() -> Tasks {
        loop {
            if let Some(tasks) = Tasks::try_lock() {
                return tasks;
            }
            sys::sleep_ns(100_000);
        }
    }

    /// Releases the lock of any other reader: a new process has no other threads.
    pub(crate) fn forget_others() {
        SCRATCH.is_taken.store(0, Release);
    }

    /// Calls `each` for every thread.
    pub(crate) fn each(&mut self, mut each: impl FnMut(&mut Tasks, u32)) {
        let flags = sys::O_RDONLY | sys::O_DIRECTORY | sys::O_CLOEXEC;
        // SAFETY: the lock gives exclusive access to the list. The kernel fills it with entries
        // that contain their own length and a null-terminated name.
        unsafe {
            let fd = syscall!(nr::OPEN, c"/proc/self/task".as_ptr(), flags, 0);
            if fd < 0 {
                return;
            }
            let list = SCRATCH.list.get().cast::<u8>();
            loop {
                let got = syscall!(nr::GETDENTS64, fd, list, size_of::<[u8; 4096]>());
                if got <= 0 {
                    break;
                }
                let mut at = 0;
                while at < got as usize {
                    let entry = list.add(at);
                    // The name follows inode number, offset, length and type.
                    let length = entry.add(16).cast::<u16>().read_unaligned();
                    if let Some(tid) = number(entry.add(19)) {
                        each(self, tid);
                    }
                    at += usize::from(length).max(1);
                }
            }
            syscall!(nr::CLOSE, fd);
        }
    }

    /// Returns `None` if the thread does not exist any more.
    pub(crate) fn status(&mut self, tid: u32) -> Option<Status> {
        let text = self.read(tid, b"/status\0")?;
        let value = |key: &[u8]| {
            let at = text.windows(key.len()).position(|window| window == key)? + key.len();
            text.get(at..)
        };
        let mask = |key: &[u8]| {
            let digits = value(key)?.iter().map_while(|&byte| (byte as char).to_digit(16));
            Some(digits.fold(0, |mask, digit| mask << 4 | u64::from(digit)))
        };
        Some(Status {
            is_running: value(b"\nState:\t")?.first() == Some(&b'R'),
            pending: mask(b"\nSigPnd:\t")?,
            blocked: mask(b"\nSigBlk:\t")?,
        })
    }

    /// The name of a thread, padded with zeros.
    pub(crate) fn name(&mut self, tid: u32) -> [u8; 16] {
        let mut name = [0; 16];
        let text = self.read(tid, b"/comm\0").unwrap_or_default();
        let letters = text.iter().take_while(|&&byte| byte != b'\n');
        for (to, from) in name.iter_mut().zip(letters) {
            *to = *from;
        }
        name
    }

    /// The content of one of a thread's files. `file` must be null-terminated.
    fn read(&mut self, tid: u32, file: &[u8]) -> Option<&[u8]> {
        const START: &[u8] = b"/proc/self/task/";
        let mut path = [0u8; 48];
        let mut digits = [0u8; 10];
        let mut first = digits.len();
        let mut rest = tid;
        while rest > 0 && first > 0 {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let parts = START.iter().chain(digits.get(first..)?).chain(file);
        for (to, from) in path.iter_mut().zip(parts) {
            *to = *from;
        }
        // SAFETY: the lock gives exclusive access to the buffer. The path is null-terminated.
        unsafe {
            let fd = syscall!(nr::OPEN, path.as_ptr(), sys::O_RDONLY | sys::O_CLOEXEC, 0);
            if fd < 0 {
                return None;
            }
            let text = &mut *SCRATCH.text.get();
            let got = syscall!(nr::READ, fd, text.as_mut_ptr(), text.len());
            syscall!(nr::CLOSE, fd);
            text.get(..usize::try_from(got).ok()?)
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        SCRATCH.is_taken.store(0, Release);
    }
}

/// Parses a decimal number. `text` must be null-terminated.
unsafe fn number(mut text: *const u8) -> Option<u32> {
    let mut number = 0u32;
    // SAFETY: the text is null-terminated, and the loop stops at the zero.
    unsafe {
        while *text != 0 {
            let digit = (*text as char).to_digit(10)?;
            number = number.checked_mul(10)?.checked_add(digit)?;
            text = text.add(1);
        }
    }
    (number > 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_this_process_are_found() {
        let own = std::thread::spawn(|| {
            let own = sys::gettid();
            let mut found = vec![];
            Tasks::lock().each(|tasks, tid| found.push((tid, tasks.status(tid).is_some())));
            assert!(found.contains(&(own, true)) && found.contains(&(sys::getpid(), true)));
            own
        });
        let own = own.join().expect("the thread found itself");
        assert!(Tasks::lock().status(own).is_none_or(|status| status.pending == 0));
        let mut tasks = Tasks::lock();
        assert!(Tasks::try_lock().is_none(), "one at a time");
        let here = sys::gettid();
        assert!(tasks.status(here).is_some_and(|status| status.is_running));
        assert_ne!(tasks.name(here)[0], 0);
    }
}
