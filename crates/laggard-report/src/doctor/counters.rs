//! Hardware counters, perf and valgrind.

use super::fix::{Package, Site};
use super::sampling::version;
use super::{Check, Findings, Group};
use crate::number::{bytes, count};
use laggard_core::model::host::{Attempt, Known, Pmu, Tool};

/// The kernel's default for `perf_event_mlock_kb`.
const USUAL_MLOCK_KB: u64 = 516;

pub(super) fn checks(site: &Site) -> Vec<Check> {
    let mut findings = Findings::new(Group::Counters);
    if site.is_linux() {
        hardware(site, &mut findings);
        branches(site, &mut findings);
        locked(site, &mut findings);
        perf(site, &mut findings);
    }
    valgrind(site, &mut findings);
    findings.checks
}

fn hardware(site: &Site, findings: &mut Findings) {
    let counters = &site.host.counters;
    let (id, title) = ("hardware_counters", "hardware counters");
    let pmus = counters.pmus.get().map_or(&[][..], Vec::as_slice);
    let name = |pmu: &Pmu| {
        let cores =
            if pmu.cpus.is_empty() { String::new() } else { format!(" (cores {})", pmu.cpus) };
        // A reason common to all units is printed only once, for the whole check.
        let fails = pmu.cycles.why().filter(|_| pmu.cycles != counters.cycles);
        let fails = fails.map_or_else(String::new, |why| format!(": {why}"));
        format!("{}{cores}{fails}", pmu.name)
    };
    let units: Vec<String> = pmus.iter().map(name).collect();
    let units =
        if units.is_empty() { String::new() } else { format!("; units: {}", units.join(", ")) };
    match (&counters.cycles, &counters.instructions) {
        (Attempt::Works, Attempt::Works) if pmus.len() > 1 => {
            let cost = "hybrid CPU: counts depend on the type of core that a thread runs on; pin both sides to one type";
            let first = pmus.iter().find(|pmu| !pmu.cpus.is_empty() && pmu.name != "cpu_atom");
            let fix = first.map(|pmu| {
                site.advice(&format!(
                    "use one type of core: start laggard with taskset -c {}",
                    pmu.cpus
                ))
            });
            findings.costs(id, title, format!("cycles and instructions{units}"), cost, fix);
        }
        (Attempt::Works, Attempt::Works) => {
            findings.fine(id, title, format!("cycles and instructions{units}"));
        }
        (Attempt::Untried(why), _) => findings.unknown(id, title, why),
        (cycles, instructions) => {
            let fail = |name: &str, attempt: &Attempt| Some(format!("{name}: {}", attempt.why()?));
            let fails = [fail("cycles", cycles), fail("instructions", instructions)];
            let found = if cycles == instructions {
                format!("not available: {}{units}", cycles.why().unwrap_or_default())
            } else {
                fails.into_iter().flatten().collect::<Vec<_>>().join(", ") + &units
            };
            let cost = "why infers cache and branch misses instead of counting them; instruction counts require callgrind, which is slow";
            let absent = matches!(cycles, Attempt::Refused { errno: 2 | 19 | 95, .. });
            let fix = match site.host.system.hypervisor.get() {
                Some(Some(_)) if absent => Some(site.advice("use a virtual machine with a PMU (QEMU: -cpu host,pmu=on) or a bare-metal instance")),
                _ => None,
            };
            findings.costs(id, title, found, cost, fix);
        }
    }
}

fn branches(site: &Site, findings: &mut Findings) {
    let (id, title) = ("branch_records", "branch records (LBR)");
    match &site.host.counters.branch_stack {
        Attempt::Works => findings.fine(id, title, "available"),
        Attempt::Untried(why) => findings.unknown(id, title, why),
        Attempt::Refused { why, .. } => {
            findings.fine(id, title, format!("not available: {why}; laggard does not need them"));
        }
    }
}

fn locked(site: &Site, findings: &mut Findings) {
    let counters = &site.host.counters;
    let (id, title) = ("locked_memory", "perf buffer memory");
    let Some(&kb) = findings.value(id, title, &counters.mlock_kb) else { return };
    let limit = match counters.memlock.get() {
        Some(Some(limit)) => {
            format!(", {} locked memory limit", bytes((*limit).min(i64::MAX as u64) as i64))
        }
        Some(None) => ", no locked memory limit".to_owned(),
        None => String::new(),
    };
    let found = format!("{} KiB per CPU{limit}", count(kb));
    if kb >= USUAL_MLOCK_KB || site.may_use_events() || counters.memlock == Known::Is(None) {
        return findings.fine(id, title, found);
    }
    let fix = site.sysctl("restore the default buffer size", "kernel.perf_event_mlock_kb=516");
    findings.costs(id, title, found, "perf record loses samples or does not start", Some(fix));
}

fn perf(site: &Site, findings: &mut Findings) {
    let (id, title) = ("perf", "perf");
    let cost = "record cannot use its perf backend (kernel stacks, hardware events, attaching)";
    let fix = || site.install("install perf", &Package::Perf);
    let Some(tool) = findings.value(id, title, &site.host.tools.perf) else { return };
    let Some(tool) = tool else { return findings.costs(id, title, "not in PATH", cost, fix()) };
    let said = match &tool.version {
        Known::Is(said) => said,
        Known::Unknown(why) => {
            return findings.costs(id, title, format!("{}: {why}", tool.path), cost, fix());
        }
    };
    let kernel = site.host.system.kernel.get().and_then(|kernel| version(kernel));
    let note = match (version(said), kernel) {
        (Some(perf), Some(kernel)) if perf == kernel => ", same version as the kernel",
        (Some(perf), Some(kernel)) if perf < kernel => {
            ", older than the kernel: works, without newer features"
        }
        (Some(_), Some(_)) => ", newer than the kernel: works",
        _ => "",
    };
    findings.fine(id, title, format!("{said}{note}"));
}

fn valgrind(site: &Site, findings: &mut Findings) {
    let (id, title) = ("valgrind", "valgrind");
    let cost = "exact call counts inside libraries (callgrind backend) do not work";
    let fix = || site.install("install valgrind", &Package::Valgrind);
    match findings.value(id, title, &site.host.tools.valgrind) {
        None => {}
        Some(Some(Tool { version: Known::Is(said), .. })) => findings.fine(id, title, said.clone()),
        Some(Some(Tool { path, version: Known::Unknown(why) })) => {
            findings.costs(id, title, format!("{path}: {why}"), cost, fix());
        }
        Some(None) => findings.costs(id, title, "not in PATH", cost, fix()),
    }
}
