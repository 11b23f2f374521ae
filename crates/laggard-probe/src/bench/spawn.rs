//! Starts processes fast, and so that they cannot outlive us.
//!
//! The child borrows our memory until it has become the program (as `posix_spawn` does it), so that
//! a start takes the same time however much memory the driver has. Unlike `posix_spawn` this binds
//! the child to processors, and lets the kernel end it when the driver ends.
#![allow(unsafe_code, reason = "a process is made by system calls")]

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

/// A program that is ready to be started, as often as wanted.
pub(super) struct Launch {
    args: Vec<CString>,
    env: Vec<CString>,
    directory: Option<CString>,
    cpus: Option<Cpus>,
}

impl Launch {
    /// The environment is whole; with no `cpus` the program runs where this thread does.
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

    /// Runs on these processors alone from now on.
    pub(super) fn bind(&mut self, cpus: Cpus) {
        self.cpus = Some(cpus);
    }

    /// Starts it with these files as its descriptors 0, 1, 2 and so on, in a group of its own. A
    /// failure comes with what was being done.
    pub(super) fn start(&self, files: &[BorrowedFd]) -> Result<Process, (&'static str, io::Error)> {
        let failed = |step| (step, io::Error::last_os_error());
        // Above those that they become, so that none is overwritten before its turn.
        let kept: Vec<OwnedFd> = files
            .iter()
            .map(|&file| above(file))
            .collect::<Result<_, _>>()
            .map_err(|error| ("its files", error))?;
        let files: Vec<RawFd> = kept.iter().map(AsRawFd::as_raw_fd).collect();
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([null()]).collect()
        };
        let (args, env) = (pointers(&self.args), pointers(&self.env));
        let group = Group::reserve();
        // SAFETY: plain data, filled in below.
        let mut mask: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: it takes nothing and cannot fail.
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
        // SAFETY: the child runs on a stack of its own and only until it has become the program;
        // this thread stands still for so long, so all that the child borrows is there. No handler
        // can run in the child: signals are blocked before, and have no handlers when they are not.
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
            let answer = if pid < 0 { Err(failed("a new process")) } else { Ok(pid) };
            if pid > 0 {
                group.set(pid);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut());
            answer?
        };
        // SAFETY: the kernel has just given this descriptor to us and to nobody else.
        let process = Process::new(pid, started, unsafe { OwnedFd::from_raw_fd(ended) }, group);
        match child.failed {
            Some((step, error)) => Err((step, io::Error::from_raw_os_error(error))),
            None => Ok(process),
        }
    }
}

const STACK: usize = 64 << 10;

/// What the child needs until it has become the program.
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

/// A copy of a descriptor whose number is above all that a child is given.
fn above(file: BorrowedFd) -> io::Result<OwnedFd> {
    const LOWEST: c_int = 16;
    // SAFETY: makes a descriptor, which is ours.
    let copy = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, LOWEST) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to us and to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// The child: system calls only, nothing that takes a lock or memory.
extern "C" fn become_program(child: *mut c_void) -> c_int {
    // SAFETY: what `start` passed, and nobody else uses it meanwhile.
    let child = unsafe { &mut *child.cast::<Child>() };
    let step = try_to_become(child);
    // SAFETY: the place of this thread's last error.
    child.failed = Some((step, unsafe { *libc::__errno_location() }));
    // SAFETY: ends the child without anything of ours being run.
    unsafe { libc::_exit(127) }
}

/// Returns only with what failed.
fn try_to_become(child: &Child) -> &'static str {
    // SAFETY: system calls on the child itself, with texts and lists that end in zero.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != child.parent {
            // The driver ended before it could matter to us.
            libc::_exit(127);
        }
        libc::setpgid(0, 0);
        // The same program gets the same addresses every time: where things lie must not be what
        // makes one side slower. A system that forbids it costs only that.
        libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
        if let Some(cpus) = &child.cpus
            && cpus.apply() != 0
        {
            return "the processors it is to run on";
        }
        for (number, &file) in (0..).zip(child.files) {
            if libc::dup2(file, number) < 0 {
                return "its files";
            }
        }
        if !child.directory.is_null() && libc::chdir(child.directory) != 0 {
            return "its directory";
        }
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, null(), &raw mut action);
            // Rust programs ignore a closed pipe, others do not expect that.
            if action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE {
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
        libc::sigprocmask(libc::SIG_SETMASK, child.mask, std::ptr::null_mut());
        libc::execve(child.args[0], child.args.as_ptr(), child.env.as_ptr());
    }
    "the program"
}
