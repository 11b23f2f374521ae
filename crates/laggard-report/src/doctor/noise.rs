//! Settings and load that make timings vary between runs.

use super::fix::Site;
use super::{Check, Findings, Group};
use crate::number::{bytes, count, duration, percent, plural, significant};
use laggard_core::model::host::{Busy, Known, Watched};

/// CPU utilization while laggard sleeps that counts as load from other processes.
const BUSY: f64 = 0.10;
/// One-minute load average per CPU that counts as load from other processes.
const LOADED: f64 = 0.5;
/// Minimum CPU use of another process to be listed, in CPUs.
const BURNING: f64 = 0.05;
/// Minimum share of steal time that affects timings.
const STOLEN: f64 = 0.01;
const HOT_C: f64 = 85.0;
/// Less swap in use than this is assumed to be pages that are rarely needed.
const SWAP_THAT_MATTERS: u64 = 256 << 20;
/// Clock sources that programs read without a system call.
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
    let (id, title) = ("cpu", "CPU");
    let Some(model) = findings.value(id, title, &cpu.model) else { return };
    let mut parts = vec![model.clone()];
    if let Some(&cores) = cpu.cores.get() {
        parts.push(plural(cores, "core"));
    }
    if let Some(&threads) = cpu.threads.get() {
        parts.push(plural(threads, "thread"));
        if let Some(&allowed) = cpu.allowed.get().filter(|&&allowed| allowed < threads) {
            parts.push(format!("{} available to this process", count(allowed)));
        }
    }
    match cpu.smt.get() {
        Some(true) => parts.push("SMT on: two threads share a core".into()),
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
    let (id, title) = ("load", "other processes");
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
        "CPUs {} % busy, busiest {} %, over {}{load}{}",
        percent(*all),
        percent(*busiest),
        duration((*for_ns).min(i64::MAX as u64) as i64),
        if busy.is_empty() { String::new() } else { format!("; {}", busy.join(", ")) }
    );
    if *busiest < BUSY && busy.is_empty() {
        let threads = site.host.cpu.threads.get().copied().unwrap_or(1).max(1) as f64;
        let was_busy = noise.load.get().is_some_and(|load| load / threads > LOADED);
        let earlier = if was_busy { "; busy during the last minute" } else { "" };
        return findings.fine(id, title, found + earlier);
    }
    let cost = "bench and why measure more spread: confidence intervals are wider, small lags go undetected";
    let fix = site.advice("wait for these processes to finish, or stop them");
    findings.costs(id, title, found, cost, Some(fix));
}

fn neighbours(site: &Site, findings: &mut Findings) {
    let (id, title) = ("steal", "steal time");
    let Some(watched) = site.host.noise.watched.get() else { return };
    let found = format!("{} % of CPU time went to other virtual machines", percent(watched.stolen));
    if watched.stolen < STOLEN {
        return findings.fine(id, title, found);
    }
    let cost = "bench timings include time in which the hypervisor ran other machines: interleave the sides and repeat";
    let fix = site.advice("use a machine with dedicated CPUs");
    findings.costs(id, title, found, cost, Some(fix));
}

fn machine(site: &Site, findings: &mut Findings) {
    let (id, title) = ("hypervisor", "hypervisor");
    match findings.value(id, title, &site.host.system.hypervisor) {
        None => {}
        Some(None) => findings.fine(id, title, "none"),
        Some(Some(name)) => {
            findings.fine(id, title, format!("{name}; see steal time for its effect"));
        }
    }
}

fn quota(site: &Site, findings: &mut Findings) {
    let (id, title) = ("cpu_quota", "CPU quota");
    let Some(quota) = findings.value(id, title, &site.host.noise.quota) else { return };
    let Some(quota) = quota else { return findings.fine(id, title, "none") };
    let cpus = quota.quota_us as f64 / quota.period_us.max(1) as f64;
    let throttled = match &quota.throttled {
        Known::Is(n) => format!(", throttled in {} so far", plural(*n, "period")),
        Known::Unknown(_) => String::new(),
    };
    let period = duration((quota.period_us.min(i64::MAX as u64 / 1000) * 1000) as i64);
    let found = format!("{} CPUs per period of {period}{throttled}", significant(cpus));
    let cost = "the kernel stops a program that has used its quota until the next period: bench measures pauses in parallel code";
    let how = match site.container() {
        Some("Docker" | "Podman") => "start the container with --cpuset-cpus instead of --cpus",
        Some("Kubernetes") => {
            "remove the CPU limit of the pod, or use whole CPUs with the static CPU manager policy"
        }
        _ => "remove the limit (cpu.max) of this cgroup",
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
                ", now {} of {} GHz",
                significant(now as f64 / 1e6),
                significant(most as f64 / 1e6)
            )
        }
        _ => String::new(),
    };
    let by = if driver.is_empty() { String::new() } else { format!(" ({driver})") };
    let found = format!("{}{by}{now}", governors.join(", "));
    if governors.iter().all(|governor| governor == "performance") {
        return findings.fine(id, title, found);
    }
    let cost = "CPU frequency rises only under load: bench needs longer warm-up, and short cases have more spread";
    let files = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    findings.costs(
        id,
        title,
        found,
        cost,
        Some(site.write("keep the CPU frequency constant", "performance", files)),
    );
}

