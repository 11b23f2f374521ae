//! One file a verb.

pub(crate) mod index;
pub(crate) mod report;
