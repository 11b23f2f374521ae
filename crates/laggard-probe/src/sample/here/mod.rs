//! Samples a block of code in the current process.
//!
//! [`start`] loads the sampling agent into this process and starts a *driver* process. The driver
//! runs [`drive`]: it creates the ring, collects the samples and writes them to a file.
//! [`Recording::stop`] ends both. In between, only the agent's signal handler runs in this process.
//! If this process dies, the recording is still readable, because the driver outlives it.
//!
//! They exchange lines over a socket, which is the driver's standard input and output:
//!
//! | sender | line | when |
//! |---|---|---|
//! | driver | `ring PATH` | it is ready |
//! | driver | `error TEXT` | it failed; at any time |
//! | process | `stop WALL USER SYSTEM` | sampling has ended; nanoseconds of the block |
//! | driver | `warning TEXT` | any number, before the last line |
//! | driver | `done SAMPLES COMPLETE LOST` | the file is written |

mod agent;
mod drive;

pub use agent::Refusal;
pub use drive::{Block, drive, leave_parent};

use crate::error::Error;
use agent::Agent;
use laggard_agent::wire::stopped;
use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::{Duration, Instant};

/// Time limit for the start of a driver, which may be a Python interpreter on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The process ID that is being recorded, which differs from that of its forks.
static RECORDED: AtomicU32 = AtomicU32::new(0);

/// A recording of this process, until it is stopped.
#[derive(Debug)]
pub struct Recording {
    agent: &'static Agent,
    driver: BufReader<UnixStream>,
    pid: u32,
    since: Usage,
    is_over: bool,
}

/// Result of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Number of samples.
    pub samples: u64,
    /// Number of samples whose stack reaches the first frame of the program.
    pub complete: u64,
    /// Number of lost samples.
    pub lost: u64,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Samples all threads of this process until the recording is stopped or dropped.
///
/// `driver` is a command that runs [`drive`] for this process, such as `laggard drive`. Waits until
/// it is ready before sampling starts. A process can have only one recording at a time.
pub fn start(mut driver: Command) -> Result<Recording, Error> {
    let pid = std::process::id();
    if RECORDED.swap(pid, SeqCst) == pid {
        return Err(Refusal::Busy.into());
    }
    let started = Agent::load().and_then(|agent| {
        let driver = Driver::start(&mut driver)?;
        agent.start(&driver.ring)?;
        Ok(Recording { agent, driver: driver.lines, pid, since: Usage::now(), is_over: false })
    });
    if started.is_err() {
        RECORDED.store(0, SeqCst);
    }
    started
}

impl Recording {
    /// Ends sampling, and waits until the driver has written the file. Returns `None` in a fork of
    /// the recorded process, where there is nothing to end.
    pub fn stop(mut self) -> Result<Option<Recorded>, Error> {
        let Some(kept) = self.end() else { return Ok(None) };
        let used = self.since.until_now();
        let stop = Line::Stop(used).to_string();
        // If the driver is gone, its last message is more useful than this error.
        let _ = self.driver.get_mut().write_all(stop.as_bytes());
        let mut recorded = Recorded::default();
        loop {
            match next_line(&mut self.driver).map_err(Error::Driver)? {
                Line::Warning(text) => recorded.warnings.push(text),
                Line::Error(text) => return Err(Error::DriverFailed(text)),
                Line::Done { samples, complete, lost } => {
                    (recorded.samples, recorded.complete, recorded.lost) =
                        (samples, complete, lost);
                    break;
                }
                Line::Ring(_) | Line::Stop(_) => {}
            }
        }
        if kept {
            recorded.warnings.push(
                "the agent keeps its signal handler installed, because a thread blocks the sampling \
                 signal or has not run since the end of the recording"
                    .into(),
            );
        }
        Ok(Some(recorded))
    }

    /// Ends sampling, once. Returns `None` in another process, otherwise whether a signal handler
    /// had to stay installed.
    fn end(&mut self) -> Option<bool> {
        if self.is_over || std::process::id() != self.pid {
            return None;
        }
        self.is_over = true;
        let answer = self.agent.stop();
        RECORDED.store(0, SeqCst);
        Some(answer & stopped::KEPT != 0)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // The driver detects that the connection is closed, and writes the samples so far.
        self.end();
    }
}

/// A driver that is ready.
struct Driver {
    lines: BufReader<UnixStream>,
    ring: PathBuf,
}

