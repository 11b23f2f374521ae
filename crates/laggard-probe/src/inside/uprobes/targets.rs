//! Functions that can be probed: their files, offsets and costs.

use crate::error::Error;
use crate::inside::Options;
use crate::program;
use laggard_symbols::Elf;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A function that can be probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The file that contains it.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// Offset of its first instruction in the file.
    pub offset: u64,
    /// Whether the kernel can emulate its first instruction.
    pub is_fast: bool,
}

/// Matching functions in the program, in the libraries it is linked to, and in files that a library
/// pattern names by their absolute path. Libraries that are loaded later are not known in advance.
pub fn targets(command: &[OsString], options: &Options) -> Result<Vec<Target>, Error> {
    let program = program::runnable(command)?;
    let mut files = linked(&program);
    files.insert(0, program.clone());
    files.retain(|path| options.wants_module(&path.to_string_lossy()));
    let named = options.libraries.iter().map(PathBuf::from).filter(|path| path.is_absolute());
    files.extend(named.filter(|path| path.is_file()));
    let mut real: Vec<PathBuf> =
        files.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())).collect();
    real.sort();
    real.dedup();
    if real.is_empty() {
        return Err(Error::Nothing(format!(
            "no library that {} is linked to matches {}: give the absolute path of a library that is \
             loaded at run time",
            program.display(),
            options.libraries.join(", ")
        )));
    }
    let mut targets = vec![];
    for path in &real {
        if let Ok(elf) = Elf::open(path) {
            targets.extend(functions(&elf, path, options));
        }
    }
    Ok(targets)
}

/// Matching functions of a file, one per address.
fn functions(elf: &Elf, path: &Path, options: &Options) -> Vec<Target> {
    let mut places = BTreeMap::new();
    for function in elf.functions().filter(|function| options.wants_function(&function.name)) {
        // PLT stubs lead into other libraries.
        if function.name.contains("@plt") {
            continue;
        }
        let holds =
            |start: u64, size: u64| (start..start.saturating_add(size)).contains(&function.start);
        let mut segments = elf.executable_segments();
        let Some(segment) = segments.find(|segment| holds(segment.svma, segment.file_size)) else {
            continue;
        };
        let offset = segment.offset + (function.start - segment.svma);
        let is_fast = elf.bytes_at(function.start, 15).is_some_and(is_carried_out);
        places.entry(offset).or_insert_with(|| Target {
            path: path.into(),
            name: function.name.into_owned(),
            offset,
            is_fast,
        });
    }
    places.into_values().collect()
}

/// Libraries that a program is linked to, as its dynamic linker resolves them; empty for scripts
/// and static programs.
fn linked(program: &Path) -> Vec<PathBuf> {
    let Some(linker) = Elf::open(program).ok().and_then(|elf| Some(elf.interpreter()?.to_owned()))
    else {
        return vec![];
    };
    let mut list = Command::new(linker);
    list.arg("--list").arg(program).stdin(Stdio::null()).stderr(Stdio::null());
    let Ok(output) = list.output() else { return vec![] };
    // `libm.so.6 => /lib/libm.so.6 (0x0000…)`, or just a path.
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| {
            let line = line.split_once("=> ").map_or(line, |(_, path)| path).trim();
            let path = line.rsplit_once(" (0x").map_or(line, |(path, _)| path);
            path.starts_with('/').then(|| path.into())
        })
        .collect()
}

/// Whether the kernel emulates an instruction instead of single-stepping it.
///
/// Only what all kernels in use support: pushes of registers, jumps, calls, and one-byte nops. The
/// kernel single-steps `endbr64`. Longer nops are fast on Linux 6.18 but not on all kernels, so
/// they count as slow.
fn is_carried_out(code: &[u8]) -> bool {
    match code {
        // push, short form
        [0x50..=0x57, ..] | [0x40..=0x4f, 0x50..=0x57, ..] => true,
        // nop, pause
        [0x90, ..] | [0xf3, 0x90, ..] => true,
        // relative jumps and calls
        [0xeb | 0xe9 | 0xe8 | 0x70..=0x7f, ..] | [0x0f, 0x80..=0x8f, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulated_instructions_are_recognized() {
        let check = |code: &[u8], expected: bool| assert_eq!(is_carried_out(code), expected);
        check(&[0x55], true); // push rbp
        check(&[0x41, 0x57], true); // push r15
        check(&[0x90], true); // nop
        check(&[0xe9, 0, 0, 0, 0], true); // jmp
        check(&[0x0f, 0x84, 0, 0, 0, 0], true); // je
        check(&[0x8d, 0x47, 0x01], false); // lea eax, [rdi + 1]
        check(&[0x48, 0x83, 0xec, 0x08], false); // sub rsp, 8
        check(&[0x66, 0x90], false); // xchg ax, ax
        check(&[], false);
    }

    #[test]
    fn libraries_of_a_program_are_listed() {
        let Some(shell) = program::find(std::ffi::OsStr::new("ls")) else { return };
        let all = linked(&shell);
        let is_libc = |path: &PathBuf| path.to_string_lossy().contains("libc.so");
        assert!(all.iter().any(is_libc), "{all:?}");
    }
}
