//! Analysis of profiles: costs by function, library and other groups, and call trees.
//!
//! A [`View`] is a filtered profile. [`totals`] sums it by library, function, line, thread and other
//! groups; a [`Tree`] shows callers and callees. A recursive function counts once per stack.

mod border;
mod flat;
mod fold;
mod functions;
mod join;
pub(crate) mod kernels;
mod processes;
mod quality;
mod totals;
mod tree;
mod view;

pub use flat::{FlatNode, FlatTree, flat_tree};
pub(crate) use fold::is_dispatch;
pub use fold::{fold_inlined, fold_interpreter};
pub use functions::{
    Functions, file_name, frame_label, has_name, is_address_label, python_place, short_path,
};
pub use join::join_workers;
pub use kernels::kernel_families;
pub use processes::ProcessLabels;
pub use quality::{ChildrenSummary, Cut, Excluded, QualitySummary, Unsampled, quality};
pub use totals::{By, Row, Totals, totals};
pub(crate) use totals::{Costs, sum_groups};
pub use tree::{Hidden, Tree, TreeNode, callees, callers, library_tree, top_down};
pub use view::{Filter, Missing, View};

use crate::model::profile::Sample;

/// Cost of a set of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number of samples.
    pub samples: u64,
    /// Sum of weights, in the unit of the event.
    pub weight: u64,
}

impl Cost {
    /// Cost of one sample.
    pub fn of(sample: &Sample) -> Cost {
        Cost { samples: sample.count, weight: sample.weight }
    }

    /// Adds another cost.
    pub fn add(&mut self, other: Cost) {
        self.samples = self.samples.saturating_add(other.samples);
        self.weight = self.weight.saturating_add(other.weight);
    }

    /// Subtracts a cost that is part of this one.
    pub fn without(self, part: Cost) -> Cost {
        Cost {
            samples: self.samples.saturating_sub(part.samples),
            weight: self.weight.saturating_sub(part.weight),
        }
    }

    /// Share of a whole by weight, or by samples if there are no weights.
    pub fn share_of(self, whole: Cost) -> f64 {
        match (whole.weight, whole.samples) {
            (0, 0) => 0.0,
            (0, samples) => self.samples as f64 / samples as f64,
            (weight, _) => self.weight as f64 / weight as f64,
        }
    }
}
