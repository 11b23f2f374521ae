//! Settings and conditions that make timings vary between runs.

use super::root::{Root, listed, short};
use laggard_core::model::host::{Known, Noise, Quota, Watched};

pub(super) fn read(root: &Root, watched: Known<Watched>) -> Noise {
    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";
    Noise {
        aslr: root.number("/proc/sys/kernel/randomize_va_space"),
        huge_pages: chosen(root, "/sys/kernel/mm/transparent_hugepage/enabled"),
        numa_balancing: root.number("/proc/sys/kernel/numa_balancing"),
        numa_nodes: root.text("/sys/devices/system/node/online").then(|list| match listed(&list) {
            Some(n) => Known::Is(n),
            None => Known::unknown(format!("unexpected list of NUMA nodes: {:?}", short(&list))),
        }),
        load: load(root),
        watched,
        clocksource: root.text(&format!("{CLOCK}/current_clocksource")),
        clocksources: root
            .text(&format!("{CLOCK}/available_clocksource"))
            .map(|text| text.split_whitespace().map(str::to_owned).collect()),
        temperature: temperature(root),
        throttled: throttled(root),
        quota: quota(root),
    }
}

/// Load average of the last minute.
pub(super) fn load(root: &Root) -> Known<f64> {
    root.text("/proc/loadavg").then(|text| {
        let first = text.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
        match first.filter(|load| load.is_finite()) {
            Some(load) => Known::Is(load),
            None => {
                Known::unknown(format!("unexpected content in /proc/loadavg: {:?}", short(&text)))
            }
        }
    })
}

/// The word in brackets, which is the active setting.
fn chosen(root: &Root, path: &str) -> Known<String> {
    root.text(path).then(|text| {
        match text.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
            Some((word, _)) => Known::Is(word.to_owned()),
            None => Known::unknown(format!("unexpected content in {path}: {:?}", short(&text))),
        }
    })
}

/// The highest temperature of all zones, in °C.
fn temperature(root: &Root) -> Known<f64> {
    const ZONES: &str = "/sys/class/thermal";
    let names = root.names(ZONES);
    let zones = names.get().into_iter().flatten().filter(|name| name.starts_with("thermal_zone"));
    let hottest = zones
        .filter_map(|zone| root.number::<i64>(&format!("{ZONES}/{zone}/temp")).get().copied())
        // A missing sensor reports implausible values.
        .filter(|milli| (1_000..150_000).contains(milli))
        .max();
    match hottest {
        Some(milli) => Known::Is(milli as f64 / 1_000.0),
        None => Known::unknown("no temperature sensor found"),
    }
}

/// Number of times since boot that a core was throttled because of heat.
fn throttled(root: &Root) -> Known<u64> {
    const CPUS: &str = "/sys/devices/system/cpu";
    let names = root.names(CPUS);
    let counts: Vec<u64> = names
        .get()
        .into_iter()
        .flatten()
        .filter(|name| name.starts_with("cpu"))
        .filter_map(|cpu| {
            let path = format!("{CPUS}/{cpu}/thermal_throttle/core_throttle_count");
            root.number(&path).get().copied()
        })
        .collect();
    if counts.is_empty() {
        return Known::unknown("not counted by the CPU");
    }
    Known::Is(counts.iter().fold(0, |sum, count| sum.saturating_add(*count)))
}

/// The tightest CPU quota that applies to this process.
fn quota(root: &Root) -> Known<Option<Quota>> {
    let new = groups(root, "").into_iter().filter_map(|group| {
        let text = root.text(&format!("{group}/cpu.max"));
        let (quota, period) = text.get()?.split_once(' ')?;
        found(root, &group, quota.parse().ok()?, period.parse().ok()?)
    });
    let old = groups(root, "cpu").into_iter().filter_map(|group| {
        let number = |file: &str| root.number::<i64>(&format!("{group}/{file}")).get().copied();
        let quota = u64::try_from(number("cpu.cfs_quota_us")?).ok()?;
        found(root, &group, quota, u64::try_from(number("cpu.cfs_period_us")?).ok()?)
    });
    let share = |quota: &Quota| quota.quota_us.saturating_mul(1_000) / quota.period_us;
    Known::Is(new.chain(old).min_by_key(share))
}

fn found(root: &Root, group: &str, quota_us: u64, period_us: u64) -> Option<Quota> {
    let stat = root.text(&format!("{group}/cpu.stat")).then(|text| {
        let count = text.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.parse().ok());
        count.map_or_else(|| Known::unknown("not counted in cpu.stat"), Known::Is)
    });
    (period_us > 0).then_some(Quota { quota_us, period_us, throttled: stat })
}

/// Directories of this process's control group and its ancestors: in the unified hierarchy, or in
/// that of a version 1 controller.
pub(super) fn groups(root: &Root, controller: &str) -> Vec<String> {
    let text = root.text("/proc/self/cgroup");
    let path = text.get().and_then(|text| {
        text.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (names, path) = (parts.next()?, parts.next()?);
            names.split(',').any(|name| name == controller).then(|| path.to_owned())
        })
    });
    let base = format!("/sys/fs/cgroup/{controller}");
    let base = base.trim_end_matches('/');
    let mut groups = vec![base.to_owned()];
    let mut inner = base.to_owned();
    // In a container, a path may lead out of the visible tree; then only the base exists.
    for part in path.iter().flat_map(|path| path.split('/')).filter(|part| !part.is_empty()) {
        if part == ".." {
            break;
        }
        inner = format!("{inner}/{part}");
        groups.push(inner.clone());
    }
    groups
}
