//! How many calls make a batch.
//!
//! A batch is long enough that the clock does not matter, and short enough that many fit between
//! two disturbances. All sides' batches take the same time, so that a disturbance is as likely to
//! fall into one as into the other.

use super::runner::Runner;
use super::trouble::Trouble;
use laggard_core::model::timings::Batch;
use std::time::Duration;

/// No batch of short calls takes less, in nanoseconds.
const SHORTEST: f64 = 1e6;
/// Calls that are longer than this are batches of one.
const LONGEST: f64 = 20e6;
/// The batch is as many times as long as reading the clocks takes.
const CLOCKS: f64 = 1000.0;
/// Before shorter calls than this some are run that do not count, because another side has just
/// had the caches.
const COLD_MATTERS: f64 = 5e6;

/// How a side is run in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) calls: u64,
    /// Calls before that do not count.
    pub(super) lead: u64,
}

/// Finds how long a call takes, by doubling from one. The batches are added to `run`.
pub(super) fn time_of_call(
    runner: &mut dyn Runner,
    enough: Duration,
    run: &mut Vec<Batch>,
) -> Result<f64, Trouble> {
    let mut calls = 1;
    loop {
        let mut least = f64::INFINITY;
        // Twice: the first time may have been slow for some reason of its own.
        for _ in 0..2 {
            let batch = runner.run(calls, 0)?;
            run.push(Batch { round: run.len() as u32, ..batch });
            least = least.min(batch.wall_ns as f64);
            if batch.wall_ns as u128 > enough.as_nanos() {
                break;
            }
        }
        if least >= SHORTEST || !runner.is_batched() {
            return Ok(least.max(1.0) / calls as f64);
        }
        calls *= 2;
    }
}

/// What reading the clocks adds to a batch, in nanoseconds of wall or CPU time.
pub(super) fn cost_of_clocks(runner: &mut dyn Runner) -> Result<f64, Trouble> {
    if !runner.is_batched() {
        return Ok(0.0);
    }
    let mut costs = vec![];
    for _ in 0..21 {
        let batch = runner.run(0, 0)?;
        costs.push(batch.wall_ns.max(batch.user_ns + batch.system_ns));
    }
    costs.sort_unstable();
    Ok(costs[costs.len() / 2] as f64)
}

/// The sizes for sides whose calls take so long, whether they can be batched, in nanoseconds.
pub(super) fn sizes(calls: &[(f64, bool)], clocks: f64) -> Vec<Size> {
    let slowest = calls.iter().map(|&(ns, _)| ns).fold(0.0, f64::max);
    let batch = slowest.max(clocks * CLOCKS).clamp(SHORTEST, LONGEST);
    let size = |&(ns, is_batched): &(f64, bool)| {
        if !is_batched {
            return Size { calls: 1, lead: 0 };
        }
        let calls = (batch / ns.max(0.1)).round().max(1.0) as u64;
        let lead = if ns < COLD_MATTERS { (calls / 20).max(1) } else { 0 };
        Size { calls, lead }
    };
    calls.iter().map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_take_the_same_time() {
        let check = |calls: &[f64], clocks: f64, expected: &[(u64, u64)]| {
            let calls: Vec<(f64, bool)> = calls.iter().map(|&ns| (ns, true)).collect();
            let found: Vec<(u64, u64)> =
                sizes(&calls, clocks).iter().map(|size| (size.calls, size.lead)).collect();
            assert_eq!(found, expected, "{calls:?}");
        };
        check(&[100.0, 200.0], 0.0, &[(10_000, 500), (5000, 250)]);
        check(&[100.0, 200.0], 4000.0, &[(40_000, 2000), (20_000, 1000)]);
        check(&[2e6, 4e6], 100.0, &[(2, 1), (1, 1)]);
        check(&[10e6, 1e9], 100.0, &[(2, 0), (1, 0)]);
        check(&[1e6, 1e9], 100.0, &[(20, 1), (1, 0)]);
        assert_eq!(sizes(&[(1e5, false)], 0.0), [Size { calls: 1, lead: 0 }]);
    }
}
