//! Programs that a sampled process starts: detects those that cannot load the agent, and counts the
//! processes and the CPU time of those that do.
//!
//! The wrapped functions run in the child of a `vfork`, which shares its parent's memory. They
//! therefore only change counters of the shared file, and allocate nothing.

use crate::records::copy_stack;
use crate::ring::Ring;
use crate::sample::{SHARED, find_function, report_end, ring};
use crate::sys::{self, nr, syscall};
use crate::wire::{self, exclusion, kind, options};
use core::sync::atomic::Ordering::*;

/// Maximum length of a path.
const LONGEST_PATH: usize = 4096;
/// Bytes of a file that are read: they contain the program headers, or the line of a script.
const HEAD: usize = 1024;
/// Interpreters of scripts may be scripts themselves.
const MOST_SCRIPTS: u32 = 4;

type Words = *const *const u8;

/// The ring, if this process follows its children.
fn following() -> Option<&'static Ring> {
    ring().filter(|ring| ring.header().options.load(Relaxed) & options::CHILDREN != 0)
}

/// Reports the program at this path if it cannot load the agent. Returns whether it is a file that can
/// be read.
unsafe fn check(path: *const u8, variables: Words) -> bool {
    let Some(ring) = following() else { return false };
    // SAFETY: the caller of the wrapped function passes null-terminated strings and lists.
    unsafe {
        let Some(reason) = exclusion_of(path, MOST_SCRIPTS) else { return false };
        match reason {
            0 if !has_ring(variables) => report(ring, path, exclusion::ENVIRONMENT),
            0 => {}
            reason => report(ring, path, reason),
        }
    }
    true
}

unsafe fn report(ring: &Ring, path: *const u8, reason: u32) {
    let pid = SHARED.pid.load(Relaxed);
    // SAFETY: the path is null-terminated, and the slot has room for its bytes.
    unsafe {
        let length = (0..LONGEST_PATH).find(|&at| *path.add(at) == 0).unwrap_or(LONGEST_PATH);
        let Some(place) = ring.reserve(size_of::<wire::Excluded>() + length, pid) else { return };
        let record = wire::Excluded { pid, reason, path: length as u32, rest: 0 };
        place.payload.cast::<wire::Excluded>().write(record);
        let text = place.payload.add(size_of::<wire::Excluded>());
        core::ptr::copy_nonoverlapping(path, text, length);
        ring.commit(&place, kind::EXCLUDED);
    }
}

/// Whether these environment variables load the agent.
unsafe fn has_ring(variables: Words) -> bool {
    // SAFETY: guaranteed by the caller; libc allows a null list.
    !variables.is_null() && unsafe { variable(variables, wire::RING_VARIABLE.as_bytes()).is_some() }
}

/// The value of an environment variable.
pub(crate) unsafe fn variable(mut variables: Words, name: &[u8]) -> Option<*const u8> {
    // SAFETY: the list ends with a null pointer, and each string is null-terminated.
    unsafe {
        while !(*variables).is_null() {
            let text = *variables;
            if (0..name.len()).all(|i| *text.add(i) == name[i]) && *text.add(name.len()) == b'=' {
                return Some(text.add(name.len() + 1));
            }
            variables = variables.add(1);
        }
    }
    None
}

/// Why the file at this path cannot load the agent; 0 if it can, `None` if it cannot be read.
unsafe fn exclusion_of(path: *const u8, scripts: u32) -> Option<u32> {
    let mut head = [0u8; HEAD];
    let mut stat = [0u64; 18];
    // SAFETY: the path is null-terminated, and the buffers have room for what the kernel writes.
    let length = unsafe {
        let fd = syscall!(nr::OPEN, path, sys::O_RDONLY | sys::O_CLOEXEC | sys::O_NO_WAIT, 0);
        if fd < 0 {
            return None;
        }
        let length = syscall!(nr::READ, fd, head.as_mut_ptr(), HEAD - 1);
        syscall!(nr::FSTAT, fd, stat.as_mut_ptr());
        syscall!(nr::CLOSE, fd);
        length
    };
    let read = head.get(..usize::try_from(length).ok()?)?;
    if read.starts_with(b"#!") {
        let line = read.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let skipped = line[2..].iter().take_while(|byte| b" \t".contains(byte)).count() + 2;
        let word = line[skipped..].iter().take_while(|byte| !b" \t".contains(byte)).count();
        if scripts == 0 || word == 0 {
            return Some(0);
        }
        // Ends inside the buffer, which is one byte longer than what is read.
        head[skipped + word] = 0;
        // SAFETY: null-terminated above.
        return unsafe { exclusion_of(head.as_ptr().add(skipped), scripts - 1) };
    }
    let [_, _, _, mode_and_user, group, ..] = stat;
    let mode = mode_and_user as u32;
    Some(exclusion_of_program(read, mode, (mode_and_user >> 32) as u32, group as u32))
}

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;

