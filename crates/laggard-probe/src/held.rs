//! A program held just before its first instruction, so that it can be traced from there.
//!
//! The child reports its process ID and waits for a byte before it executes the program. The
//! standard library starts it and returns only after the exec, so another thread does that.
#![allow(unsafe_code, reason = "pre_exec and the system calls in the child have no safe interface")]

use crate::{child, ptrace};
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::JoinHandle;

/// A program that is about to run.
pub(crate) struct Held {
    pid: i32,
    go: PipeWriter,
    start: Start,
}

/// The start of a program that was released.
pub(crate) struct Start(JoinHandle<io::Result<()>>);

impl Held {
    /// Starts a command on these CPUs, up to the point just before it runs.
    pub(crate) fn start(mut command: Command, cpus: &[usize]) -> io::Result<Held> {
        child::bind(&mut command, cpus)?;
        let (mut tell, told) = io::pipe()?;
        let (wait, go) = io::pipe()?;
        let (told_fd, wait_fd, go_fd) = (told.as_raw_fd(), wait.as_raw_fd(), go.as_raw_fd());
        // SAFETY: between fork and exec, the closure makes only async-signal-safe system calls, on
        // descriptors that the child inherited.
        unsafe {
            command.pre_exec(move || {
                // The inherited write end would keep the pipe open after this process has ended.
                libc::close(go_fd);
                let pid = libc::getpid().to_ne_bytes();
                if libc::write(told_fd, pid.as_ptr().cast(), pid.len()) != pid.len() as isize {
                    return Err(io::Error::last_os_error());
                }
                let mut byte = 0_u8;
                loop {
                    match libc::read(wait_fd, (&raw mut byte).cast(), 1) {
                        1 => return Ok(()),
                        0 => return Err(io::Error::from_raw_os_error(libc::ECANCELED)),
                        _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                        _ => return Err(io::Error::last_os_error()),
                    }
                }
            });
        }
        let start = Start(std::thread::spawn(move || {
            #[allow(clippy::zombie_processes, reason = "reaped by the owner of `Held`")]
            let started = command.spawn().map(|_| ());
            drop((told, wait));
            started
        }));
        let mut pid = [0; size_of::<i32>()];
        if let Err(error) = tell.read_exact(&mut pid) {
            start.done()?;
            return Err(error);
        }
        Ok(Held { pid: i32::from_ne_bytes(pid), go, start })
    }

    /// Process ID.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets the program run and forwards signals to it from now on. A tracer must have seized it
    /// before. [`Start::done`] reports whether the exec succeeded.
    pub(crate) fn release(mut self) -> io::Result<Start> {
        child::answer_for(self.pid);
        self.go.write_all(&[1])?;
        // If the exec fails, the starting thread waits for the child and knows the error.
        if ptrace::has_ended(self.pid)? {
            child::answer_for(0);
            self.start.done()?;
            return Err(io::Error::other("the process ended before the program started"));
        }
        Ok(self.start)
    }

    /// Ends the child without running the program.
    pub(crate) fn cancel(self) {
        drop(self.go);
        // An error is expected: the program was not started. The thread has waited for the child.
        let _ = self.start.done();
    }
}

impl Start {
    /// Waits until the program runs. On an error, the program did not start and the child is gone.
    pub(crate) fn done(self) -> io::Result<()> {
        self.0.join().unwrap_or_else(|_| {
            Err(io::Error::other("the thread that starts the program panicked"))
        })
    }
}
