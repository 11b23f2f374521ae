//! Evidence tables, one file per family.

pub mod call_counts;
pub mod calls;
pub mod code;
pub mod counters;
pub mod counts;
pub mod dump;
pub mod ffi;
pub mod host;
pub mod profile;
pub mod timeline;
pub mod timings;

/// A column of plain values, backed by a vector or by a mapped file.
pub type Column<T> = arrow_buffer::ScalarBuffer<T>;

/// Marks an absent value in columns of row numbers, names or IDs.
pub const NONE: u32 = u32::MAX;
