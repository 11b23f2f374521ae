//! Reads and writes the file formats of laggard and of other profilers.
//!
//! You give a [`Source`] (a mapped file or a stream), you get evidence that includes the losses of
//! the file. A damaged file is read as far as possible. A file of another kind is an error that
//! names what the file looks like. This crate prints nothing.

pub mod atomic;
mod error;
mod gzip;
pub mod lag;
mod map;
pub mod read;
mod source;
pub mod tables;
pub mod write;

pub use error::Error;
pub use gzip::gzip;
pub use map::Map;
pub use source::{Bytes, Source};
