//! The writing side of the wire: many threads of many processes, no lock, no allocation.

use crate::sys::{self, nr, syscall};
use crate::wire::{HEADER_SIZE, Header, MAGIC, kind};
use core::sync::atomic::{AtomicU64, Ordering::*};

/// The shared file, mapped.
#[derive(Clone, Copy)]
pub(crate) struct Ring {
    header: *const Header,
    data: *mut u8,
    mask: u64,
    size: usize,
}

/// A place reserved for a record.
pub(crate) struct Slot {
    word: *const AtomicU64,
    value: u64,
    /// Where the payload goes.
    pub(crate) payload: *mut u8,
}

impl Ring {
    /// Maps the file with this path (ending in a zero), if this process is wanted.
    pub(crate) fn open(path: *const u8, is_wanted: impl Fn(&Header) -> bool) -> Option<Ring> {
        // SAFETY: the path ends in a zero; the mapping is checked before use.
        unsafe {
            let fd = syscall!(nr::OPEN, path, sys::O_RDWR | sys::O_CLOEXEC, 0);
            if fd < 0 {
                return None;
            }
            let mut stat = [0u64; 18];
            let known = syscall!(nr::FSTAT, fd, stat.as_mut_ptr());
            let size = stat[6] as usize;
            let map = |at: usize, size: usize, flags: usize| {
                let access = sys::PROT_READ | sys::PROT_WRITE;
                syscall!(nr::MMAP, at, size, access, sys::MAP_SHARED | flags, fd, 0)
            };
            let address = if known == 0 && size > HEADER_SIZE { map(0, size, 0) } else { -1 };
            if address < 0 {
                syscall!(nr::CLOSE, fd);
                return None;
            }
            let header = address as *const Header;
            let capacity = (*header).capacity.load(Relaxed);
            let fits = capacity.is_power_of_two() && capacity as usize <= size - HEADER_SIZE;
            let is_ours = (*header).magic.load(Acquire) == MAGIC && fits && is_wanted(&*header);
            if is_ours {
                // Touching a page for the first time costs more than a whole sample.
                map(address as usize, size, sys::MAP_FIXED | sys::MAP_POPULATE);
            } else {
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
        // SAFETY: mapped by `open`, and in use as long as anybody asks for it.
        unsafe { &*self.header }
    }

    /// Gives the mapping back.
    ///
    /// # Safety
    /// Nobody uses it or its header any more.
    pub(crate) unsafe fn close(self) {
        // SAFETY: mapped by `open` with this size.
        unsafe { syscall!(nr::MUNMAP, self.header, self.size) };
    }

    /// Reserves room for a payload; none when the driver is too far behind.
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
        // SAFETY: the exchange above gave this range of the ring to us alone; it is aligned to 8.
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

    /// Makes a record visible to the driver, and wakes it when the ring fills up.
    pub(crate) fn commit(&self, slot: &Slot, kind: u64) {
        let header = self.header();
        // SAFETY: the slot is ours until the driver sees its kind.
        unsafe { (*slot.word).store(slot.value | kind, Release) };
        let used = header.head.load(Relaxed).wrapping_sub(header.tail.load(Relaxed));
        if used > (self.mask + 1) / 4 && header.asleep.swap(0, Relaxed) == 1 {
            header.bell.fetch_add(1, Release);
            const FUTEX_WAKE: usize = 1;
            // SAFETY: wakes whoever sleeps on the word; touches nothing else.
            unsafe { syscall!(nr::FUTEX, &raw const header.bell, FUTEX_WAKE, 1) };
        }
    }
}
