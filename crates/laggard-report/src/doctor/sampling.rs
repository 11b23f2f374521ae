//! Sample triggers, permissions, sampling rates and symbols.

use super::fix::{Fix, Package, Site};
use super::{Check, Findings, Group, Verdict};
use crate::number::count;
use laggard_core::model::host::{Attempt, Sampling, Trigger};

/// Default sampling rate of `laggard record`.
const USUAL_HZ: u64 = 999;
/// First kernel version with `sigtrap` events.
const TRAPS_SINCE: (u32, u32) = (5, 13);

/// How a thread is interrupted for a sample, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Trap,
    Signal,
    Timer,
}

/// The best trigger that works and its maximum rate, in samples per second of CPU time.
pub(super) fn best(sampling: &Sampling) -> Option<(Way, u64)> {
    let bound = sampling.max_sample_rate.get().copied().unwrap_or(u64::MAX);
    let tick = sampling.tick.get().map_or(u64::MAX, |tick| tick.hz);
    let ways = [
        (Way::Trap, &sampling.sigtrap, bound),
        (Way::Signal, &sampling.signal, bound),
        (Way::Timer, &sampling.timer, tick),
    ];
    let (way, trigger, bound) = ways.into_iter().find(|(_, way, _)| way.attempt.works())?;
    Some((way, reached(trigger, bound)))
}

/// The requested or maximum rate if the measured rate is close to it; else the measured rate,
/// rounded down to two digits.
fn reached(trigger: &Trigger, bound: u64) -> u64 {
    let most = (trigger.asked_hz as u64).min(bound);
    if trigger.rate_hz >= 0.9 * most as f64 {
        return most;
    }
    let rate = trigger.rate_hz.max(1.0);
    let digit = 10_f64.powf(rate.log10().floor() - 1.0);
    ((rate / digit).floor() * digit) as u64
}

pub(super) fn checks(site: &Site) -> Vec<Check> {
    let mut findings = Findings::new(Group::Sampling);
    system(site, &mut findings);
    if site.is_linux() {
        way(site, &mut findings);
        paranoid(site, &mut findings);
        filter(site, &mut findings);
        rate(site, &mut findings);
        tick(site, &mut findings);
        kernel_names(site, &mut findings);
        ptrace(site, &mut findings);
    }
    libc(site, &mut findings);
    findings.checks
}

fn system(site: &Site, findings: &mut Findings) {
    let system = &site.host.system;
    let (id, title) = ("system", "system");
    let name = system.distribution.get().map_or("", |found| found.name.as_str());
    let name = if name.is_empty() { system.os.as_str() } else { name };
    let kernel =
        system.kernel.get().map_or_else(String::new, |kernel| format!(", kernel {kernel}"));
    let found = format!("{name}{kernel}, {}", system.arch);
    if !site.is_linux() {
        let cost = "record, calls and why require Linux; report, compare and view work";
        return findings.bad(id, title, Verdict::Blocks, found, cost, None);
    }
    if system.arch != "x86_64" {
        let cost = "record and calls support x86_64 only";
        return findings.bad(id, title, Verdict::Blocks, found, cost, None);
    }
    match system.kernel.get().and_then(|kernel| version(kernel)) {
        Some(version) if version < TRAPS_SINCE => {
            let fix = site.advice("use Linux 5.13 or later");
            let cost = "sigtrap events require Linux 5.13: record uses signals, with about twice the overhead";
            findings.costs(id, title, found, cost, Some(fix));
        }
        _ => findings.fine(id, title, found),
    }
}

