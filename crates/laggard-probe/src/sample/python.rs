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

/// The interpreter in a file, from the addresses of its exported symbols.
pub(crate) fn find(elf: &Elf, path: &Path) -> Option<Interpreter> {
    let [gil_state, newer, older, code_type, runtime, version] = elf.exported([
        "PyGILState_GetThisThreadState",
        "PyThreadState_GetUnchecked",
        "_PyThreadState_UncheckedGet",
        "PyCode_Type",
        "_PyRuntime",
        "Py_Version",
    ]);
    Some(Interpreter {
        minor: version.and_then(|at| minor_of(elf, at)).or_else(|| minor_in(path))?,
        gil_state: gil_state?,
        current: newer.or(older)?,
        code_type: code_type?,
        runtime: runtime?,
    })
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
