//! Compiles and runs the programs of the tests.
#![allow(dead_code)] // each test file uses a part

use laggard_symbols::{Registers, StackCopy};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A stopped thread, as written by `steps.c`.
pub(crate) struct Record {
    pub(crate) registers: Registers,
    start: u64,
    bytes: Vec<u8>,
}

impl Record {
    /// The stack with the red zone.
    pub(crate) fn stack(&self) -> StackCopy<'_> {
        StackCopy { start: self.start, bytes: &self.bytes }
    }

    /// The stack from the stack pointer on.
    pub(crate) fn stack_without_red_zone(&self) -> StackCopy<'_> {
        let skip = (self.registers.sp() - self.start) as usize;
        StackCopy { start: self.registers.sp(), bytes: &self.bytes[skip..] }
    }
}

/// Compiles a C file of `tests/c` with these flags.
pub(crate) fn compile(source: &str, flags: &[&str], into: &Path, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(source);
    let program = into.join(name);
    let status = Command::new("cc").args(flags).arg("-o").arg(&program).arg(source).status();
    assert!(status.unwrap().success(), "cc {flags:?}");
    program
}

/// Runs a scenario of `steps.c`. Returns its records and mappings.
pub(crate) fn record(program: &Path, scenario: &str) -> (Vec<Record>, Vec<u8>) {
    let output = program.with_extension(scenario);
    let status = Command::new(program).arg(scenario).arg(&output).status().unwrap();
    assert!(status.success(), "{scenario}: {status}");
    read(&output)
}

/// Reads records and the mappings beside them.
pub(crate) fn read(path: &Path) -> (Vec<Record>, Vec<u8>) {
    let mut bytes = &*std::fs::read(path).unwrap();
    let mut records = vec![];
    while !bytes.is_empty() {
        let word = |at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap());
        let registers = Registers(std::array::from_fn(word));
        let (start, length) = (word(17), word(18) as usize);
        let stack = bytes[152..152 + length].to_vec();
        records.push(Record { registers, start, bytes: stack });
        bytes = &bytes[152 + length..];
    }
    let maps = std::fs::read(format!("{}.maps", path.display())).unwrap();
    (records, maps)
}