impl Driver {
    fn start(command: &mut Command) -> Result<Driver, Error> {
        let program = PathBuf::from(command.get_program());
        let failed = |source| Error::Start { program: program.clone(), source };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let input: OwnedFd = theirs.try_clone().map_err(failed)?.into();
        command.stdin(input).stdout(OwnedFd::from(theirs));
        // Ctrl-C is meant for the program; the driver still has to write the file.
        command.process_group(0);
        let mut child = command.spawn().map_err(failed)?;
        // Otherwise this process would hold the driver's end open and never see it closed.
        *command = Command::new("");
        ours.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let mut lines = BufReader::new(ours);
        let line = next_line(&mut lines);
        if line.is_err() {
            let _ = child.kill();
        }
        // The started process forks the actual driver, which is not a child of this process: a
        // program that waits for all its children must not wait for the driver.
        let _ = child.wait();
        lines.get_ref().set_read_timeout(None).map_err(failed)?;
        match line.map_err(Error::Driver)? {
            Line::Ring(ring) => Ok(Driver { lines, ring }),
            Line::Error(text) => Err(Error::DriverFailed(text)),
            other => {
                Err(Error::DriverFailed(format!("unexpected message {:?}", other.to_string())))
            }
        }
    }
}

/// The next valid line. Other lines are skipped, because the driver may print other output.
fn next_line(from: &mut impl BufRead) -> io::Result<Line> {
    loop {
        let mut text = String::new();
        if from.read_line(&mut text)? == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the driver process has ended",
            ));
        }
        if let Some(line) = Line::parse(text.trim_end_matches('\n')) {
            return Ok(line);
        }
    }
}

/// A message between the process and its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The driver is ready; samples go to this file.
    Ring(PathBuf),
    /// The driver failed.
    Error(String),
    /// Sampling has ended, with the times of the block.
    Stop(Used),
    /// A warning for the user.
    Warning(String),
    /// The recording is written.
    Done {
        /// See [`Recorded`].
        samples: u64,
        /// See [`Recorded`].
        complete: u64,
        /// See [`Recorded`].
        lost: u64,
    },
}

impl Line {
    fn parse(text: &str) -> Option<Line> {
        let (word, rest) = text.split_once(' ')?;
        let numbers = || {
            let mut numbers = rest.split(' ').map(|part| part.parse::<u64>().ok());
            Some([numbers.next()??, numbers.next()??, numbers.next()??])
        };
        match word {
            "ring" => Some(Line::Ring(Path::new(rest).into())),
            "error" => Some(Line::Error(rest.into())),
            "warning" => Some(Line::Warning(rest.into())),
            "stop" => {
                let [wall_ns, user_ns, system_ns] = numbers()?;
                Some(Line::Stop(Used { wall_ns, user_ns, system_ns }))
            }
            "done" => {
                let [samples, complete, lost] = numbers()?;
                Some(Line::Done { samples, complete, lost })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        match self {
            Line::Ring(path) => writeln!(f, "ring {}", path.display()),
            Line::Error(text) => writeln!(f, "error {}", one_line(text)),
            Line::Warning(text) => writeln!(f, "warning {}", one_line(text)),
            Line::Stop(Used { wall_ns, user_ns, system_ns }) => {
                writeln!(f, "stop {wall_ns} {user_ns} {system_ns}")
            }
            Line::Done { samples, complete, lost } => {
                writeln!(f, "done {samples} {complete} {lost}")
            }
        }
    }
}

/// Wall time of a block and CPU time of all its threads, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Wall time.
    pub wall_ns: u64,
    /// CPU time in user code.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
}

/// Resource usage of this process at one point in time.
#[derive(Debug)]
struct Usage {
    at: Instant,
    user_ns: u64,
    system_ns: u64,
}

impl Usage {
    fn now() -> Usage {
        // SAFETY: `rusage` is plain data, all-zero bytes are valid, and it is valid for writes.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
            usage
        };
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Usage { at: Instant::now(), user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) }
    }

    fn until_now(&self) -> Used {
        let now = Usage::now();
        Used {
            wall_ns: (now.at - self.at).as_nanos() as u64,
            user_ns: now.user_ns.saturating_sub(self.user_ns),
            system_ns: now.system_ns.saturating_sub(self.system_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive_a_round_trip() {
        for line in [
            Line::Ring("/dev/shm/laggard 1.ring".into()),
            Line::Error("no room".into()),
            Line::Stop(Used { wall_ns: 3, user_ns: 2, system_ns: 1 }),
            Line::Done { samples: 3, complete: 2, lost: 1 },
        ] {
            let mut text = line.to_string();
            assert_eq!(text.pop(), Some('\n'));
            assert_eq!(Line::parse(&text), Some(line));
        }
        let mut talk = "hello\n\nwarning two\nlines\n".as_bytes();
        assert_eq!(
            next_line(&mut talk).ok(),
            Some(Line::Warning("two".into())),
            "other output is skipped"
        );
        assert!(next_line(&mut talk).is_err());
        assert_eq!(Line::Warning("a\nb".into()).to_string(), "warning a b\n");
    }
}
