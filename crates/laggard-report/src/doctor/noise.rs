//! What makes timings differ from run to run.

use super::fix::Site;
use super::{Check, Findings, Group};
use crate::number::{bytes, count, duration, percent, plural, significant};
use laggard_core::model::host::{Busy, Known, Watched};

/// A processor that works this much of its time while we wait is somebody's.
const BUSY: f64 = 0.10;
/// Processes ready to run for each processor, over the last minute, that were somebody's too.
const LOADED: f64 = 0.5;
/// Processors that one other process keeps busy before it is worth a word.
const BURNING: f64 = 0.05;
/// The hypervisor's share for others that shows in timings.
const STOLEN: f64 = 0.01;
const HOT_C: f64 = 85.0;
/// Swap in use below this is what has lain there for long.
const SWAP_THAT_MATTERS: u64 = 256 << 20;
/// Sources that programs read without a system call.
const FAST_CLOCKS: [&str; 6] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "timebase",
    "riscv_clocksource",
];

pub(super) fn checks(site: &Site) -> Vec<Check> {
    let mut findings = Findings::new(Group::Noise);
    let noise = &mut findings;
    processor(site, noise);
    if site.is_linux() {
        load(site, noise);
        neighbours(site, noise);
        machine(site, noise);
        quota(site, noise);
        governor(site, noise);
        turbo(site, noise);
        heat(site, noise);
        clock(site, noise);
        memory(site, noise);
    }
    findings.checks
}

fn processor(site: &Site, findings: &mut Findings) {
    let cpu = &site.host.cpu;
    let (id, title) = ("cpu", "processor");
    let Some(model) = findings.value(id, title, &cpu.model) else { return };
    let mut parts = vec![model.clone()];
    if let Some(&cores) = cpu.cores.get() {
        parts.push(plural(cores, "core"));
    }
    if let Some(&threads) = cpu.threads.get() {
        parts.push(plural(threads, "thread"));
        if let Some(&allowed) = cpu.allowed.get().filter(|&&allowed| allowed < threads) {
            parts.push(format!("{} of them for this process", count(allowed)));
        }
    }
    match cpu.smt.get() {
        Some(true) => parts.push("SMT on: busy siblings share a core".into()),
        Some(false) => parts.push("no SMT".into()),
        None => {}
    }
    if let Some(isolated) = cpu.isolated.get().filter(|list| !list.is_empty()) {
        parts.push(format!("isolated: {isolated}"));
    }
    findings.fine(id, title, parts.join(", "));
}

fn load(site: &Site, findings: &mut Findings) {
    let noise = &site.host.noise;
    let (id, title) = ("load", "other work");
    let Some(watched) = findings.value(id, title, &noise.watched) else { return };
    let load = noise.load.get().map_or_else(String::new, |load| format!(", load {load:.2}"));
    let busy: Vec<String> = watched
        .processes
        .iter()
        .filter(|process| process.cpus >= BURNING)
        .map(|Busy { pid, name, cpus }| format!("{name} ({pid}) {:.0} %", cpus * 100.0))
        .collect();
    let Watched { busy: all, busiest, for_ns, .. } = watched;
    let found = format!(
        "CPUs {} % busy, the busiest {} %, over {}{load}{}",
        percent(*all),
        percent(*busiest),
        duration((*for_ns).min(i64::MAX as u64) as i64),
        if busy.is_empty() { String::new() } else { format!("; {}", busy.join(", ")) }
    );
    let threads = site.host.cpu.threads.get().copied().unwrap_or(1).max(1) as f64;
    let was_busy = noise.load.get().is_some_and(|load| load / threads > LOADED);
    if *busiest < BUSY && busy.is_empty() && !was_busy {
        return findings.fine(id, title, found);
    }
    let cost =
        "bench and why see others' work as spread: intervals are wider, small lags go undetected";
    let fix = site.advice("wait until that work is done, or stop it");
    findings.costs(id, title, found, cost, Some(fix));
}

fn neighbours(site: &Site, findings: &mut Findings) {
    let (id, title) = ("steal", "stolen time");
    let Some(watched) = site.host.noise.watched.get() else { return };
    let found = format!("{} % of CPU time went to other machines", percent(watched.stolen));
    if watched.stolen < STOLEN {
        return findings.fine(id, title, found);
    }
    let cost =
        "timings of bench include waiting for the hypervisor: compare interleaved, and repeat";
    let fix = site.advice("use a machine with processors of its own");
    findings.costs(id, title, found, cost, Some(fix));
}

fn machine(site: &Site, findings: &mut Findings) {
    let (id, title) = ("hypervisor", "hypervisor");
    match findings.value(id, title, &site.host.system.hypervisor) {
        None => {}
        Some(None) => findings.fine(id, title, "none"),
        Some(Some(name)) => {
            findings.fine(id, title, format!("{name}; see stolen time for what it costs"));
        }
    }
}

fn quota(site: &Site, findings: &mut Findings) {
    let (id, title) = ("cpu_quota", "CPU quota");
    let Some(quota) = findings.value(id, title, &site.host.noise.quota) else { return };
    let Some(quota) = quota else { return findings.fine(id, title, "none") };
    let cpus = quota.quota_us as f64 / quota.period_us.max(1) as f64;
    let throttled = match &quota.throttled {
        Known::Is(n) => format!(", stopped in {} so far", plural(*n, "period")),
        Known::Unknown(_) => String::new(),
    };
    let period = duration((quota.period_us.min(i64::MAX as u64 / 1000) * 1000) as i64);
    let found = format!("{} CPUs a period of {period}{throttled}", significant(cpus));
    let cost = "parallel code is stopped for the rest of a period once it has used its share: bench sees gaps of that length";
    let how = match site.container() {
        Some("Docker" | "Podman") => {
            "start the container without --cpus, with --cpuset-cpus instead"
        }
        Some("Kubernetes") => "give the pod no CPU limit, or whole CPUs under the static policy",
        _ => "remove the limit (cpu.max) of this control group",
    };
    findings.costs(id, title, found, cost, Some(site.advice(how)));
}

