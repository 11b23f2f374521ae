//! System calls that only ask.
#![allow(unsafe_code)] // the C library is asked

use laggard_core::model::host::Known;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether the process has the rights of root.
pub(super) fn is_root() -> bool {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The limit of a resource that counts; none is unlimited.
pub(super) fn memlock() -> Known<Option<u64>> {
    limit(libc::RLIMIT_MEMLOCK as _)
}

/// How many files a process may have open; none is unlimited.
pub(super) fn open_files() -> Known<Option<u64>> {
    limit(libc::RLIMIT_NOFILE as _)
}

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

fn limit(resource: Resource) -> Known<Option<u64>> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is written to a value that lives through the call.
    if unsafe { libc::getrlimit(resource, &raw mut limit) } != 0 {
        return Known::unknown(io::Error::last_os_error().to_string());
    }
    Known::Is((limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur))
}

/// Bytes of a file system that are free to this user, and all of them.
pub(super) fn space(path: &Path) -> Known<(u64, u64)> {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else {
        return Known::unknown("its path has a zero byte");
    };
    // SAFETY: a structure of integers, for which zero is a value.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a path that ends in zero, and a structure that lives through the call.
    if unsafe { libc::statvfs(name.as_ptr(), &raw mut stat) } != 0 {
        return Known::unknown(io::Error::last_os_error().to_string());
    }
    let block = u64::from(stat.f_frsize as u32);
    Known::Is((
        block.saturating_mul(stat.f_bavail as u64),
        block.saturating_mul(stat.f_blocks as u64),
    ))
}

/// Whether this user may write to a directory.
pub(super) fn is_writable(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a path that ends in zero.
    unsafe { libc::access(name.as_ptr(), libc::W_OK | libc::X_OK) == 0 }
}

/// The step of the coarse clock, which is one tick of the kernel, in nanoseconds.
#[cfg(target_os = "linux")]
pub(super) fn tick_ns() -> Known<u64> {
    let mut step = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the step is written to a value that lives through the call.
    if unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut step) } != 0 {
        return Known::unknown(io::Error::last_os_error().to_string());
    }
    Known::Is(
        (step.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(step.tv_nsec as u64),
    )
}

#[cfg(not(target_os = "linux"))]
pub(super) fn tick_ns() -> Known<u64> {
    Known::unknown("only known on Linux")
}

/// Ends a process and those that it started in its group.
pub(super) fn kill_group(leader: u32) {
    if let Ok(leader @ 2..) = i32::try_from(leader) {
        // SAFETY: it takes numbers; the group is that of a child not yet waited for, so the number
        // is nobody else's.
        unsafe { libc::kill(-leader, libc::SIGKILL) };
    }
}
