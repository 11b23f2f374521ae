//! The `system-calls` judge.

use super::seen::{Called, Io, Seen};
use super::{Finding, Kind, Pair, Part, Slice, Spot, Unit, Verdict};
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
    let synchronization = synchronization(pair).map(|spot| judge_synchronization(spot, pair));
    if slice.part == Part::Waiting {
        return synchronization.unwrap_or(Verdict::Innocent);
    }
    if slice.part != Part::Kernel {
        return Verdict::Innocent;
    }
    let (Some(of_a), Some(of_b)) = (&pair.a.calls, &pair.b.calls) else {
        return Verdict::Innocent;
    };
    let sum = |calls: &[Called]| {
        calls.iter().filter(|call| is_system_call(call)).map(|call| call.count).sum::<f64>()
    };
    let counts = [sum(of_a), sum(of_b)];
    let more = counts[1] - counts[0];
    let each = slice.gap_ns() / more.max(1.0);
    // If calls that map memory are expensive, page faults are the more specific cause.
    let faults = pair.b.faults - pair.a.faults;
    if more < MANY || !(CHEAPEST_NS..DEAREST_NS).contains(&each) || faults > more {
        // A few calls that write to the disk also use the CPU in the kernel.
        return synchronization.filter(|_| faults < 1.0).unwrap_or(Verdict::Innocent);
    }
    let mut counts_by_name: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for (side, calls) in [of_a, of_b].into_iter().enumerate() {
        for call in calls.iter().filter(|call| is_system_call(call)) {
            counts_by_name.entry(&call.name).or_default()[side] += call.count;
        }
    }
    let gap = |counts: &[f64; 2]| counts[1] - counts[0];
    let most = counts_by_name.into_iter().max_by(|x, y| gap(&x.1).total_cmp(&gap(&y.1)));
    let (name, of_this) = most.unwrap_or_default();
    let finding = Finding::new(Kind::SystemCalls, format!("{name} (libc)"), advice(name)).fact(
        &format!("calls of {name}"),
        of_this,
        Unit::Count,
        1,
    );
    transferred(finding, name, pair)
        .fact("all system calls", counts, Unit::Count, 1)
        .fact(
            "time in the kernel",
            [pair.a.system_ns, pair.b.system_ns],
            Unit::Nanos,
            pair.b.rounds,
        )
        .guilty()
}

/// Whether a location is a function that waits until data is on the disk.
fn is_synchronization(function: &str) -> bool {
    const NAMES: [&str; 6] = ["fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range"];
    NAMES.contains(&plain(function.split(" (").next().unwrap_or_default()))
}

/// Where B waits until its data is on the disk, if it waits there most.
pub(super) fn synchronization<'a>(pair: &Pair<'a>) -> Option<&'a Spot> {
    pair.b.wait_spots.first().filter(|spot| is_synchronization(&spot.function))
}

/// B waits until its data is on the disk.
fn judge_synchronization(spot: &Spot, pair: &Pair<'_>) -> Verdict {
    let name = plain(spot.function.split(" (").next().unwrap_or_default());
    let waiting = [pair.a.waiting_ns(), pair.b.waiting_ns()];
    let finding = Finding::new(Kind::SystemCalls, spot.at(), advice(name));
    let count = |side: &Seen| {
        let calls = side.calls.as_ref()?.iter().filter(|call| plain(&call.name) == name);
        Some(calls.map(|call| call.count).sum::<f64>())
    };
    match (count(pair.a), count(pair.b)) {
        (Some(a), Some(b)) => finding.fact(&format!("calls of {name}"), [a, b], Unit::Count, 1),
        _ => finding,
    }
    .fact("time with no thread running", waiting, Unit::Nanos, pair.b.rounds)
    .guilty()
}

/// Adds the bytes that calls like `name` transfer, and how many each of them does.
fn transferred(finding: Finding, name: &str, pair: &Pair<'_>) -> Finding {
    let (Some(a), Some(b)) = (&pair.a.io, &pair.b.io) else { return finding };
    type Count = fn(&Io) -> f64;
    let (verb, noun, calls, bytes): (_, _, Count, Count) = match plain(name) {
        "read" | "pread" | "readv" | "recv" | "recvfrom" => {
            ("read", "read", |io| io.reads, |io| io.read_bytes)
        }
        "write" | "pwrite" | "writev" | "send" | "sendto" => {
            ("written", "write", |io| io.writes, |io| io.written_bytes)
        }
        _ => return finding,
    };
    let each = |io: &Io| if calls(io) > 0.0 { bytes(io) / calls(io) } else { 0.0 };
    finding.fact(&format!("bytes {verb}"), [bytes(a), bytes(b)], Unit::Bytes, 1).fact(
        &format!("bytes per {noun}"),
        [each(a), each(b)],
        Unit::Bytes,
        1,
    )
}

