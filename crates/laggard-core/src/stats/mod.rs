//! Robust summaries of samples.

pub mod summary;
