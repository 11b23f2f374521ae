//! Opens events of the kernel to see whether it lets us.
#![allow(unsafe_code)] // system calls

use laggard_core::model::host::Attempt;
use perf_event_open_sys as perf;
use perf_event_open_sys::bindings as name;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// An event of the calling thread that is open.
pub(super) struct Event(OwnedFd);

impl Event {
    /// Opens an event of the calling thread, on whichever processor it runs.
    pub(super) fn open(mut attr: name::perf_event_attr) -> io::Result<Event> {
        attr.size = size_of::<name::perf_event_attr>() as u32;
        let flags = u64::from(name::PERF_FLAG_FD_CLOEXEC);
        // SAFETY: the attributes are a whole structure that lives through the call.
        let fd = unsafe { perf::perf_event_open(&raw mut attr, 0, -1, -1, flags as _) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given this descriptor to us and to nobody else.
        Ok(Event(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(super) fn fd(&self) -> i32 {
        self.0.as_raw_fd()
    }

    pub(super) fn enable(&self) -> io::Result<()> {
        // SAFETY: a request of this event that takes no pointer.
        done(unsafe { perf::ioctls::ENABLE(self.fd(), 0) })
    }

    pub(super) fn disable(&self) -> io::Result<()> {
        // SAFETY: a request of this event that takes no pointer.
        done(unsafe { perf::ioctls::DISABLE(self.fd(), 0) })
    }

    /// What was counted.
    fn count(&self) -> io::Result<u64> {
        let mut count = 0_u64;
        // SAFETY: at most eight bytes are written, to a value that has them.
        let read = unsafe { libc::read(self.fd(), (&raw mut count).cast(), size_of::<u64>()) };
        if read == size_of::<u64>() as isize { Ok(count) } else { Err(io::Error::last_os_error()) }
    }
}

fn done(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Attributes of an event that starts switched off.
pub(super) fn attributes(kind: u32, config: u64, kernel: bool) -> name::perf_event_attr {
    let mut attr =
        name::perf_event_attr { type_: kind, config, ..name::perf_event_attr::default() };
    attr.set_disabled(1);
    attr.set_exclude_hv(1);
    attr.set_exclude_kernel(u64::from(!kernel));
    attr
}

/// A software event, of user code alone or of kernel code too.
pub(super) fn software(kernel: bool) -> Attempt {
    let clock = u64::from(name::PERF_COUNT_SW_TASK_CLOCK);
    counts(attributes(name::PERF_TYPE_SOFTWARE, clock, kernel))
}

/// Cycles, counted by the unit of this number, or by the usual one.
pub(super) fn cycles(unit: Option<u32>) -> Attempt {
    hardware(u64::from(name::PERF_COUNT_HW_CPU_CYCLES), unit)
}

/// Instructions.
pub(super) fn instructions() -> Attempt {
    hardware(u64::from(name::PERF_COUNT_HW_INSTRUCTIONS), None)
}

fn hardware(config: u64, unit: Option<u32>) -> Attempt {
    // Since 5.13 the upper half names the unit, where cores differ.
    let unit_config = config | u64::from(unit.unwrap_or(0)) << 32;
    let tried = counts(attributes(name::PERF_TYPE_HARDWARE, unit_config, false));
    match tried {
        // The unit of another kind of core counts nothing while we are on this one.
        Attempt::Refused { errno: 0, .. } if unit.is_some() => Attempt::Works,
        other => other,
    }
}

/// Records of the last branches beside a sample of cycles.
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

/// Whether an event can be opened and counts anything.
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
        Ok(0) => Attempt::Refused { errno: 0, why: "it opens but counts nothing".into() },
        Ok(_) => Attempt::Works,
        Err(error) => refused(&error),
    }
}

/// What a refusal of the kernel means for events.
pub(crate) fn refused(error: &io::Error) -> Attempt {
    let errno = error.raw_os_error().unwrap_or(0);
    let why = match errno {
        libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP => "there is no such counter".into(),
        libc::EACCES => "not allowed to this user (EACCES)".into(),
        libc::EPERM => "not permitted (EPERM)".into(),
        libc::ENOSYS => "the kernel or a filter has no such call (ENOSYS)".into(),
        libc::EINVAL => "the kernel does not know this kind (EINVAL)".into(),
        libc::EMFILE => "too many files are open".into(),
        _ => error.to_string(),
    };
    Attempt::Refused { errno, why }
}
