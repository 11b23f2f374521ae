//! System calls and kernel structures without libc, because agents run where libc must not be
//! entered (signal handlers, the dynamic linker).

use core::arch::asm;

/// System call numbers (x86-64).
pub(crate) mod nr {
    pub(crate) const READ: usize = 0;
    pub(crate) const OPEN: usize = 2;
    pub(crate) const CLOSE: usize = 3;
    pub(crate) const FSTAT: usize = 5;
    pub(crate) const MMAP: usize = 9;
    pub(crate) const MPROTECT: usize = 10;
    pub(crate) const MUNMAP: usize = 11;
    pub(crate) const RT_SIGACTION: usize = 13;
    pub(crate) const RT_SIGPROCMASK: usize = 14;
    pub(crate) const IOCTL: usize = 16;
    pub(crate) const PREAD64: usize = 17;
    pub(crate) const ACCESS: usize = 21;
    pub(crate) const MADVISE: usize = 28;
    pub(crate) const NANOSLEEP: usize = 35;
    pub(crate) const GETPID: usize = 39;
    pub(crate) const FCNTL: usize = 72;
    pub(crate) const FTRUNCATE: usize = 77;
    pub(crate) const READLINK: usize = 89;
    pub(crate) const GETRUSAGE: usize = 98;
    pub(crate) const GETEUID: usize = 107;
    pub(crate) const GETEGID: usize = 108;
    pub(crate) const GETPPID: usize = 110;
    pub(crate) const PRCTL: usize = 157;
    pub(crate) const GETTID: usize = 186;
    pub(crate) const FUTEX: usize = 202;
    pub(crate) const GETDENTS64: usize = 217;
    pub(crate) const TIMER_CREATE: usize = 222;
    pub(crate) const TIMER_SETTIME: usize = 223;
    pub(crate) const TIMER_DELETE: usize = 226;
    pub(crate) const CLOCK_GETTIME: usize = 228;
    pub(crate) const EXIT_GROUP: usize = 231;
    pub(crate) const TGKILL: usize = 234;
    pub(crate) const FALLOCATE: usize = 285;
    pub(crate) const PERF_EVENT_OPEN: usize = 298;
    pub(crate) const PROCESS_VM_READV: usize = 310;
}

/// Makes a system call. A negative result is a negated error number.
///
/// # Safety
/// The requirements are those of the system call.
#[inline(always)]
pub(crate) unsafe fn raw(number: usize, args: [usize; 6]) -> isize {
    let answer: isize;
    // SAFETY: follows the kernel's calling convention; the caller guarantees that the call is
    // sound.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

macro_rules! syscall {
    ($number:expr $(, $arg:expr)*) => {{
        let given = [$($arg as usize),*];
        let mut args = [0usize; 6];
        let mut at = 0;
        while at < given.len() {
            args[at] = given[at];
            at += 1;
        }
        crate::sys::raw($number, args)
    }};
}
#[allow(unused_imports, reason = "not every agent uses it")]
pub(crate) use syscall;

/// Clock IDs.
pub(crate) const CLOCK_MONOTONIC: usize = 1;
pub(crate) const CLOCK_THREAD_CPUTIME_ID: usize = 3;

/// Time of a clock in nanoseconds, by system call.
pub(crate) fn clock_ns(clock: usize) -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes two words, for which `time` has room.
    unsafe { syscall!(nr::CLOCK_GETTIME, clock, time.as_mut_ptr()) };
    time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1])
}

/// User and system CPU time of this process in nanoseconds.
pub(crate) fn cpu_times() -> [u64; 2] {
    const RUSAGE_SELF: usize = 0;
    let mut usage = [0u64; 18];
    // SAFETY: the kernel writes a `struct rusage`, for which `usage` has room.
    unsafe { syscall!(nr::GETRUSAGE, RUSAGE_SELF, usage.as_mut_ptr()) };
    let ns = |at: usize| {
        usage[at].wrapping_mul(1_000_000_000).wrapping_add(usage[at + 1].wrapping_mul(1000))
    };
    [ns(0), ns(2)]
}

/// The clock ID of the CPU time of a thread of this process.
pub(crate) fn clock_of_thread(tid: u32) -> usize {
    const OF_A_THREAD: i32 = 4;
    const SCHEDULED_TIME: i32 = 2;
    (!(tid as i32) << 3 | OF_A_THREAD | SCHEDULED_TIME) as usize
}

/// Sleeps; returns early if a signal arrives.
pub(crate) fn sleep_ns(time: u64) {
    let time = [time / 1_000_000_000, time % 1_000_000_000];
    // SAFETY: the kernel reads the two words of `time`.
    unsafe { syscall!(nr::NANOSLEEP, time.as_ptr(), 0) };
}

pub(crate) fn getpid() -> u32 {
    // SAFETY: takes no arguments and has no effect.
    unsafe { syscall!(nr::GETPID) as u32 }
}

pub(crate) fn gettid() -> u32 {
    // SAFETY: takes no arguments and has no effect.
    unsafe { syscall!(nr::GETTID) as u32 }
}

/// The address of this thread's control block, `pthread_self()`, whose first word points to itself.
/// It lies on the thread's stack, except for the first thread.
pub(crate) fn thread_pointer() -> u64 {
    let pointer;
    // SAFETY: reads the first word of the thread's own control block.
    unsafe {
        asm!(
            "mov {0}, qword ptr fs:[0]",
            out(reg) pointer,
            options(nostack, preserves_flags, readonly),
        );
    }
    pointer
}

pub(crate) const O_RDONLY: usize = 0;
pub(crate) const O_RDWR: usize = 2;
pub(crate) const O_CLOEXEC: usize = 0o2000000;
/// Opens pipes and devices without waiting for them, and no terminal as the controlling one.
pub(crate) const O_NO_WAIT: usize = 0o4000 | 0o400;
pub(crate) const O_DIRECTORY: usize = 0o200000;
pub(crate) const PROT_READ: usize = 1;
pub(crate) const PROT_WRITE: usize = 2;
pub(crate) const PROT_EXEC: usize = 4;
pub(crate) const MAP_SHARED: usize = 1;
pub(crate) const MAP_PRIVATE: usize = 2;
pub(crate) const MAP_ANONYMOUS: usize = 0x20;
pub(crate) const MAP_NORESERVE: usize = 0x4000;
pub(crate) const MADV_DONTNEED: usize = 4;
pub(crate) const MADV_WIPEONFORK: usize = 18;
pub(crate) const MADV_POPULATE_WRITE: usize = 23;
pub(crate) const PR_GET_NAME: usize = 16;
