//! What figures were measured on.

use std::path::Path;
use std::process::Command;

/// Processor, cores and memory, where the system says.
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

/// Says so when others keep the machine busy.
pub(super) fn warn_of_load() {
    let cores = cores();
    let load = std::fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    if let Some(load) = load.filter(|load| *load > 0.5 * cores as f64) {
        eprintln!("warning: the load average is {load} on {cores} cores, so times will vary");
    }
}

/// Whether so much memory can be had, as far as the system says.
pub(super) fn has_memory(bytes: f64) -> bool {
    kilobytes("/proc/meminfo", "MemAvailable:")
        .is_none_or(|kilobytes| kilobytes as f64 * 1024.0 > bytes)
}

/// A size behind a key in a file of the system.
pub(super) fn kilobytes(file: &str, key: &str) -> Option<u64> {
    field(file, key)?.split(' ').next()?.parse().ok()
}

/// The value behind a key in a file of the system.
fn field(file: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim_start_matches([' ', '\t', ':']).to_owned())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
