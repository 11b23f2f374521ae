//! The requests of ptrace that are used, and what a stopped thread says.
#![allow(unsafe_code, reason = "ptrace has no safe interface")]

use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// A change of a traced thread.
pub(crate) enum Change {
    /// It ended with this status of `wait`.
    Ended(i32),
    /// It entered or left the kernel.
    Syscall,
    /// It made a thread or process, which will say hello by itself.
    Made,
    /// It became another program; what its thread was numbered before.
    Exec { before: i32 },
    /// It is new, or something asked it to stop.
    Hello,
    /// The whole process is stopped by a signal, as by Ctrl-Z.
    GroupStop,
    /// It is about to get this signal.
    Signal(i32),
}

/// What a thread does at the kernel's door.
pub(crate) enum Door {
    /// It enters.
    Entry {
        /// Number of the call.
        number: u64,
        /// Where it came from: the address after the instruction.
        from: u64,
        /// Whether the number is of the 64-bit table.
        is_64: bool,
    },
    /// It leaves, with this error unless 0.
    Exit {
        /// The error's number.
        error: u64,
    },
    /// Something else.
    Other,
}

fn request(
    what: libc::c_uint,
    tid: i32,
    address: *mut libc::c_void,
    value: *mut libc::c_void,
) -> io::Result<i64> {
    // SAFETY: callers give pointers that are right for their request, or numbers.
    let answer = unsafe { libc::ptrace(what, tid, address, value) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// Begins to trace a running thread, with its threads to come and, if wanted, its children.
pub(crate) fn seize(tid: i32, children: bool) -> io::Result<()> {
    let mut options =
        libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_TRACECLONE;
    if children {
        options |= libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;
    }
    request(libc::PTRACE_SEIZE, tid, null_mut(), options as *mut _).map(|_| ())
}

/// Asks a thread to stop.
pub(crate) fn interrupt(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, null_mut(), null_mut()).map(|_| ())
}

/// Lets a thread run to its next visit to the kernel, with a signal unless 0. One that was killed
/// meanwhile is no error: its end will be told.
pub(crate) fn go_on(tid: i32, signal: i32) {
    let _ = request(libc::PTRACE_SYSCALL, tid, null_mut(), signal as usize as *mut _);
}

/// Lets a thread run, whatever it asks of the kernel; else as [`go_on`].
pub(crate) fn run_on(tid: i32, signal: i32) {
    let _ = request(libc::PTRACE_CONT, tid, null_mut(), signal as usize as *mut _);
}

/// Leaves a thread stopped, until something continues its process.
pub(crate) fn listen(tid: i32) {
    let _ = request(libc::PTRACE_LISTEN, tid, null_mut(), null_mut());
}

/// Traces a stopped thread no longer.
pub(crate) fn detach(tid: i32) {
    let _ = request(libc::PTRACE_DETACH, tid, null_mut(), null_mut());
}

/// What a thread that is stopped at the kernel's door does there; none when it is gone.
pub(crate) fn door(tid: i32) -> io::Result<Door> {
    const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
    /// Numbers of the x32 interface have this bit.
    const X32: u64 = 0x4000_0000;
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = size_of::<libc::ptrace_syscall_info>();
    let at = info.as_mut_ptr().cast();
    request(libc::PTRACE_GET_SYSCALL_INFO, tid, size as *mut _, at)?;
    // SAFETY: all bytes are set, and any are right for its integers.
    let info = unsafe { info.assume_init() };
    Ok(match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: the kind says that this part is the one filled in.
            let number = unsafe { info.u.entry.nr };
            let is_64 = info.arch == AUDIT_ARCH_X86_64 && number & X32 == 0;
            Door::Entry { number, from: info.instruction_pointer, is_64 }
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => {
            // SAFETY: as above.
            let (value, is_error) = unsafe { (info.u.exit.sval, info.u.exit.is_error) };
            Door::Exit { error: if is_error == 0 { 0 } else { value.unsigned_abs() } }
        }
        _ => Door::Other,
    })
}

