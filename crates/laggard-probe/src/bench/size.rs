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

/// How often a number of calls is tried.
const TRIES: u128 = 3;
/// Times of calls that differ less may well be the same.
const NEAR: f64 = 0.25;

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
        // More than once: whatever disturbs, adds.
        for _ in 0..TRIES {
            let batch = runner.run(calls, 0)?;
            run.push(Batch { round: run.len() as u32, ..batch });
            least = least.min(batch.wall_ns as f64);
            if batch.wall_ns as u128 * TRIES > enough.as_nanos() {
                break;
            }
        }
        if least >= SHORTEST || !runner.is_batched() {
            return Ok(least.max(1.0) / calls as f64);
        }
        calls *= 2;
    }
}

/// What reading the clocks adds to a batch, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clocks {
    pub(super) wall: u64,
    pub(super) cpu: u64,
}

impl Clocks {
    /// The least of some batches of no calls: whatever disturbs, adds.
    pub(super) fn of(runner: &mut dyn Runner) -> Result<Clocks, Trouble> {
        if !runner.is_batched() {
            return Ok(Clocks::default());
        }
        let mut least = Clocks { wall: u64::MAX, cpu: u64::MAX };
        for _ in 0..20 {
            let batch = runner.run(0, 0)?;
            least.wall = least.wall.min(batch.wall_ns);
            least.cpu = least.cpu.min(batch.user_ns + batch.system_ns);
        }
        Ok(least)
    }

    /// A batch without them. Wall time is as it was read: batches are so long that it is exact.
    pub(super) fn taken_off(self, batch: Batch) -> Batch {
        let of_user = self.cpu.min(batch.user_ns);
        let user_ns = batch.user_ns - of_user;
        let system_ns = batch.system_ns.saturating_sub(self.cpu - of_user);
        Batch { user_ns, system_ns, ..batch }
    }
}

/// The sizes for sides whose calls take so long, whether they can be batched, in nanoseconds.
pub(super) fn sizes(calls: &[(f64, bool)], clock: u64) -> Vec<Size> {
    let slowest = calls.iter().map(|&(ns, _)| ns).fold(0.0, f64::max);
    let batch = slowest.max(clock as f64 * CLOCKS).clamp(SHORTEST, LONGEST);
    let size = |&(ns, is_batched): &(f64, bool)| {
        if !is_batched {
            return Size { calls: 1, lead: 0 };
        }
        // Sides that are about as fast get the same number of calls, not one that chance makes
        // larger or smaller: a longer batch is disturbed more often.
        let ns = calls.iter().map(|call| call.0).find(|&near| (near / ns - 1.0).abs() < NEAR);
        let ns = ns.unwrap_or(slowest);
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
        let check = |calls: &[f64], clocks: u64, expected: &[(u64, u64)]| {
            let calls: Vec<(f64, bool)> = calls.iter().map(|&ns| (ns, true)).collect();
            let found: Vec<(u64, u64)> =
                sizes(&calls, clocks).iter().map(|size| (size.calls, size.lead)).collect();
            assert_eq!(found, expected, "{calls:?}");
        };
        check(&[100.0, 200.0], 0, &[(10_000, 500), (5000, 250)]);
        check(&[100.0, 200.0], 4000, &[(40_000, 2000), (20_000, 1000)]);
        check(&[100.0, 105.0, 98.0], 0, &[(10_000, 500); 3]);
        check(&[2e6, 4e6], 100, &[(2, 1), (1, 1)]);
        check(&[10e6, 1e9], 100, &[(2, 0), (1, 0)]);
        check(&[1e6, 1e9], 100, &[(20, 1), (1, 0)]);
        assert_eq!(sizes(&[(1e5, false)], 0), [Size { calls: 1, lead: 0 }]);
    }
}
