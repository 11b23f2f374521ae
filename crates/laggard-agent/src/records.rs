//! Records that both agents write: code objects, stacks and mappings.

use crate::python::{Interpreter, Memory};
use crate::ring::Ring;
use crate::sys::{self, nr, syscall};
use crate::wire::{self, Code, kind};
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Maximum number of remembered code objects.
const CODES: usize = 1 << 16;

/// Code objects that were sent: their address and a hash of their content.
static SENT: [(AtomicU64, AtomicU64); CODES] =
    [const { (AtomicU64::new(0), AtomicU64::new(0)) }; CODES];

/// Number of the driver that they were sent to.
static DRIVER: AtomicU64 = AtomicU64::new(0);

/// Invalidates the table for a new driver, so that all code objects are sent again.
pub(crate) fn forget_sent() {
    DRIVER.fetch_add(1, Relaxed);
}

/// Sends name, file and line table of a code object if it is new. Returns false if the address is
/// not a code object.
///
/// The frame is alive and its thread is interrupted here, so the object cannot change meanwhile.
pub(crate) fn send_code(
    ring: &Ring,
    python: &Interpreter,
    memory: impl Memory,
    code: u64,
    pid: u32,
) -> bool {
    let Some(text) = python.code(code, memory) else { return false };
    // Addresses are reused, and a forked process is new to the driver.
    let print = text.name.wrapping_mul(31)
        ^ text.lines.wrapping_mul(17)
        ^ u64::from(text.first_line) << 40
        ^ u64::from(pid) << 20
        ^ DRIVER.load(Relaxed) << 52
        | 1;
    let home = ((code >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as usize;
    let mut free = None;
    for step in 0..64 {
        let entry = &SENT[(home + step) % CODES];
        match entry.0.load(Acquire) {
            known if known == code => {
                if entry.1.load(Relaxed) == print {
                    return true;
                }
                free = Some(entry);
                break;
            }
            0 => {
                free = Some(entry);
                break;
            }
            _ => {}
        }
    }
    let parts = (|| {
        let name = python.text(text.name, memory)?;
        let file = python.text(text.file, memory)?;
        Some((name, file, python.bytes(text.lines, memory)?))
    })();
    let Some((name, file, table)) = parts else { return false };
    let (name_length, file_length) = (name.1.min(LONGEST_TEXT), file.1.min(LONGEST_TEXT));
    let table_length = table.1.min(LONGEST_TABLE);
    let (name_bytes, file_bytes) = (name_length * name.2, file_length * file.2);
    let size = size_of::<Code>() + (name_bytes + file_bytes + table_length) as usize;
    // If the ring is full, the object is still valid; it is sent with a later sample.
    let Some(place) = ring.reserve(size, pid) else { return true };
    // SAFETY: the slot has room for all parts, and `copy_stack` lets the kernel check the
    // addresses.
    unsafe {
        place.payload.cast::<Code>().write(Code {
            pid,
            minor: python.layout.minor,
            code,
            first_line: text.first_line,
            name: name_length as u32,
            name_width: name.2 as u32,
            file: file_length as u32,
            file_width: file.2 as u32,
            table: table_length as u32,
        });
        let mut to = place.payload.add(size_of::<Code>());
        let parts = [(name.0, name_bytes), (file.0, file_bytes), (table.0, table_length)];
        for (from, length) in parts {
            // A corrupt chain may lead to invalid lengths, so the kernel checks the copy.
            copy_stack(to, from, length, pid);
            to = to.add(length as usize);
        }
    }
    ring.commit(&place, kind::CODE);
    if let Some(entry) = free {
        entry.1.store(print, Relaxed);
        entry.0.store(code, Release);
    }
    true
}

const LONGEST_TEXT: u64 = 1000;
const LONGEST_TABLE: u64 = 256 << 10;

/// Copies a stack whose end is unknown. The kernel checks what is readable. Returns the number of
/// copied bytes.
///
/// # Safety
/// `to` must have room for `length` bytes.
pub(crate) unsafe fn copy_stack(to: *mut u8, from: u64, length: u64, pid: u32) -> u64 {
    let copy = |length: u64| {
        let (local, remote) = ([to as u64, length], [from, length]);
        // SAFETY: the kernel checks the source; the caller guarantees room for `length` bytes at
        // `to`.
        unsafe { syscall!(nr::PROCESS_VM_READV, pid, local.as_ptr(), 1, remote.as_ptr(), 1, 0) }
    };
    // First tries the whole length, then shorter lengths up to a page boundary.
    let mut wanted = length;
    loop {
        match copy(wanted) {
            got if got > 0 => return got as u64,
            _ if wanted <= 4096 => return 0,
            _ => wanted = (wanted / 2).next_multiple_of(4096) - from % 4096,
        }
    }
}

/// Maximum length of a command line that is sent.
const LONGEST_COMMAND: usize = 4096;

/// Reads the start of a file. Returns the number of bytes.
///
/// # Safety
/// `to` must have room for `room` bytes.
unsafe fn read_file(path: &core::ffi::CStr, to: usize, room: usize) -> usize {
    // SAFETY: the kernel writes at most `room` bytes.
    unsafe {
        let fd = syscall!(nr::OPEN, path.as_ptr(), sys::O_RDONLY | sys::O_CLOEXEC, 0);
        if fd < 0 {
            return 0;
        }
        let got = syscall!(nr::READ, fd, to, room);
        syscall!(nr::CLOSE, fd);
        got.max(0) as usize
    }
}

/// Sends the content of `/proc/self/maps`, so that addresses can be symbolized after the process
/// has ended.
pub(crate) fn send_maps(ring: &Ring, pid: u32, moment: u32, time_ns: u64, has_python: bool) {
    const ROOM: usize = 1 << 20;
    // SAFETY: `scratch` is a private mapping of `ROOM` bytes that the kernel fills; the slot has
    // room for `length` bytes.
    unsafe {
        let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS;
        let scratch =
            syscall!(nr::MMAP, 0, ROOM, sys::PROT_READ | sys::PROT_WRITE, flags, -1i64, 0);
        if scratch < 0 {
            return;
        }
        let fd = syscall!(nr::OPEN, c"/proc/self/maps".as_ptr(), sys::O_RDONLY | sys::O_CLOEXEC, 0);
        let mut length = 0usize;
        while fd >= 0 && length < ROOM {
            let got = syscall!(nr::READ, fd, scratch as usize + length, ROOM - length);
            if got <= 0 {
                break;
            }
            length += got as usize;
        }
        if fd >= 0 {
            syscall!(nr::CLOSE, fd);
        }
        let mut command = 0;
        if moment == 1 {
            let room = LONGEST_COMMAND.min(ROOM - length);
            command = read_file(c"/proc/self/cmdline", scratch as usize + length, room);
        }
        let mut name = [0u8; 16];
        read_file(c"/proc/self/comm", name.as_mut_ptr() as usize, name.len());
        if let Some(place) = ring.reserve(size_of::<wire::Process>() + length + command, pid) {
            place.payload.cast::<wire::Process>().write(wire::Process {
                pid,
                parent: syscall!(nr::GETPPID) as u32,
                text: length as u32,
                moment,
                time_ns,
                has_python: u32::from(has_python),
                command: command as u32,
                name,
            });
            let text = place.payload.add(size_of::<wire::Process>());
            core::ptr::copy_nonoverlapping(scratch as *const u8, text, length + command);
            ring.commit(&place, kind::MAPS);
        }
        syscall!(nr::MUNMAP, scratch, ROOM);
    }
}
