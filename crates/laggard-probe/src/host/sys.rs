//! System calls that only query.
#![allow(unsafe_code)] // calls into the C library

use laggard_core::model::host::Known;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether the process runs as root.
pub(super) fn is_root() -> bool {
    // SAFETY: `geteuid` takes no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Limit of locked memory in bytes; `None` if unlimited.
pub(super) fn memlock() -> Known<Option<u64>> {
    limit(libc::RLIMIT_MEMLOCK as _)
}

/// Maximum number of open files; `None` if unlimited.
pub(super) fn open_files() -> Known<Option<u64>> {
    limit(libc::RLIMIT_NOFILE as _)
}

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

fn limit(resource: Resource) -> Known<Option<u64>> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes and outlives the call.
    if unsafe { libc::getrlimit(resource, &raw mut limit) } != 0 {
        return Known::unknown(io::Error::last_os_error().to_string());
    }
    Known::Is((limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur))
}

/// Free bytes for this user, and total bytes, of a file system.
pub(super) fn space(path: &Path) -> Known<(u64, u64)> {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else {
        return Known::unknown("the path contains a zero byte");
    };
    // SAFETY: `statvfs` is plain data, and all-zero bytes are valid.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is null-terminated, and `stat` is valid for writes; both outlive the call.
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
    // SAFETY: `name` is null-terminated and outlives the call.
    unsafe { libc::access(name.as_ptr(), libc::W_OK | libc::X_OK) == 0 }
}

/// Resolution of the coarse clock, which is one kernel tick, in nanoseconds.
#[cfg(target_os = "linux")]
pub(super) fn tick_ns() -> Known<u64> {
    let mut step = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `step` is valid for writes and outlives the call.
    if unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut step) } != 0 {
        return Known::unknown(io::Error::last_os_error().to_string());
    }
    Known::Is(
        (step.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(step.tv_nsec as u64),
    )
}

#[cfg(not(target_os = "linux"))]
pub(super) fn tick_ns() -> Known<u64> {
    Known::unknown("only available on Linux")
}

/// Kills a process and its process group.
pub(super) fn kill_group(leader: u32) {
    if let Ok(leader @ 2..) = i32::try_from(leader) {
        // SAFETY: `kill` accesses no memory. The leader is a child that has not been waited for, so
        // its ID is not reused.
        unsafe { libc::kill(-leader, libc::SIGKILL) };
    }
}
