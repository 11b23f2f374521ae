//! Detects interpreters that a program maps after its start, and announces them to the agent.

use laggard_agent::wire::{Header, INTERPRETERS};
use laggard_symbols::Elf;
use std::path::Path;
use std::sync::atomic::Ordering::*;

/// Addresses of an interpreter's functions and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interpreter {
    minor: u32,
    gil_state: u64,
    current: u64,
    code_type: u64,
    runtime: u64,
}

/// A version of the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    minor: u32,
    is_free_threaded: bool,
}

/// Minor versions of which frames can be read.
const READABLE: std::ops::RangeInclusive<u32> = 9..=14;

impl Version {
    /// Whether the frames of this version can be read.
    fn is_readable(self) -> bool {
        READABLE.contains(&self.minor) && !self.is_free_threaded
    }

    /// A sentence about a version of which frames cannot be read.
    pub(crate) fn notice(self) -> String {
        let build = if self.is_free_threaded { "free-threaded " } else { "" };
        format!(
            "frames of {build}Python 3.{} are not supported: its stacks have native frames only \
             (supported: 3.{} to 3.{} with the GIL)",
            self.minor,
            READABLE.start(),
            READABLE.end()
        )
    }
}

/// An interpreter in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Its frames can be read.
    Readable(Interpreter),
    /// Its frames cannot be read.
    Unreadable(Version),
}

/// The interpreter in a file, from the addresses of its exported symbols.
pub(crate) fn find(elf: &Elf, path: &Path) -> Option<Found> {
    let [gil_state, newer, older, code_type, runtime, version, get_version, free_threaded] = elf
        .exported([
            "PyGILState_GetThisThreadState",
            "PyThreadState_GetUnchecked",
            "_PyThreadState_UncheckedGet",
            "PyCode_Type",
            "_PyRuntime",
            "Py_Version",
            "Py_GetVersion",
            // Exported only by builds without the GIL.
            "_Py_DecRefShared",
        ]);
    get_version.filter(|_| code_type.is_some())?;
    let minor = version.and_then(|at| minor_of(elf, at)).or_else(|| minor_in(path))?;
    let version = Version { minor, is_free_threaded: free_threaded.is_some() };
    if !version.is_readable() {
        return Some(Found::Unreadable(version));
    }
    Some(Found::Readable(Interpreter {
        minor,
        gil_state: gil_state?,
        current: newer.or(older)?,
        code_type: code_type?,
        runtime: runtime?,
    }))
}

impl Interpreter {
    /// The addresses after relocation by `bias`.
    pub(crate) fn moved(self, bias: u64) -> Interpreter {
        let moved = |at: u64| at.wrapping_add(bias);
        Interpreter {
            minor: self.minor,
            gil_state: moved(self.gil_state),
            current: moved(self.current),
            code_type: moved(self.code_type),
            runtime: moved(self.runtime),
        }
    }

    /// Announces the interpreter to the agent in a process; false if no slot is left.
    pub(crate) fn post(self, header: &Header, pid: u32, born_ns: u64, number: usize) -> bool {
        if number >= INTERPRETERS {
            return false;
        }
        let place = &header.interpreters[number];
        place.minor.store(self.minor, Relaxed);
        place.born_ns.store(born_ns, Relaxed);
        place.gil_state.store(self.gil_state, Relaxed);
        place.current.store(self.current, Relaxed);
        place.code_type.store(self.code_type, Relaxed);
        place.runtime.store(self.runtime, Relaxed);
        place.pid.store(pid, Release);
        true
    }
}

/// The version that interpreters since 3.11 export.
fn minor_of(elf: &Elf, svma: u64) -> Option<u32> {
    let bytes = elf.bytes_at(svma, 4)?.try_into().ok()?;
    let version = u32::from_le_bytes(bytes);
    (version >> 24 == 3).then_some(version >> 16 & 0xff)
}

/// The version in the name of a library, such as `libpython3.9.so.1.0`.
fn minor_in(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let rest = name.split_once("python3.")?.1;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_without_readable_frames_are_named() {
        let version = |minor, is_free_threaded| Version { minor, is_free_threaded };
        for minor in 9..=14 {
            assert!(version(minor, false).is_readable(), "3.{minor}");
            assert!(!version(minor, true).is_readable(), "3.{minor}, free-threaded");
        }
        for minor in [6, 8, 15, 16] {
            assert!(!version(minor, false).is_readable(), "3.{minor}");
        }
        assert_eq!(
            version(15, false).notice(),
            "frames of Python 3.15 are not supported: its stacks have native frames only \
             (supported: 3.9 to 3.14 with the GIL)"
        );
        assert!(version(13, true).notice().starts_with("frames of free-threaded Python 3.13 are"));
    }

    #[test]
    fn versions_are_parsed_from_file_names() {
        let minor = |name: &str| minor_in(Path::new(name));
        assert_eq!(minor("/usr/lib/libpython3.15.so.1.0"), Some(15));
        assert_eq!(minor("/usr/bin/python3.8"), Some(8));
        assert_eq!(minor("/usr/bin/python3"), None);
    }
}
