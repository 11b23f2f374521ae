//! Reads facts about the machine: hardware, settings and current load.
//!
//! The input is a [`Root`] (the real one, or a directory with synthetic `/proc` and `/sys` for
//! tests) and the [`Places`] of this user; the output is a [`Host`]. A missing, unreadable or
//! malformed file makes one value unknown, with the reason. System calls are made only for the real
//! root. [`read`] takes about half a second, of which a fifth is spent observing CPU usage.
//! [`facts`] reads only what a recording stores and takes a few milliseconds.

mod counters;
mod cpu;
#[cfg(target_os = "linux")]
pub(crate) mod event;
mod load;
mod noise;
mod python;
mod room;
mod root;
mod run;
mod sampling;
mod symbols;
mod sys;
mod system;
#[cfg(test)]
mod tests;
mod tools;
#[cfg(target_os = "linux")]
mod trigger;

pub use root::Root;

use laggard_core::model::host::Host;
use std::path::PathBuf;

/// Directories of this user.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Directories that are searched for programs, in order.
    pub programs: Vec<PathBuf>,
    /// The cache directory of laggard.
    pub cache: Option<PathBuf>,
}

impl Places {
    /// The directories set in the environment.
    pub fn from_env() -> Places {
        let absolute =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Relative directories are skipped, because they depend on the current directory.
        let programs = std::env::split_paths(&path).filter(|path| path.is_absolute()).collect();
        let cache =
            absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        Places { programs, cache: cache.map(|cache| cache.join("laggard")) }
    }
}

/// Reads everything about the machine.
pub fn read(root: &Root, places: &Places) -> Host {
    // First, while this process is idle.
    let watched = load::watch(root);
    Host {
        system: system::read(root),
        sampling: sampling::read(root),
        counters: counters::read(root),
        pythons: python::read(root, places),
        tools: tools::read(root, places),
        cpu: cpu::read(root),
        noise: noise::read(root, watched),
        room: room::read(root, places),
    }
}

/// The facts about the machine that a recording stores: names and values, without the host name.
/// Unknown facts are omitted.
pub fn facts() -> Vec<(String, String)> {
    facts_of(&Root::real())
}

/// CPU features, as Linux names them (`avx2`, `fma`, `asimd`); empty if unknown.
pub fn cpu_features() -> Vec<String> {
    cpu::features(&Root::real())
}

fn facts_of(root: &Root) -> Vec<(String, String)> {
    let system = system::read(root);
    let no_or = |name: Option<String>| name.unwrap_or_else(|| "none".into());
    let facts = [
        ("os", Some(format!("{} {}", system.os, system.arch))),
        ("kernel", system.kernel.get().cloned()),
        ("distribution", system.distribution.get().map(|found| found.name.clone())),
        ("hypervisor", system.hypervisor.get().cloned().map(no_or)),
        ("container", system.container.get().cloned().map(no_or)),
        ("cpu", cpu::model(root).get().cloned()),
        ("cores", cpu::cores(root).get().map(u64::to_string)),
        ("threads", cpu::threads(root).get().map(u64::to_string)),
        ("memory_bytes", room::memory(root, "MemTotal").get().map(u64::to_string)),
        ("load_1min", noise::load(root).get().map(f64::to_string)),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
