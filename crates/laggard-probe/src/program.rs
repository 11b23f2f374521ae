//! Checks before the start whether an agent can be loaded into a program.
//!
//! The dynamic linker loads agents. A program without one, or one whose linker ignores the
//! environment, would run unmeasured.
#![allow(unsafe_code, reason = "geteuid and getxattr have no safe interface")]

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A program that can be measured.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its path.
    pub(crate) path: PathBuf,
}

/// Why an agent cannot be loaded into a program.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Refusal {
    /// The command is empty.
    #[error("no command to run")]
    NoCommand,
    /// No program has this name.
    #[error("program not found: {0}")]
    Missing(String),
    /// The file is not executable.
    #[error("{} is not executable", .0.display())]
    NotExecutable(PathBuf),
    /// Built for another architecture.
    #[error("{} is built for another architecture ({}): the agent needs 64-bit x86", .0.display(), .1)]
    OtherMachine(PathBuf, &'static str),
    /// Statically linked.
    #[error("{} is statically linked: the agent cannot be loaded into it", .0.display())]
    Static(PathBuf),
    /// A Go program.
    #[error("{} is a Go program: the Go runtime takes over the signals that the agent needs", .0.display())]
    Go(PathBuf),
    /// Runs with other privileges than the caller.
    #[error("{} runs with elevated privileges ({}): the dynamic linker ignores the agent", .0.display(), .1)]
    Privileged(PathBuf, &'static str),
}

/// Finds the program of a command, and checks it and its interpreters.
pub(crate) fn check(command: &[OsString]) -> Result<Program, Refusal> {
    let (path, _) = check_last(command)?;
    Ok(Program { path })
}

/// The same for the sampling agent, which also needs signals.
pub(crate) fn check_sampled(command: &[OsString]) -> Result<Program, Refusal> {
    let (path, last) = check_last(command)?;
    if is_go(&last) { Err(Refusal::Go(last)) } else { Ok(Program { path }) }
}

/// The program, and the interpreter that is finally executed, which may be the program itself.
fn check_last(command: &[OsString]) -> Result<(PathBuf, PathBuf), Refusal> {
    let name = command.first().filter(|name| !name.is_empty()).ok_or(Refusal::NoCommand)?;
    let path = find(name).ok_or_else(|| Refusal::Missing(name.to_string_lossy().into_owned()))?;
    let mut checked = path.clone();
    // An interpreter may itself be a script. The loop is bounded, because scripts may form a cycle.
    for _ in 0..5 {
        match interpreter(&checked)? {
            Some(next) => checked = next,
            None => break,
        }
    }
    Ok((path, checked))
}

/// Whether a command can be sampled by the agent.
pub fn can_carry_agent(command: &[OsString]) -> Result<(), Refusal> {
    check_sampled(command).map(|_| ())
}

/// Finds the program of a command that runs without an agent, whatever its kind.
pub(crate) fn runnable(command: &[OsString]) -> Result<PathBuf, Refusal> {
    let name = command.first().filter(|name| !name.is_empty()).ok_or(Refusal::NoCommand)?;
    let path = find(name).ok_or_else(|| Refusal::Missing(name.to_string_lossy().into_owned()))?;
    if is_runnable(&path) { Ok(path) } else { Err(Refusal::NotExecutable(path)) }
}

/// The path of a program with this name.
pub(crate) fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Path::new(name).exists().then(|| name.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|path| is_runnable(path))
}

fn is_runnable(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The interpreter of a script; `None` for a binary, which is checked.
fn interpreter(path: &Path) -> Result<Option<PathBuf>, Refusal> {
    if !is_runnable(path) {
        return Err(Refusal::NotExecutable(path.into()));
    }
    // A program that is executable but not readable is left to the system.
    let Ok(mut file) = File::open(path) else { return Ok(None) };
    let mut head = vec![];
    if file.by_ref().take(4096).read_to_end(&mut head).is_err() {
        return Ok(None);
    }
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
        let word = line.split(|byte| b" \t".contains(byte)).next().unwrap_or_default();
        return Ok(Some(OsString::from_vec(word.to_vec()).into()));
    }
    let refuse = |why| Refusal::OtherMachine(path.into(), why);
    let Some(header) = head.strip_prefix(b"\x7fELF") else { return Ok(None) };
    match header.first() {
        Some(1) => return Err(refuse("32-bit")),
        Some(2) => {}
        _ => return Err(refuse("unknown ELF class")),
    }
    const EM_X86_64: u64 = 62;
    if number(&head, 18, 2) != Some(EM_X86_64) {
        return Err(refuse("not x86"));
    }
    if !is_dynamic(&file, &head) {
        return Err(Refusal::Static(path.into()));
    }
    match privileges(path) {
        Some(which) => Err(Refusal::Privileged(path.into(), which)),
        None => Ok(None),
    }
}

/// Whether the program has a dynamic linker.
fn is_dynamic(file: &File, head: &[u8]) -> bool {
    segments(file, head).iter().any(|segment| segment.kind == PT_INTERP)
}

