//! The measured program as a child process: starts it, waits for it and forwards signals to it.
#![allow(unsafe_code, reason = "signals, CPU affinity and wait4 have no safe interface")]

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStderr, Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering::*};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A running program.
pub(crate) struct Child {
    pid: u32,
    ended: Receiver<Ended>,
    stderr: Option<ChildStderr>,
    /// Its process ID until it is waited for: after that the ID may be reused.
    running: Arc<Mutex<Option<i32>>>,
    /// Whether it was asked to end.
    is_asked: bool,
}

/// Time that a program has to end after a request.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Exit status and resource usage of a program.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Exit status.
    pub status: ExitStatus,
    /// User CPU time, including that of children it waited for.
    pub user_ns: u64,
    /// System CPU time.
    pub system_ns: u64,
    /// Peak resident memory in bytes.
    pub peak_memory: u64,
}

impl Ended {
    /// From the kernel's data about an ended process.
    pub(crate) fn new(status: i32, usage: &libc::rusage) -> Ended {
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Ended {
            status: ExitStatus::from_raw(status),
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            peak_memory: usage.ru_maxrss as u64 * 1024,
        }
    }

    /// The exit status as a shell reports it: a signal is 128 plus its number.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }
}

/// Process that signals are forwarded to.
static FORWARD_TO: AtomicI32 = AtomicI32::new(0);

impl Child {
    /// Starts the command, on these CPUs if any are given. `on_end` is called from another thread
    /// after the program has ended.
    ///
    /// From here on, the child handles Ctrl-C, and termination signals are forwarded to it.
    pub(crate) fn start(
        mut command: Command,
        cpus: &[usize],
        on_end: impl FnOnce() + Send + 'static,
    ) -> io::Result<Child> {
        bind(&mut command, cpus)?;
        pass_signals_on();
        #[allow(clippy::zombie_processes, reason = "reaped by wait4 below, for its resource usage")]
        let mut child = command.spawn()?;
        let pid = child.id();
        FORWARD_TO.store(pid as i32, SeqCst);
        let (sender, ended) = channel();
        let running = Arc::new(Mutex::new(Some(pid as i32)));
        let until_waited = Arc::clone(&running);
        std::thread::spawn(move || {
            until_ended(pid);
            let end = {
                let mut number = until_waited.lock().unwrap_or_else(PoisonError::into_inner);
                *number = None;
                // Do not clear the entry of a program that was started since.
                let _ = FORWARD_TO.compare_exchange(pid as i32, 0, SeqCst, SeqCst);
                wait(pid as i32)
            };
            let _ = sender.send(end);
            on_end();
        });
        Ok(Child { pid, ended, stderr: child.stderr.take(), running, is_asked: false })
    }

    /// Process ID; it may be reused once the process has been waited for.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Its standard error, if the command pipes it.
    pub(crate) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.stderr.take()
    }

    /// How it ended, or `None` if it is still running.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.ended.try_recv().ok()
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&self) -> Ended {
        // The waiting thread always sends before it ends.
        self.ended.recv().unwrap_or(Ended {
            status: ExitStatus::from_raw(0),
            user_ns: 0,
            system_ns: 0,
            peak_memory: 0,
        })
    }

    /// Asks the program to end once it has run for `most`, and kills it after a grace period.
    pub(crate) fn end_after(&mut self, most: Duration, elapsed: Duration) {
        // Only once, because a second request may cut short an orderly exit.
        if elapsed >= most && !self.is_asked {
            self.is_asked = true;
            self.ask_to_end();
        }
        if elapsed >= most + GRACE {
            self.signal(libc::SIGKILL);
        }
    }

    /// Asks it to end, unless it has ended.
    pub(crate) fn ask_to_end(&self) {
        self.signal(libc::SIGTERM);
    }

    fn signal(&self, signal: i32) {
        let number = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = *number {
            // SAFETY: a signal to a child, which is not waited for while the lock is held.
            unsafe { libc::kill(pid, signal) };
        }
    }
}

/// Returns when a child has ended, without reaping it.
fn until_ended(pid: u32) {
    // SAFETY: `siginfo_t` is plain data, and all-zero bytes are valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let what = libc::WEXITED | libc::WNOWAIT;
    // SAFETY: `info` is valid for writes; the process is a child of this one. The loop retries on
    // interruption; other errors are left to `wait`.
    while unsafe { libc::waitid(libc::P_PID, pid, &raw mut info, what) } != 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Restricts a command to these CPUs, if any are given.
pub(crate) fn bind(command: &mut Command, cpus: &[usize]) -> io::Result<()> {
    let Some(set) = processor_set(cpus)? else { return Ok(()) };
    // SAFETY: between fork and exec, the closure makes only this system call.
    unsafe {
        command.pre_exec(move || {
            if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    Ok(())
}

/// Forwards signals to this process from now on; 0 stops forwarding.
pub(crate) fn answer_for(pid: i32) {
    if pid != 0 {
        pass_signals_on();
    }
    FORWARD_TO.store(pid, SeqCst);
}

/// Waits until a child has ended, and reaps it.
pub(crate) fn wait(pid: i32) -> Ended {
    let mut status = 0;
    // SAFETY: `rusage` is plain data, and all-zero bytes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are valid for writes; the process is a child of this one.
        let answer = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        if answer == pid || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break;
        }
    }
    Ended::new(status, &usage)
}

fn processor_set(cpus: &[usize]) -> io::Result<Option<libc::cpu_set_t>> {
    if cpus.is_empty() {
        return Ok(None);
    }
    // SAFETY: `cpu_set_t` is plain data. `CPU_SET` does not check its argument, so the numbers are
    // checked here.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("CPU {cpu} does not exist"),
            ));
        }
        // SAFETY: the number is below the size of the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    Ok(Some(set))
}

/// Forwards termination signals to the child, so that this process does not end before it. Signals
/// of the terminal are not forwarded: they reach the child directly, as they go to the whole
/// process group.
fn pass_signals_on() {
    extern "C" fn pass(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        let child = FORWARD_TO.load(SeqCst);
        // SAFETY: the kernel passes a valid `siginfo_t` to the handler.
        let is_of_terminal = unsafe { (*info).si_code } == libc::SI_KERNEL;
        if child > 0 && !is_of_terminal {
            // SAFETY: `kill` is async-signal-safe; the process is a child of this one.
            unsafe { libc::kill(child, signal) };
        }
    }
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only makes a system call, and both structures are plain data. A
        // handler is used rather than `SIG_IGN`, because a program started later inherits ignored
        // signals but not handlers.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let mut old: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = pass as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, &raw mut old);
            if old.sa_sigaction == libc::SIG_IGN {
                libc::sigaction(signal, &raw const old, std::ptr::null_mut());
            }
        }
    }
}
