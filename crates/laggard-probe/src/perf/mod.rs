//! Recording with the user's own perf, for what the agent cannot do: a process that runs already,
//! several events at once, kernel stacks, branch records, programs that carry no agent.
//!
//! You say what to record and where to, you get a perf.data there and how the program ended.
//! Reading the file is `laggard_formats::read::perf`'s. Before the program is started, perf is
//! tried on one that does nothing, so that a refusal is known with perf's own words and the
//! program has not run for nothing.
#![allow(unsafe_code, reason = "asks whether a process is there")]

mod said;

use crate::child::{Child, Ended, GRACE};
use crate::error::Error;
use said::Said;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Largest piece of the stack that perf copies.
pub const LARGEST_COPY: u64 = 65_528;

/// Time between looks at whether perf has started the program.
const LOOK: Duration = Duration::from_millis(5);

/// What to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// A program to start, or one that runs.
    pub target: Target,
    /// What to count, in perf's words.
    pub events: Vec<String>,
    /// Samples per second of each event.
    pub rate: f64,
    /// How callers are found.
    pub call_graph: CallGraph,
    /// Processors to run on; none means all. For a program that is started.
    pub cpus: Vec<usize>,
    /// End after this time.
    pub duration: Option<Duration>,
}

/// Whom to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A command, word by word.
    Command(Vec<OsString>),
    /// The number of a process.
    Pid(u32),
}

/// How callers are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallGraph {
    /// By frame pointers, in the kernel.
    FramePointers,
    /// By copies of this many bytes of the stack, unwound afterwards.
    Copies(u64),
    /// By the processor's branch records.
    BranchRecords,
}

/// Records into a file. The command's own output passes through; its exit code, which perf
/// passes on, is in the answer.
///
/// Ctrl-C ends a recording and keeps what it has.
pub fn record(options: &Options, data: &Path) -> Result<Ended, Error> {
    let perf = find().ok_or(Error::NoPerf)?;
    if let Target::Pid(pid) = options.target {
        check_process(pid)?;
    }
    let extras = extras(&perf, options)?;
    let mut command = Command::new(&perf);
    command.args(arguments(options, data)).args(extras);
    let is_attached = match &options.target {
        Target::Command(words) => {
            command.arg("-q").arg("--").args(words);
            false
        }
        Target::Pid(pid) => {
            command.arg("-p").arg(pid.to_string());
            if let Some(most) = options.duration {
                // perf starts this when it has begun to record, and ends with it.
                command.args(["--", "sleep", &most.as_secs_f64().to_string()]);
            }
            // There is no program whose output this could be.
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            true
        }
    };
    let (sender, ended) = channel();
    let mut child = Child::start(command, &options.cpus, move || {
        let _ = sender.send(());
    })
    .map_err(|source| Error::Start { program: perf.clone(), source })?;
    // perf says a line or two, which fit into the pipe while nobody reads.
    let stderr = child.take_stderr();
    if let Some(most) = options.duration
        && !is_attached
    {
        // perf takes its time before it starts the program.
        while !has_started(child.pid(), &perf) && ended.recv_timeout(LOOK).is_err() {}
        if ended.recv_timeout(most) == Err(RecvTimeoutError::Timeout) {
            child.ask_to_end();
            // perf waits for the program, which may not care.
            if ended.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
                for program in children_of(child.pid()).unwrap_or_default() {
                    // SAFETY: a signal to what perf has started and not yet waited for.
                    unsafe { libc::kill(program, libc::SIGKILL) };
                }
            }
        }
    }
    let ended = child.wait();
    let has_data = data.metadata().is_ok_and(|file| file.len() > 0);
    if !has_data || (is_attached && ended.status.code().is_some_and(|code| code != 0)) {
        let mut text = String::new();
        if let Some(mut stderr) = stderr {
            let _ = stderr.read_to_string(&mut text);
        }
        return Err(Said(text).failure(options));
    }
    Ok(ended)
}

