//! The diagnosis as JSON.

use super::fix::Site;
use super::sampling::{Way, best};
use super::{Diagnosis, Verdict};
use crate::shape::pretty;
use laggard_core::model::host::Host;
use serde::Serialize;

#[derive(Serialize)]
struct Shape<'a> {
    schema: &'static str,
    /// One-line summary.
    verdict: &'a str,
    /// `blocks`, `costs` or `fine`.
    worst: &'static str,
    counts: Counts,
    sampling: Sampling,
    checks: Vec<Check<'a>>,
}

#[derive(Serialize)]
struct Counts {
    blocks: u64,
    costs: u64,
    unknown: u64,
    fine: u64,
}

#[derive(Serialize)]
struct Sampling {
    /// `sigtrap`, `signal` or `timer`; null if none works.
    trigger: Option<&'static str>,
    /// Maximum samples per second of CPU time.
    max_hz: Option<u64>,
    /// Whether kernel code can be sampled.
    kernel: bool,
    /// Whether cycles and instructions can be counted.
    hardware_counters: bool,
    root: bool,
}

#[derive(Serialize)]
struct Check<'a> {
    id: &'static str,
    group: String,
    title: &'a str,
    verdict: &'static str,
    found: &'a str,
    /// Null if there is no consequence.
    cost: Option<&'a str>,
    fix: Option<Fix<'a>>,
}

#[derive(Serialize)]
struct Fix<'a> {
    effect: &'a str,
    commands: &'a [String],
    /// The setting to put into a sysctl.d file.
    sysctl: Option<&'a str>,
    package: Option<&'a str>,
    /// Whether to run the commands outside the container.
    outside: bool,
}

/// JSON of the schema `laggard.doctor/1`.
pub fn json(host: &Host, diagnosis: &Diagnosis) -> String {
    let site = Site::of(host);
    let way = best(&host.sampling).filter(|_| site.is_linux());
    pretty(&Shape {
        schema: "laggard.doctor/1",
        verdict: &diagnosis.verdict,
        worst: diagnosis.worst().word(),
        counts: Counts {
            blocks: diagnosis.count(Verdict::Blocks),
            costs: diagnosis.count(Verdict::Costs),
            unknown: diagnosis.count(Verdict::Unknown),
            fine: diagnosis.count(Verdict::Fine),
        },
        sampling: Sampling {
            trigger: way.map(|(way, _)| match way {
                Way::Trap => "sigtrap",
                Way::Signal => "signal",
                Way::Timer => "timer",
            }),
            max_hz: way.map(|(_, most)| most),
            kernel: host.sampling.kernel_event.works(),
            hardware_counters: host.counters.cycles.works() && host.counters.instructions.works(),
            root: host.system.root,
        },
        checks: diagnosis.checks.iter().map(shape).collect(),
    })
}

fn shape(check: &super::Check) -> Check<'_> {
    Check {
        id: check.id,
        group: check.group.key().to_owned(),
        title: &check.title,
        verdict: check.verdict.word(),
        found: &check.found,
        cost: Some(check.cost.as_str()).filter(|cost| !cost.is_empty()),
        fix: check.fix.as_ref().map(|fix| Fix {
            effect: &fix.effect,
            commands: &fix.commands,
            sysctl: fix.sysctl.as_deref(),
            package: fix.package.as_deref(),
            outside: fix.outside,
        }),
    }
}
