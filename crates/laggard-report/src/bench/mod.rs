//! A bench: the verdict of every case first, then what each side took.

mod json;
mod plot;

pub use json::evidence_json;

use laggard_core::model::timings::Series;
use laggard_core::stats::summary::Summary;

/// CPU time of calls, where it was measured.
fn cpu(series: &Series) -> Option<Summary> {
    let cpu = series.cpu();
    cpu.iter().any(|&ns| ns > 0.0).then(|| Summary::of(&cpu))
}

/// Page faults of a call in the mean over all batches, where any were counted.
fn faults(series: &Series) -> Option<f64> {
    let sum = |of: fn(&laggard_core::model::timings::Batch) -> u64| -> f64 {
        series.batches.iter().map(|batch| of(batch) as f64).sum()
    };
    let faults = sum(|batch| batch.minor_faults) + sum(|batch| batch.major_faults);
    (faults > 0.0).then(|| faults / sum(|batch| batch.calls).max(1.0))
}
