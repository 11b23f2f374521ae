//! The mapped shared file, and allocation within it.

use super::policy::{Patterns, Wanted};
use crate::calls_wire::{Header, MAGIC, PATTERNS, TEXTS, Tables, VARIABLE};
use crate::sys::{self, nr, syscall};
use core::mem::offset_of;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64};

static TABLES: AtomicPtr<Tables> = AtomicPtr::new(core::ptr::null_mut());
/// Size of the mapping in bytes.
static SIZE: AtomicU64 = AtomicU64::new(0);
static PATH: Path = Path([const { AtomicU8::new(0) }; 4096]);

struct Path([AtomicU8; 4096]);

/// The tables; `None` before [`open`] succeeded.
pub(crate) fn tables() -> Option<&'static Tables> {
    // SAFETY: `open` sets it to a mapping that is never unmapped and contains only atomics.
    unsafe { TABLES.load(Acquire).as_ref() }
}

/// Maps the file that the environment names.
pub(crate) fn open() -> Option<&'static Tables> {
    find_path()?;
    // SAFETY: the path is null-terminated.
    let file = unsafe { syscall!(nr::OPEN, PATH.0.as_ptr(), sys::O_RDWR | sys::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let mut words = [0u64; 2];
    // SAFETY: the kernel writes at most two words, with which the header starts. The mapping is a
    // new one.
    let mapped = unsafe {
        const { assert!(offset_of!(Header, magic) == 0 && offset_of!(Header, size) == 8) };
        let got = syscall!(nr::READ, file, words.as_mut_ptr(), size_of_val(&words));
        let valid = got == 16 && words[0] == MAGIC && words[1] as usize >= size_of::<Tables>();
        let flags = sys::MAP_SHARED | sys::MAP_NORESERVE;
        let access = sys::PROT_READ | sys::PROT_WRITE;
        let mapped =
            if valid { syscall!(nr::MMAP, 0, words[1], access, flags, file, 0) } else { -1 };
        syscall!(nr::CLOSE, file);
        mapped
    };
    if (-4095..0).contains(&mapped) {
        return None;
    }
    SIZE.store(words[1], Relaxed);
    TABLES.store(mapped as *mut Tables, Release);
    tables()
}

/// What to trace.
pub(crate) fn wanted(tables: &'static Tables) -> Wanted<'static> {
    let patterns = |bytes: &'static [AtomicU8; PATTERNS]| {
        // SAFETY: the driver wrote the patterns before this process started, and nothing writes
        // them since.
        Patterns(unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast(), PATTERNS) })
    };
    Wanted {
        from: patterns(&tables.header.from),
        library: patterns(&tables.header.library),
        function: patterns(&tables.header.function),
    }
}

/// Allocates bytes, a multiple of 64, in the file. Returns their offset; `None` if the file is
/// full.
///
/// The memory is populated here, because accessing a page that a full file system cannot provide
/// would kill the process.
pub(crate) fn reserve(tables: &Tables, bytes: u64) -> Option<u64> {
    let size = SIZE.load(Relaxed);
    let offset = tables
        .header
        .used
        .fetch_update(AcqRel, Acquire, |used| used.checked_add(bytes).filter(|end| *end <= size))
        .ok()?;
    let start = at(tables, offset & !4095);
    let length = (offset + bytes).next_multiple_of(4096).min(size) - (offset & !4095);
    // SAFETY: affects only pages of our own mapping.
    let there = unsafe { syscall!(nr::MADVISE, start, length, sys::MADV_POPULATE_WRITE) };
    (there == 0 || allocate(offset, bytes)).then_some(offset)
}

/// Allocates space on kernels that cannot populate a mapping (before 5.14).
fn allocate(offset: u64, bytes: u64) -> bool {
    // SAFETY: the path is null-terminated. The first word of the file shows whether it is still
    // ours.
    unsafe {
        let file = syscall!(nr::OPEN, PATH.0.as_ptr(), sys::O_RDWR | sys::O_CLOEXEC);
        if file < 0 {
            return false;
        }
        let mut magic = 0u64;
        syscall!(nr::READ, file, &raw mut magic, 8);
        let done = magic == MAGIC && syscall!(nr::FALLOCATE, file, 0, offset, bytes) == 0;
        syscall!(nr::CLOSE, file);
        done
    }
}

/// The memory at an offset of the file.
pub(crate) fn at(tables: &Tables, offset: u64) -> *mut u8 {
    core::ptr::from_ref(tables).cast_mut().cast::<u8>().wrapping_add(offset as usize)
}

/// Stores a text. Returns its offset and length; `None` if there is no room.
pub(crate) fn keep_text(tables: &Tables, text: &[u8]) -> Option<(u32, u32)> {
    let size = text.len().min(4096) as u32;
    let start = tables
        .header
        .texts
        .fetch_update(AcqRel, Acquire, |used| {
            used.checked_add(size).filter(|end| *end as usize <= TEXTS)
        })
        .ok()?;
    let room = tables.texts.get(start as usize..)?;
    for (cell, byte) in room.iter().zip(text.get(..size as usize)?) {
        cell.store(*byte, Relaxed);
    }
    Some((start, size))
}

/// Finds the path of the file in the initial environment of the process.
fn find_path() -> Option<()> {
    // SAFETY: the path is null-terminated, and reads are bounded by the buffer.
    let file = unsafe {
        syscall!(nr::OPEN, c"/proc/self/environ".as_ptr(), sys::O_RDONLY | sys::O_CLOEXEC)
    };
    if file < 0 {
        return None;
    }
    let name = VARIABLE.as_bytes();
    let mut buffer = [0u8; 1024];
    // Number of matching bytes so far: the name, `=`, then the value.
    let mut seen = Some(0);
    let mut found = None;
    'all: loop {
        // SAFETY: the read is bounded by the buffer.
        let got = unsafe { syscall!(nr::READ, file, buffer.as_mut_ptr(), buffer.len()) };
        let Some(bytes) = usize::try_from(got).ok().and_then(|got| buffer.get(..got)) else {
            break;
        };
        if bytes.is_empty() {
            break;
        }
        for byte in bytes {
            seen = match (seen, *byte) {
                (Some(at), 0) if at > name.len() + 1 => {
                    found = Some(());
                    break 'all;
                }
                (_, 0) => Some(0),
                (Some(at), byte) if at < name.len() => (name[at] == byte).then_some(at + 1),
                (Some(at), byte) if at == name.len() => (byte == b'=').then_some(at + 1),
                (Some(at), byte) => PATH.0.get(at - name.len() - 1).and_then(|cell| {
                    cell.store(byte, Relaxed);
                    Some(at + 1).filter(|at| *at < PATH.0.len())
                }),
                (None, _) => None,
            };
        }
    }
    // SAFETY: closes the file opened above.
    unsafe { syscall!(nr::CLOSE, file) };
    found
}
