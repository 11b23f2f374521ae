//! One measurement against another: what differs, by how much, and how sure that is.

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
