//! Measurements of live processes: sampling, call tracing and benchmarks.
//!
//! The input is a command, the output is evidence. [`sample`] and [`calls`] run the program with an
//! agent that the dynamic linker loads: they need no root, no ptrace and no change to its files.
//! [`inside`] counts calls within a library with valgrind or uprobes, and [`syscalls`] traces a
//! program with ptrace. [`bench`] times two or more sides against each other.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod bench;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod calls;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod child;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod dump;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod error;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod held;
pub mod host;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod inside;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod perf;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod program;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod ptrace;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod sample;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod started;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod syscalls;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod unpack;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use child::Ended;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use error::Error;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use program::{Refusal, can_carry_agent};
