//! `Counts`: counts of a call on a simulated CPU, without times.

use serde::{Deserialize, Serialize};

/// Counts of one call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Sum over all functions.
    pub whole: Simulated,
    /// Each executed function, without callees.
    pub functions: Vec<FunctionCounts>,
}

/// Counts of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionCounts {
    /// Demangled name.
    pub name: String,
    /// Path of its program or library.
    pub library: String,
    /// Counts without callees.
    pub own: Simulated,
}

/// Instructions, and simulated caches and branch prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Simulated {
    /// Instructions.
    pub instructions: f64,
    /// Conditional and indirect branches.
    pub branches: f64,
    /// Mispredicted branches.
    pub branch_misses: f64,
    /// Loads and stores.
    pub accesses: f64,
    /// Accesses that miss the first-level cache.
    pub cache_misses: f64,
    /// Accesses that miss the last-level cache.
    pub memory_accesses: f64,
}

impl Simulated {
    /// Adds other counts.
    pub fn add(&mut self, other: &Simulated) {
        let mine = self.all_mut();
        let theirs = other.clone().all_mut().map(|number| *number);
        for (number, more) in mine.into_iter().zip(theirs) {
            *number += more;
        }
    }

    /// The counts per call, given the number of calls.
    pub fn divided(mut self, calls: f64) -> Simulated {
        for number in self.all_mut() {
            *number /= calls;
        }
        self
    }

    fn all_mut(&mut self) -> [&mut f64; 6] {
        [
            &mut self.instructions,
            &mut self.branches,
            &mut self.branch_misses,
            &mut self.accesses,
            &mut self.cache_misses,
            &mut self.memory_accesses,
        ]
    }
}
