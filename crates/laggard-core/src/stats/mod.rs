//! Robust summaries of samples.
