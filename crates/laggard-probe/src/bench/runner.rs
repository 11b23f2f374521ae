//! Interface between the measurement and a side, whatever it runs.

use super::changes::Change;
use super::pin::Cpus;
use super::trouble::Trouble;
use super::value::Value;
use laggard_core::model::timings::Batch;

/// A side that can be run. It is idle outside of these functions.
pub(super) trait Runner {
    /// Runs one call and returns its result.
    fn value(&mut self) -> Result<Value, Trouble>;

    /// Notes the variables of the side, so that changes by its first call can be detected.
    fn watch(&mut self) -> Result<(), Trouble> {
        Ok(())
    }

    /// The variables that the first call since `watch` has changed so that later calls do other
    /// work. Runs a few calls only if a variable has changed.
    fn changes(&mut self) -> Result<Vec<Change>, Trouble> {
        Ok(vec![])
    }

    /// Runs `lead` untimed calls, then `calls` timed ones.
    fn run(&mut self, calls: u64, lead: u64) -> Result<Batch, Trouble>;

    /// Called when other sides are about to be measured.
    fn rest(&mut self) {}

    /// Called occasionally between batches, for housekeeping.
    fn look(&mut self) {}

    /// Restricts the side to these CPUs.
    fn bind(&mut self, cpus: Cpus);

    /// Facts about the side after all calls.
    fn about(&mut self) -> Result<About, Trouble>;

    /// Whether several calls can be timed as one batch.
    fn is_batched(&self) -> bool;

    /// Whether a batch may have no calls, which shows the cost of a batch itself.
    fn runs_empty(&self) -> bool;

    /// Whether the side runs in its own process, which can be bound to a CPU that this thread
    /// avoids.
    fn is_apart(&self) -> bool {
        true
    }

    /// Its process ID, if the process lives for more than one call.
    fn pid(&self) -> Option<i32>;
}

/// Facts about a side.
#[derive(Debug, Default)]
pub(super) struct About {
    /// Names and values, such as versions and paths.
    pub(super) facts: Vec<(String, String)>,
    /// Number of threads; 0 if unknown.
    pub(super) threads: u32,
    /// Peak memory in bytes; 0 if unknown.
    pub(super) peak_memory: u64,
}
