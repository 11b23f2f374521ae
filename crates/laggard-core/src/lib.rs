//! Evidence tables and the analyses on them.
//!
//! Input is tables filled by `laggard-formats` or `laggard-probe`; output is linked tables, summaries
//! and findings. This crate does no I/O: it opens no files, reads no clock, starts no processes and
//! prints nothing, so that everything can be tested with plain values.
#![forbid(unsafe_code)]

pub mod calls;
pub mod classify;
pub mod compare;
pub mod counters;
pub mod culprit;
pub mod divergence;
pub mod ffi;
pub mod model;
pub mod profile;
pub mod stats;
pub mod trace;
