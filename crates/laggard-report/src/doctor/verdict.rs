//! The one-line summary.

use super::fix::Site;
use super::sampling::{Way, best};
use super::{Check, Group, Verdict};
use crate::number::count;
use laggard_core::model::host::Attempt;

pub(super) fn line(site: &Site, checks: &[Check]) -> String {
    let who = if site.host.system.root { "as root" } else { "without root" };
    let mut parts = vec![];
    let blocked = checks.iter().filter(|check| check.verdict == Verdict::Blocks);
    let blocked: Vec<&str> = blocked.map(|check| check.title.as_str()).collect();
    parts.push(match best(&site.host.sampling) {
        _ if !site.is_linux() => {
            "laggard record and calls require Linux; reading and comparing files works".to_owned()
        }
        Some((_, rate)) if !blocked.is_empty() => format!(
            "laggard record does not work until these are fixed: {} (then at up to {} Hz)",
            blocked.join(", "),
            count(rate)
        ),
        Some((Way::Timer, rate)) => {
            format!("laggard record works {who}, but only with timers, at up to {} Hz", count(rate))
        }
        Some((_, rate)) => format!("laggard record works at up to {} Hz {who}", count(rate)),
        None if matches!(site.host.sampling.timer.attempt, Attempt::Untried(_)) => {
            "laggard record could not be tested".to_owned()
        }
        None => "laggard record does not work: no sample trigger is available".to_owned(),
    });
    if site.is_linux() {
        let counters = &site.host.counters;
        let tried = !matches!(counters.cycles, Attempt::Untried(_));
        parts.push(match (counters.cycles.works(), counters.instructions.works()) {
            (true, true) => "hardware counters work".to_owned(),
            (false, _) if !tried => "hardware counters could not be tested".to_owned(),
            (false, false) => "hardware counters are not available".to_owned(),
            _ => "some hardware counters are not available".to_owned(),
        });
    }
    let noisy = |check: &&Check| check.group == Group::Noise && check.verdict <= Verdict::Costs;
    let noisy = checks.iter().filter(noisy).count() as u64;
    parts.push(match noisy {
        0 if site.is_linux() => "no sources of noise found".to_owned(),
        0 => return parts.join("; "),
        1 => "1 source of noise found".to_owned(),
        n => format!("{} sources of noise found", count(n)),
    });
    parts.join("; ")
}
