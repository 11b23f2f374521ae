//! Placeholder while the crate is being brought up.
