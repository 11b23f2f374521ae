//! Events of the processor, counted by the kernel for a side's process and all that it starts.
//!
//! A worker is counted from before its set-up, so that threads it makes there are counted too; what
//! it does around a batch is counted in batches of no calls, and taken off.
#![allow(unsafe_code, reason = "system calls")]

use super::trouble::Trouble;
use laggard_core::model::timings::Counter;
use perf_event_open_sys as perf;
use perf_event_open_sys::bindings as name;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// What to count: a name, and what the kernel calls it.
pub(super) type Event = (&'static str, u32, u32);

/// The events that say most, few enough to be counted at the same time.
pub(super) const HARDWARE: [Event; 6] = [
    ("cycles", name::PERF_TYPE_HARDWARE, name::PERF_COUNT_HW_CPU_CYCLES),
    ("instructions", name::PERF_TYPE_HARDWARE, name::PERF_COUNT_HW_INSTRUCTIONS),
    ("cache-references", name::PERF_TYPE_HARDWARE, name::PERF_COUNT_HW_CACHE_REFERENCES),
    ("cache-misses", name::PERF_TYPE_HARDWARE, name::PERF_COUNT_HW_CACHE_MISSES),
    ("branches", name::PERF_TYPE_HARDWARE, name::PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
    ("branch-misses", name::PERF_TYPE_HARDWARE, name::PERF_COUNT_HW_BRANCH_MISSES),
];

/// Whether instructions can be counted by the processor here.
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
    /// Counted in a batch of no calls.
    base: f64,
    total: f64,
}

impl Counters {
    /// Counts for a process, or with none for commands that this thread starts. The thread's own
    /// part in those is small: it waits.
    pub(super) fn open(events: &[Event], pid: Option<i32>) -> io::Result<Counters> {
        let mut opened: Vec<Opened> = vec![];
        for &(name, kind, config) in events {
            let leader = opened.first().map_or(-1, |first| first.file.as_raw_fd());
            match open(kind, config, pid, leader) {
                Ok(file) => {
                    opened.push(Opened { name, file, last: [0; 3], base: 0.0, total: 0.0 });
                }
                // One that this processor lacks, beside others that it has.
                Err(_) if leader >= 0 => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Counters { events: opened, calls: 0 })
    }

    /// Begins to count, and finds what a batch of no calls counts.
    pub(super) fn calibrate(
        &mut self,
        empty: &mut dyn FnMut() -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        const TIMES: usize = 11;
        // The first last: it is put on the processor with all that are on by then.
        for event in self.events.iter().rev() {
            // SAFETY: a request of this event that takes no pointer.
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

    /// A batch is about to run.
    pub(super) fn before(&mut self) {
        for event in &mut self.events {
            event.since();
        }
    }

    /// A batch of so many calls has run.
    pub(super) fn after(&mut self, calls: u64) {
        self.calls += calls;
        for event in &mut self.events {
            event.total += event.since() - event.base;
        }
    }

    /// What was counted since they were calibrated or this was asked, and begins anew.
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
    /// What was counted since the last time, with what was missed while others were counted.
    fn since(&mut self) -> f64 {
        let mut now = [0_u64; 3];
        let room = size_of_val(&now);
        // SAFETY: at most so many bytes are written, to a value that has them.
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

/// What was counted in some calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    events: Vec<(&'static str, f64)>,
    calls: u64,
}

impl Counted {
    /// Together with more of the same.
    pub(super) fn add(&mut self, more: Counted) {
        self.calls += more.calls;
        for (name, total) in more.events {
            match self.events.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += total,
                None => self.events.push((name, total)),
            }
        }
    }

    /// For one call.
    pub(super) fn per_call(&self) -> impl Iterator<Item = Counter> {
        let calls = self.calls.max(1) as f64;
        self.events.iter().map(move |&(name, total)| Counter {
            name: name.into(),
            per_call: (total / calls).max(0.0),
            source: "perf_event".into(),
        })
    }
}

/// An event of a process, counted with those of a leader or as one.
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
    // SAFETY: the attributes are a whole structure that lives through the call.
    let fd =
        unsafe { perf::perf_event_open(&raw mut attr, pid.unwrap_or(0), -1, leader, flags as _) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to us and to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
