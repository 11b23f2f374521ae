//! Where B's call path diverges from A's.
//!
//! Input is the stacks of both sides with their times per call and, if known, exact call counts.
//! Output is [`Divergence`]: points, each with the part of both sides' time that belongs to it. A
//! point is the deepest Python function that both sides call equally often and that holds most of the
//! lag. Below it, B calls functions that A does not call, calls the same function more often, or
//! takes longer for the same calls. The time of a point is removed and the rest is searched again.
//! If only the statement is common, the point is the statement, and B's own path below it leads to
//! the place.

mod calls;
mod merged;
mod point;
mod search;
mod source;
mod stacks;
#[cfg(test)]
mod tests;
mod views;

pub(crate) use merged::are_equally_often;
pub use merged::{FunctionSource, PathFunction, SideStacks};
pub use point::{Callee, Cause, Divergence, Place, Point, Step};
pub use search::diverge;
pub use source::{DiffLine, PointSource, SideSource, SourceLoss, diff, function_lines};
pub use stacks::{Spent, StackFrame, Stacks};
pub use views::diverge_views;
