//! Statistics of samples: robust summaries, anomalies, confidence intervals and significance tests.

pub mod correct;
pub mod dependence;
pub mod growth;
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
