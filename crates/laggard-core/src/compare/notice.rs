//! What a reader of a series should know before believing it. The words for people live elsewhere.

use crate::model::timings::{Batch, Series};
use crate::stats::shape::{drift, outliers, two_heaps};
use crate::stats::summary::Summary;

/// The share of outliers from which they are mentioned.
const MANY_OUTLIERS: f64 = 0.01;
/// Spread over median from which a machine is noisy.
const NOISY_SPREAD: f64 = 0.05;
/// Preemptions in a second of wall time from which others want the same processors. A quiet machine
/// has a few, a shared processor one in every time slice.
const MANY_PREEMPTIONS: f64 = 50.0;
/// The share of wall time off the processors from which it is mentioned.
const MUCH_OFF_CPU: f64 = 0.1;

/// Something noticed in a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Notice {
    /// Batches far away from the others.
    Outliers {
        /// How many.
        count: usize,
        /// Which share of all.
        share: f64,
    },
    /// Calls got slower over the run, or faster when it is negative.
    Drift {
        /// From first to last, as a share of the median.
        share: f64,
    },
    /// Batches are of two kinds.
    TwoHeaps {
        /// Time of a call in the faster ones.
        low_ns: f64,
        /// Time of a call in the slower ones.
        high_ns: f64,
        /// The share of slower ones.
        share_high: f64,
    },
    /// Batches differ much, outliers aside.
    Noisy {
        /// Standard deviation over median, as if samples were normal.
        spread: f64,
    },
    /// Others took the processor away.
    Preempted {
        /// How often, in a second of wall time.
        per_second: f64,
    },
    /// Much of the time no thread was on a processor: it waited, or others had them.
    OffCpu {
        /// The share of wall time that exceeds CPU time.
        share: f64,
    },
}

/// What is noticed in a series, most telling first.
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

/// Nothing when CPU time was not measured.
fn off_cpu(batches: &[Batch]) -> Option<Notice> {
    let cpu = sum(batches, |batch| batch.user_ns + batch.system_ns);
    let share = 1.0 - cpu / sum(batches, |batch| batch.wall_ns);
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
    fn a_quiet_series_needs_no_word() {
        assert_eq!(notices(&series(quiet)), []);
        assert_eq!(notices(&Series::default()), []);
    }

    #[test]
    fn a_machine_that_others_use_is_noticed() {
        let others = |i| Batch { preemptions: i % 2, user_ns: 600_000, ..quiet(i) };
        let found = notices(&series(others));
        assert!(
            matches!(found[0], Notice::Preempted { per_second } if (499.0..501.0).contains(&per_second))
        );
        assert!(matches!(found[1], Notice::OffCpu { share } if (share - 0.4).abs() < 0.01));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn heaps_and_noise_are_noticed_in_the_time_of_a_call() {
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
