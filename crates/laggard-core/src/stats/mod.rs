//! Robust summaries of samples, and how sure a difference between two sets of them is.

pub mod ratio;
pub mod summary;