fn governor(site: &Site, findings: &mut Findings) {
    let cpu = &site.host.cpu;
    let (id, title) = ("governor", "frequency governor");
    let Some(governors) = findings.value(id, title, &cpu.governors) else { return };
    let driver = cpu.driver.get().map_or("", String::as_str);
    let now = match (cpu.frequency_khz.get(), cpu.max_frequency_khz.get()) {
        (Some(&now), Some(&most)) => {
            format!(
                ", {} of {} GHz now",
                significant(now as f64 / 1e6),
                significant(most as f64 / 1e6)
            )
        }
        _ => String::new(),
    };
    let by = if driver.is_empty() { String::new() } else { format!(" by {driver}") };
    let found = format!("{}{by}{now}", governors.join(", "));
    if governors.iter().all(|governor| governor == "performance") {
        return findings.fine(id, title, found);
    }
    let cost = "the clock rises only after work has begun: bench needs longer warm-up, and short cases spread more";
    let files = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    findings.costs(
        id,
        title,
        found,
        cost,
        Some(site.write("a steady clock", "performance", files)),
    );
}

fn turbo(site: &Site, findings: &mut Findings) {
    let cpu = &site.host.cpu;
    let (id, title) = ("turbo", "turbo");
    match findings.value(id, title, &cpu.turbo) {
        None => {}
        Some(false) => findings.fine(id, title, "off"),
        Some(true) => {
            let cost = "the clock depends on heat and on how many cores work: bench drifts from run to run, and one thread gains more than many";
            let fix = cpu.turbo_off.as_ref();
            let fix = fix.map(|(path, value)| site.write("a clock without turbo", value, path));
            findings.costs(id, title, "on", cost, fix);
        }
    }
}

fn heat(site: &Site, findings: &mut Findings) {
    let noise = &site.host.noise;
    let (id, title) = ("heat", "temperature");
    if let (Known::Unknown(why), Known::Unknown(_)) = (&noise.temperature, &noise.throttled) {
        return findings.unknown(id, title, why);
    }
    let degrees = noise.temperature.get().map(|degrees| format!("{degrees:.0} °C"));
    let throttled = noise.throttled.get().copied();
    let slowed = throttled.map(|n| match n {
        0 => "never slowed for heat since boot".to_owned(),
        n => format!("slowed for heat {} since boot", plural(n, "time")),
    });
    let found = degrees.into_iter().chain(slowed).collect::<Vec<_>>().join(", ");
    let is_hot = noise.temperature.get().is_some_and(|&degrees| degrees >= HOT_C);
    if !is_hot && throttled.unwrap_or(0) == 0 {
        return findings.fine(id, title, found);
    }
    let cost = "cores slow down when hot: long runs of bench get slower towards their end";
    findings.costs(id, title, found, cost, Some(site.advice("better cooling, or turbo off")));
}

fn clock(site: &Site, findings: &mut Findings) {
    let noise = &site.host.noise;
    let (id, title) = ("clocksource", "clock");
    let Some(source) = findings.value(id, title, &noise.clocksource) else { return };
    if FAST_CLOCKS.contains(&source.as_str()) {
        return findings.fine(id, title, format!("{source}, read without a system call"));
    }
    let cost = "every reading of the clock is a system call: bench needs larger batches, calls are timed less exactly";
    let has_tsc = noise.clocksources.get().is_some_and(|all| all.iter().any(|name| name == "tsc"));
    let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let fix = has_tsc.then(|| site.write("a fast clock", "tsc", file));
    findings.costs(id, title, source.clone(), cost, fix);
}

/// Where memory lies, and whether it moves.
fn memory(site: &Site, findings: &mut Findings) {
    let noise = &site.host.noise;
    if let Some(&level) = findings.value("aslr", "address randomisation", &noise.aslr) {
        let found = match level {
            0 => "off: every run has the same layout, which may be a lucky one",
            _ => "on: layouts differ between runs, which bench averages over",
        };
        findings.fine("aslr", "address randomisation", found);
    }
    if let Some(when) = findings.value("huge_pages", "huge pages", &noise.huge_pages) {
        findings.fine("huge_pages", "huge pages", when.clone());
    }
    let (id, title) = ("numa_balancing", "NUMA balancing");
    let nodes = noise.numa_nodes.get().copied().unwrap_or(1);
    match (noise.numa_balancing.get(), nodes) {
        (_, 0 | 1) => findings.fine(id, title, "one node of memory"),
        (Some(0), nodes) => findings.fine(id, title, format!("off, {nodes} nodes of memory")),
        (None, nodes) => findings.unknown(id, title, &format!("{nodes} nodes of memory")),
        (Some(_), nodes) => {
            let cost =
                "the kernel moves pages between nodes while code runs: bench sees rare slow rounds";
            let fix = site.sysctl("pages that stay", "kernel.numa_balancing=0");
            findings.costs(id, title, format!("on, {nodes} nodes of memory"), cost, Some(fix));
        }
    }
    let (id, title) = ("swap", "swap in use");
    if let Some(&used) = findings.value(id, title, &site.host.room.swap_used) {
        let found = bytes(used.min(i64::MAX as u64) as i64);
        if used < SWAP_THAT_MATTERS {
            return findings.fine(id, title, found);
        }
        let cost =
            "a page that comes back from disk costs milliseconds: bench sees rare slow rounds";
        let fix = site.advice("end programs that need much memory");
        findings.costs(id, title, found, cost, Some(fix));
    }
}
