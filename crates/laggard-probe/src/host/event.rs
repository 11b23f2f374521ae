//! Opens perf events to test whether the kernel allows them.
#![allow(unsafe_code)] // perf_event_open has no safe interface

use laggard_core::model::host::Attempt;
use perf_event_open_sys as perf;
use perf_event_open_sys::bindings as name;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// An open event of the calling thread.
pub(super) struct Event(OwnedFd);

impl Event {
    /// Opens an event of the calling thread, on any CPU.
    pub(super) fn open(mut attr: name::perf_event_attr) -> io::Result<Event> {
        attr.size = size_of::<name::perf_event_attr>() as u32;
        let flags = u64::from(name::PERF_FLAG_FD_CLOEXEC);
        // SAFETY: `attr` is a complete structure that outlives the call.
        let fd = unsafe { perf::perf_event_open(&raw mut attr, 0, -1, -1, flags as _) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(Event(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(super) fn fd(&self) -> i32 {
        self.0.as_raw_fd()
    }

    pub(super) fn enable(&self) -> io::Result<()> {
        // SAFETY: this ioctl of the event takes no pointer.
        done(unsafe { perf::ioctls::ENABLE(self.fd(), 0) })
    }

    pub(super) fn disable(&self) -> io::Result<()> {
        // SAFETY: this ioctl of the event takes no pointer.
        done(unsafe { perf::ioctls::DISABLE(self.fd(), 0) })
    }

    /// The current count.
    fn count(&self) -> io::Result<u64> {
        let mut count = 0_u64;
        // SAFETY: `count` is valid for writes of eight bytes.
        let read = unsafe { libc::read(self.fd(), (&raw mut count).cast(), size_of::<u64>()) };
        if read == size_of::<u64>() as isize { Ok(count) } else { Err(io::Error::last_os_error()) }
    }
}

fn done(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Attributes of an event that is initially disabled.
pub(super) fn attributes(kind: u32, config: u64, kernel: bool) -> name::perf_event_attr {
    let mut attr =
        name::perf_event_attr { type_: kind, config, ..name::perf_event_attr::default() };
    attr.set_disabled(1);
    attr.set_exclude_hv(1);
    attr.set_exclude_kernel(u64::from(!kernel));
    attr
}

/// A software event, of user code only or including kernel code.
pub(super) fn software(kernel: bool) -> Attempt {
    let clock = u64::from(name::PERF_COUNT_SW_TASK_CLOCK);
    counts(attributes(name::PERF_TYPE_SOFTWARE, clock, kernel))
}

/// Cycles, counted by the PMU with this type number or by the default one.
pub(super) fn cycles(unit: Option<u32>) -> Attempt {
    hardware(u64::from(name::PERF_COUNT_HW_CPU_CYCLES), unit)
}

/// Instructions.
pub(super) fn instructions() -> Attempt {
    hardware(u64::from(name::PERF_COUNT_HW_INSTRUCTIONS), None)
}

fn hardware(config: u64, unit: Option<u32>) -> Attempt {
    // Since Linux 5.13, the upper half selects the PMU on hybrid CPUs.
    let unit_config = config | u64::from(unit.unwrap_or(0)) << 32;
    let tried = counts(attributes(name::PERF_TYPE_HARDWARE, unit_config, false));
    match tried {
        // The PMU of another core type counts nothing while this thread runs on this core.
        Attempt::Refused { errno: 0, .. } if unit.is_some() => Attempt::Works,
        other => other,
    }
}

/// Branch records (LBR) with samples of cycles.
pub(super) fn branch_stack() -> Attempt {
    let mut attr =
        attributes(name::PERF_TYPE_HARDWARE, u64::from(name::PERF_COUNT_HW_CPU_CYCLES), false);
    attr.sample_type = u64::from(name::PERF_SAMPLE_BRANCH_STACK);
    attr.branch_sample_type =
        u64::from(name::PERF_SAMPLE_BRANCH_USER) | u64::from(name::PERF_SAMPLE_BRANCH_ANY);
    attr.__bindgen_anon_1.sample_period = 1_000_000;
    match Event::open(attr) {
        Ok(_) => Attempt::Works,
        Err(error) => refused(&error),
    }
}

/// Whether an event can be opened and counts.
fn counts(attr: name::perf_event_attr) -> Attempt {
    let count = || {
        let event = Event::open(attr)?;
        event.enable()?;
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
        event.disable()?;
        event.count()
    };
    match count() {
        Ok(0) => Attempt::Refused { errno: 0, why: "opened, but counts nothing".into() },
        Ok(_) => Attempt::Works,
        Err(error) => refused(&error),
    }
}

/// Explains an error of `perf_event_open`.
pub(crate) fn refused(error: &io::Error) -> Attempt {
    let errno = error.raw_os_error().unwrap_or(0);
    let why = match errno {
        libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP => "no such counter".into(),
        libc::EACCES => "not allowed for this user (EACCES)".into(),
        libc::EPERM => "not permitted (EPERM)".into(),
        libc::ENOSYS => "the system call is missing or filtered (ENOSYS)".into(),
        libc::EINVAL => "the kernel does not support this event (EINVAL)".into(),
        libc::EMFILE => "too many open files".into(),
        _ => error.to_string(),
    };
    Attempt::Refused { errno, why }
}
