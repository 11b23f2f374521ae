//! Robust summaries of samples, what is odd about them, and how sure a difference between two sets
//! of them is.

pub mod correct;
pub mod dependence;
pub mod means;
pub mod mixed;
pub mod rank;
pub mod ratio;
pub mod repeats;
mod resample;
pub mod shape;
pub mod steady;
pub mod summary;
pub mod tail;
