//! The most important in one line.

use super::fix::Site;
use super::sampling::{Way, best};
use super::{Check, Group, Verdict};
use crate::number::{count, plural};
use laggard_core::model::host::Attempt;

pub(super) fn line(site: &Site, checks: &[Check]) -> String {
    let who = if site.host.system.root { "as root" } else { "without root" };
    let mut parts = vec![];
    let blocked = checks.iter().filter(|check| check.verdict == Verdict::Blocks);
    let blocked: Vec<&str> = blocked.map(|check| check.title.as_str()).collect();
    parts.push(match best(&site.host.sampling) {
        _ if !site.is_linux() => {
            "laggard record and calls need Linux; files can be read and compared here".to_owned()
        }
        Some((_, rate)) if !blocked.is_empty() => format!(
            "laggard record does not work here before this is fixed: {} (then at up to {} Hz)",
            blocked.join(", "),
            count(rate)
        ),
        Some((Way::Timer, rate)) => {
            format!(
                "laggard record works here {who}, but by timers at no more than {} Hz",
                count(rate)
            )
        }
        Some((_, rate)) => format!("laggard record works here at up to {} Hz {who}", count(rate)),
        None if matches!(site.host.sampling.timer.attempt, Attempt::Untried(_)) => {
            "whether laggard record works here is not known".to_owned()
        }
        None => "laggard record does not work here: nothing interrupts a thread".to_owned(),
    });
    if site.is_linux() {
        let counters = &site.host.counters;
        let tried = !matches!(counters.cycles, Attempt::Untried(_));
        parts.push(match (counters.cycles.works(), counters.instructions.works()) {
            (true, true) => "hardware counters work".to_owned(),
            (false, _) if !tried => "hardware counters are not known".to_owned(),
            (false, false) => "hardware counters are missing".to_owned(),
            _ => "some hardware counters are missing".to_owned(),
        });
    }
    let noisy = |check: &&Check| check.group == Group::Noise && check.verdict <= Verdict::Costs;
    let noisy = checks.iter().filter(noisy).count() as u64;
    parts.push(match noisy {
        0 if site.is_linux() => "nothing found that makes timings noisy".to_owned(),
        0 => return parts.join("; "),
        1 => "1 thing makes timings noisy".to_owned(),
        n => format!("{} make timings noisy", plural(n, "thing")),
    });
    parts.join("; ")
}