fn turbo(site: &Site, findings: &mut Findings) {
    let cpu = &site.host.cpu;
    let (id, title) = ("turbo", "turbo");
    match findings.value(id, title, &cpu.turbo) {
        None => {}
        Some(false) => findings.fine(id, title, "off"),
        Some(true) => {
            let cost = "CPU frequency depends on temperature and on the number of busy cores: bench results drift, and single-threaded code gains more than parallel code";
            let fix = cpu.turbo_off.as_ref();
            let fix = fix.map(|(path, value)| site.write("turn turbo off", value, path));
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
        0 => "no thermal throttling since boot".to_owned(),
        n => format!("thermal throttling {} since boot", plural(n, "time")),
    });
    let found = degrees.into_iter().chain(slowed).collect::<Vec<_>>().join(", ");
    let is_hot = noise.temperature.get().is_some_and(|&degrees| degrees >= HOT_C);
    if !is_hot && throttled.unwrap_or(0) == 0 {
        return findings.fine(id, title, found);
    }
    let cost = "hot cores are throttled: long bench runs get slower towards the end";
    findings.costs(id, title, found, cost, Some(site.advice("improve cooling or turn turbo off")));
}

fn clock(site: &Site, findings: &mut Findings) {
    let noise = &site.host.noise;
    let (id, title) = ("clocksource", "clock source");
    let Some(source) = findings.value(id, title, &noise.clocksource) else { return };
    if FAST_CLOCKS.contains(&source.as_str()) {
        return findings.fine(id, title, format!("{source}, readable without a system call"));
    }
    let cost = "reading the clock requires a system call: bench needs larger batches, and calls measures less precisely";
    let has_tsc = noise.clocksources.get().is_some_and(|all| all.iter().any(|name| name == "tsc"));
    let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let fix = has_tsc.then(|| site.write("use the TSC", "tsc", file));
    findings.costs(id, title, source.clone(), cost, fix);
}

/// Address space layout, page size and page migration.
fn memory(site: &Site, findings: &mut Findings) {
    let noise = &site.host.noise;
    if let Some(&level) = findings.value("aslr", "ASLR", &noise.aslr) {
        let found = match level {
            0 => "off: every run has the same memory layout, which may favor one side",
            _ => "on; bench and why turn it off for the sides, if the system permits it",
        };
        findings.fine("aslr", "ASLR", found);
    }
    if let Some(when) = findings.value("huge_pages", "huge pages", &noise.huge_pages) {
        findings.fine("huge_pages", "huge pages", when.clone());
    }
    let (id, title) = ("numa_balancing", "NUMA balancing");
    let nodes = noise.numa_nodes.get().copied().unwrap_or(1);
    match (noise.numa_balancing.get(), nodes) {
        (_, 0 | 1) => findings.fine(id, title, "one NUMA node"),
        (Some(0), nodes) => findings.fine(id, title, format!("off, {nodes} NUMA nodes")),
        (None, nodes) => findings.unknown(id, title, &format!("{nodes} NUMA nodes")),
        (Some(_), nodes) => {
            let cost = "the kernel migrates pages between nodes while code runs: bench measures occasional slow rounds";
            let fix = site.sysctl("disable page migration", "kernel.numa_balancing=0");
            findings.costs(id, title, format!("on, {nodes} NUMA nodes"), cost, Some(fix));
        }
    }
    let (id, title) = ("swap", "swap in use");
    if let Some(&used) = findings.value(id, title, &site.host.room.swap_used) {
        let found = bytes(used.min(i64::MAX as u64) as i64);
        if used < SWAP_THAT_MATTERS {
            return findings.fine(id, title, found);
        }
        let cost = "reading a page back from disk takes milliseconds: bench measures occasional slow rounds";
        let fix = site.advice("stop programs that use much memory");
        findings.costs(id, title, found, cost, Some(fix));
    }
}
