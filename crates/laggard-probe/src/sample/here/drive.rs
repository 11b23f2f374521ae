//! The driver: collects the samples of a running process until it sends stop or ends.

use super::{Line, Refusal, Used, next_line};
use crate::error::Error;
use crate::sample::{Options, Sampling};
use crate::started::Started;
use laggard_core::model::profile::Profile;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// A process in which a block is sampled.
pub struct Block<'a> {
    /// Process ID.
    pub pid: u32,
    /// Sampling options.
    pub options: &'a Options,
}

/// Collects the samples of a block. `ready` receives the path of the ring and forwards it to the
/// process; `batch` receives the growing profile about once a second. Messages of the process are
/// read from standard input.
pub fn drive(
    block: &Block,
    ready: &mut dyn FnMut(&Path) -> Result<(), Error>,
    batch: &mut dyn FnMut(&Profile),
) -> Result<Profile, Error> {
    let process = Process::of(block.pid).ok_or(Error::NoProcess { pid: block.pid })?;
    let mut sampling = Sampling::open(block.options)?;
    let started = Started::now(&process.command());
    sampling.collector.profile.about = started.so_far();
    let bell = Arc::clone(&sampling.shared);
    let stop = listen(move || bell.wake());
    ready(sampling.shared.path())?;
    let ended = sampling.collect(batch, || match stop.try_recv() {
        Ok(used) => Some(used),
        Err(TryRecvError::Disconnected) => Some(None),
        Err(TryRecvError::Empty) => (!process.is_alive()).then_some(None),
    });
    if !sampling.was_loaded() {
        return Err(Refusal::Ring.into());
    }
    let used = ended.unwrap_or_else(|| Used {
        wall_ns: started.elapsed().as_nanos() as u64,
        ..Used::default()
    });
    let spent = (used.user_ns + used.system_ns).max(1);
    let about = started.about_block(&used);
    let mut profile = sampling.finish(about, used.user_ns as f64 / spent as f64);
    if ended.is_none() {
        profile.quality.warnings.push(
            "the process ended or executed another program before the recorded block ended; \
             samples up to then were kept"
                .into(),
        );
    }
    Ok(profile)
}

/// Waits for the stop message of the process; sends `None` if the connection closes first.
fn listen(on_end: impl FnOnce() + Send + 'static) -> Receiver<Option<Used>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut lines = io::stdin().lock();
        let used = loop {
            match next_line(&mut lines) {
                Ok(Line::Stop(used)) => break Some(used),
                Ok(_) => {}
                Err(_) => break None,
            }
        };
        let _ = sender.send(used);
        on_end();
    });
    receiver
}

/// Continues in a child of this process, so that the process that started this one is not its
/// parent and need not wait for it.
///
/// Only valid in a process with one thread.
pub fn leave_parent() -> io::Result<()> {
    // SAFETY: the caller guarantees that there is only one thread. The parent exits at once.
    unsafe {
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => Ok(()),
            _ => libc::_exit(0),
        }
    }
}

/// A process, identified by its ID and start time because IDs are reused.
struct Process {
    pid: u32,
    born: String,
}

impl Process {
    fn of(pid: u32) -> Option<Process> {
        Some(Process { pid, born: alive_since(pid)? })
    }

    fn is_alive(&self) -> bool {
        alive_since(self.pid).is_some_and(|born| born == self.born)
    }

    /// Its command line.
    fn command(&self) -> Vec<OsString> {
        let line = std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let line = line.strip_suffix(b"\0").unwrap_or(&line);
        line.split(|&byte| byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect()
    }
}

/// Start time of a process, as the kernel reports it; `None` if it has ended.
fn alive_since(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name, in parentheses, may contain any characters.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    const FROM_PARENT_TO_START: usize = 18;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(FROM_PARENT_TO_START).map(str::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_identified_by_its_start_time() {
        let own = Process::of(std::process::id()).expect("this process");
        assert!(own.is_alive());
        assert!(!own.command().is_empty());
        let other = Process { pid: own.pid, born: "1".into() };
        assert!(!other.is_alive(), "a later process with the same ID");
        assert!(Process::of(u32::MAX).is_none());
    }
}
