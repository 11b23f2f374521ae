//! A process that was started: waited for, stopped and ended, with all that it started itself.
#![allow(unsafe_code, reason = "processes are waited for by system calls")]

use super::groups::Group;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// A program that runs. It and its group end when this is dropped.
pub(super) struct Process {
    pid: i32,
    started: Instant,
    /// Becomes readable when the process ends.
    ended: OwnedFd,
    /// None when it has been waited for: from then on its number may be another's.
    group: Option<Group>,
}

/// How a process ended, and what it and those it waited for have used.
pub(super) struct Exit {
    pub(super) status: ExitStatus,
    pub(super) usage: libc::rusage,
}

/// What came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The other descriptor is ready.
    Ready,
    /// The process ended.
    Ended,
    /// Time is up.
    Late,
}

impl Process {
    pub(super) fn new(pid: i32, started: Instant, ended: OwnedFd, group: Group) -> Process {
        Process { pid, started, ended, group: Some(group) }
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// When the system was asked to start it.
    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// Waits until it has ended, but no longer than to a moment; says whether it has.
    pub(super) fn has_ended_by(&self, deadline: Instant) -> bool {
        self.wait_for(None, deadline) == Event::Ended
    }

    /// Waits for a descriptor (and what of it: `POLLIN`, `POLLOUT`) or the end of the process.
    pub(super) fn wait_for(&self, other: Option<(RawFd, i16)>, deadline: Instant) -> Event {
        let (other, events) = other.unwrap_or((-1, 0));
        loop {
            let mut polled = [
                libc::pollfd { fd: other, events, revents: 0 },
                libc::pollfd { fd: self.ended.as_raw_fd(), events: libc::POLLIN, revents: 0 },
            ];
            let left = deadline.saturating_duration_since(Instant::now());
            // Rounded up, so that it does not end a little too early again and again.
            let ms = i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX);
            let ms = if left == Duration::ZERO { 0 } else { ms };
            // SAFETY: a list of two that lives through the call.
            let ready = unsafe { libc::poll(polled.as_mut_ptr(), 2, ms) };
            if polled[0].revents != 0 {
                return Event::Ready;
            } else if polled[1].revents != 0 {
                return Event::Ended;
            }
            let is_interrupted =
                ready < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
            if left == Duration::ZERO || (ready < 0 && !is_interrupted) {
                return Event::Late;
            }
        }
    }

    /// Sends a signal to the process and all that it has started.
    pub(super) fn signal(&self, signal: i32) {
        if self.group.is_some() {
            // SAFETY: the leader has not been waited for, so the group is ours.
            unsafe { libc::kill(-self.pid, signal) };
        }
    }

    /// Ends what is left of the group, and says how the process itself ended.
    pub(super) fn end(mut self) -> Exit {
        self.end_and_wait()
    }

    fn end_and_wait(&mut self) -> Exit {
        self.signal(libc::SIGKILL);
        // From here on nobody may send a signal to this number.
        self.group = None;
        let mut status = 0;
        // SAFETY: plain data that the kernel fills in.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        loop {
            // SAFETY: waits for our own child.
            let answer = unsafe { libc::wait4(self.pid, &raw mut status, 0, &raw mut usage) };
            if answer == self.pid || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted
            {
                break;
            }
        }
        Exit { status: ExitStatus::from_raw(status), usage }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.group.is_some() {
            self.end_and_wait();
        }
    }
}
