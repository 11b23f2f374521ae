//! One measurement against another: what differs, by how much, and how sure that is.

pub mod gate;
pub mod notice;
pub mod runs;
pub mod timings;
