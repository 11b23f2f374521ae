//! One file a verb.

pub mod index;
pub mod report;
