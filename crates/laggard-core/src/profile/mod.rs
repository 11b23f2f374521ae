//! What a profile says: who took the time, and who called them.
//!
//! A [`View`] is a profile narrowed to what is asked for. [`totals`] sums it up by library,
//! function, line, thread and so on; [`Tree`]s show who called whom. In a stack, a function counts
//! once however often it calls itself.

mod border;
mod flat;
mod fold;
mod functions;
mod join;
pub(crate) mod kernels;
mod quality;
mod totals;
mod tree;
mod view;

pub use flat::{FlatNode, FlatTree, flat_tree};
pub use fold::{fold_inlined, fold_interpreter};
pub use functions::{Functions, file_name, frame_label, python_place, short_path};
pub use join::join_workers;
pub use kernels::kernel_families;
pub use quality::{Cut, QualitySummary, quality};
pub use totals::{By, Row, Totals, totals};
pub(crate) use totals::{Costs, sum_groups};
pub use tree::{Hidden, Tree, TreeNode, callees, callers, library_tree, top_down};
pub use view::{Filter, Missing, View};

use crate::model::profile::Sample;

/// What samples amount to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// How many.
    pub samples: u64,
    /// Their weights, in the unit of the event.
    pub weight: u64,
}

impl Cost {
    /// What one sample amounts to.
    pub fn of(sample: &Sample) -> Cost {
        Cost { samples: sample.count, weight: sample.weight }
    }

    /// Adds another.
    pub fn add(&mut self, other: Cost) {
        self.samples = self.samples.saturating_add(other.samples);
        self.weight = self.weight.saturating_add(other.weight);
    }

    /// Without another that is part of it.
    pub fn without(self, part: Cost) -> Cost {
        Cost {
            samples: self.samples.saturating_sub(part.samples),
            weight: self.weight.saturating_sub(part.weight),
        }
    }

    /// The share of a whole, by weight, or by samples where nothing has a weight.
    pub fn share_of(self, whole: Cost) -> f64 {
        match (whole.weight, whole.samples) {
            (0, 0) => 0.0,
            (0, samples) => self.samples as f64 / samples as f64,
            (weight, _) => self.weight as f64 / weight as f64,
        }
    }
}