/// The same from the start of the file, its mode, and its owner.
fn exclusion_of_program(head: &[u8], mode: u32, user: u32, group: u32) -> u32 {
    const ELF64: &[u8] = b"\x7fELF\x02";
    const X86_64: u64 = 62;
    const PT_INTERP: u64 = 3;
    if !head.starts_with(&ELF64[..4]) {
        return 0;
    }
    if !head.starts_with(ELF64) || number(head, 18, 2) != Some(X86_64) {
        return exclusion::MACHINE;
    }
    let (Some(start), Some(size), Some(count)) =
        (number(head, 32, 8), number(head, 54, 2), number(head, 56, 2))
    else {
        return 0;
    };
    let kinds = (0..count).map(|at| {
        number(head, (start as usize).checked_add((at * size) as usize).unwrap_or(HEAD), 4)
    });
    let (mut is_dynamic, mut is_cut) = (false, false);
    for kind in kinds {
        is_dynamic |= kind == Some(PT_INTERP);
        is_cut |= kind.is_none();
    }
    if !is_dynamic && !is_cut {
        return exclusion::STATIC;
    }
    // SAFETY: these calls take no arguments and have no effect.
    let ids = unsafe { (syscall!(nr::GETEUID) as u32, syscall!(nr::GETEGID) as u32) };
    let is_privileged = mode & SETUID != 0 && user != ids.0 || mode & SETGID != 0 && group != ids.1;
    if is_privileged { exclusion::PRIVILEGED } else { 0 }
}

/// Reads a little-endian number.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// Why this program itself must not be sampled, although it loaded the agent.
pub(crate) unsafe fn exclusion_of_this(variables: Words) -> Option<u32> {
    // SAFETY: called by the constructor with the program's environment.
    unsafe {
        if let Some(preload) = variable(variables, b"LD_PRELOAD") {
            let length = (0..LONGEST_PATH).find(|&at| *preload.add(at) == 0)?;
            let preload = core::slice::from_raw_parts(preload, length);
            if preload.windows(9).any(|part| part == b"vgpreload") {
                return Some(exclusion::VALGRIND);
            }
        }
        is_go(variables).then_some(exclusion::GO)
    }
}

/// Whether the program contains the note of Go's linker.
unsafe fn is_go(mut variables: Words) -> bool {
    const AT_PHDR: usize = 3;
    const AT_PHNUM: usize = 5;
    const PT_NOTE: u32 = 4;
    const PT_PHDR: u32 = 6;
    const LONGEST_NOTE: usize = 512;
    /// The kernel's `Elf64_Phdr`.
    #[repr(C)]
    struct Segment {
        kind: u32,
        flags: u32,
        places: [u64; 3],
        in_file: u64,
        in_memory: u64,
        alignment: u64,
    }
    // SAFETY: the auxiliary vector follows the environment and ends with a zero entry. The program
    // headers that it names are mapped.
    unsafe {
        while !(*variables).is_null() {
            variables = variables.add(1);
        }
        let mut entry = variables.add(1).cast::<[usize; 2]>();
        let (mut table, mut count) = (0, 0);
        while (*entry)[0] != 0 {
            match (*entry)[0] {
                AT_PHDR => table = (*entry)[1],
                AT_PHNUM => count = (*entry)[1],
                _ => {}
            }
            entry = entry.add(1);
        }
        if table == 0 {
            return false;
        }
        let segments = core::slice::from_raw_parts(table as *const Segment, count);
        let own = segments.iter().find(|segment| segment.kind == PT_PHDR);
        let bias = own.map_or(0, |own| (table as u64).wrapping_sub(own.places[1]));
        segments.iter().filter(|segment| segment.kind == PT_NOTE).any(|segment| {
            let mut note = [0u8; LONGEST_NOTE];
            let length = segment.in_memory.min(LONGEST_NOTE as u64);
            // The kernel checks the address: a note need not be mapped.
            let at = bias.wrapping_add(segment.places[1]);
            copy_stack(note.as_mut_ptr(), at, length, sys::getpid());
            note.windows(4).any(|bytes| bytes == b"Go\0\0")
        })
    }
}

