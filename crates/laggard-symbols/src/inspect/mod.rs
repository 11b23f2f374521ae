//! Build facts and instruction statistics of a file: [`inspect`].
//!
//! You give an [`Elf`], you get a [`CodeFile`]: facts from headers and debug info, and the
//! instructions of every function by class. [`samples_in`] and [`executed`] weight them by a
//! profile. [`listing`] lists one function. Only x86-64 is disassembled.

mod build;
mod class;
mod debug;
mod executed;
mod functions;
mod libraries;
mod listing;
mod targets;

pub use executed::{Samples, executed, samples_in};
pub use listing::listing;
pub use targets::judge_targets;

use crate::Elf;
use laggard_core::model::code::CodeFile;
use laggard_core::model::profile::Texts;

/// Inspects a file: its build, its functions and their instructions. `path` is its name in the
/// result. Function names are added to `texts`.
pub fn inspect(elf: &Elf, path: &str, texts: &mut Texts) -> CodeFile {
    let mut build = build::read(elf);
    let found = functions::find(elf, texts);
    build.frame_pointers = found.frame_pointers;
    let machine = build::machine(elf);
    let not_disassembled = match elf.is_x86_64() {
        true => String::new(),
        false => format!("cannot disassemble {machine} code; only x86-64 is supported"),
    };
    CodeFile {
        path: path.to_owned(),
        id: elf.id().to_owned(),
        size: elf.bytes().len() as u64,
        kind: build::kind(elf, &build),
        targets: targets::find(&found.functions, texts),
        machine,
        build,
        functions: found.functions,
        not_disassembled,
        skipped_bytes: found.skipped_bytes,
        executed: None,
    }
}
