//! Files to evidence and back.
//!
//! You give a [`Source`] (a mapped file or a stream), you get evidence with what could not be
//! read counted in it. Damaged input is not an error while something can be saved; a file of
//! another kind is, and the error names what it is. Nothing here prints or asks.

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
