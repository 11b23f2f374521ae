//! Reads the machine: what it is, what it allows, what goes on in it.
//!
//! You give a [`Root`] (the real one, or a directory with made-up `/proc` and `/sys` for tests) and
//! the [`Places`] of this user, you get a [`Host`]. A file that is missing, unreadable or strange
//! makes one value unknown, with the reason, and nothing else. System calls are made on the real
//! root only. A full reading takes about half a second, of which a fifth is spent watching who
//! uses the processors; [`facts`] is what a recording keeps, in a few milliseconds.

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
    /// Where programs are looked for, in this order.
    pub programs: Vec<PathBuf>,
    /// Where laggard keeps what it makes for itself.
    pub cache: Option<PathBuf>,
}

impl Places {
    /// As the environment has them.
    pub fn from_env() -> Places {
        let absolute =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let path = std::env::var_os("PATH").unwrap_or_default();
        // A directory relative to this one would find other programs elsewhere.
        let programs = std::env::split_paths(&path).filter(|path| path.is_absolute()).collect();
        let cache =
            absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        Places { programs, cache: cache.map(|cache| cache.join("laggard")) }
    }
}

/// All that can be found out about the machine.
pub fn read(root: &Root, places: &Places) -> Host {
    // First, while this process itself does nothing.
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

/// What a recording keeps about the machine that it was made on: names and values, without the
/// machine's own name. What is not known is left out.
pub fn facts() -> Vec<(String, String)> {
    facts_of(&Root::real())
}

/// What the processor can do, as Linux calls it (`avx2`, `fma`, `asimd`); empty when not known.
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
