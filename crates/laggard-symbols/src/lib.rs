//! ELF files, unwinding with all registers, and names of addresses.
//!
//! You give files, the mappings of a process and copies of its registers and stacks; you get the
//! frames of each stack ([`Unwinder`]) and later their functions, files and lines ([`resolve`]).
//! Addresses come in two kinds: a *pc* is where code ran in a process, an *svma* ("stated virtual
//! memory address") is the same place as the file's own tables have it. A [`Mapping`]'s bias lies
//! between them.
//!
//! This crate starts no processes and reads no live memory but the vdso's. It knows x86-64 Linux
//! well; of other machines' ELF files it reads headers and, where they are 64-bit little-endian,
//! symbols and lines.
//!
//! - [`Elf`]: one file, with its symbols ([`Elf::symbol`]) and lines ([`Elf::lines`])
//! - [`Rows`]: call-frame rules of one file, and one step up a stack with them
//! - [`AddressSpace`], [`Modules`]: what is mapped where, and files shared by processes
//! - [`Unwinder`], [`resolve`]: from a copied stack to frames, from frames to names
//! - [`inspect`]: how a file was built and what its code consists of

mod cfi;
mod content;
mod debug_file;
mod demangle;
mod elf;
mod error;
mod files;
mod inspect;
mod lines;
mod locate;
mod maps;
mod modules;
mod plt;
mod prologue;
mod registers;
mod resolve;
mod space;
mod symbols;
mod unwind;

pub use cfi::{Rows, Step, Stop};
pub use demangle::{demangle, short_name};
pub use elf::{Elf, Kind, Segment};
pub use error::{Error, Missing};
pub use files::{FileSystem, Files};
pub use inspect::{Samples, executed, inspect, judge_targets, listing, samples_in};
pub use lines::{Lines, Location};
pub use locate::locate;
pub use maps::Area;
pub use modules::{Module, ModuleIndex, Modules};
pub use registers::{Memory, Registers, StackCopy};
pub use resolve::{Resolution, resolve, resolve_calls};
pub use space::{AddressSpace, Mapping, Place};
pub use symbols::Symbol;
pub use unwind::{Ending, MAX_DEPTH, NativeFrame, Unwinder};
