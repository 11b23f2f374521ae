//! Sampling methods that are available.

use super::root::Root;
use super::{symbols, sys};
use flate2::read::GzDecoder;
use laggard_core::model::host::{Known, Sampling, Tick};
use std::fs::File;
use std::io::Read;

const NANOS: u64 = 1_000_000_000;
/// A kernel configuration has about 300 kB.
const LONGEST_CONFIG: u64 = 8 << 20;

pub(super) fn read(root: &Root) -> Sampling {
    let sampling = Sampling {
        paranoid: root.number("/proc/sys/kernel/perf_event_paranoid"),
        kptr_restrict: root.number("/proc/sys/kernel/kptr_restrict"),
        ptrace_scope: if root.exists("/proc/sys/kernel/yama") {
            root.number("/proc/sys/kernel/yama/ptrace_scope").map(Some)
        } else {
            Known::Is(None)
        },
        tick: tick(root),
        max_sample_rate: root.number("/proc/sys/kernel/perf_event_max_sample_rate"),
        cpu_time_max_percent: root.number("/proc/sys/kernel/perf_cpu_time_max_percent"),
        libc_symbols: symbols::of_libc(root),
        ..Sampling::default()
    };
    if root.is_real() { tried(sampling) } else { sampling }
}

#[cfg(target_os = "linux")]
fn tried(sampling: Sampling) -> Sampling {
    use super::{event, trigger};
    let triggers = trigger::try_all();
    Sampling {
        software_event: event::software(false),
        kernel_event: event::software(true),
        sigtrap: triggers.sigtrap,
        signal: triggers.signal,
        timer: triggers.timer,
        ..sampling
    }
}

#[cfg(not(target_os = "linux"))]
fn tried(sampling: Sampling) -> Sampling {
    sampling
}

/// From the kernel configuration, or else from the resolution of the coarse clock.
fn tick(root: &Root) -> Known<Tick> {
    let release = root.text("/proc/sys/kernel/osrelease");
    let release = release.get().map_or("", String::as_str);
    let from = |hz: Option<u64>, source: &str| Some(Tick { hz: hz?, source: source.to_owned() });
    let packed = || {
        let mut text = String::new();
        let file = File::open(root.path("/proc/config.gz")).ok()?;
        GzDecoder::new(file).take(LONGEST_CONFIG).read_to_string(&mut text).ok()?;
        from(configured(&text), "/proc/config.gz")
    };
    let plain = || {
        let path = format!("/boot/config-{release}");
        let text = root.text(&path);
        from(configured(text.get()?), &path)
    };
    let stepped = || match sys::tick_ns() {
        Known::Is(ns) if ns > 0 => Known::Is(Tick {
            hz: (NANOS + ns / 2) / ns,
            source: "the resolution of the coarse clock".into(),
        }),
        Known::Is(_) => Known::unknown("the coarse clock has no resolution"),
        Known::Unknown(why) => Known::Unknown(why),
    };
    match packed().or_else(plain) {
        Some(tick) => Known::Is(tick),
        None if root.is_real() => stepped(),
        None => Known::unknown("no kernel configuration found"),
    }
}

fn configured(config: &str) -> Option<u64> {
    config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=")?.trim().parse().ok())
}
