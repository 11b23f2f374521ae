//! What laggard found, as text for people and for programs.
//!
//! You give values of `laggard-core` (a trace's summary, ranks side by side, a profile), you get a `String`:
//! terminal text, Markdown, CSV, or JSON whose `schema` field names its shape and version. This
//! crate reads no file, asks no terminal and prints nothing; what the terminal can do is given
//! in [`Style`].
//!
//! Names inside a trace are text by strangers. Text and Markdown show control characters and
//! their like escaped, whatever the name; see [`escape`]. JSON and CSV carry names unchanged.
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
pub mod doctor;
mod document;
pub mod dump;
pub mod escape;
pub mod ffi;
pub mod flame;
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
