//! Hard files: damaged, odd and hostile traces, and files that are no traces.
//!
//! [`traps`] are single cases with what a careful reader finds in them; [`random`] mixes many at random;
//! [`not_traces`] are of other kinds and to be refused.

mod odd;
mod other_kinds;
mod random;

pub use odd::traps;
pub use other_kinds::not_traces;
pub use random::{damage, random_trap};

/// A file, and what is known about it.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its name.
    pub name: String,
    /// What is hard about it, in one line.
    pub about: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// What a careful reader finds; `None` where that is a matter of taste.
    pub found: Option<Found>,
}

/// What a careful reader finds in a file. Events whose time is no number are counted but are no kernels;
/// a duration that is negative or no number adds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Objects in the event array.
    pub events: u64,
    /// Kernels.
    pub kernels: u64,
    /// Their durations, added up.
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
