//! What is computed from a [`Timeline`](crate::model::timeline::Timeline): links, phases, summaries.

mod breakdown;
mod devices;
mod intervals;
pub mod link;
mod nest;
pub mod phase;
pub mod ranks;
mod stacks;
mod steps;
pub mod summary;
mod throughput;
pub mod work;

pub use breakdown::{By, breakdown};
pub use stacks::{Stack, stacks};
pub use steps::steps;
pub use summary::{Analysis, summarise};
pub use throughput::work as work_rows;
