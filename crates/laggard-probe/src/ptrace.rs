//! The ptrace requests in use, and the decoding of ptrace stops.
#![allow(unsafe_code, reason = "ptrace has no safe interface")]

use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// A state change of a traced thread.
pub(crate) enum Change {
    /// It ended with this `wait` status.
    Ended(i32),
    /// It entered or left the kernel.
    Syscall,
    /// It created a thread or process, which will be reported separately.
    Made,
    /// It executed another program; the thread ID before that.
    Exec { before: i32 },
    /// It is new, or was interrupted.
    Hello,
    /// The whole process was stopped by a signal, such as Ctrl-Z.
    GroupStop,
    /// This signal is about to be delivered to it.
    Signal(i32),
}

/// A system call stop.
pub(crate) enum Door {
    /// The thread enters the kernel.
    Entry {
        /// Number of the system call.
        number: u64,
        /// Address after the instruction that entered the kernel.
        from: u64,
        /// Whether the number refers to the 64-bit table.
        is_64: bool,
    },
    /// The thread leaves the kernel.
    Exit {
        /// Error number; 0 on success.
        error: u64,
    },
    /// Another kind of stop.
    Other,
}

fn request(
    what: libc::c_uint,
    tid: i32,
    address: *mut libc::c_void,
    value: *mut libc::c_void,
) -> io::Result<i64> {
    // SAFETY: callers pass pointers that are valid for their request, or integers.
    let answer = unsafe { libc::ptrace(what, tid, address, value) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// Starts tracing a running thread, its future threads and, if `children` is set, its children.
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

/// Continues a thread until it next enters or leaves the kernel, and delivers a signal unless 0. A
/// thread that was killed meanwhile is not an error: its end will be reported.
pub(crate) fn go_on(tid: i32, signal: i32) {
    let _ = request(libc::PTRACE_SYSCALL, tid, null_mut(), signal as usize as *mut _);
}

/// Continues a thread without stops at system calls; otherwise like [`go_on`].
pub(crate) fn run_on(tid: i32, signal: i32) {
    let _ = request(libc::PTRACE_CONT, tid, null_mut(), signal as usize as *mut _);
}

/// Leaves a thread stopped until its process is continued.
pub(crate) fn listen(tid: i32) {
    let _ = request(libc::PTRACE_LISTEN, tid, null_mut(), null_mut());
}

/// Stops tracing a stopped thread.
pub(crate) fn detach(tid: i32) {
    let _ = request(libc::PTRACE_DETACH, tid, null_mut(), null_mut());
}

/// The kind of system call stop that a thread is in. Fails if the thread is gone.
pub(crate) fn door(tid: i32) -> io::Result<Door> {
    const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
    /// System call numbers of the x32 ABI have this bit.
    const X32: u64 = 0x4000_0000;
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = size_of::<libc::ptrace_syscall_info>();
    let at = info.as_mut_ptr().cast();
    request(libc::PTRACE_GET_SYSCALL_INFO, tid, size as *mut _, at)?;
    // SAFETY: all bytes are initialized, and any bytes are valid for its integers.
    let info = unsafe { info.assume_init() };
    Ok(match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: `op` selects this field of the union.
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

/// Waits for the next state change of any thread that this thread traces. Returns the thread ID,
/// the change and the resource usage; `None` if nothing is traced any more.
pub(crate) fn next() -> io::Result<Option<(i32, Change, libc::rusage)>> {
    // SAFETY: `rusage` is plain data, and all-zero bytes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    loop {
        // Children of other threads are waited for by those threads.
        let flags = libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: both pointers are valid for writes during the call.
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

/// Waits until a child has ended or stopped, without reaping it. Returns whether it has ended.
pub(crate) fn has_ended(pid: i32) -> io::Result<bool> {
    let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL;
    loop {
        // SAFETY: `siginfo_t` is plain data, and all-zero bytes are valid.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` is valid for writes during the call.
        let answer = unsafe { libc::waitid(libc::P_PID, pid as u32, &raw mut info, flags) };
        if answer == 0 {
            let code = info.si_code;
            return Ok([libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED].contains(&code));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            // The thread that started the child has already waited for it.
            Some(libc::ECHILD) => return Ok(true),
            _ => return Err(error),
        }
    }
}

/// Forks a child that waits for a byte, makes `times` cheap system calls and exits. Returns its
/// process ID and the pipe for the byte.
pub(crate) fn caller(times: usize) -> io::Result<(i32, io::PipeWriter)> {
    use std::os::fd::AsRawFd;
    let (wait, go) = io::pipe()?;
    let (wait_fd, go_fd) = (wait.as_raw_fd(), go.as_raw_fd());
    // SAFETY: the child makes only system calls, none of which allocates or takes a lock.
    let pid = unsafe { libc::fork() };
    match pid {
        0 => {
            let mut byte = 0_u8;
            // SAFETY: the child owns copies of the descriptors since the fork.
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

/// The process ID of a thread.
pub(crate) fn process_of(tid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

/// The name of a thread.
pub(crate) fn name_of(tid: i32) -> String {
    let name = std::fs::read(format!("/proc/{tid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(name.trim_ascii_end()).into_owned()
}

/// The name of the program that a thread runs.
pub(crate) fn program_of(tid: i32) -> String {
    let path = std::fs::read_link(format!("/proc/{tid}/exe")).unwrap_or_default();
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Why ptrace is not available, if the error of the kernel means that.
pub(crate) fn refusal(error: &io::Error) -> Option<String> {
    Some(match error.raw_os_error()? {
        libc::EPERM | libc::EACCES => {
            "not permitted (forbidden by the container or by kernel.yama.ptrace_scope)".into()
        }
        libc::EIO | libc::ENOSYS => {
            "the kernel lacks PTRACE_GET_SYSCALL_INFO (it is older than 5.3)".into()
        }
        _ => return None,
    })
}
