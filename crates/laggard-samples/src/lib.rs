//! Synthetic inputs for tests and benchmarks: from a size, a layout and a seed, generates a trace in the
//! format of the PyTorch profiler and its exact totals.
//!
//! - [`kineto`] writes realistic traces of any size, at about a gigabyte in a few seconds.
//! - [`pairs`] writes two traces with a known difference.
//! - [`traps`] has malformed files: damaged, unusual and hostile traces, and files that are not traces.
//! - [`bench`] has benchmark results with known medians.
//! - [`profile`] builds profiles from text, one stack per line.
//! - [`calls`] builds call traces from text.
//! - [`stacks`] writes collapsed stacks of any size.
//! - [`fixtures`] lists the files in the project's `fixtures/` directory.
//!
//! The same input gives the same bytes on every machine, except for compressed files, which depend on
//! the version of the compressor. This crate does not read traces.

pub mod bench;
pub mod calls;
pub mod compress;
pub mod fixtures;
pub mod json;
pub mod kineto;
pub mod pairs;
mod pen;
pub mod profile;
mod rng;
pub mod stacks;
pub mod traps;

pub use pen::Style;
pub use rng::Rng;
