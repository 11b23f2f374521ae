//! The array library without Python: views of strided memory, the operations on them, and the kernels.
//!
//! Input is a [`View`] of memory that the caller keeps alive; output is a number or a new [`Block`]. [`dispatch`]
//! selects the kernels once per process. The rest handles layout: transposing a view so that its rows are contiguous
//! runs, and splitting rows among threads.

pub mod blas;
pub mod dispatch;
mod element;
mod kernels;
pub mod memory;
pub mod ops;
pub mod threads;
mod view;

pub use element::Element;
pub use memory::Block;
pub use ops::{Mismatch, Out};
pub use view::View;
