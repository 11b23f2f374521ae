//! The memory of another process, read while it runs.

use laggard_agent::python::Memory;
use std::cell::Cell;
use std::io;

/// Another process's memory.
pub(super) struct Remote {
    pid: i32,
    /// Calls that are still allowed, so that a list that runs in circles ends.
    left: Cell<u32>,
}

/// Reads for one process: some 100,000 frames.
const MOST_READS: u32 = 4_000_000;

impl Remote {
    pub(super) fn new(pid: u32) -> Remote {
        Remote { pid: pid as i32, left: Cell::new(MOST_READS) }
    }

    /// Whether the system lets us read: an address that is nowhere must be missing, not forbidden.
    pub(super) fn check(&self) -> io::Result<()> {
        match self.read(0, &mut [0; 1]) {
            Err(error) if error.raw_os_error() != Some(libc::EFAULT) => Err(error),
            _ => Ok(()),
        }
    }

    /// Fills all of `bytes`.
    pub(super) fn read(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let remote = libc::iovec { iov_base: address as *mut _, iov_len: bytes.len() };
        // SAFETY: our side is a slice that may be written; the kernel checks the other side.
        let count = unsafe {
            libc::process_vm_readv(self.pid, &raw const local, 1, &raw const remote, 1, 0)
        };
        match usize::try_from(count) {
            Ok(count) if count == bytes.len() => Ok(()),
            Ok(_) => Err(io::Error::from_raw_os_error(libc::EFAULT)),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// Some bytes, at most this many.
    pub(super) fn bytes(&self, address: u64, count: u64, most: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(count).ok().filter(|_| count <= most)?];
        self.read(address, &mut bytes).ok()?;
        Some(bytes)
    }
}

impl Memory for &Remote {
    fn load(self, address: u64) -> Option<u64> {
        self.left.set(self.left.get().checked_sub(1)?);
        let mut word = [0; 8];
        self.read(address, &mut word).ok()?;
        Some(u64::from_le_bytes(word))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_is_read_and_nothing_else() {
        let remote = Remote::new(std::process::id());
        remote.check().unwrap();
        let word = 0x0123_4567_89ab_cdefu64;
        assert_eq!((&remote).load(&raw const word as u64), Some(word));
        assert_eq!((&remote).load(8), None);
        assert_eq!(remote.bytes(&raw const word as u64, 8, 4), None, "too many");
    }
}
