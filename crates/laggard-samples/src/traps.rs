//! Malformed files: damaged, unusual and hostile traces, and files that are not traces.
//!
//! [`traps`] has single cases with their expected counts; [`random`] combines many at random;
//! [`not_traces`] has files of other kinds, which readers must reject.

mod odd;
mod other_kinds;
mod random;

pub use odd::traps;
pub use other_kinds::not_traces;
pub use random::{damage, random_trap};

/// A file and its expected counts.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its name.
    pub name: String,
    /// One-line description.
    pub about: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Expected counts; `None` if several results are acceptable.
    pub found: Option<Found>,
}

/// Expected counts of a file. Events without a numeric timestamp count as events but not as kernels.
/// A duration that is negative or not a number counts as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Objects in the event array.
    pub events: u64,
    /// Kernels.
    pub kernels: u64,
    /// Sum of their durations.
    pub kernel_ns: u64,
}

impl Found {
    /// The counts by name.
    pub fn named(&self) -> [(&'static str, u64); 3] {
        [("events", self.events), ("kernels", self.kernels), ("kernel_ns", self.kernel_ns)]
    }
}

impl From<crate::kineto::Totals> for Found {
    fn from(totals: crate::kineto::Totals) -> Found {
        Found { events: totals.events, kernels: totals.kernels, kernel_ns: totals.kernel_ns }
    }
}
