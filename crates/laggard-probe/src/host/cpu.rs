//! CPUs and their frequency scaling.

use super::root::{Root, listed};
use laggard_core::model::host::{Cpu, Known};
use std::collections::BTreeSet;

const CPUS: &str = "/sys/devices/system/cpu";

pub(super) fn read(root: &Root) -> Cpu {
    let (turbo, turbo_off) = turbo(root);
    let frequencies = frequencies(root, "scaling_cur_freq");
    Cpu {
        model: model(root),
        threads: threads(root),
        cores: cores(root),
        allowed: allowed(root),
        smt: smt(root),
        isolated: root.text(&format!("{CPUS}/isolated")),
        driver: root.text(&format!("{CPUS}/cpu0/cpufreq/scaling_driver")),
        governors: governors(root),
        turbo,
        turbo_off,
        frequency_khz: frequencies.then(|all| lowest(&all)),
        max_frequency_khz: frequencies_max(root),
    }
}

/// The model, from the start of `/proc/cpuinfo`, which is long on machines with many CPUs.
pub(super) fn model(root: &Root) -> Known<String> {
    root.field("/proc/cpuinfo", "model name").or(|| {
        // Arm kernels list only numbers.
        root.field("/proc/cpuinfo", "CPU part").map(|part| {
            let by = root.field("/proc/cpuinfo", "CPU implementer");
            format!("Arm part {part}, implementer {}", by.get().map_or("?", String::as_str))
        })
    })
}

/// CPU features; empty if unknown.
pub(super) fn features(root: &Root) -> Vec<String> {
    let field = |name: &str| root.field("/proc/cpuinfo", name);
    let list = field("flags").or(|| field("Features"));
    list.get().map_or(vec![], |list| list.split_whitespace().map(str::to_owned).collect())
}

pub(super) fn threads(root: &Root) -> Known<u64> {
    let path = format!("{CPUS}/online");
    root.text(&path).then(|list| count(&path, &list))
}

/// Threads that list the same siblings form a core.
pub(super) fn cores(root: &Root) -> Known<u64> {
    if smt(root).get() == Some(&false) {
        return threads(root);
    }
    let siblings = |cpu: &str| {
        let path = |file: &str| format!("{CPUS}/{cpu}/topology/{file}");
        root.text(&path("core_cpus_list")).or(|| root.text(&path("thread_siblings_list")))
    };
    let lists: BTreeSet<String> =
        numbered(root).iter().filter_map(|cpu| siblings(cpu).get().cloned()).collect();
    match lists.len() {
        0 => Known::unknown(format!("{CPUS} does not list which threads share a core")),
        n => Known::Is(n as u64),
    }
}

fn smt(root: &Root) -> Known<bool> {
    root.number::<u8>(&format!("{CPUS}/smt/active")).map(|active| active == 1)
}

fn allowed(root: &Root) -> Known<u64> {
    let list = root.field("/proc/self/status", "Cpus_allowed_list");
    list.then(|list| count("/proc/self/status", &list))
}

fn count(path: &str, list: &str) -> Known<u64> {
    match listed(list) {
        Some(n) => Known::Is(n),
        None => {
            Known::unknown(format!("unexpected content in {path}: {:?}", super::root::short(list)))
        }
    }
}

/// `cpu0`, `cpu1`, ...
fn numbered(root: &Root) -> Vec<String> {
    let is_cpu = |name: &String| {
        name.strip_prefix("cpu")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    root.names(CPUS).get().into_iter().flatten().filter(|name| is_cpu(name)).cloned().collect()
}

fn governors(root: &Root) -> Known<Vec<String>> {
    let path = |cpu: &String| format!("{CPUS}/{cpu}/cpufreq/scaling_governor");
    let found: BTreeSet<String> =
        numbered(root).iter().filter_map(|cpu| root.text(&path(cpu)).get().cloned()).collect();
    if found.is_empty() {
        return Known::unknown("not exposed by the kernel: set by firmware or the hypervisor");
    }
    Known::Is(found.into_iter().collect())
}

/// Whether turbo is on, and the file and value that turn it off.
fn turbo(root: &Root) -> (Known<bool>, Option<(String, String)>) {
    let intel = format!("{CPUS}/intel_pstate/no_turbo");
    if let Known::Is(off) = root.number::<u8>(&intel) {
        return (Known::Is(off == 0), Some((intel, "1".into())));
    }
    let other = format!("{CPUS}/cpufreq/boost");
    if let Known::Is(on) = root.number::<u8>(&other) {
        return (Known::Is(on == 1), Some((other, "0".into())));
    }
    (Known::unknown("not exposed by the kernel: set by firmware or the hypervisor"), None)
}

fn frequencies(root: &Root, file: &str) -> Known<Vec<u64>> {
    let path = |cpu: &String| format!("{CPUS}/{cpu}/cpufreq/{file}");
    let found: Vec<u64> =
        numbered(root).iter().filter_map(|cpu| root.number(&path(cpu)).get().copied()).collect();
    if found.is_empty() {
        return Known::unknown("not exposed by the kernel");
    }
    Known::Is(found)
}

fn frequencies_max(root: &Root) -> Known<u64> {
    frequencies(root, "cpuinfo_max_freq").map(|all| all.into_iter().max().unwrap_or(0))
}

fn lowest(all: &[u64]) -> Known<u64> {
    Known::Is(all.iter().copied().min().unwrap_or(0))
}
