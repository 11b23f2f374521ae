//! Hardware counters that are available.

use super::root::Root;
use super::sys;
use laggard_core::model::host::{Attempt, Counters, Known, Pmu};

pub(super) fn read(root: &Root) -> Counters {
    let counters = Counters {
        pmus: pmus(root),
        mlock_kb: root.number("/proc/sys/kernel/perf_event_mlock_kb"),
        ..Counters::default()
    };
    if root.is_real() { tried(counters) } else { counters }
}

#[cfg(target_os = "linux")]
fn tried(counters: Counters) -> Counters {
    use super::event;
    Counters {
        cycles: event::cycles(None),
        instructions: event::instructions(),
        branch_stack: event::branch_stack(),
        memlock: sys::memlock(),
        ..counters
    }
}

#[cfg(not(target_os = "linux"))]
fn tried(counters: Counters) -> Counters {
    Counters { memlock: sys::memlock(), ..counters }
}

/// PMUs whose name marks them as those of CPU cores.
fn pmus(root: &Root) -> Known<Vec<Pmu>> {
    const DEVICES: &str = "/sys/bus/event_source/devices";
    root.names(DEVICES).map(|names| {
        let is_core =
            |name: &String| name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv8_");
        let pmu = |name: String| {
            let cpus = root.text(&format!("{DEVICES}/{name}/cpus"));
            let number = root.number(&format!("{DEVICES}/{name}/type"));
            Pmu {
                cycles: cycles(root, &name, &number),
                cpus: cpus.get().cloned().unwrap_or_default(),
                name,
            }
        };
        names.into_iter().filter(is_core).map(pmu).collect()
    })
}

#[cfg(target_os = "linux")]
fn cycles(root: &Root, name: &str, number: &Known<u32>) -> Attempt {
    match number {
        _ if !root.is_real() => Attempt::default(),
        // The default PMU, which older kernels do not address by type number.
        _ if name == "cpu" => super::event::cycles(None),
        Known::Is(number) => super::event::cycles(Some(*number)),
        Known::Unknown(why) => Attempt::Untried(why.clone()),
    }
}

#[cfg(not(target_os = "linux"))]
fn cycles(_: &Root, _: &str, _: &Known<u32>) -> Attempt {
    Attempt::default()
}