/// Reports this program itself as excluded.
pub(crate) unsafe fn report_this(ring: &Ring, reason: u32) {
    let mut path = [0u8; LONGEST_PATH];
    // SAFETY: the kernel writes at most the given length, so the string stays null-terminated.
    unsafe {
        let link = c"/proc/self/exe".as_ptr();
        syscall!(nr::READLINK, link, path.as_mut_ptr(), LONGEST_PATH - 1);
        report(ring, path.as_ptr(), reason);
    }
}

/// Counts this process as followed. The program that it executes counts itself.
pub(crate) fn count(ring: &Ring, by: i64) {
    ring.header().processes.fetch_add(by as u64, Relaxed);
}

/// Whether this is a followed process other than the first one, and not the child of a `vfork`.
fn is_counted(ring: &Ring) -> bool {
    let pid = sys::getpid();
    pid == SHARED.pid.load(Relaxed) && pid != ring.header().root_pid.load(Relaxed)
}

/// Executes a program with `run`, which returns only if that fails.
unsafe fn execute(path: *const u8, variables: Words, run: impl FnOnce() -> i32) -> i32 {
    // SAFETY: guaranteed by the caller of the wrapped function.
    unsafe { check(path, variables) };
    let counted = following().filter(|ring| is_counted(ring));
    if let Some(ring) = counted {
        count(ring, -1);
    }
    let failed = run();
    if let Some(ring) = counted {
        count(ring, 1);
    }
    failed
}

/// The variables of this process.
fn environment() -> Words {
    match find_function(b"environ", false) {
        // SAFETY: libc's variable of this type.
        Some(place) => unsafe { *(place as *const Words) },
        None => core::ptr::null(),
    }
}

/// Checks the program with this name, which is searched for in PATH.
unsafe fn check_name(name: *const u8, variables: Words) {
    // SAFETY: guaranteed by the caller of the wrapped function; `path` is null-terminated because
    // its last byte is never written.
    unsafe {
        if following().is_none() {
            return;
        }
        let length = (0..LONGEST_PATH).find(|&at| *name.add(at) == 0).unwrap_or(0);
        let name_bytes = core::slice::from_raw_parts(name, length);
        if length == 0 || name_bytes.contains(&b'/') {
            check(name, variables);
            return;
        }
        let own = environment();
        if own.is_null() {
            return;
        }
        let Some(mut list) = variable(own, b"PATH") else { return };
        while *list != 0 {
            let mut path = [0u8; LONGEST_PATH];
            let mut at = 0;
            while *list != 0 && *list != b':' {
                if at + length + 2 < LONGEST_PATH {
                    path[at] = *list;
                    at += 1;
                }
                list = list.add(1);
            }
            list = list.add(usize::from(*list == b':'));
            path[at] = b'/';
            path[at + 1..at + 1 + length].copy_from_slice(name_bytes);
            if syscall!(nr::ACCESS, path.as_ptr(), 1) == 0 && check(path.as_ptr(), variables) {
                return;
            }
        }
    }
}

/// libc's function with this name. The result has the type that belongs to the name.
macro_rules! real {
    ($name:literal as $kind:ty) => {
        match find_function($name, true) {
            // SAFETY: the function has this type.
            Some(at) => core::mem::transmute::<u64, $kind>(at),
            None => return -1,
        }
    };
}

type Execve = unsafe extern "C" fn(*const u8, Words, Words) -> i32;
type Execv = unsafe extern "C" fn(*const u8, Words) -> i32;
type Spawn = unsafe extern "C" fn(*mut i32, *const u8, *const u8, *const u8, Words, Words) -> i32;

/// Wraps libc's function.
///
/// # Safety
/// As for libc's function of that name; so for all functions below.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn execve(path: *const u8, words: Words, variables: Words) -> i32 {
    // SAFETY: the arguments are passed on unchanged.
    unsafe {
        let real = real!(b"execve" as Execve);
        execute(path, variables, || real(path, words, variables))
    }
}

/// Wraps libc's function.
///
/// # Safety
/// See `execve`.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn execv(path: *const u8, words: Words) -> i32 {
    // SAFETY: the arguments are passed on unchanged.
    unsafe {
        let real = real!(b"execv" as Execv);
        execute(path, environment(), || real(path, words))
    }
}

/// Wraps libc's function.
///
/// # Safety
/// See `execve`.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn execvp(name: *const u8, words: Words) -> i32 {
    // SAFETY: the arguments are passed on unchanged.
    unsafe {
        let real = real!(b"execvp" as Execv);
        check_name(name, environment());
        execute(c"".as_ptr().cast(), core::ptr::null(), || real(name, words))
    }
}

