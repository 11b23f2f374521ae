//! Reads the memory of another process while it runs.

use laggard_agent::python::Memory;
use std::cell::Cell;
use std::io;

/// The memory of another process.
pub(super) struct Remote {
    pid: i32,
    /// Remaining reads, so that a cyclic list does not loop forever.
    left: Cell<u32>,
}

/// Maximum number of reads per process, enough for about 100,000 frames.
const MOST_READS: u32 = 4_000_000;

impl Remote {
    pub(super) fn new(pid: u32) -> Remote {
        Remote { pid: pid as i32, left: Cell::new(MOST_READS) }
    }

    /// Whether reading is permitted: an unmapped address must fail with EFAULT, not with EPERM.
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
        // SAFETY: `local` is a slice that is valid for writes; the kernel checks the remote
        // address.
        let count = unsafe {
            libc::process_vm_readv(self.pid, &raw const local, 1, &raw const remote, 1, 0)
        };
        match usize::try_from(count) {
            Ok(count) if count == bytes.len() => Ok(()),
            Ok(_) => Err(io::Error::from_raw_os_error(libc::EFAULT)),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// Reads `count` bytes; `None` if `count` exceeds `most`.
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
    fn only_mapped_memory_is_read() {
        let remote = Remote::new(std::process::id());
        remote.check().unwrap();
        let word = 0x0123_4567_89ab_cdefu64;
        assert_eq!((&remote).load(&raw const word as u64), Some(word));
        assert_eq!((&remote).load(8), None);
        assert_eq!(remote.bytes(&raw const word as u64, 8, 4), None, "more than the limit");
    }
}