/// Whether perf's child is the program already, and no longer perf itself. So is one that is gone.
fn has_started(pid: u32, perf: &Path) -> bool {
    let Some(children) = children_of(pid) else { return true };
    let perf = std::fs::canonicalize(perf).ok();
    children.into_iter().any(|child| {
        std::fs::read_link(format!("/proc/{child}/exe")).is_ok_and(|exe| Some(exe) != perf)
    })
}

/// Processes that this one has started; none when it is gone.
fn children_of(pid: u32) -> Option<Vec<i32>> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    Some(children.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect())
}

/// Where perf is, if it is installed.
pub fn find() -> Option<PathBuf> {
    crate::program::find(OsStr::new("perf"))
}

/// Flags that make it better, as far as they work here. The error is that of perf without them.
fn extras(perf: &Path, options: &Options) -> Result<&'static [&'static str], Error> {
    const QUICK: &str = "--no-bpf-event";
    // Copies of stacks want a large buffer, which not everybody may have. Looking for programs of
    // the kernel takes a second at the start, and older versions cannot be told not to.
    let best: &[&str] = match options.call_graph {
        CallGraph::Copies(_) => &[QUICK, "-m", "16M"],
        _ => &[QUICK],
    };
    for flags in [best, &[QUICK]] {
        if rehearse(perf, options, flags).is_ok() {
            return Ok(flags);
        }
    }
    rehearse(perf, options, &[]).map(|()| &[][..])
}

/// Tries the same on a program that does nothing.
fn rehearse(perf: &Path, options: &Options, more: &[&str]) -> Result<(), Error> {
    let mut trial = Command::new(perf);
    trial.args(arguments(options, Path::new("/dev/null"))).args(more).args(["-B", "--", "true"]);
    trial.stdin(Stdio::null()).env("LC_ALL", "C");
    let output =
        trial.output().map_err(|source| Error::Start { program: perf.to_owned(), source })?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Said(String::from_utf8_lossy(&output.stderr).into_owned()).failure(options)),
    }
}

fn arguments(options: &Options, data: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["record".into()];
    for event in &options.events {
        words.extend(["-e".into(), event.into()]);
    }
    let rate = options.rate.round().max(1.0) as u64;
    words.extend(["-F".into(), rate.to_string().into(), "--call-graph".into()]);
    words.push(match options.call_graph {
        CallGraph::FramePointers => "fp".into(),
        CallGraph::Copies(size) => format!("dwarf,{}", size.min(LARGEST_COPY) & !7).into(),
        CallGraph::BranchRecords => "lbr".into(),
    });
    words.extend(["-o".into(), data.into()]);
    words
}

/// Whether a process is there and ours to look at.
fn check_process(pid: u32) -> Result<(), Error> {
    let number = i32::try_from(pid).ok().filter(|pid| *pid > 0);
    let Some(number) = number else { return Err(Error::NoProcess { pid }) };
    // SAFETY: signal 0 only asks whether there is such a process.
    if unsafe { libc::kill(number, 0) } == 0 {
        return Ok(());
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EPERM) => Err(Error::NotOurs { pid }),
        _ => Err(Error::NoProcess { pid }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_that_perf_knows() {
        let options = Options {
            target: Target::Pid(1),
            events: vec!["cpu-clock".into(), "page-faults".into()],
            rate: 99.6,
            call_graph: CallGraph::Copies(1 << 20),
            cpus: vec![],
            duration: None,
        };
        let words = arguments(&options, Path::new("x.data"));
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        assert_eq!(
            words.join(" "),
            "record -e cpu-clock -e page-faults -F 100 --call-graph dwarf,65528 -o x.data"
        );
    }

    #[test]
    fn processes_that_are_not_there_are_told() {
        assert!(matches!(check_process(0), Err(Error::NoProcess { pid: 0 })));
        assert!(matches!(check_process(i32::MAX as u32), Err(Error::NoProcess { .. })));
        assert!(check_process(std::process::id()).is_ok());
    }
}
