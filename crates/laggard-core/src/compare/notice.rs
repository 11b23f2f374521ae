//! Detection of anomalies in a series of timings. `laggard-report` contains the wording.

use crate::model::timings::{Batch, Series};
use crate::stats::shape::{drift, outliers, two_heaps};
use crate::stats::summary::Summary;

/// Minimum share of outliers for a notice.
const MANY_OUTLIERS: f64 = 0.01;
/// Minimum ratio of spread to median for a notice.
const NOISY_SPREAD: f64 = 0.05;
/// Minimum preemptions per second of wall time for a notice. A quiet machine has a few; a shared CPU
/// has one per time slice.
const MANY_PREEMPTIONS: f64 = 50.0;
/// Minimum share of wall time off the CPU for a notice.
const MUCH_OFF_CPU: f64 = 0.1;

/// An anomaly of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Notice {
    /// Outlier batches.
    Outliers {
        /// Number of outliers.
        count: usize,
        /// Share of all batches.
        share: f64,
    },
    /// Calls became slower during the measurement, or faster if `share` is negative.
    Drift {
        /// Change from the first to the last batch, as a share of the median.
        share: f64,
    },
    /// Bimodal distribution.
    TwoHeaps {
        /// Time per call in the faster mode.
        low_ns: f64,
        /// Time per call in the slower mode.
        high_ns: f64,
        /// Share of batches in the slower mode.
        share_high: f64,
    },
    /// Large spread, not counting outliers.
    Noisy {
        /// Standard deviation estimated from the MAD, divided by the median.
        spread: f64,
    },
    /// Other programs preempted the side.
    Preempted {
        /// Preemptions per second of wall time.
        per_second: f64,
    },
    /// No thread was running for much of the time: it waited, or, on systems that do not count the
    /// run-queue delay, other programs used the CPUs.
    OffCpu {
        /// The share of wall time that exceeds CPU time.
        share: f64,
    },
}

/// Anomalies of a series, most important first.
pub fn notices(series: &Series) -> Vec<Notice> {
    let wall = series.wall();
    let outliers = outliers(&wall);
    let found = [
        two_heaps(&wall).map(|heaps| Notice::TwoHeaps {
            low_ns: heaps.low,
            high_ns: heaps.high,
            share_high: heaps.share_high,
        }),
        drift(&wall).map(|share| Notice::Drift { share }),
        noisy(&wall),
        preempted(&series.batches),
        off_cpu(&series.batches),
        (outliers.share > MANY_OUTLIERS)
            .then_some(Notice::Outliers { count: outliers.count, share: outliers.share }),
    ];
    found.into_iter().flatten().collect()
}

fn noisy(wall: &[f64]) -> Option<Notice> {
    let summary = Summary::of(wall);
    let spread = 1.4826 * summary.mad / summary.median;
    (spread > NOISY_SPREAD).then_some(Notice::Noisy { spread })
}

fn preempted(batches: &[Batch]) -> Option<Notice> {
    let seconds = sum(batches, |batch| batch.wall_ns) / 1e9;
    let preemptions = sum(batches, |batch| batch.preemptions);
    let per_second = preemptions / seconds;
    (preemptions > 1.0 && per_second > MANY_PREEMPTIONS).then_some(Notice::Preempted { per_second })
}

/// `None` if CPU time was not measured.
fn off_cpu(batches: &[Batch]) -> Option<Notice> {
    let cpu = sum(batches, |batch| batch.user_ns + batch.system_ns);
    let queued = sum(batches, |batch| batch.queued_ns);
    let share = 1.0 - (cpu + queued) / sum(batches, |batch| batch.wall_ns);
    (cpu > 0.0 && share > MUCH_OFF_CPU).then_some(Notice::OffCpu { share })
}

fn sum(batches: &[Batch], of: impl Fn(&Batch) -> u64) -> f64 {
    batches.iter().map(|batch| of(batch) as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(batch: impl Fn(u64) -> Batch) -> Series {
        Series { batches: (0..100).map(batch).collect(), ..Series::default() }
    }

    fn quiet(i: u64) -> Batch {
        let wall_ns = 1_000_000 + i * 7919 % 1009;
        Batch { calls: 10, wall_ns, user_ns: wall_ns, ..Batch::default() }
    }

    #[test]
    fn a_quiet_series_has_no_notices() {
        assert_eq!(notices(&series(quiet)), []);
        assert_eq!(notices(&Series::default()), []);
    }

    #[test]
    fn preemption_and_off_cpu_time_are_detected() {
        let others = |i| Batch { preemptions: i % 2, user_ns: 600_000, ..quiet(i) };
        let found = notices(&series(others));
        assert!(
            matches!(found[0], Notice::Preempted { per_second } if (499.0..501.0).contains(&per_second))
        );
        assert!(matches!(found[1], Notice::OffCpu { share } if (share - 0.4).abs() < 0.01));
        assert_eq!(found.len(), 2);
        let queued = |i| Batch { queued_ns: 400_000, user_ns: 600_000, ..quiet(i) };
        assert_eq!(notices(&series(queued)), []);
    }

    #[test]
    fn bimodality_and_noise_are_detected() {
        let heaps = |i| Batch { wall_ns: 1_000_000 * (1 + i % 2) + i * 7919 % 1009, ..quiet(i) };
        let found = notices(&series(heaps));
        let Notice::TwoHeaps { low_ns, high_ns, share_high } = found[0] else {
            panic!("{found:?}")
        };
        assert_eq!(
            ((low_ns / 1e3).round(), (high_ns / 1e3).round(), share_high),
            (100.0, 200.0, 0.5)
        );
        assert!(matches!(found[1], Notice::Noisy { spread } if spread > 0.3));
    }
}
