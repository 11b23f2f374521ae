//! CPU usage of other processes, observed over a short time.

use super::root::Root;
use laggard_core::model::host::{Busy, Known, Watched};
use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

const WHILE: Duration = Duration::from_millis(200);
/// Maximum number of processes that are listed.
const NAMED: usize = 3;
/// Ticks per second in the times that the kernel exports, on all supported systems.
const USER_HZ: f64 = 100.0;

/// Observes the machine for a fifth of a second.
pub(super) fn watch(root: &Root) -> Known<Watched> {
    if !root.is_real() {
        return Known::default();
    }
    let start = Instant::now();
    let before = Moment::now(root);
    thread::sleep(WHILE);
    let after = Moment::now(root);
    between(&before, &after, start.elapsed())
}

/// Counts since boot.
#[derive(Default)]
struct Moment {
    /// Content of `/proc/stat`.
    stat: Known<String>,
    /// Name and ticks of every process except this one.
    processes: HashMap<u32, (String, u64)>,
}

impl Moment {
    fn now(root: &Root) -> Moment {
        let own = std::process::id();
        let pids = root.names("/proc");
        let pids = pids.get().into_iter().flatten().filter_map(|name| name.parse::<u32>().ok());
        let processes = pids
            .filter(|&pid| pid != own)
            .filter_map(|pid| {
                let stat = root.text(&format!("/proc/{pid}/stat"));
                Some((pid, process(stat.get()?)?))
            })
            .collect();
        Moment { stat: root.text("/proc/stat"), processes }
    }
}

/// Name and ticks of a process. The name may contain spaces and parentheses.
fn process(stat: &str) -> Option<(String, u64)> {
    let (head, tail) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut fields = tail.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((name.to_owned(), user.checked_add(system)?))
}

/// Ticks of one CPU: busy, idle, stolen.
fn ticks(line: &str) -> Option<[u64; 3]> {
    let all: Vec<u64> = line.split_whitespace().skip(1).flat_map(str::parse).collect();
    let at = |i: usize| all.get(i).copied().unwrap_or(0);
    (all.len() >= 4).then(|| [at(0) + at(1) + at(2) + at(5) + at(6), at(3) + at(4), at(7)])
}

fn between(before: &Moment, after: &Moment, time: Duration) -> Known<Watched> {
    let (first, second) = match (&before.stat, &after.stat) {
        (Known::Is(first), Known::Is(second)) => (first, second),
        (Known::Unknown(why), _) | (_, Known::Unknown(why)) => return Known::Unknown(why.clone()),
    };
    let find = |text: &str, name: &str| {
        text.lines().find(|line| line.split(' ').next() == Some(name)).and_then(ticks)
    };
    let shares = |name: &str| {
        let (a, b) = (find(first, name)?, find(second, name)?);
        let spent: [f64; 3] = std::array::from_fn(|i| b[i].saturating_sub(a[i]) as f64);
        let all: f64 = spent.iter().sum();
        (all > 0.0).then(|| spent.map(|ticks| ticks / all))
    };
    let Some([busy, _, stolen]) = shares("cpu") else {
        return Known::unknown("the counters of /proc/stat did not advance");
    };
    let names = second.lines().filter_map(|line| line.split(' ').next());
    let each = names.filter(|name| name.len() > 3 && name.starts_with("cpu")).filter_map(shares);
    let busiest = each.map(|[busy, ..]| busy).fold(0.0, f64::max);
    let mut processes: Vec<Busy> = after
        .processes
        .iter()
        .filter_map(|(&pid, (name, ticks))| {
            let spent = ticks.checked_sub(before.processes.get(&pid)?.1)?;
            let cpus = spent as f64 / USER_HZ / time.as_secs_f64();
            (spent > 0).then(|| Busy { pid, name: name.clone(), cpus })
        })
        .collect();
    processes.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then(a.pid.cmp(&b.pid)));
    processes.truncate(NAMED);
    Known::Is(Watched { for_ns: time.as_nanos() as u64, busiest, busy, stolen, processes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_refer_to_the_observed_interval() {
        let moment = |stat: &str, ticks: u64| Moment {
            stat: Known::Is(stat.to_owned()),
            processes: HashMap::from([(7, ("cc1".to_owned(), ticks)), (8, ("idle".into(), 5))]),
        };
        let before = moment("cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 50 0 0 50 0\ncpu1 50 0 0 50 0", 10);
        let after = moment("cpu  120 0 0 115 0 0 0 5 0 0\ncpu0 70 0 0 50 0\ncpu1 50 0 0 70 0", 30);
        let Known::Is(watched) = between(&before, &after, WHILE) else { panic!("not known") };
        assert_eq!((watched.busy, watched.busiest, watched.stolen), (0.5, 1.0, 0.125));
        assert_eq!(watched.processes, [Busy { pid: 7, name: "cc1".into(), cpus: 1.0 }]);
        assert!(between(&before, &before, WHILE).why().is_some());
        assert!(between(&Moment::default(), &after, WHILE).why().is_some());
    }

    #[test]
    fn process_names_may_contain_any_characters() {
        let tail = "S 1 1 1 0 -1 4194560 1 2 3 4 11 22 0 0 20";
        assert_eq!(process(&format!("5 (a) b (c) {tail}")), Some(("a) b (c".into(), 33)));
        for bad in ["", "5 (x", "5 (x) S 1", "5 (x) S 1 1 1 0 -1 4 1 2 3 4 a b", ") ("] {
            assert_eq!(process(bad), None, "{bad:?}");
        }
    }
}
