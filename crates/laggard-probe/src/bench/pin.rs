//! Processors that a thread may run on.
#![allow(unsafe_code, reason = "affinity has no safe interface")]

use std::io;

/// A set of processors.
#[derive(Clone, Copy)]
pub(super) struct Cpus(libc::cpu_set_t);

impl Cpus {
    /// Those of this thread.
    pub(super) fn of_this_thread() -> io::Result<Cpus> {
        // SAFETY: plain data that the kernel fills in.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: writes to the set, whose size it is told.
        if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Cpus(set))
    }

    /// Those of these numbers; an error names one that no machine has.
    pub(super) fn of(numbers: &[usize]) -> Result<Cpus, usize> {
        // SAFETY: plain data.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        for &number in numbers {
            if number >= libc::CPU_SETSIZE as usize {
                return Err(number);
            }
            // SAFETY: the number is below the size of the set.
            unsafe { libc::CPU_SET(number, &mut set) };
        }
        Ok(Cpus(set))
    }

    /// These without some others; none when none are left.
    fn without(self, numbers: &[usize]) -> Option<Cpus> {
        let mut set = self.0;
        for &number in numbers.iter().filter(|&&number| number < libc::CPU_SETSIZE as usize) {
            // SAFETY: the number is below the size of the set.
            unsafe { libc::CPU_CLR(number, &mut set) };
        }
        // SAFETY: reads a set.
        (unsafe { libc::CPU_COUNT(&set) } > 0).then_some(Cpus(set))
    }

    /// Binds this thread, by a system call and nothing else. 0 is success.
    pub(super) fn apply(&self) -> i32 {
        self.apply_to(0)
    }

    /// Binds a thread by its number; 0 is this one.
    pub(super) fn apply_to(&self, thread: i32) -> i32 {
        // SAFETY: reads a set, whose size it is told.
        unsafe { libc::sched_setaffinity(thread, size_of_val(&self.0), &raw const self.0) }
    }

    /// The highest number among them: interrupts tend to go to the lowest.
    pub(super) fn last(&self) -> Option<usize> {
        // SAFETY: numbers below the size of the set.
        (0..libc::CPU_SETSIZE as usize)
            .rev()
            .find(|&number| unsafe { libc::CPU_ISSET(number, &self.0) })
    }
}

/// Keeps this thread off the processors of the sides, until it is dropped.
pub(super) struct Aside {
    before: Cpus,
}

impl Aside {
    /// None when the sides have no processors of their own, or no others are left for us.
    pub(super) fn step(taken: &[usize]) -> Option<Aside> {
        if taken.is_empty() {
            return None;
        }
        let before = Cpus::of_this_thread().ok()?;
        let others = before.without(taken)?;
        (others.apply() == 0).then_some(Aside { before })
    }

    /// Where this thread ran before, and sides without processors of their own run.
    pub(super) fn before(&self) -> Cpus {
        self.before
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.before.apply();
    }
}
