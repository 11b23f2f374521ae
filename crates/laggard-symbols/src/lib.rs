//! ELF files, stack unwinding with all registers, and symbolization.
//!
//! You give files, the mappings of a process and copies of its registers and stacks; you get the
//! frames of each stack ([`Unwinder`]) and later their functions, files and lines ([`resolve`]).
//! There are two kinds of addresses: a *pc* is an address in a process, an *svma* ("stated virtual
//! memory address") is the corresponding address in the tables of the file. They differ by the bias
//! of a [`Mapping`].
//!
//! This crate starts no processes and reads no live memory except the vdso. x86-64 Linux is fully
//! supported. For ELF files of other machines it reads headers and, if they are 64-bit
//! little-endian, symbols and lines.
//!
//! - [`Elf`]: a file with its symbols ([`Elf::symbol`]) and lines ([`Elf::lines`])
//! - [`Rows`]: call-frame rules of one file, and one unwinding step
//! - [`AddressSpace`], [`Modules`]: mappings of a process, and files shared by processes
//! - [`Unwinder`], [`resolve`]: stack unwinding and symbolization
//! - [`inspect`]: how a file was built, and the instructions it contains

mod cfi;
mod content;
mod debug_file;
mod demangle;
mod elf;
mod error;
mod extension;
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
