//! Functions for `culprits`, called from Python through ctypes.
//!
//! You give pointers and lengths, as from C; nothing is checked here. What each is for is said in `laggard-bench.toml`,
//! what is wrong with it in `planted.toml`.
//!
//! The contract of all: a pointer is valid for as many elements as the length beside it says, and what is written
//! overlaps nothing that is read.

#![allow(clippy::missing_safety_doc, reason = "one contract for all, above")]

pub mod arithmetic;
pub mod keys;
pub mod store;
pub mod team;
pub mod view;

use std::slice::{from_raw_parts, from_raw_parts_mut};

/// What lies at a pointer, to read.
///
/// # Safety
///
/// The contract of the crate.
unsafe fn read<'a, T>(first: *const T, len: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    unsafe { from_raw_parts(first, len) }
}

/// What lies at a pointer, to write.
///
/// # Safety
///
/// The contract of the crate.
unsafe fn write<'a, T>(first: *mut T, len: usize) -> &'a mut [T] {
    // SAFETY: the caller's promise.
    unsafe { from_raw_parts_mut(first, len) }
}
