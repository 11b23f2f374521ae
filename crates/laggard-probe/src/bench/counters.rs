//! Hardware events, counted by the kernel for the process of a side and its descendants.
//!
//! Counting in a worker starts before its set-up code runs, so that its threads are included. The
//! overhead around a batch is measured with empty batches and subtracted.
#![allow(unsafe_code, reason = "perf_event_open has no safe interface")]

use super::trouble::Trouble;
use laggard_core::model::timings::Counter;
use perf_event_open_sys as perf;
use perf_event_open_sys::bindings as name;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// An event: its name, and the kernel's type and configuration.
pub(super) type Event = (&'static str, u32, u32);

/// The most useful events, few enough to be counted at the same time.
pub(super) const HARDWARE: [Event; 6] = [
    ("cycles", name::PERF_TYPE_HARDWARE, name::PERF_COUNT_HW_CPU_CYCLES),
    ("instructions", name::PERF_TYPE_HARDWARE, name::PERF_COUNT_HW_INSTRUCTIONS),
    ("cache-references", name::PERF_TYPE_HARDWARE, name::PERF_COUNT_HW_CACHE_REFERENCES),
    ("cache-misses", name::PERF_TYPE_HARDWARE, name::PERF_COUNT_HW_CACHE_MISSES),
    ("branches", name::PERF_TYPE_HARDWARE, name::PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
    ("branch-misses", name::PERF_TYPE_HARDWARE, name::PERF_COUNT_HW_BRANCH_MISSES),
];

/// Whether the CPU can count instructions on this machine.
pub fn counts_instructions() -> bool {
    Counters::open(&HARDWARE[1..2], None).is_ok()
}

/// Counters of one side.
pub(super) struct Counters {
    events: Vec<Opened>,
    calls: u64,
}

struct Opened {
    name: &'static str,
    file: OwnedFd,
    last: [u64; 3],
    /// Count of an empty batch.
    base: f64,
    total: f64,
}

impl Counters {
    /// Counts events of a process or, if `pid` is `None`, of the commands that this thread starts.
    /// The thread's own share is small, because it only waits.
    pub(super) fn open(events: &[Event], pid: Option<i32>) -> io::Result<Counters> {
        let mut opened: Vec<Opened> = vec![];
        for &(name, kind, config) in events {
            let leader = opened.first().map_or(-1, |first| first.file.as_raw_fd());
            match open(kind, config, pid, leader) {
                Ok(file) => {
                    opened.push(Opened { name, file, last: [0; 3], base: 0.0, total: 0.0 });
                }
                // This CPU lacks the event, but supports others.
                Err(_) if leader >= 0 => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Counters { events: opened, calls: 0 })
    }

    /// Starts counting, and measures the counts of an empty batch.
    pub(super) fn calibrate(
        &mut self,
        empty: &mut dyn FnMut() -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        const TIMES: usize = 11;
        // The leader is enabled last: it is scheduled together with all events enabled by then.
        for event in self.events.iter().rev() {
            // SAFETY: this ioctl of the event takes no pointer.
            unsafe { perf::ioctls::ENABLE(event.file.as_raw_fd(), 0) };
        }
        let mut counts = vec![vec![]; self.events.len()];
        for _ in 0..TIMES {
            self.before();
            empty()?;
            for (event, counts) in self.events.iter_mut().zip(&mut counts) {
                counts.push(event.since());
            }
        }
        for (event, mut counts) in self.events.iter_mut().zip(counts) {
            counts.sort_by(f64::total_cmp);
            (event.base, event.total) = (counts[TIMES / 2], 0.0);
        }
        self.calls = 0;
        Ok(())
    }

    /// Call before a batch runs.
    pub(super) fn before(&mut self) {
        for event in &mut self.events {
            event.since();
        }
    }

    /// Call after a batch has run, with its number of calls.
    pub(super) fn after(&mut self, calls: u64) {
        self.calls += calls;
        for event in &mut self.events {
            event.total += event.since() - event.base;
        }
    }

    /// Returns the counts since calibration or the last call of this function, and resets them.
    pub(super) fn take(&mut self) -> Counted {
        let counted = Counted {
            events: self.events.iter().map(|event| (event.name, event.total)).collect(),
            calls: self.calls,
        };
        self.events.iter_mut().for_each(|event| event.total = 0.0);
        self.calls = 0;
        counted
    }
}

impl Opened {
    /// The count since the last reading, scaled up for the time in which the event was not
    /// scheduled.
    fn since(&mut self) -> f64 {
        let mut now = [0_u64; 3];
        let room = size_of_val(&now);
        // SAFETY: `now` is valid for writes of `room` bytes.
        let read = unsafe { libc::read(self.file.as_raw_fd(), now.as_mut_ptr().cast(), room) };
        if read != room as isize {
            return 0.0;
        }
        let [count, enabled, running] =
            std::array::from_fn(|at| now[at].saturating_sub(self.last[at]) as f64);
        self.last = now;
        if running > 0.0 { count * enabled / running } else { count }
    }
}

/// Counts of some calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    events: Vec<(&'static str, f64)>,
    calls: u64,
}

impl Counted {
    /// Adds more counts of the same statement.
    pub(super) fn add(&mut self, more: Counted) {
        self.calls += more.calls;
        for (name, total) in more.events {
            match self.events.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += total,
                None => self.events.push((name, total)),
            }
        }
    }

    /// The counts per call.
    pub(super) fn per_call(&self) -> impl Iterator<Item = Counter> {
        let calls = self.calls.max(1) as f64;
        self.events.iter().map(move |&(name, total)| Counter {
            name: name.into(),
            per_call: (total / calls).max(0.0),
            source: "perf_event".into(),
        })
    }
}

/// Opens an event of a process, in the group of a leader or as a leader.
fn open(kind: u32, config: u32, pid: Option<i32>, leader: i32) -> io::Result<OwnedFd> {
    let mut attr = name::perf_event_attr {
        type_: kind,
        config: config.into(),
        size: size_of::<name::perf_event_attr>() as u32,
        read_format: u64::from(name::PERF_FORMAT_TOTAL_TIME_ENABLED)
            | u64::from(name::PERF_FORMAT_TOTAL_TIME_RUNNING),
        ..name::perf_event_attr::default()
    };
    attr.set_disabled(1);
    attr.set_inherit(1);
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    let flags = u64::from(name::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: `attr` is a complete structure that outlives the call.
    let fd =
        unsafe { perf::perf_event_open(&raw mut attr, pid.unwrap_or(0), -1, leader, flags as _) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
