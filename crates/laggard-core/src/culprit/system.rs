//! The `system-calls` judge.

use super::seen::Called;
use super::{Finding, Kind, Pair, Part, Slice, Unit, Verdict};
use std::collections::BTreeMap;

/// Functions of libc that enter the kernel each time.
const NAMES: [&str; 45] = [
    "read",
    "write",
    "pread",
    "pwrite",
    "readv",
    "writev",
    "open",
    "openat",
    "close",
    "lseek",
    "stat",
    "lstat",
    "fstat",
    "fstatat",
    "statx",
    "access",
    "fsync",
    "fdatasync",
    "ftruncate",
    "rename",
    "unlink",
    "mkdir",
    "rmdir",
    "getdents",
    "readdir",
    "readlink",
    "ioctl",
    "fcntl",
    "mmap",
    "munmap",
    "mremap",
    "madvise",
    "mprotect",
    "brk",
    "sbrk",
    "send",
    "recv",
    "sendto",
    "recvfrom",
    "poll",
    "select",
    "epoll_wait",
    "getrandom",
    "fork",
    "kill",
];

/// B makes more system calls than A.
pub(super) fn judge_system_calls(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    /// Minimum number of additional calls.
    const MANY: f64 = 10.0;
    /// Bounds of the time of a call in the kernel.
    const CHEAPEST_NS: f64 = 50.0;
    const DEAREST_NS: f64 = 100_000.0;
    if slice.part != Part::Kernel {
        return Verdict::Innocent;
    }
    let (Some(of_a), Some(of_b)) = (&pair.a.calls, &pair.b.calls) else {
        return Verdict::Innocent;
    };
    let sum =
        |calls: &[Called]| calls.iter().filter(is_system_call).map(|call| call.count).sum::<f64>();
    let counts = [sum(of_a), sum(of_b)];
    let more = counts[1] - counts[0];
    let each = slice.gap_ns() / more.max(1.0);
    // If calls that map memory are expensive, page faults are the more specific cause.
    let faults = pair.b.faults - pair.a.faults;
    if more < MANY || !(CHEAPEST_NS..DEAREST_NS).contains(&each) || faults > more {
        return Verdict::Innocent;
    }
    let mut counts_by_name: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for (side, calls) in [of_a, of_b].into_iter().enumerate() {
        for call in calls.iter().filter(is_system_call) {
            counts_by_name.entry(&call.name).or_default()[side] += call.count;
        }
    }
    let gap = |counts: &[f64; 2]| counts[1] - counts[0];
    let most = counts_by_name.into_iter().max_by(|x, y| gap(&x.1).total_cmp(&gap(&y.1)));
    let (name, of_this) = most.unwrap_or_default();
    Finding::new(Kind::SystemCalls, format!("{name} (libc)"), advice(name))
        .fact(&format!("calls of {name}"), of_this, Unit::Count, 1)
        .fact("all system calls", counts, Unit::Count, 1)
        .fact(
            "time in the kernel",
            [pair.a.system_ns, pair.b.system_ns],
            Unit::Nanos,
            pair.b.rounds,
        )
        .guilty()
}

fn is_system_call(call: &&Called) -> bool {
    let name = call.name.trim_start_matches('_').trim_end_matches("64");
    call.library.starts_with("libc.so") && NAMES.contains(&name)
}

fn advice(name: &str) -> &'static str {
    match name.trim_start_matches('_').trim_end_matches("64") {
        "read" | "pread" | "readv" | "recv" | "recvfrom" => {
            "read larger blocks: use a buffered file or read everything at once"
        }
        "write" | "pwrite" | "writev" | "send" | "sendto" => {
            "write larger blocks: use a buffered file or join the parts first"
        }
        "stat" | "lstat" | "fstat" | "fstatat" | "statx" | "access" => {
            "list the directory once (os.scandir), and keep what it returns"
        }
        "fsync" | "fdatasync" => "synchronize once after all writes",
        "mmap" | "munmap" | "mremap" | "madvise" | "brk" | "sbrk" => {
            "keep memory instead of returning it to the system after each use"
        }
        "open" | "openat" | "close" => "open the file once",
        _ => "make fewer requests to the system, with more work in each",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::culprit::Seen;

    fn side(reads: f64, system_ns: f64) -> Seen {
        let read =
            Called { name: "read".into(), library: "libc.so.6".into(), count: reads, ns: 0.0 };
        Seen { calls: Some(vec![read]), system_ns, ..Seen::default() }
    }

    #[test]
    fn many_small_reads_are_named() {
        let (a, b) = (side(7.0, 100_000.0), side(6_671.0, 3_000_000.0));
        let slice = Slice { part: Part::Kernel, a: vec![], b: vec![], a_ns: 1e5, b_ns: 3e6 };
        let Verdict::Guilty(finding) = judge_system_calls(&slice, &Pair { a: &a, b: &b }) else {
            panic!("innocent");
        };
        assert_eq!(finding.kind, Kind::SystemCalls);
        assert_eq!((finding.facts[0].a, finding.facts[0].b), (7.0, 6_671.0));
        let same = judge_system_calls(&slice, &Pair { a: &b, b: &b });
        assert_eq!(same, Verdict::Innocent);
        // Page faults that come with the calls explain the time better.
        let faulting = Seen { faults: 1e6, ..b };
        let with_faults = judge_system_calls(&slice, &Pair { a: &a, b: &faulting });
        assert_eq!(with_faults, Verdict::Innocent);
    }
}