/// Wraps libc's function.
///
/// # Safety
/// See `execve`.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn execvpe(name: *const u8, words: Words, variables: Words) -> i32 {
    // SAFETY: the arguments are passed on unchanged.
    unsafe {
        let real = real!(b"execvpe" as Execve);
        check_name(name, variables);
        execute(c"".as_ptr().cast(), core::ptr::null(), || real(name, words, variables))
    }
}

/// Wraps libc's function.
///
/// # Safety
/// See `execve`.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn posix_spawn(
    pid: *mut i32,
    path: *const u8,
    actions: *const u8,
    attributes: *const u8,
    words: Words,
    variables: Words,
) -> i32 {
    // SAFETY: the arguments are passed on unchanged.
    unsafe {
        let real = real!(b"posix_spawn" as Spawn);
        check(path, variables);
        real(pid, path, actions, attributes, words, variables)
    }
}

/// Wraps libc's function.
///
/// # Safety
/// See `execve`.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn posix_spawnp(
    pid: *mut i32,
    name: *const u8,
    actions: *const u8,
    attributes: *const u8,
    words: Words,
    variables: Words,
) -> i32 {
    // SAFETY: the arguments are passed on unchanged.
    unsafe {
        let real = real!(b"posix_spawnp" as Spawn);
        check_name(name, variables);
        real(pid, name, actions, attributes, words, variables)
    }
}

/// Wraps libc's function: it runs no destructors, and forked processes usually end with it.
///
/// # Safety
/// See `execve`.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn _exit(status: i32) -> ! {
    if ring().is_some() && sys::getpid() == SHARED.pid.load(Relaxed) {
        report_end();
    }
    loop {
        // SAFETY: ends the process, so nothing runs afterwards.
        unsafe { syscall!(nr::EXIT_GROUP, status) };
    }
}

/// The same under its other name.
///
/// # Safety
/// See `execve`.
#[cfg_attr(laggard_agent, unsafe(export_name = "_Exit"))]
pub(crate) unsafe extern "C" fn exit_at_once(status: i32) -> ! {
    // SAFETY: has the same effect.
    unsafe { _exit(status) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The start of a program for this machine, with one program header of this kind.
    fn program(kind: u8) -> [u8; 120] {
        let mut head = [0u8; 120];
        head[..5].copy_from_slice(b"\x7fELF\x02");
        (head[18], head[32], head[54], head[56], head[64]) = (62, 64, 56, 1, kind);
        head
    }

    #[test]
    fn programs_that_cannot_load_the_agent_are_detected() {
        let check = |head: &[u8], mode, expected| {
            assert_eq!(exclusion_of_program(head, mode, u32::MAX, u32::MAX), expected);
        };
        let dynamic = program(3);
        check(&dynamic, 0o755, 0);
        check(&dynamic, 0o4755, exclusion::PRIVILEGED);
        check(&dynamic, 0o2755, exclusion::PRIVILEGED);
        check(&program(1), 0o755, exclusion::STATIC);
        let mut other = dynamic;
        other[18] = 183;
        check(&other, 0o755, exclusion::MACHINE);
        other[4] = 1;
        check(&other, 0o755, exclusion::MACHINE);
        check(b"echo", 0o755, 0);
        check(b"\x7fELF\x02", 0o755, exclusion::MACHINE);
        // Program headers beyond the bytes that were read.
        check(&dynamic[..100], 0o755, 0);
    }

    #[test]
    fn interpreters_of_scripts_are_checked() {
        let directory =
            std::env::temp_dir().join(format!("laggard-children-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let write = |name: &str, content: &[u8]| {
            let path = directory.join(name);
            std::fs::write(&path, content).expect("a file");
            std::ffi::CString::new(path.to_str().expect("text")).expect("no zero byte")
        };
        let reason = |path: &std::ffi::CString| {
            // SAFETY: a null-terminated path.
            unsafe { exclusion_of(path.as_ptr().cast(), MOST_SCRIPTS) }
        };
        let fixed = write("static", &program(1));
        let line = format!("#! {} -x\nrest", fixed.to_str().expect("text"));
        assert_eq!(reason(&write("script", line.as_bytes())), Some(exclusion::STATIC));
        assert_eq!(reason(&write("plain", b"echo")), Some(0));
        assert_eq!(reason(&write("empty", b"#!")), Some(0));
        assert_eq!(reason(&c"/no/such/file".to_owned()), None);
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
