//! How programs can be sampled here.

use super::fix::{Fix, Package, Site};
use super::{Check, Findings, Group, Verdict};
use crate::number::count;
use laggard_core::model::host::{Attempt, Sampling, Trigger};

/// What recording asks for when nothing else is said, a second.
const USUAL_HZ: u64 = 999;
/// The first kernel with traps by events.
const TRAPS_SINCE: (u32, u32) = (5, 13);

/// A way to interrupt a thread for a sample, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Trap,
    Signal,
    Timer,
}

/// The best way that works, and how many samples a second of CPU time it gives at most.
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

/// What could come at most where nearly all of it came; else what came, roughly.
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
        let cost = "record, calls and why need Linux; report, compare and view work on files";
        return findings.bad(id, title, Verdict::Blocks, found, cost, None);
    }
    if system.arch != "x86_64" {
        let cost = "record and calls are made for x86_64: no sampling and tracing here";
        return findings.bad(id, title, Verdict::Blocks, found, cost, None);
    }
    match system.kernel.get().and_then(|kernel| version(kernel)) {
        Some(version) if version < TRAPS_SINCE => {
            let fix = site.advice("use a kernel of 5.13 or later");
            let cost =
                "sampling by traps needs 5.13: record uses signals, which cost about twice as much";
            findings.costs(id, title, found, cost, Some(fix));
        }
        _ => findings.fine(id, title, found),
    }
}

/// Major and minor of a version somewhere in a text.
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
        let cost = "record has no way to interrupt a thread";
        return findings.bad(id, title, Verdict::Blocks, format!("timers: {why}"), cost, None);
    };
    let measured = |trigger: &Trigger| {
        format!(
            "{} a second measured where {} were asked for",
            count(trigger.rate_hz.round() as u64),
            count(trigger.asked_hz as u64)
        )
    };
    let no_trap = sampling.sigtrap.attempt.why().unwrap_or_default();
    match way {
        Way::Trap if most < USUAL_HZ => {
            let cost =
                format!("record gets {} samples a second instead of {USUAL_HZ}", count(most));
            findings.costs(
                id,
                title,
                format!("traps (sigtrap), {}", measured(&sampling.sigtrap)),
                cost,
                None,
            );
        }
        Way::Trap => {
            findings.fine(id, title, format!("traps (sigtrap), {}", measured(&sampling.sigtrap)))
        }
        Way::Signal => {
            let found = format!("signals, {}; traps: {no_trap}", measured(&sampling.signal));
            findings.costs(id, title, found, "a sample of record costs about twice as much", None);
        }
        Way::Timer => {
            let tick = sampling.tick.get().map_or_else(String::new, |tick| {
                format!(" (the kernel ticks {} times a second, says {})", tick.hz, tick.source)
            });
            let found = format!("timers, {}{tick}; traps: {no_trap}", measured(&sampling.timer));
            let cost = format!(
                "record gets {} samples a second instead of {USUAL_HZ}: record for {} times as long",
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
            _ => format!("{level}, which does not bind this user"),
        };
        return findings.fine(id, title, found);
    }
    if level <= 2 && matches!(sampling.software_event, Attempt::Refused { .. }) {
        let found = format!("{level}, but something else keeps events from this user");
        return findings.fine(id, title, found);
    }
    let fix = Some(site.sysctl("samples of kernel code too", "kernel.perf_event_paranoid=1"));
    if level <= 1 {
        let why = sampling.kernel_event.why().unwrap_or_default();
        let found = format!("{level}, but events of kernel code fail: {why}");
        return findings.costs(id, title, found, "record cannot sample kernel code", None);
    }
    if level == 2 || sampling.software_event.works() {
        let found = format!("{level}: only user code can be sampled");
        let cost = "record shows time in the kernel as one share, without its functions";
        return findings.costs(id, title, found, cost, fix);
    }
    let found = format!("{level}: events are for root only");
    let cost = "record falls back to timers; no counters, and no perf for this user";
    let effect = "traps, counters and kernel code for all users";
    let fix = Some(site.sysctl(effect, "kernel.perf_event_paranoid=1"));
    findings.costs(id, title, found, cost, fix);
}

