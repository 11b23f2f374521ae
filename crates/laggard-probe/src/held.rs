//! A program held just before its first instruction, so that it can be watched from there.
//!
//! The child says its number and waits for a byte before it becomes the program. Starting it is
//! left to the standard library, which returns only when that has happened, so another thread does
//! it.
#![allow(unsafe_code, reason = "what a child does between fork and exec has no safe interface")]

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

/// The start of a program that was let go.
pub(crate) struct Start(JoinHandle<io::Result<()>>);

impl Held {
    /// Starts a command on these processors, as far as can be without running it.
    pub(crate) fn start(mut command: Command, cpus: &[usize]) -> io::Result<Held> {
        child::bind(&mut command, cpus)?;
        let (mut tell, told) = io::pipe()?;
        let (wait, go) = io::pipe()?;
        let (told_fd, wait_fd, go_fd) = (told.as_raw_fd(), wait.as_raw_fd(), go.as_raw_fd());
        // SAFETY: between fork and exec only system calls are made, on descriptors that the child
        // got with the fork.
        unsafe {
            command.pre_exec(move || {
                // The end that this process keeps would hide that the other is gone.
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
            #[allow(clippy::zombie_processes, reason = "reaped by whoever holds it")]
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

    /// Its number.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets it run, which whoever follows it by ptrace must have seized before, and answers for it
    /// from now on. Whether it could become the program is for [`Start::done`] to say.
    pub(crate) fn release(mut self) -> io::Result<Start> {
        child::answer_for(self.pid);
        self.go.write_all(&[1])?;
        // If it cannot become the program, whoever started it waits for its end, and knows why.
        if ptrace::has_ended(self.pid)? {
            child::answer_for(0);
            self.start.done()?;
            return Err(io::Error::other("it ended before it began"));
        }
        Ok(self.start)
    }

    /// Ends it without running it.
    pub(crate) fn cancel(self) {
        drop(self.go);
        // Says that it was not started, having waited for its end.
        let _ = self.start.done();
    }
}

impl Start {
    /// Waits until the program runs; an error when it could not, and then it is gone.
    pub(crate) fn done(self) -> io::Result<()> {
        self.0.join().unwrap_or_else(|_| Err(io::Error::other("the thread that started it failed")))
    }
}
