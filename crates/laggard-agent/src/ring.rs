//! Writer of the ring: for many threads of many processes, without locks or allocation.

use crate::sys::{self, nr, syscall};
use crate::wire::{HEADER_SIZE, Header, MAGIC, kind};
use core::sync::atomic::{AtomicU64, Ordering::*};

/// The mapped shared file.
#[derive(Clone, Copy)]
pub(crate) struct Ring {
    header: *const Header,
    data: *mut u8,
    mask: u64,
    size: usize,
}

/// Space reserved for a record.
pub(crate) struct Slot {
    word: *const AtomicU64,
    value: u64,
    /// Start of the payload.
    pub(crate) payload: *mut u8,
}

impl Ring {
    /// Maps the file at this null-terminated path, if this process is to be sampled.
    pub(crate) fn open(path: *const u8, is_wanted: impl Fn(&Header) -> bool) -> Option<Ring> {
        // SAFETY: the path is null-terminated. The size and the header are checked before the
        // mapping is used.
        unsafe {
            let fd = syscall!(nr::OPEN, path, sys::O_RDWR | sys::O_CLOEXEC, 0);
            if fd < 0 {
                return None;
            }
            let mut stat = [0u64; 18];
            let known = syscall!(nr::FSTAT, fd, stat.as_mut_ptr());
            let size = stat[6] as usize;
            let access = sys::PROT_READ | sys::PROT_WRITE;
            let address = if known == 0 && size > HEADER_SIZE {
                syscall!(nr::MMAP, 0, size, access, sys::MAP_SHARED, fd, 0)
            } else {
                -1
            };
            if address < 0 {
                syscall!(nr::CLOSE, fd);
                return None;
            }
            let header = address as *const Header;
            let capacity = (*header).capacity.load(Relaxed);
            let fits = capacity.is_power_of_two() && capacity as usize <= size - HEADER_SIZE;
            let is_ours = (*header).magic.load(Acquire) == MAGIC && fits && is_wanted(&*header);
            if !is_ours {
                syscall!(nr::MUNMAP, address, size);
            }
            syscall!(nr::CLOSE, fd);
            if !is_ours {
                return None;
            }
            let data = (address as *mut u8).add(HEADER_SIZE);
            Some(Ring { header, data, mask: capacity - 1, size })
        }
    }

    pub(crate) fn header(&self) -> &'static Header {
        // SAFETY: mapped by `open`, and `close` requires that the header is no longer used.
        unsafe { &*self.header }
    }

    /// Maps all pages now, because the first access to a page takes longer than a whole sample.
    pub(crate) fn populate(&self) {
        const MADV_POPULATE_WRITE: usize = 23;
        // SAFETY: changes only page tables. Kernels before 5.14 reject it, and the pages are then
        // mapped by the first access.
        unsafe { syscall!(nr::MADVISE, self.header, self.size, MADV_POPULATE_WRITE) };
    }

    /// Unmaps the file.
    ///
    /// # Safety
    /// Nothing may use the ring or its header afterwards.
    pub(crate) unsafe fn close(self) {
        // SAFETY: mapped by `open` with this size; the caller guarantees that it is unused.
        unsafe { syscall!(nr::MUNMAP, self.header, self.size) };
    }

    /// Reserves space for a payload; `None` if the ring is full.
    pub(crate) fn reserve(&self, payload: usize, pid: u32) -> Option<Slot> {
        let (header, capacity) = (self.header(), self.mask + 1);
        let need = (payload as u64 + 8 + 7) & !7;
        let mut head = header.head.load(Relaxed);
        let (position, pad) = loop {
            let position = head & self.mask;
            let pad = if position + need > capacity { capacity - position } else { 0 };
            let used = head.wrapping_sub(header.tail.load(Acquire));
            if need + pad > capacity || used + need + pad > capacity {
                header.dropped.fetch_add(1, Relaxed);
                return None;
            }
            match header.head.compare_exchange_weak(head, head + need + pad, Relaxed, Relaxed) {
                Ok(_) => break (position, pad),
                Err(now) => head = now,
            }
        };
        let mut position = position;
        // SAFETY: the exchange above gave this range of the ring to this writer alone; it is 8-byte
        // aligned.
        unsafe {
            if pad > 0 {
                (*(self.data.add(position as usize) as *const AtomicU64))
                    .store(pad << 8 | kind::PAD, Release);
                position = 0;
            }
            let word = self.data.add(position as usize) as *const AtomicU64;
            let value = need << 8 | u64::from(pid) << 32;
            (*word).store(value | kind::PENDING, Relaxed);
            Some(Slot { word, value, payload: self.data.add(position as usize + 8) })
        }
    }

    /// Publishes a record to the driver, and wakes the driver if the ring is filling up.
    pub(crate) fn commit(&self, slot: &Slot, kind: u64) {
        let header = self.header();
        // SAFETY: the slot belongs to this writer until the driver sees its kind.
        unsafe { (*slot.word).store(slot.value | kind, Release) };
        let used = header.head.load(Relaxed).wrapping_sub(header.tail.load(Relaxed));
        if used > (self.mask + 1) / 4 && header.asleep.swap(0, Relaxed) == 1 {
            header.bell.fetch_add(1, Release);
            const FUTEX_WAKE: usize = 1;
            // SAFETY: the call only wakes threads that sleep on this word, which is mapped.
            unsafe { syscall!(nr::FUTEX, &raw const header.bell, FUTEX_WAKE, 1) };
        }
    }
}