/// Whether the program contains the note of Go's linker.
pub(crate) fn is_go(path: &Path) -> bool {
    const LONGEST_NOTE: u64 = 1 << 16;
    let Ok(mut file) = File::open(path) else { return false };
    let mut head = vec![];
    if file.by_ref().take(4096).read_to_end(&mut head).is_err() || !head.starts_with(b"\x7fELF") {
        return false;
    }
    segments(&file, &head).iter().filter(|segment| segment.kind == PT_NOTE).any(|segment| {
        let mut note = vec![0; segment.size.min(LONGEST_NOTE) as usize];
        let owner = b"Go\0\0";
        file.read_exact_at(&mut note, segment.offset).is_ok()
            && note.windows(owner.len()).any(|bytes| bytes == owner)
    })
}

const PT_INTERP: u64 = 3;
const PT_NOTE: u64 = 4;

/// A program header.
struct Segment {
    kind: u64,
    offset: u64,
    size: u64,
}

/// Program headers of the ELF file that starts with these bytes; empty if they cannot be read.
fn segments(file: &File, head: &[u8]) -> Vec<Segment> {
    let (Some(offset), Some(size), Some(count)) =
        (number(head, 32, 8), number(head, 54, 2), number(head, 56, 2))
    else {
        return vec![];
    };
    let mut table = vec![0; (size * count) as usize];
    if size == 0 || file.read_exact_at(&mut table, offset).is_err() {
        return vec![];
    }
    let segment = |entry: &[u8]| {
        let (kind, offset) = (number(entry, 0, 4)?, number(entry, 8, 8)?);
        Some(Segment { kind, offset, size: number(entry, 32, 8)? })
    };
    table.chunks_exact(size as usize).filter_map(segment).collect()
}

/// Reads a little-endian number.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + length)?;
    Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// The reason why the dynamic linker ignores the environment of a program.
fn privileges(path: &Path) -> Option<&'static str> {
    let data = path.metadata().ok()?;
    // SAFETY: these calls take no arguments and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    if data.mode() & libc::S_ISUID != 0 && data.uid() != user {
        return Some("setuid");
    }
    if data.mode() & libc::S_ISGID != 0 && data.gid() != group {
        return Some("setgid");
    }
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    let attribute = c"security.capability";
    // SAFETY: both strings are null-terminated. A null buffer of size 0 only queries the size.
    let size =
        unsafe { libc::getxattr(name.as_ptr(), attribute.as_ptr(), std::ptr::null_mut(), 0) };
    (size > 0 && user != 0).then_some("file capabilities")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    fn program(directory: &Path, name: &str, content: &[u8], mode: u32) -> PathBuf {
        let path = directory.join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn refusal(path: &Path) -> Option<Refusal> {
        check(&[path.into()]).err()
    }

    #[test]
    fn programs_that_cannot_load_an_agent_are_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let mut elf = vec![0u8; 64];
        elf[..5].copy_from_slice(b"\x7fELF\x02");
        elf[18] = 62;
        let fixed = program(at, "static", &elf, 0o755);
        assert_eq!(refusal(&fixed), Some(Refusal::Static(fixed.clone())));
        elf[18] = 183;
        let arm = program(at, "arm", &elf, 0o755);
        assert!(matches!(refusal(&arm), Some(Refusal::OtherMachine(_, "not x86"))));
        elf[4] = 1;
        let small = program(at, "small", &elf, 0o755);
        assert!(matches!(refusal(&small), Some(Refusal::OtherMachine(_, "32-bit"))));
        let plain = program(at, "plain", b"#!/bin/sh\n", 0o644);
        assert_eq!(refusal(&plain), Some(Refusal::NotExecutable(plain.clone())));
        let script = format!("#!{} -x\n", fixed.display());
        let script = program(at, "script", script.as_bytes(), 0o755);
        assert_eq!(refusal(&script), Some(Refusal::Static(fixed)), "the interpreter is checked");
        assert_eq!(
            check(&["no-such-program".into()]),
            Err(Refusal::Missing("no-such-program".into()))
        );
        assert_eq!(check(&[]), Err(Refusal::NoCommand));
        // A dynamic program with the note of Go's linker.
        elf[4] = 2;
        elf[18] = 62;
        (elf[32], elf[54], elf[56]) = (64, 56, 2);
        elf.resize(64 + 2 * 56, 0);
        elf[64] = PT_INTERP as u8;
        elf[120] = PT_NOTE as u8;
        (elf[128], elf[152]) = (176, 16);
        elf.extend(b"\x04\0\0\0\0\0\0\0\x04\0\0\0Go\0\0");
        let go = program(at, "go", &elf, 0o755);
        assert!(check(&[go.clone().into()]).is_ok(), "its calls can still be traced");
        assert_eq!(check_sampled(&[go.clone().into()]), Err(Refusal::Go(go)));
    }

    #[test]
    fn the_shell_can_be_measured() {
        assert!(check(&["sh".into()]).unwrap().path.is_absolute());
    }
}