/// Major and minor number of the first version in a text.
pub(super) fn version(text: &str) -> Option<(u32, u32)> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let mut parts = text[start..].split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn way(site: &Site, findings: &mut Findings) {
    let sampling = &site.host.sampling;
    let (id, title) = ("trigger", "sample trigger");
    let Some((way, most)) = best(sampling) else {
        let why = sampling.timer.attempt.why().unwrap_or_default();
        if matches!(sampling.timer.attempt, Attempt::Untried(_)) {
            return findings.unknown(id, title, why);
        }
        let cost = "record cannot interrupt threads to take samples";
        return findings.bad(id, title, Verdict::Blocks, format!("timers: {why}"), cost, None);
    };
    let measured = |trigger: &Trigger| {
        format!(
            "{} Hz measured, {} Hz requested",
            count(trigger.rate_hz.round() as u64),
            count(trigger.asked_hz as u64)
        )
    };
    let no_trap = sampling.sigtrap.attempt.why().unwrap_or_default();
    match way {
        Way::Trap if most < USUAL_HZ => {
            let cost = format!("record samples at {} Hz instead of {USUAL_HZ} Hz", count(most));
            findings.costs(
                id,
                title,
                format!("sigtrap events, {}", measured(&sampling.sigtrap)),
                cost,
                None,
            );
        }
        Way::Trap => {
            findings.fine(id, title, format!("sigtrap events, {}", measured(&sampling.sigtrap)))
        }
        Way::Signal => {
            let found =
                format!("signals, {}; sigtrap events: {no_trap}", measured(&sampling.signal));
            findings.costs(
                id,
                title,
                found,
                "record has about twice the overhead per sample",
                None,
            );
        }
        Way::Timer => {
            let tick = sampling.tick.get().map_or_else(String::new, |tick| {
                format!(" (kernel tick {} Hz, from {})", tick.hz, tick.source)
            });
            let found =
                format!("timers, {}{tick}; sigtrap events: {no_trap}", measured(&sampling.timer));
            let cost = format!(
                "record samples at {} Hz instead of {USUAL_HZ} Hz: record {} times as long",
                count(most),
                count(USUAL_HZ.div_ceil(most.max(1)))
            );
            findings.costs(id, title, found, cost, None);
        }
    }
}

fn paranoid(site: &Site, findings: &mut Findings) {
    let sampling = &site.host.sampling;
    let (id, title) = ("perf_event_paranoid", "perf_event_paranoid");
    let Some(&level) = findings.value(id, title, &sampling.paranoid) else { return };
    if sampling.kernel_event.works() {
        let found = match level {
            ..=1 => format!("{level}: user and kernel code can be sampled"),
            _ => format!("{level}, but this user is exempt"),
        };
        return findings.fine(id, title, found);
    }
    if level <= 2 && matches!(sampling.software_event, Attempt::Refused { .. }) {
        let found = format!("{level}; events are blocked for another reason");
        return findings.fine(id, title, found);
    }
    let fix = Some(site.sysctl("allow sampling of kernel code", "kernel.perf_event_paranoid=1"));
    if level <= 1 {
        let why = sampling.kernel_event.why().unwrap_or_default();
        let found = format!("{level}, but kernel events fail: {why}");
        return findings.costs(id, title, found, "record cannot sample kernel code", None);
    }
    if level == 2 || sampling.software_event.works() {
        let found = format!("{level}: only user code can be sampled");
        let cost = "record shows time in the kernel as one total, without functions";
        return findings.costs(id, title, found, cost, fix);
    }
    let found = format!("{level}: only root may open events");
    let cost = "record falls back to timers; hardware counters and perf do not work";
    let effect = "allow events, counters and kernel samples for all users";
    let fix = Some(site.sysctl(effect, "kernel.perf_event_paranoid=1"));
    findings.costs(id, title, found, cost, fix);
}

/// Container and seccomp filter, and whether they block perf events.
fn filter(site: &Site, findings: &mut Findings) {
    let system = &site.host.system;
    let (id, title) = ("container", "container, seccomp");
    let around = site.container().map_or_else(|| "no container".to_owned(), str::to_owned);
    let filter = match system.seccomp.get() {
        Some(0) => "no seccomp filter".to_owned(),
        Some(1) => "seccomp strict mode".to_owned(),
        Some(_) => "seccomp filter".to_owned(),
        None => "seccomp filter unknown".to_owned(),
    };
    let found = format!("{around}, {filter}");
    let event = &site.host.sampling.software_event;
    let allowed = site.host.sampling.paranoid.get().is_none_or(|&level| level <= 2);
    match event {
        Attempt::Works => findings.fine(id, title, format!("{found}; events are allowed")),
        // The perf_event_paranoid check already reports this with a fix.
        Attempt::Refused { .. } if !allowed && !site.may_use_events() => {
            findings.fine(id, title, found)
        }
        Attempt::Refused { why, .. } => {
            let cost = "perf_event_open is blocked: record falls back to timers; hardware counters and perf do not work";
            findings.costs(id, title, format!("{found}; events: {why}"), cost, unlock(site));
        }
        Attempt::Untried(why) => findings.unknown(id, title, why),
    }
}

