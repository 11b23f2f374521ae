//! The array library without Python: views of strided memory, the operations on them, and the kernels.
//!
//! You give a [`View`] of memory that you keep alive, and get a number or a fresh [`Block`]. Which kernel does the work
//! is decided once a process, in [`dispatch`]; everything else is layout: turning a view so that its rows are runs,
//! and splitting rows among threads.

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
