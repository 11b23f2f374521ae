//! What measuring needs of a side, whatever it runs.

use super::pin::Cpus;
use super::trouble::Trouble;
use super::value::Value;
use laggard_core::model::timings::Batch;

/// A side that can be run. It does nothing between the calls of these functions.
pub(super) trait Runner {
    /// Runs one call and gives its result.
    fn value(&mut self) -> Result<Value, Trouble>;

    /// Runs some calls that are not timed, then some that are.
    fn run(&mut self, calls: u64, lead: u64) -> Result<Batch, Trouble>;

    /// Is told that others are measured now.
    fn rest(&mut self) {}

    /// Is told now and then that there is time to look after itself.
    fn look(&mut self) {}

    /// Runs on these processors alone from now on.
    fn bind(&mut self, cpus: Cpus);

    /// What is known of it after all calls.
    fn about(&mut self) -> Result<About, Trouble>;

    /// Whether several calls can be timed as one.
    fn is_batched(&self) -> bool;

    /// Whether it runs in a process of its own, which can be bound to a processor while we keep off.
    fn is_apart(&self) -> bool {
        true
    }

    /// Its process, if it has one that stays.
    fn pid(&self) -> Option<i32>;
}

/// What is known of a side.
#[derive(Debug, Default)]
pub(super) struct About {
    /// Versions and places: name and value.
    pub(super) facts: Vec<(String, String)>,
    /// Threads that it had; 0 is not known.
    pub(super) threads: u32,
    /// Most memory it had, in bytes; 0 is not known.
    pub(super) peak_memory: u64,
}
