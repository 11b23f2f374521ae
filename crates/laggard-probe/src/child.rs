//! The measured program as a child process: started, waited for, its signals passed on.
#![allow(unsafe_code, reason = "signals, affinity and resource usage have no safe interface")]

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStderr, Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering::*};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// A running program.
pub(crate) struct Child {
    pid: u32,
    ended: Receiver<Ended>,
    stderr: Option<ChildStderr>,
    /// Its number until it is waited for: from then on the number is another's.
    running: Arc<Mutex<Option<i32>>>,
}

/// How a program ended, and what it used.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// CPU time outside the kernel, with that of children it waited for.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Largest resident memory, bytes.
    pub peak_memory: u64,
}

impl Ended {
    /// From what the kernel said of a process that ended.
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

    /// The code that a shell gives it: a signal is 128 and its number.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }
}

/// Process that signals are passed on to.
static FORWARD_TO: AtomicI32 = AtomicI32::new(0);

impl Child {
    /// Starts the command, on these processors if any are given. `on_end` is called from another
    /// thread when the program has ended.
    ///
    /// From here on Ctrl-C is the child's to answer, and a request to terminate goes to it.
    pub(crate) fn start(
        mut command: Command,
        cpus: &[usize],
        on_end: impl FnOnce() + Send + 'static,
    ) -> io::Result<Child> {
        bind(&mut command, cpus)?;
        pass_signals_on();
        #[allow(clippy::zombie_processes, reason = "reaped by wait4 below, for its usage")]
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
                // A program that was started since has its own claim to signals.
                let _ = FORWARD_TO.compare_exchange(pid as i32, 0, SeqCst, SeqCst);
                wait(pid as i32)
            };
            let _ = sender.send(end);
            on_end();
        });
        Ok(Child { pid, ended, stderr: child.stderr.take(), running })
    }

    /// Its number; that of another process once it has ended and been waited for.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// What it writes to standard error, if the command says that we get it.
    pub(crate) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.stderr.take()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.ended.try_recv().ok()
    }

    /// Waits until it has ended, and says how.
    pub(crate) fn wait(&self) -> Ended {
        // The waiting thread always answers before it ends.
        self.ended.recv().unwrap_or(Ended {
            status: ExitStatus::from_raw(0),
            user_ns: 0,
            system_ns: 0,
            peak_memory: 0,
        })
    }

    /// Asks it to end, if it has not.
    pub(crate) fn interrupt(&self) {
        let number = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = *number {
            // SAFETY: a signal to our own child, which is not waited for while the lock is held.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
    }
}

/// Returns when a child has ended, and leaves it to be waited for.
fn until_ended(pid: u32) {
    // SAFETY: plain data that the kernel fills in.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let what = libc::WEXITED | libc::WNOWAIT;
    // SAFETY: looks at our own child. An interruption is no end, an error leaves it to `wait`.
    while unsafe { libc::waitid(libc::P_PID, pid, &raw mut info, what) } != 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Lets a command run on these processors alone, if any are given.
pub(crate) fn bind(command: &mut Command, cpus: &[usize]) -> io::Result<()> {
    let Some(set) = processor_set(cpus)? else { return Ok(()) };
    // SAFETY: between fork and exec only this system call is made.
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

/// Passes signals on to this process from now on, or with 0 to none.
pub(crate) fn answer_for(pid: i32) {
    if pid != 0 {
        pass_signals_on();
    }
    FORWARD_TO.store(pid, SeqCst);
}

/// Waits until a child has ended.
pub(crate) fn wait(pid: i32) -> Ended {
    let mut status = 0;
    // SAFETY: plain data that the kernel fills in.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: waits for our own child.
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
    // SAFETY: plain data; CPU_SET checks nothing, so the numbers are checked here.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("there is no CPU {cpu}"),
            ));
        }
        // SAFETY: the number is below the size of the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    Ok(Some(set))
}

/// Ctrl-C reaches the child by itself, being of the same group of processes: we only must not
/// end before it. Other requests to end reach us alone and are passed on.
fn pass_signals_on() {
    extern "C" fn stay(_: i32) {}
    extern "C" fn pass(signal: i32) {
        let child = FORWARD_TO.load(SeqCst);
        if child > 0 {
            // SAFETY: may be called in a handler; the child is ours.
            unsafe { libc::kill(child, signal) };
        }
    }
    // SAFETY: handlers that only make a system call. A program started later gets the default
    // actions again, which a signal that is ignored would not.
    unsafe {
        let stay = stay as *const () as libc::sighandler_t;
        let pass = pass as *const () as libc::sighandler_t;
        for (signal, handler) in [
            (libc::SIGINT, stay),
            (libc::SIGQUIT, stay),
            (libc::SIGTERM, pass),
            (libc::SIGHUP, pass),
        ] {
            if libc::signal(signal, handler) == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
}
