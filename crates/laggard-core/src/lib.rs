//! The pure heart of laggard: evidence tables, what is computed from them, and nothing else.
//!
//! You give tables (filled by `laggard-formats` or `laggard-probe`), you get linked tables,
//! summaries and findings. This crate opens no file, reads no clock, starts no process and
//! prints nothing, so everything here can be tested with values alone.
#![forbid(unsafe_code)]

pub mod calls;
pub mod classify;
pub mod compare;
pub mod counters;
pub mod culprit;
pub mod ffi;
pub mod model;
pub mod profile;
pub mod stats;
pub mod trace;
