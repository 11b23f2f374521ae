//! Analysis of call traces: called functions, callers, counts and durations.
//!
//! A [`View`] is a filtered call trace. [`totals`] sums it, [`tree`] shows callers with their callees,
//! [`arguments`] lists argument values, [`blas`] names those of BLAS
//! functions, [`python_lines`] estimates the calling Python lines from recorded
//! stacks, and [`compare`] compares two call traces. Self time (without traced callees) adds up over
//! functions, libraries and threads. Total time does not, because it includes traced callees. The same
//! holds for instructions. A [`Measure`] is what a call trace contains.

mod arguments;
pub mod blas;
mod compare;
mod measure;
pub(crate) mod name;
mod python;
mod tally;
mod totals;
mod tree;
mod view;

pub use arguments::{Arguments, arguments};
pub use compare::{Comparison, Finding, Moved, Side, compare};
pub use measure::Measure;
pub use python::{NO_PYTHON, PythonLine, PythonLines, python_lines};
pub use tally::{Class, Quantile, Tally};
pub use totals::{By, Row, ShareOf, Totals, totals};
pub use tree::{TreeRow, tree};
pub use view::{Caller, Filter, View};
