//! The measured program as a child process: started, waited for, its signals passed on.
#![allow(unsafe_code, reason = "signals, affinity and resource usage have no safe interface")]

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
    /// Its number until it is waited for: from then on the number is another's.
    running: Arc<Mutex<Option<i32>>>,
    /// Whether it was asked to end.
    is_asked: bool,
}

/// Time that a program has to end by itself when it is asked to.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

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
        Ok(Child { pid, ended, stderr: child.stderr.take(), running, is_asked: false })
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

    /// Asks it to end once it has run for this long, and ends it when it does not.
    pub(crate) fn end_after(&mut self, most: Duration, elapsed: Duration) {
        // Once, so that a program that ends well on the first request is not cut short by a second.
        if elapsed >= most && !self.is_asked {
            self.is_asked = true;
            self.ask_to_end();
        }
        if elapsed >= most + GRACE {
            self.signal(libc::SIGKILL);
        }
    }

    /// Asks it to end, if it has not.
    pub(crate) fn ask_to_end(&self) {
        self.signal(libc::SIGTERM);
    }

    fn signal(&self, signal: i32) {
        let number = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = *number {
            // SAFETY: a signal to our own child, which is not waited for while the lock is held.
            unsafe { libc::kill(pid, signal) };
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

/// Requests to end are passed on to the child, and we do not end before it. Those of the terminal
/// reach it by themselves, being for the whole group of processes.
fn pass_signals_on() {
    extern "C" fn pass(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        let child = FORWARD_TO.load(SeqCst);
        // SAFETY: the kernel's; whoever the signal is from.
        let is_of_terminal = unsafe { (*info).si_code } == libc::SI_KERNEL;
        if child > 0 && !is_of_terminal {
            // SAFETY: may be called in a handler; the child is ours.
            unsafe { libc::kill(child, signal) };
        }
    }
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: a handler that only makes a system call. A program started later gets the
        // default actions again, which a signal that is ignored would not.
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
