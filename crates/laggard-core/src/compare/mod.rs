//! Comparison of two measurements: differences and their confidence intervals.

pub mod align;
pub mod counters;
pub mod diff_tree;
pub mod gate;
mod names;
pub mod notice;
pub mod profile;
pub mod runs;
pub mod timings;
pub mod trace;