/// Filters of system calls, and whether one stops events.
fn filter(site: &Site, findings: &mut Findings) {
    let system = &site.host.system;
    let (id, title) = ("container", "container, seccomp");
    let around = site.container().map_or_else(|| "no container".to_owned(), str::to_owned);
    let filter = match system.seccomp.get() {
        Some(0) => "no filter of system calls".to_owned(),
        Some(1) => "strict filter of system calls".to_owned(),
        Some(_) => "a filter of system calls".to_owned(),
        None => "filter of system calls not known".to_owned(),
    };
    let found = format!("{around}, {filter}");
    let event = &site.host.sampling.software_event;
    let allowed = site.host.sampling.paranoid.get().is_none_or(|&level| level <= 2);
    match event {
        Attempt::Works => findings.fine(id, title, format!("{found}; events can be opened")),
        // Already said, with what to do.
        Attempt::Refused { .. } if !allowed && !site.may_use_events() => {
            findings.fine(id, title, found)
        }
        Attempt::Refused { why, .. } => {
            let cost =
                "perf_event_open is blocked: record falls back to timers; no counters, no perf";
            findings.costs(id, title, format!("{found}; events: {why}"), cost, unlock(site));
        }
        Attempt::Untried(why) => findings.unknown(id, title, why),
    }
}

fn unlock(site: &Site) -> Option<Fix> {
    let how = match site.container()? {
        "Docker" => {
            "start the container with: docker run --cap-add PERFMON (before Docker 24: --security-opt seccomp=unconfined)"
        }
        "Podman" => "start the container with: podman run --cap-add PERFMON",
        "Kubernetes" => "in the pod's container: securityContext: {capabilities: {add: [PERFMON]}}",
        _ => "let the container call perf_event_open, or give it CAP_PERFMON",
    };
    Some(site.advice(how))
}

fn rate(site: &Site, findings: &mut Findings) {
    let sampling = &site.host.sampling;
    let (id, title) = ("max_sample_rate", "sample rate limit");
    let Some(&most) = findings.value(id, title, &sampling.max_sample_rate) else { return };
    let share = match sampling.cpu_time_max_percent.get() {
        Some(0 | 100) => ", never lowered".to_owned(),
        Some(percent) => format!(", lowered when sampling takes over {percent} % of a CPU"),
        None => String::new(),
    };
    let found = format!("{} a second{share}", count(most));
    if most >= USUAL_HZ {
        return findings.fine(id, title, found);
    }
    let cost =
        format!("record and perf get {} samples a second instead of {USUAL_HZ}", count(most));
    let fix = site.sysctl("the usual rate", "kernel.perf_event_max_sample_rate=100000");
    findings.costs(id, title, found, cost, Some(fix));
}

fn tick(site: &Site, findings: &mut Findings) {
    let (id, title) = ("tick", "kernel tick");
    let Some(tick) = findings.value(id, title, &site.host.sampling.tick) else { return };
    let found = format!("{} a second by {}; bounds timers, not traps", tick.hz, tick.source);
    findings.fine(id, title, found);
}

fn kernel_names(site: &Site, findings: &mut Findings) {
    let sampling = &site.host.sampling;
    let (id, title) = ("kptr_restrict", "kptr_restrict");
    let Some(&level) = findings.value(id, title, &sampling.kptr_restrict) else { return };
    if !sampling.kernel_event.works() {
        return findings.fine(
            id,
            title,
            format!("{level}; of no matter while kernel code is not sampled"),
        );
    }
    if level == 0 || (level == 1 && site.host.system.root) {
        return findings.fine(id, title, format!("{level}: kernel functions have names"));
    }
    let fix = site.sysctl("names of kernel functions", "kernel.kptr_restrict=0");
    let found = format!("{level}: addresses in the kernel are hidden");
    findings.costs(
        id,
        title,
        found,
        "kernel functions have no names in reports of perf",
        Some(fix),
    );
}

fn ptrace(site: &Site, findings: &mut Findings) {
    let (id, title) = ("ptrace_scope", "ptrace_scope");
    let Some(scope) = findings.value(id, title, &site.host.sampling.ptrace_scope) else { return };
    let found =
        scope.map_or_else(|| "the kernel has no Yama".to_owned(), |scope| scope.to_string());
    findings.fine(id, title, format!("{found}; laggard needs no ptrace"));
}

fn libc(site: &Site, findings: &mut Findings) {
    let (id, title) = ("libc_symbols", "C library symbols");
    match findings.value(id, title, &site.host.sampling.libc_symbols) {
        None => {}
        Some(Some(place)) => findings.fine(id, title, place.clone()),
        Some(None) => {
            let cost = "inner functions of the C library (memcpy and malloc's variants) have no names in report and flame";
            let fix = site.install("names inside the C library", &Package::LibcSymbols);
            findings.costs(id, title, "exported names only", cost, fix);
        }
    }
}
