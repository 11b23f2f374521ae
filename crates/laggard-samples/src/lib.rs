//! Made-up traces for tests and benchmarks: you give a size, a layout and a seed, you get a file that
//! PyTorch's profiler could have written, and its exact totals.
//!
//! - [`kineto`] writes realistic traces of any size, fast enough to make a gigabyte in seconds.
//! - [`pairs`] writes two traces whose difference is known.
//! - [`traps`] has the hard cases: damaged, odd and hostile files, and files that are no traces.
//! - [`bench`] has results of benchmarks whose medians are known.
//! - [`profile`] sketches recordings, a stack a line.
//! - [`stacks`] writes collapsed stacks of any size.
//! - [`fixtures`] lists the small files that live in the project's `fixtures/` directory.
//!
//! The same input gives the same bytes on every machine, compressed files excepted: how a text is
//! compressed may change with the version of the compressor. Nothing here reads a trace.

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