fn unlock(site: &Site) -> Option<Fix> {
    let how = match site.container()? {
        "Docker" => {
            "start the container with docker run --cap-add PERFMON (before Docker 24: --security-opt seccomp=unconfined)"
        }
        "Podman" => "start the container with podman run --cap-add PERFMON",
        "Kubernetes" => {
            "add to the container in the pod: securityContext: {capabilities: {add: [PERFMON]}}"
        }
        _ => "allow perf_event_open in the container, or add CAP_PERFMON",
    };
    Some(site.advice(how))
}

fn rate(site: &Site, findings: &mut Findings) {
    let sampling = &site.host.sampling;
    let (id, title) = ("max_sample_rate", "sampling rate limit");
    let Some(&most) = findings.value(id, title, &sampling.max_sample_rate) else { return };
    let share = match sampling.cpu_time_max_percent.get() {
        Some(0 | 100) => ", never reduced".to_owned(),
        Some(percent) => format!(", reduced if sampling takes more than {percent} % of a CPU"),
        None => String::new(),
    };
    let found = format!("{} Hz{share}", count(most));
    if most >= USUAL_HZ {
        return findings.fine(id, title, found);
    }
    let cost = format!("record and perf sample at {} Hz instead of {USUAL_HZ} Hz", count(most));
    let fix = site.sysctl("restore the default rate", "kernel.perf_event_max_sample_rate=100000");
    findings.costs(id, title, found, cost, Some(fix));
}

fn tick(site: &Site, findings: &mut Findings) {
    let (id, title) = ("tick", "kernel tick");
    let Some(tick) = findings.value(id, title, &site.host.sampling.tick) else { return };
    let found = format!("{} Hz, from {}; limits timers, not events", tick.hz, tick.source);
    findings.fine(id, title, found);
}

fn kernel_names(site: &Site, findings: &mut Findings) {
    let sampling = &site.host.sampling;
    let (id, title) = ("kptr_restrict", "kptr_restrict");
    let Some(&level) = findings.value(id, title, &sampling.kptr_restrict) else { return };
    if !sampling.kernel_event.works() {
        return findings.fine(id, title, format!("{level}; not relevant without kernel samples"));
    }
    if level == 0 || (level == 1 && site.host.system.root) {
        return findings.fine(id, title, format!("{level}: kernel symbols are readable"));
    }
    let fix = site.sysctl("show kernel symbols", "kernel.kptr_restrict=0");
    let found = format!("{level}: kernel addresses are hidden");
    findings.costs(id, title, found, "perf cannot symbolize kernel functions", Some(fix));
}

fn ptrace(site: &Site, findings: &mut Findings) {
    let (id, title) = ("ptrace_scope", "ptrace_scope");
    let Some(scope) = findings.value(id, title, &site.host.sampling.ptrace_scope) else { return };
    let found = scope.map_or_else(|| "kernel without Yama".to_owned(), |scope| scope.to_string());
    findings.fine(
        id,
        title,
        format!(
            "{found}; affects only `laggard dump`, `calls --syscalls` and `calls --inside=uprobes`"
        ),
    );
}

fn libc(site: &Site, findings: &mut Findings) {
    let (id, title) = ("libc_symbols", "C library symbols");
    match findings.value(id, title, &site.host.sampling.libc_symbols) {
        None => {}
        Some(Some(place)) => findings.fine(id, title, place.clone()),
        Some(None) => {
            let cost = "report and flame show no names for internal functions of the C library (memcpy and malloc variants)";
            let fix = site.install("install symbols of the C library", &Package::LibcSymbols);
            findings.costs(id, title, "exported symbols only", cost, fix);
        }
    }
}
