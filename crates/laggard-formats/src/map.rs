//! A memory map that survives truncation of the mapped file.
//!
//! Reading a page beyond the end of a truncated file raises `SIGBUS`, which kills the process. The
//! handler here replaces missing pages with zeros and marks the map. The rest of the page that
//! contains the new end of the file reads as zeros without a signal. Readers must call
//! [`Map::is_whole`] after reading and before using the data.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::sync::Arc;

/// A file mapped into memory, read-only.
#[derive(Clone)]
pub struct Map {
    inner: Arc<Inner>,
}

struct Inner {
    /// Dropped before the map, so that it never covers a later map at the same address.
    guard: Option<guard::Guard>,
    map: memmap2::Mmap,
    file: File,
}

impl Map {
    /// Maps a whole file.
    pub fn open(file: &File) -> io::Result<Map> {
        // SAFETY: the map is only read. Another process may change or truncate the file: readers
        // treat the bytes as untrusted, and the guard covers missing pages.
        let map = unsafe { memmap2::Mmap::map(file)? };
        let guard = guard::Guard::new(map.as_ptr() as usize, map.len());
        Ok(Map { inner: Arc::new(Inner { guard, map, file: file.try_clone()? }) })
    }

    /// Releases the memory of the first `bytes` bytes. They are read from the file again if needed.
    pub fn let_go(&self, bytes: usize) {
        // This is only a hint: a failure means that the memory stays in use.
        #[cfg(unix)]
        // SAFETY: the map is file-backed and never written, so a released page is read from the
        // file again.
        let _ = unsafe {
            let advice = memmap2::UncheckedAdvice::DontNeed;
            self.inner.map.unchecked_advise_range(advice, 0, bytes.min(self.inner.map.len()))
        };
    }

    /// Whether no access so far hit a missing part of the file.
    pub fn is_whole(&self) -> bool {
        let size = self.inner.file.metadata().map_or(0, |meta| meta.len());
        size >= self.inner.map.len() as u64
            && self.inner.guard.as_ref().is_none_or(guard::Guard::is_whole)
    }
}

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        &self.inner.map
    }
}

impl std::ops::Deref for Map {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.inner.map
    }
}

#[cfg(unix)]
mod guard {
    use std::sync::Once;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

    /// A range of memory whose missing pages the `SIGBUS` handler fills with zeros.
    struct Range {
        start: AtomicUsize,
        len: AtomicUsize,
        missing: AtomicBool,
    }

    /// Maximum number of guarded maps. Further maps are not guarded.
    const RANGES: usize = 256;
    static GUARDED: [Range; RANGES] = [const {
        Range {
            start: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            missing: AtomicBool::new(false),
        }
    }; RANGES];
    static PAGE: AtomicUsize = AtomicUsize::new(4096);

    pub(super) struct Guard(usize);

    impl Guard {
        pub(super) fn new(start: usize, len: usize) -> Option<Guard> {
            static INSTALL: Once = Once::new();
            INSTALL.call_once(install);
            let free = GUARDED
                .iter()
                .position(|r| r.len.compare_exchange(0, usize::MAX, SeqCst, SeqCst).is_ok())?;
            GUARDED[free].missing.store(false, SeqCst);
            GUARDED[free].start.store(start, SeqCst);
            GUARDED[free].len.store(len, SeqCst);
            Some(Guard(free))
        }

        pub(super) fn is_whole(&self) -> bool {
            !GUARDED[self.0].missing.load(SeqCst)
        }
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            GUARDED[self.0].start.store(0, SeqCst);
            GUARDED[self.0].len.store(0, SeqCst);
        }
    }

    fn install() {
        // SAFETY: plain calls to libc. The handler only uses atomics and `mmap`.
        unsafe {
            PAGE.store(libc::sysconf(libc::_SC_PAGESIZE) as usize, SeqCst);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
        }
    }

    extern "C" fn on_bus_error(
        signal: libc::c_int,
        info: *mut libc::siginfo_t,
        _: *mut libc::c_void,
    ) {
        // SAFETY: the kernel passes a valid `info`. `mmap` only replaces unreadable pages, and only
        // up to the end of the guarded range.
        unsafe {
            let address = (*info).si_addr() as usize;
            for range in &GUARDED {
                let (start, len) = (range.start.load(SeqCst), range.len.load(SeqCst));
                if start != 0 && len != usize::MAX && (start..start + len).contains(&address) {
                    range.missing.store(true, SeqCst);
                    let page = address & !(PAGE.load(SeqCst) - 1);
                    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
                    if libc::mmap(page as *mut _, start + len - page, libc::PROT_READ, flags, -1, 0)
                        != libc::MAP_FAILED
                    {
                        return;
                    }
                }
            }
            // The address is not guarded: the retried access triggers the default action.
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

#[cfg(not(unix))]
mod guard {
    pub(super) struct Guard;
    impl Guard {
        pub(super) fn new(_: usize, _: usize) -> Option<Guard> {
            None
        }
        pub(super) fn is_whole(&self) -> bool {
            true
        }
    }
}