/// Waits for the next change of any thread that this one traces: which thread, what, and what it
/// used so far. None when nothing is traced any more.
pub(crate) fn next() -> io::Result<Option<(i32, Change, libc::rusage)>> {
    // SAFETY: plain data that the kernel fills in.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    loop {
        // Children of other threads are theirs to wait for.
        let flags = libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: both places live through the call.
        let tid = unsafe { libc::wait4(-1, &raw mut status, flags, &raw mut usage) };
        if tid > 0 {
            return Ok(change(tid, status).map(|change| (tid, change, usage)));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ECHILD) => return Ok(None),
            _ => return Err(error),
        }
    }
}

fn change(tid: i32, status: i32) -> Option<Change> {
    if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
        return Some(Change::Ended(status));
    }
    let signal = libc::WSTOPSIG(status);
    Some(match status >> 16 {
        libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
            Change::Made
        }
        libc::PTRACE_EVENT_EXEC => Change::Exec { before: message(tid).unwrap_or(tid) },
        libc::PTRACE_EVENT_STOP => match signal {
            libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => Change::GroupStop,
            _ => Change::Hello,
        },
        0 if signal == libc::SIGTRAP | 0x80 => Change::Syscall,
        0 => Change::Signal(signal),
        _ => Change::Hello,
    })
}

fn message(tid: i32) -> Option<i32> {
    let mut message: libc::c_ulong = 0;
    let at = (&raw mut message).cast();
    request(libc::PTRACE_GETEVENTMSG, tid, null_mut(), at).ok()?;
    i32::try_from(message).ok()
}

/// Whether a child has ended, without taking notice of it; waits until it has ended or stopped.
pub(crate) fn has_ended(pid: i32) -> io::Result<bool> {
    let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL;
    loop {
        // SAFETY: plain data that the kernel fills in.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the place lives through the call.
        let answer = unsafe { libc::waitid(libc::P_PID, pid as u32, &raw mut info, flags) };
        if answer == 0 {
            let code = info.si_code;
            return Ok([libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED].contains(&code));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            // The thread that started it has waited for it already.
            Some(libc::ECHILD) => return Ok(true),
            _ => return Err(error),
        }
    }
}

/// Makes a child that waits for a byte, makes cheap system calls and ends: its number, and where to
/// write the byte.
pub(crate) fn caller(times: usize) -> io::Result<(i32, io::PipeWriter)> {
    use std::os::fd::AsRawFd;
    let (wait, go) = io::pipe()?;
    let (wait_fd, go_fd) = (wait.as_raw_fd(), go.as_raw_fd());
    // SAFETY: the child makes system calls only, none of which allocates or locks.
    let pid = unsafe { libc::fork() };
    match pid {
        0 => {
            let mut byte = 0_u8;
            // SAFETY: the descriptors are this process's own since the fork.
            unsafe {
                libc::close(go_fd);
                while libc::read(wait_fd, (&raw mut byte).cast(), 1) < 0 {}
                for _ in 0..times {
                    libc::syscall(libc::SYS_getppid);
                }
                libc::_exit(0)
            }
        }
        1.. => Ok((pid, go)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The process of a thread.
pub(crate) fn process_of(tid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

/// The name of a thread.
pub(crate) fn name_of(tid: i32) -> String {
    let name = std::fs::read(format!("/proc/{tid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(name.trim_ascii_end()).into_owned()
}

/// The name of a thread's program.
pub(crate) fn program_of(tid: i32) -> String {
    let path = std::fs::read_link(format!("/proc/{tid}/exe")).unwrap_or_default();
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Why ptrace is of no use here, if an answer of the kernel means that.
pub(crate) fn refusal(error: &io::Error) -> Option<String> {
    Some(match error.raw_os_error()? {
        libc::EPERM | libc::EACCES => {
            "not permitted (a container or the setting kernel.yama.ptrace_scope forbids it)".into()
        }
        libc::EIO | libc::ENOSYS => {
            "the kernel does not describe system calls (it is older than 5.3)".into()
        }
        _ => return None,
    })
}
