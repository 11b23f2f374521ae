//! What is computed from a [`Timeline`](crate::model::timeline::Timeline): links, phases, summaries.

pub mod phase;
pub mod work;
