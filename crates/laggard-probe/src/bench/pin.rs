//! CPU affinity of threads.
#![allow(unsafe_code, reason = "CPU affinity has no safe interface")]

use std::io;

/// A set of CPUs.
#[derive(Clone, Copy)]
pub(super) struct Cpus(libc::cpu_set_t);

impl Cpus {
    /// The CPUs of this thread.
    pub(super) fn of_this_thread() -> io::Result<Cpus> {
        // SAFETY: `cpu_set_t` is plain data, and all-zero bytes are valid.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is valid for writes of the given size.
        if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Cpus(set))
    }

    /// The CPUs with these numbers. The error is the first number beyond the maximum.
    pub(super) fn of(numbers: &[usize]) -> Result<Cpus, usize> {
        // SAFETY: `cpu_set_t` is plain data, and all-zero bytes are valid.
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

    /// The set without these CPUs; `None` if it would be empty.
    fn without(self, numbers: &[usize]) -> Option<Cpus> {
        let mut set = self.0;
        for &number in numbers.iter().filter(|&&number| number < libc::CPU_SETSIZE as usize) {
            // SAFETY: the number is below the size of the set.
            unsafe { libc::CPU_CLR(number, &mut set) };
        }
        // SAFETY: `set` is a valid CPU set.
        (unsafe { libc::CPU_COUNT(&set) } > 0).then_some(Cpus(set))
    }

    /// Binds this thread, with a single system call. Returns 0 on success.
    pub(super) fn apply(&self) -> i32 {
        self.apply_to(0)
    }

    /// Binds the thread with this ID; 0 is this thread.
    pub(super) fn apply_to(&self, thread: i32) -> i32 {
        // SAFETY: the set is valid for reads of the given size.
        unsafe { libc::sched_setaffinity(thread, size_of_val(&self.0), &raw const self.0) }
    }

    /// The CPU with the highest number, because interrupts tend to go to the lowest.
    pub(super) fn last(&self) -> Option<usize> {
        // SAFETY: the numbers are below the size of the set.
        (0..libc::CPU_SETSIZE as usize)
            .rev()
            .find(|&number| unsafe { libc::CPU_ISSET(number, &self.0) })
    }
}

/// Keeps this thread off the CPUs of the sides until it is dropped.
pub(super) struct Aside {
    before: Cpus,
}

impl Aside {
    /// Returns `None` if the sides have no CPUs of their own, or if no other CPUs are left.
    pub(super) fn step(taken: &[usize]) -> Option<Aside> {
        if taken.is_empty() {
            return None;
        }
        let before = Cpus::of_this_thread().ok()?;
        let others = before.without(taken)?;
        (others.apply() == 0).then_some(Aside { before })
    }

    /// The CPUs that this thread used before, on which sides without their own CPUs run.
    pub(super) fn before(&self) -> Cpus {
        self.before
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.before.apply();
    }
}
