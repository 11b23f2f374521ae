//! The libraries that laggard injects into measured processes, and the wire they speak.
//!
//! Two agents, each a shared library of a few kilobytes without dependencies: *sample*
//! (`LD_PRELOAD`) copies registers, stack and Python's frame chain at every tick of a thread's
//! clock; *calls* (`LD_AUDIT`) counts and times calls across library borders. The build script
//! makes them from the same sources that are compiled here, where they are only checked and
//! tested: what would take effect on loading is there only with `--cfg laggard_agent`.
//!
//! Rules of this code: no allocation, no locks, no formatting; nothing that may panic on what the
//! measured process holds in memory.

#![cfg_attr(not(test), no_std)]

pub mod calls_wire;
pub mod wire;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(dead_code, reason = "used by the root of the injected library")]
mod calls;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(dead_code, reason = "used by the roots of the injected libraries")]
mod elf;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(dead_code, reason = "used by the root of the injected library")]
mod late;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(dead_code, reason = "used by the roots of the injected libraries")]
pub mod python;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(dead_code, reason = "used by the roots of the injected libraries")]
mod records;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(dead_code, reason = "used by the roots of the injected libraries")]
mod ring;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(dead_code, reason = "used by the roots of the injected libraries")]
mod sample;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(dead_code, reason = "used by the roots of the injected libraries")]
mod sys;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(dead_code, reason = "used by the root of the injected library")]
mod tasks;

/// The sampling agent, a shared library; empty where it is not supported.
pub static SAMPLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sample.so"));

/// The call-tracing agent, a shared library; empty where it is not supported.
pub static CALLS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/calls.so"));

/// Patterns of modules and functions, as the call tracer holds them against names; for others that
/// trace calls.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod patterns {
    use crate::calls::policy;

    /// Whether a module's path fits: with `*` or `?` its whole name, without them a part of it;
    /// with a slash the path counts, else the file's name.
    pub fn module(pattern: &str, path: &str) -> bool {
        policy::match_file(pattern.as_bytes(), path.as_bytes())
    }

    /// Whether a function's whole name fits.
    pub fn function(pattern: &str, name: &str) -> bool {
        policy::glob(pattern.as_bytes(), name.as_bytes())
    }
}
