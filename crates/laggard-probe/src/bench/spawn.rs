//! Starts processes quickly, such that they cannot outlive this process.
//!
//! The child shares this process's memory until it executes the program, as with `posix_spawn`, so
//! the start time does not depend on the driver's memory. Unlike `posix_spawn`, this code can set
//! the CPU affinity of the child, and the kernel kills the child when the driver ends.
#![allow(unsafe_code, reason = "clone and exec have no safe interface")]

use super::groups::Group;
use super::pin::Cpus;
use super::process::Process;
use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null;
use std::time::Instant;

/// A program that can be started any number of times.
pub(super) struct Launch {
    args: Vec<CString>,
    env: Vec<CString>,
    directory: Option<CString>,
    cpus: Option<Cpus>,
}

impl Launch {
    /// `env` is the full environment. Without `cpus`, the program runs on the CPUs of this thread.
    pub(super) fn new(
        program: &Path,
        args: &[OsString],
        env: &[(OsString, OsString)],
        directory: Option<&Path>,
        cpus: Option<Cpus>,
    ) -> io::Result<Launch> {
        let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(io::Error::from);
        let words =
            std::iter::once(program.as_os_str()).chain(args.iter().map(OsString::as_os_str));
        let pair = |(name, value): &(OsString, OsString)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())
                .map_err(io::Error::from)
        };
        Ok(Launch {
            args: words.map(text).collect::<io::Result<_>>()?,
            env: env.iter().map(pair).collect::<io::Result<_>>()?,
            directory: directory.map(|path| text(path.as_os_str())).transpose()?,
            cpus,
        })
    }

    /// Restricts later starts to these CPUs.
    pub(super) fn bind(&mut self, cpus: Cpus) {
        self.cpus = Some(cpus);
    }

    /// Starts the program in its own process group, with these files as descriptors 0, 1, 2 and so
    /// on. An error includes the step that failed.
    pub(super) fn start(&self, files: &[BorrowedFd]) -> Result<Process, (&'static str, io::Error)> {
        let failed = |step| (step, io::Error::last_os_error());
        // Duplicated above the target numbers, so that none is overwritten before it is used.
        let kept: Vec<OwnedFd> = files
            .iter()
            .map(|&file| above(file))
            .collect::<Result<_, _>>()
            .map_err(|error| ("opening its files", error))?;
        let files: Vec<RawFd> = kept.iter().map(AsRawFd::as_raw_fd).collect();
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([null()]).collect()
        };
        let (args, env) = (pointers(&self.args), pointers(&self.env));
        let group = Group::reserve();
        // SAFETY: `sigset_t` is plain data, and all-zero bytes are valid. It is filled in below.
        let mut mask: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: `getpid` takes no arguments and cannot fail.
        let parent = unsafe { libc::getpid() };
        let mut child = Child {
            args: &args,
            env: &env,
            files: &files,
            directory: self.directory.as_ref().map_or(null(), |path| path.as_ptr()),
            cpus: self.cpus,
            parent,
            mask: &raw const mask,
            failed: None,
        };
        let mut stack = vec![0_u128; STACK / size_of::<u128>()];
        let mut ended: c_int = -1;
        let started;
        // SAFETY: the child runs on its own stack, and only until it executes the program.
        // `CLONE_VFORK` suspends this thread until then, so everything that the child borrows stays
        // alive. No signal handler can run in the child: all signals are blocked before the clone,
        // and the child resets handlers before it restores the mask.
        let pid = unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut mask);
            started = Instant::now();
            let pid = libc::clone(
                become_program,
                stack.as_mut_ptr().add(stack.len()).cast(),
                libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD,
                (&raw mut child).cast(),
                &raw mut ended,
            );
            let answer = if pid < 0 { Err(failed("creating a process")) } else { Ok(pid) };
            if pid > 0 {
                group.set(pid);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut());
            answer?
        };
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let process = Process::new(pid, started, unsafe { OwnedFd::from_raw_fd(ended) }, group);
        match child.failed {
            Some((step, error)) => Err((step, io::Error::from_raw_os_error(error))),
            None => Ok(process),
        }
    }
}

const STACK: usize = 64 << 10;

/// Data that the child needs until it executes the program.
struct Child<'a> {
    args: &'a [*const c_char],
    env: &'a [*const c_char],
    files: &'a [RawFd],
    directory: *const c_char,
    cpus: Option<Cpus>,
    parent: i32,
    mask: *const libc::sigset_t,
    failed: Option<(&'static str, i32)>,
}

/// Duplicates a descriptor to a number above those that a child gets.
fn above(file: BorrowedFd) -> io::Result<OwnedFd> {
    const LOWEST: c_int = 16;
    // SAFETY: `fcntl` creates a new descriptor and accesses no memory.
    let copy = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, LOWEST) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// The child. It makes only system calls: nothing that takes a lock or allocates memory.
extern "C" fn become_program(child: *mut c_void) -> c_int {
    // SAFETY: `start` passed this pointer to a live `Child` and is suspended, so nothing else uses
    // it.
    let child = unsafe { &mut *child.cast::<Child>() };
    let step = try_to_become(child);
    // SAFETY: `__errno_location` returns a valid pointer to this thread's `errno`.
    child.failed = Some((step, unsafe { *libc::__errno_location() }));
    // SAFETY: `_exit` ends the child without running any code of this process.
    unsafe { libc::_exit(127) }
}

/// Returns only on failure, with the step that failed.
fn try_to_become(child: &Child) -> &'static str {
    // SAFETY: these system calls affect only the child. The strings and lists are null-terminated
    // and outlive the calls.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != child.parent {
            // The driver ended before the death signal was set.
            libc::_exit(127);
        }
        libc::setpgid(0, 0);
        // Without ASLR, the same program gets the same addresses every time, so that the memory
        // layout does not make one side slower. If the system forbids this, addresses stay random.
        libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
        if let Some(cpus) = &child.cpus
            && cpus.apply() != 0
        {
            return "setting its CPU affinity";
        }
        for (number, &file) in (0..).zip(child.files) {
            if libc::dup2(file, number) < 0 {
                return "opening its files";
            }
        }
        if !child.directory.is_null() && libc::chdir(child.directory) != 0 {
            return "entering its directory";
        }
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, null(), &raw mut action);
            // Rust programs ignore SIGPIPE, but other programs expect the default action.
            if action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE {
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
        libc::sigprocmask(libc::SIG_SETMASK, child.mask, std::ptr::null_mut());
        libc::execve(child.args[0], child.args.as_ptr(), child.env.as_ptr());
    }
    "executing it"
}
