//! Counts entries of functions inside a library with uprobes, at nearly full speed.
//!
//! A uprobe is a breakpoint. If the kernel can emulate the first instruction of the function (push,
//! jump, call, nop), a call takes about 0.6 µs longer. Otherwise the kernel must single-step it,
//! which takes about 20 µs on a virtual machine.

mod follow;
mod targets;

pub use targets::{Target, targets};

use super::Options;
use crate::child::Ended;
use crate::error::Error;
use crate::held::Held;
use crate::started::{self, Started};
use crate::{program, ptrace};
use follow::{Watched, follow};
use laggard_core::model::NONE;
use laggard_core::model::calls::{CallRow, Calls, Function};
use laggard_core::model::profile::{Frame, FrameKind, Interner, Module, Thread};
use std::ffi::OsString;
use std::io;

const KIND: &str = "/sys/bus/event_source/devices/uprobe/type";

/// Whether the kernel allows uprobes; if not, the reason.
pub fn is_available() -> Result<(), String> {
    kind()?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    may_probe(&status).then_some(()).ok_or_else(|| {
        "they need root or the capability CAP_PERFMON, regardless of perf_event_paranoid".into()
    })
}

/// The type number of the uprobe PMU.
fn kind() -> Result<u32, String> {
    let text = std::fs::read_to_string(KIND);
    let text = text.map_err(|_| format!("the kernel does not support them ({KIND} is missing)"))?;
    text.trim().parse().map_err(|_| format!("unexpected content in {KIND}"))
}

/// Whether a process with this status has one of the required capabilities.
fn may_probe(status: &str) -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    const CAP_PERFMON: u32 = 38;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok()).unwrap_or(0);
    set >> CAP_SYS_ADMIN & 1 == 1 || set >> CAP_PERFMON & 1 == 1
}

/// Runs a command to its end and counts the entries of functions.
///
/// Callers are not recorded. Functions that are slow to probe are skipped unless `slow_probes` is
/// set.
pub fn count(command: &[OsString], options: &Options) -> Result<(Calls, Ended), Error> {
    let unavailable = |why| Error::Unavailable { what: "uprobes", why };
    is_available().map_err(unavailable)?;
    let kind = kind().map_err(unavailable)?;
    let program = program::runnable(command)?;
    let found = targets(command, options)?;
    let (targets, left): (Vec<Target>, Vec<Target>) =
        found.into_iter().partition(|target| target.is_fast || options.slow_probes);
    if targets.len() > options.most_probes {
        return Err(Error::TooMany { found: targets.len(), most: options.most_probes });
    }
    if targets.is_empty() {
        return Err(Error::Nothing(match left.len() {
            0 => format!("no function matches {}", options.functions.join(", ")),
            n => format!(
                "the {n} functions that match start with instructions that the kernel must \
                 single-step, at about 20 µs per call; use --inside=callgrind to count them"
            ),
        }));
    }
    let run = started::command(command, options.quiet);
    let cannot = |source| Error::Start { program: program.clone(), source };
    let started = Started::now(command);
    let held = Held::start(run, &options.cpus).map_err(cannot)?;
    let watch = |held| follow(held, kind, &targets, options.children);
    // The kernel detaches from all remaining tracees when the thread ends.
    let watched = std::thread::scope(|scope| scope.spawn(|| watch(held)).join());
    let watched = watched.unwrap_or_else(|_| Err(io::Error::other("the tracing thread panicked")));
    let Watched { threads, ended, unwatched } =
        watched.map_err(|error| match ptrace::refusal(&error) {
            Some(why) => unavailable(why),
            None => cannot(error),
        })?;
    let duration = started.elapsed();

    let mut calls = Calls::default();
    let mut interner = Interner::default();
    let unknown =
        Frame { kind: FrameKind::Native, module: NONE, address: 0, function: 0, file: 0, line: 0 };
    let caller = interner.frame(&mut calls.profile, unknown);
    for target in &targets {
        let path = calls.profile.texts.add(&target.path.to_string_lossy());
        let module = interner.module(&mut calls.profile, Module { path, id: 0 });
        let name = calls.profile.texts.add(&target.name);
        calls.functions.push(Function { name, module });
    }
    for counted in threads {
        let texts = &mut calls.profile.texts;
        let (name, process) = (texts.add(&counted.name), texts.add(&counted.program));
        let (pid, tid) = (counted.pid as u32, counted.tid as u32);
        let thread = calls.profile.threads.len() as u32;
        calls.profile.threads.push(Thread { pid, tid, name, process, cpu_ns: 0 });
        for (function, count) in (0..).zip(counted.counts).filter(|(_, count)| *count > 0) {
            calls.rows.push(CallRow { function, caller, thread, count, ..CallRow::default() });
        }
    }
    calls.profile.quality.warnings.extend(
        (unwatched > 0)
            .then(|| format!("{unwatched} threads could not be probed: too many open files")),
    );
    let slow = targets.iter().filter(|target| !target.is_fast).count();
    let why = "the kernel must single-step its first instruction, at about 20 µs per call";
    calls.quality.not_wrapped =
        left.into_iter().map(|target| (target.name, why.to_owned())).collect();
    calls.quality.cost_ns = if slow == 0 { 600.0 } else { 20_000.0 };
    calls.profile.quality.warnings.extend(
        (slow > 0).then(|| format!("{slow} probed functions take about 20 µs longer per call")),
    );
    let fact = |name: &str, value: String| (name.to_owned(), value);
    calls.profile.about = started.about(&ended, duration, "uprobes, entries counted by the kernel");
    calls.profile.about.facts = vec![
        fact("probed functions", targets.len().to_string()),
        fact("probed at about 0.6 µs per call", (targets.len() - slow).to_string()),
        fact("probed at about 20 µs per call", slow.to_string()),
        fact("callers", "not recorded".into()),
    ];
    Ok((calls, ended))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_status() {
        assert!(may_probe("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(may_probe("CapEff:\t0000004000000000\n"));
        assert!(!may_probe("CapEff:\t0000000000000000\n"));
        assert!(!may_probe(""));
    }
}
