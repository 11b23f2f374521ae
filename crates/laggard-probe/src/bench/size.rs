//! Number of calls in a batch.
//!
//! A batch is long enough for the clock overhead not to matter, and short enough for many to fit
//! between two disturbances. The batches of all sides take the same time, so that a disturbance is
//! equally likely to hit any of them.

use super::runner::Runner;
use super::trouble::Trouble;
use laggard_core::model::timings::Batch;
use std::time::{Duration, Instant};

/// Minimum length of a batch of short calls, in nanoseconds.
const SHORTEST: f64 = 1e6;
/// Longer calls are batches of one.
const LONGEST: f64 = 20e6;
/// Minimum ratio of batch length and clock overhead.
const CLOCKS: f64 = 1000.0;
/// Shorter calls than this are preceded by untimed ones, because another side has just used the
/// caches.
const COLD_MATTERS: f64 = 5e6;

/// Time after which no more empty batches are run.
const LONGEST_CLOCKS: Duration = Duration::from_millis(100);
/// Number of batches tried per number of calls.
const TRIES: u128 = 3;
/// Call times that differ by less may be the same.
const NEAR: f64 = 0.25;

/// Batch size of a side in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) calls: u64,
    /// Untimed calls before the batch.
    pub(super) lead: u64,
}

/// Measures the time of a call by doubling the number of calls. The batches are appended to `run`.
pub(super) fn time_of_call(
    runner: &mut dyn Runner,
    enough: Duration,
    run: &mut Vec<Batch>,
) -> Result<f64, Trouble> {
    let mut calls = 1;
    loop {
        let mut least = f64::INFINITY;
        // Several tries, because disturbances only add time.
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

/// Clock overhead in a batch, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clocks {
    pub(super) wall: u64,
    pub(super) cpu: u64,
}

impl Clocks {
    /// The minimum of some empty batches, because disturbances only add time.
    pub(super) fn of(runner: &mut dyn Runner) -> Result<Clocks, Trouble> {
        if !runner.runs_empty() {
            return Ok(Clocks::default());
        }
        let mut least = Clocks { wall: u64::MAX, cpu: u64::MAX };
        let began = Instant::now();
        for _ in 0..20 {
            let batch = runner.run(0, 0)?;
            least.wall = least.wall.min(batch.wall_ns);
            least.cpu = least.cpu.min(batch.user_ns + batch.system_ns);
            // A slow preparation also runs before an empty batch.
            if began.elapsed() > LONGEST_CLOCKS {
                break;
            }
        }
        Ok(least)
    }

    /// Subtracts the overhead from CPU times. Wall time is unchanged: batches are long enough for
    /// it to be exact.
    pub(super) fn taken_off(self, batch: Batch) -> Batch {
        let of_user = self.cpu.min(batch.user_ns);
        let user_ns = batch.user_ns - of_user;
        let system_ns = batch.system_ns.saturating_sub(self.cpu - of_user);
        Batch { user_ns, system_ns, ..batch }
    }
}

/// Batch sizes of all sides. `calls` has the time of a call in nanoseconds, and whether calls can
/// be batched.
pub(super) fn sizes(calls: &[(f64, bool)], clock: u64) -> Vec<Size> {
    let slowest = calls.iter().map(|&(ns, _)| ns).fold(0.0, f64::max);
    let batch = slowest.max(clock as f64 * CLOCKS).clamp(SHORTEST, LONGEST);
    let size = |&(ns, is_batched): &(f64, bool)| {
        if !is_batched {
            return Size { calls: 1, lead: 0 };
        }
        // Sides of similar speed get the same number of calls, not numbers that differ by chance: a
        // longer batch is disturbed more often.
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
