//! Analysis of a [`Timeline`](crate::model::timeline::Timeline): links, phases and summaries.

mod breakdown;
pub(crate) mod devices;
pub(crate) mod exposed;
mod intervals;
pub mod link;
pub(crate) mod nest;
pub mod phase;
pub mod ranks;
mod stacks;
pub(crate) mod steps;
pub mod summary;
pub(crate) mod throughput;
pub mod work;

pub(crate) use breakdown::Keys;
pub use breakdown::{By, breakdown};
pub use devices::{Cause, Gap, busy_and_idle};
pub use stacks::{Stack, stacks};
pub use steps::{stepped, steps};
pub use summary::{Analysis, summarise};
pub use throughput::work as work_rows;
