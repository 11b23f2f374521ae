//! A started process: waits for it, stops it and kills it together with its group.
#![allow(unsafe_code, reason = "poll, kill and wait4 have no safe interface")]

use super::groups::Group;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// A running program. It and its group are killed on drop.
pub(super) struct Process {
    pid: i32,
    started: Instant,
    /// Becomes readable when the process ends.
    ended: OwnedFd,
    /// `None` once the process has been waited for: its ID may then be reused.
    group: Option<Group>,
}

/// Exit status and resource usage of a process, including children that it waited for.
pub(super) struct Exit {
    pub(super) status: ExitStatus,
    pub(super) usage: libc::rusage,
    /// Run-queue delay of its main thread.
    pub(super) queued_ns: u64,
}

/// What happened first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The other descriptor is ready.
    Ready,
    /// The process ended.
    Ended,
    /// The deadline passed.
    Late,
}

impl Process {
    pub(super) fn new(pid: i32, started: Instant, ended: OwnedFd, group: Group) -> Process {
        Process { pid, started, ended, group: Some(group) }
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// The time just before the system was asked to start it.
    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// Waits until the process has ended or the deadline passes. Returns whether it has ended.
    pub(super) fn has_ended_by(&self, deadline: Instant) -> bool {
        self.wait_for(None, deadline) == Event::Ended
    }

    /// Waits for events (`POLLIN`, `POLLOUT`) of a descriptor or the end of the process.
    pub(super) fn wait_for(&self, other: Option<(RawFd, i16)>, deadline: Instant) -> Event {
        let (other, events) = other.unwrap_or((-1, 0));
        loop {
            let mut polled = [
                libc::pollfd { fd: other, events, revents: 0 },
                libc::pollfd { fd: self.ended.as_raw_fd(), events: libc::POLLIN, revents: 0 },
            ];
            let left = deadline.saturating_duration_since(Instant::now());
            // Rounded up, so that `poll` does not repeatedly return a little too early.
            let ms = i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX);
            let ms = if left == Duration::ZERO { 0 } else { ms };
            // SAFETY: `polled` has two elements and outlives the call.
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

    /// Sends a signal to the process group.
    pub(super) fn signal(&self, signal: i32) {
        if self.group.is_some() {
            // SAFETY: the leader has not been waited for, so the group ID is not reused.
            unsafe { libc::kill(-self.pid, signal) };
        }
    }

    /// Kills the rest of the group, and returns how the process itself ended.
    pub(super) fn end(mut self) -> Exit {
        self.end_and_wait()
    }

    fn end_and_wait(&mut self) -> Exit {
        self.signal(libc::SIGKILL);
        let queued_ns = queued_ns(&format!("/proc/{}/schedstat", self.pid));
        // The process ID may be reused from here on, so no signal may be sent to it.
        self.group = None;
        let mut status = 0;
        // SAFETY: `rusage` is plain data, and all-zero bytes are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        loop {
            // SAFETY: both pointers are valid for writes; the process is a child of this one.
            let answer = unsafe { libc::wait4(self.pid, &raw mut status, 0, &raw mut usage) };
            if answer == self.pid || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted
            {
                break;
            }
        }
        Exit { status: ExitStatus::from_raw(status), usage, queued_ns }
    }
}

/// Time that a thread has spent waiting for a CPU, in nanoseconds; 0 if the kernel does not count it.
pub(super) fn queued_ns(schedstat: &str) -> u64 {
    let text = std::fs::read_to_string(schedstat).unwrap_or_default();
    text.split_ascii_whitespace().nth(1).and_then(|delay| delay.parse().ok()).unwrap_or(0)
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.group.is_some() {
            self.end_and_wait();
        }
    }
}
