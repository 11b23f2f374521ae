//! Functions for `culprits`, called from Python through ctypes.
//!
//! Functions take pointers and lengths as in C and do not check them. `laggard-bench.toml` contains the calls and
//! `planted.toml` the planted causes.
//!
//! Contract of all functions: a pointer is valid for as many elements as the length next to it, and output does not
//! overlap with input.

#![allow(clippy::missing_safety_doc, reason = "one contract for all functions, above")]

pub mod arithmetic;
pub mod keys;
pub mod store;
pub mod team;
pub mod view;

use std::slice::{from_raw_parts, from_raw_parts_mut};

/// The input slice at a pointer.
///
/// # Safety
///
/// The contract of the crate.
unsafe fn read<'a, T>(first: *const T, len: usize) -> &'a [T] {
    // SAFETY: guaranteed by the caller.
    unsafe { from_raw_parts(first, len) }
}

/// The output slice at a pointer.
///
/// # Safety
///
/// The contract of the crate.
unsafe fn write<'a, T>(first: *mut T, len: usize) -> &'a mut [T] {
    // SAFETY: guaranteed by the caller.
    unsafe { from_raw_parts_mut(first, len) }
}
