//! Renders results of `laggard-core` as reports.
//!
//! Input is a result, such as a trace summary, a comparison of ranks or a profile. Output is a
//! `String`: terminal text, Markdown, CSV, HTML, or JSON with a `schema` field for its format and
//! version. This crate does not read files, query the terminal or print. The caller passes the
//! terminal's capabilities in [`Style`].
//!
//! Names in a trace or profile are untrusted. Text, Markdown and HTML escape control characters and
//! other invisible characters; see [`escape`]. JSON and CSV contain names unchanged.
#![forbid(unsafe_code)]

pub mod bench;
pub mod calls;
pub mod code;
pub mod compare_bench;
pub mod compare_calls;
pub mod compare_counters;
pub mod compare_profile;
pub mod compare_trace;
pub mod counters;
mod culprits;
mod divergence;
pub mod doctor;
mod document;
pub mod dump;
pub mod escape;
pub mod ffi;
pub mod flame;
mod names;
pub mod number;
pub mod page;
pub mod profile;
pub mod ranks;
mod rows;
mod shape;
mod table;
pub mod trace;
pub mod why;

pub use table::{Align, Column, Style, Table};
