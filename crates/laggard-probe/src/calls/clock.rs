//! Converts ticks of the time stamp counter to nanoseconds, at a rate measured over the run.
#![allow(unsafe_code, reason = "reading the time stamp counter has no safe interface")]

use std::time::{Duration, Instant};

/// Minimum time over which the rate is measured.
const SHORTEST: Duration = Duration::from_millis(10);

/// The clocks at the start of the run.
pub(super) struct Clock(Moment);

#[derive(Clone, Copy)]
struct Moment {
    ticks: u64,
    time: Instant,
}

/// Nanoseconds per tick.
#[derive(Clone, Copy)]
pub(super) struct Rate(f64);

/// Whether the kernel trusts the counter, i.e. has not switched to a slow clock source.
pub(super) fn is_trusted() -> bool {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    !std::fs::read_to_string(path)
        .is_ok_and(|name| matches!(name.trim(), "hpet" | "acpi_pm" | "jiffies"))
}

impl Clock {
    pub(super) fn start() -> Clock {
        Clock(Moment::now())
    }

    /// The rate from the start until now.
    pub(super) fn rate(&self) -> Rate {
        if let Some(rest) = SHORTEST.checked_sub(self.0.time.elapsed()) {
            std::thread::sleep(rest);
        }
        let end = Moment::now();
        let ticks = end.ticks.saturating_sub(self.0.ticks).max(1);
        Rate(end.time.duration_since(self.0.time).as_nanos() as f64 / ticks as f64)
    }
}

impl Moment {
    /// Reads both clocks at the same time: the fastest pair of several readings.
    fn now() -> Moment {
        let read = || {
            // SAFETY: every x86-64 CPU supports `rdtsc`.
            let before = unsafe { core::arch::x86_64::_rdtsc() };
            let time = Instant::now();
            // SAFETY: as above.
            let after = unsafe { core::arch::x86_64::_rdtsc() };
            let taken = after.saturating_sub(before);
            (taken, Moment { ticks: before + taken / 2, time })
        };
        (1..16).map(|_| read()).fold(read(), |a, b| if b.0 < a.0 { b } else { a }).1
    }
}

impl Rate {
    pub(super) fn ns(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.0).round() as u64
    }

    pub(super) fn ns_exact(&self, ticks: u64) -> f64 {
        ticks as f64 * self.0
    }
}
