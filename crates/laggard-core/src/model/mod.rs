//! Evidence: columnar tables, one file a table family.

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

/// A column: a slice of plain values that may live in a vector or in a mapped file.
pub type Column<T> = arrow_buffer::ScalarBuffer<T>;

/// The value of a row number, name or id column that says "there is none".
pub const NONE: u32 = u32::MAX;
