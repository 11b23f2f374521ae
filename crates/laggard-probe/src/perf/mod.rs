//! Recording with the perf tool, for cases that the agent does not support: running processes,
//! several events at once, kernel stacks, LBR, and programs that cannot load the agent.
//!
//! The input is what to record and a file name; the output is a perf.data file and the exit status
//! of the program. `laggard_formats::read::perf` reads the file. Before the program is started,
//! perf is tested on an empty program, so that a failure is reported with perf's message before the
//! program has run.
#![allow(unsafe_code, reason = "kill has no safe interface")]

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

/// Maximum number of stack bytes that perf copies per sample.
pub const LARGEST_COPY: u64 = 65_528;

/// Interval of the checks whether perf has started the program.
const LOOK: Duration = Duration::from_millis(5);

/// What to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// A program to start, or a running process.
    pub target: Target,
    /// Events, in perf's syntax.
    pub events: Vec<String>,
    /// Samples per second of each event.
    pub rate: f64,
    /// Method of stack unwinding.
    pub call_graph: CallGraph,
    /// CPUs to run on; empty means all. Only for a program that is started.
    pub cpus: Vec<usize>,
    /// Time limit of the recording.
    pub duration: Option<Duration>,
}

/// The program to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A command, word by word.
    Command(Vec<OsString>),
    /// A process ID.
    Pid(u32),
}

/// Method of stack unwinding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallGraph {
    /// Frame pointers, unwound in the kernel.
    FramePointers,
    /// Copies of this many bytes of the stack, unwound afterwards.
    Copies(u64),
    /// The CPU's last branch records (LBR).
    BranchRecords,
}

/// The end of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// The exit status of the program, as forwarded by perf.
    pub ended: Ended,
    /// The process that was recorded; `None` if it ended too early.
    pub pid: Option<u32>,
}

/// Records into a file. The output of the command is passed through.
///
/// Ctrl-C ends a recording and keeps the samples so far.
pub fn record(options: &Options, data: &Path) -> Result<Recorded, Error> {
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
                // perf starts this command when it begins to record, and stops when it ends.
                command.args(["--", "sleep", &most.as_secs_f64().to_string()]);
            }
            // perf's own output is not shown, because no program was started.
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            true
        }
    };
    let (sender, ended) = channel();
    let mut child = Child::start(command, &options.cpus, move || {
        let _ = sender.send(());
    })
    .map_err(|source| Error::Start { program: perf.clone(), source })?;
    // perf prints at most a few lines, which fit into the pipe buffer until they are read.
    let stderr = child.take_stderr();
    let pid = match options.target {
        Target::Pid(pid) => Some(pid),
        // perf forks the program's process before it opens the events, and starts the program later.
        Target::Command(_) => loop {
            let children = children_of(child.pid()).unwrap_or_default();
            if let Some(&first) = children.first() {
                break u32::try_from(first).ok();
            }
            if ended.recv_timeout(LOOK).is_ok() {
                break None;
            }
        },
    };
    if let Some(most) = options.duration
        && !is_attached
    {
        // perf needs some time before it starts the program.
        while !has_started(child.pid(), &perf) && ended.recv_timeout(LOOK).is_err() {}
        if ended.recv_timeout(most) == Err(RecvTimeoutError::Timeout) {
            child.ask_to_end();
            // perf waits for the program, which may ignore the signal.
            if ended.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
                for program in children_of(child.pid()).unwrap_or_default() {
                    // SAFETY: a signal to a process that perf has started and not yet waited for.
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
    Ok(Recorded { ended, pid })
}

/// Whether perf's child already executes the program, or is gone.
fn has_started(pid: u32, perf: &Path) -> bool {
    let Some(children) = children_of(pid) else { return true };
    let perf = std::fs::canonicalize(perf).ok();
    children.into_iter().any(|child| {
        std::fs::read_link(format!("/proc/{child}/exe")).is_ok_and(|exe| Some(exe) != perf)
    })
}

/// Children of this process; `None` if it is gone.
fn children_of(pid: u32) -> Option<Vec<i32>> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    Some(children.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect())
}

/// The path of perf, if it is installed.
pub fn find() -> Option<PathBuf> {
    crate::program::find(OsStr::new("perf"))
}

/// Optional flags that work on this machine. An error is that of perf without them.
fn extras(perf: &Path, options: &Options) -> Result<&'static [&'static str], Error> {
    const QUICK: &str = "--no-bpf-event";
    // Stack copies need a large buffer, which the memory lock limit may not allow. Looking for BPF
    // programs takes a second at the start, and older versions do not support disabling it.
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

/// Runs perf with the same options on an empty program.
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

/// Checks that a process exists and belongs to this user.
fn check_process(pid: u32) -> Result<(), Error> {
    let number = i32::try_from(pid).ok().filter(|pid| *pid > 0);
    let Some(number) = number else { return Err(Error::NoProcess { pid }) };
    // SAFETY: signal 0 only checks whether the process exists.
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
    fn options_become_perf_flags() {
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
    fn missing_processes_are_an_error() {
        assert!(matches!(check_process(0), Err(Error::NoProcess { pid: 0 })));
        assert!(matches!(check_process(i32::MAX as u32), Err(Error::NoProcess { .. })));
        assert!(check_process(std::process::id()).is_ok());
    }
}