/// The name of a system call without the decoration of libc.
fn plain(name: &str) -> &str {
    name.trim_start_matches('_').trim_end_matches("64")
}

pub(super) fn is_system_call(call: &Called) -> bool {
    call.library.starts_with("libc.so") && NAMES.contains(&plain(&call.name))
}

fn advice(name: &str) -> &'static str {
    match plain(name) {
        "read" | "pread" | "readv" | "recv" | "recvfrom" => {
            "read larger blocks: use a buffered file or read everything at once"
        }
        "write" | "pwrite" | "writev" | "send" | "sendto" => {
            "write larger blocks: use a buffered file or join the parts first"
        }
        "stat" | "lstat" | "fstat" | "fstatat" | "statx" | "access" => {
            "list the directory once (os.scandir), and keep what it returns"
        }
        "fsync" | "fdatasync" | "msync" | "sync" | "syncfs" | "sync_file_range" => {
            "synchronize once after all writes"
        }
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

    fn side(reads: f64, system_ns: f64) -> Seen {
        let read =
            Called { name: "read".into(), library: "libc.so.6".into(), count: reads, ns: 0.0 };
        Seen { calls: Some(vec![read]), system_ns, ..Seen::default() }
    }

    #[test]
    fn waiting_for_the_disk_is_a_system_call() {
        let call =
            |count| Called { name: "fsync".into(), library: "libc.so.6".into(), count, ns: 0.0 };
        let spot =
            |function: &str| Spot { function: function.into(), share: 1.0, ..Spot::default() };
        let a = Seen { calls: Some(vec![]), wall_ns: 1e4, user_ns: 1e4, ..Seen::default() };
        let wall_ns = 3e6;
        let b = Seen { calls: Some(vec![call(2.0)]), wall_ns, waits: 2.0, ..a.clone() };
        let slice = Slice { part: Part::Waiting, a: vec![], b: vec![], a_ns: 0.0, b_ns: 3e6 };
        let check = |function: &str, expected: Kind| {
            let b = Seen { wait_spots: vec![spot(function)], ..b.clone() };
            let pair = Pair { a: &a, b: &b };
            let judges = [crate::culprit::parallel::judge_waiting, judge_system_calls];
            let found = judges.iter().find_map(|judge| match judge(&slice, &pair) {
                Verdict::Guilty(finding) => Some(finding),
                _ => None,
            });
            assert_eq!(found.map(|finding| finding.kind), Some(expected), "{function}");
        };
        check("fsync (libc.so.6)", Kind::SystemCalls);
        check("__fdatasync64 (libc.so.6)", Kind::SystemCalls);
        check("clock_nanosleep (libc.so.6)", Kind::Waiting);
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
        assert!(finding.facts.iter().all(|fact| !fact.what.contains("bytes")), "not counted");
        let io = |reads| Some(Io { reads, read_bytes: 426_944.0, ..Io::default() });
        let (a_io, b_io) =
            (Seen { io: io(7.0), ..a.clone() }, Seen { io: io(6_671.0), ..b.clone() });
        let pair = Pair { a: &a_io, b: &b_io };
        let Verdict::Guilty(finding) = judge_system_calls(&slice, &pair) else { panic!() };
        let each = finding.facts.iter().find(|fact| fact.what == "bytes per read");
        assert_eq!(each.map(|fact| fact.b), Some(64.0));
        let same = judge_system_calls(&slice, &Pair { a: &b, b: &b });
        assert_eq!(same, Verdict::Innocent);
        // Page faults that come with the calls explain the time better.
        let faulting = Seen { faults: 1e6, ..b };
        let with_faults = judge_system_calls(&slice, &Pair { a: &a, b: &faulting });
        assert_eq!(with_faults, Verdict::Innocent);
    }
}
