//! The libraries that laggard injects into measured processes, and their shared memory formats.
//!
//! There are two agents, each a shared library of a few kilobytes without dependencies. *sample*
//! (`LD_PRELOAD`) copies the registers, the stack and the Python frame chain at every tick of a
//! thread's clock. *calls* (`LD_AUDIT`) counts and times calls between libraries. The build script
//! builds them from the same sources that are compiled here, where they are only checked and
//! tested: code that takes effect on loading is compiled only with `--cfg laggard_agent`.
//!
//! Rules for this code: no allocation, no locks, no formatting, and no panics caused by the memory
//! contents of the measured process.

#![cfg_attr(not(test), no_std)]

pub mod calls_wire;
pub mod wire;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(dead_code, reason = "used by the root of the injected library")]
mod calls;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(dead_code, reason = "used by the root of the injected library")]
mod children;
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
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(dead_code, reason = "used by the root of the injected library")]
mod thread_name;

/// The sampling agent, a shared library; empty on unsupported platforms.
pub static SAMPLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sample.so"));

/// The call-tracing agent, a shared library; empty on unsupported platforms.
pub static CALLS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/calls.so"));

/// Matching of module and function patterns as in the call tracer, for other call tracers.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod patterns {
    use crate::calls::policy;

    /// Whether a module matches. A pattern with `*` or `?` must match the whole name, otherwise any
    /// part of it; a pattern with a slash is matched against the path, otherwise against the file
    /// name.
    pub fn module(pattern: &str, path: &str) -> bool {
        policy::match_file(pattern.as_bytes(), path.as_bytes())
    }

    /// Whether the whole name of a function matches.
    pub fn function(pattern: &str, name: &str) -> bool {
        policy::glob(pattern.as_bytes(), name.as_bytes())
    }
}
