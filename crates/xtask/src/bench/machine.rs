//! Description of the machine that runs the benchmarks.

use std::path::Path;
use std::process::Command;

/// Processor model, cores, memory and kernel, where known.
pub(super) fn describe() -> String {
    let cores = cores();
    let processor =
        field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.into());
    let memory = kilobytes("/proc/meminfo", "MemTotal:").map_or(String::new(), |kilobytes| {
        format!(", {:.0} GB of memory", kilobytes as f64 * 1024.0 / 1e9)
    });
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or(String::new(), |release| format!(" {}", release.trim()));
    format!("Machine: {processor}, {cores} cores{memory}, {}{kernel}.", std::env::consts::OS)
}

/// Version of an interpreter and of its NumPy.
#[cfg(target_os = "linux")]
pub(super) fn python(python: &Path) -> String {
    let ask = "import sys, numpy; print('Python %d.%d.%d' % sys.version_info[:3], 'with NumPy', numpy.__version__)";
    Command::new(python)
        .args(["-c", ask])
        .output()
        .map_or("Python".into(), |output| String::from_utf8_lossy(&output.stdout).trim().into())
}

/// Warns if the machine is busy.
pub(super) fn warn_of_load() {
    let cores = cores();
    let load = std::fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    if let Some(load) = load.filter(|load| *load > 0.5 * cores as f64) {
        eprintln!("warning: load average is {load} on {cores} cores; results will be noisy");
    }
}

/// Whether this much memory is available; true if unknown.
pub(super) fn has_memory(bytes: f64) -> bool {
    kilobytes("/proc/meminfo", "MemAvailable:")
        .is_none_or(|kilobytes| kilobytes as f64 * 1024.0 > bytes)
}

/// A size in kB from a file such as `/proc/meminfo`.
pub(super) fn kilobytes(file: &str, key: &str) -> Option<u64> {
    field(file, key)?.split(' ').next()?.parse().ok()
}

/// The value of a key in a file such as `/proc/cpuinfo`.
fn field(file: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim_start_matches([' ', '\t', ':']).to_owned())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
