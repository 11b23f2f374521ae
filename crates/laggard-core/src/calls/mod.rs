//! What traced calls say: which functions were reached, from where, how often and how long.
//!
//! A [`View`] is a record of calls narrowed to what is asked for; [`totals`] sums it up,
//! [`tree`] shows callers with what they call, [`arguments`] the values that were passed, and
//! [`compare`] sets two records side by side. Time without traced calls below (`self`) adds up
//! over functions, libraries and threads; time with them (`total`) does not, since a call that
//! makes another counts its time too. Of calls that were weighed in instructions, those of the
//! functions themselves add up likewise; a [`Measure`] says what a record has. [`python_lines`] says
//! which lines of Python made the calls, as far as kept stacks tell.

mod arguments;
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
