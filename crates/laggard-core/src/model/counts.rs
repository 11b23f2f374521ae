//! `Counts`: what a call does, counted on a simulated processor; no times.

use serde::{Deserialize, Serialize};

/// What was counted of one call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Of all functions.
    pub whole: Simulated,
    /// Of each that did anything, without what it called.
    pub functions: Vec<FunctionCounts>,
}

/// What was counted of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionCounts {
    /// Its name, as people read it.
    pub name: String,
    /// The path of its program or library.
    pub library: String,
    /// What it did itself.
    pub own: Simulated,
}

/// Instructions, and what caches and the foresight of jumps would have made of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Simulated {
    /// Instructions.
    pub instructions: f64,
    /// Conditional and indirect jumps.
    pub branches: f64,
    /// Jumps that were not foreseen.
    pub branch_misses: f64,
    /// Loads and stores.
    pub accesses: f64,
    /// Those not found in the first cache.
    pub cache_misses: f64,
    /// Those not found in the last one.
    pub memory_accesses: f64,
}

impl Simulated {
    /// Adds another.
    pub fn add(&mut self, other: &Simulated) {
        let mine = self.all_mut();
        let theirs = other.clone().all_mut().map(|number| *number);
        for (number, more) in mine.into_iter().zip(theirs) {
            *number += more;
        }
    }

    /// The same for one of so many calls.
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
