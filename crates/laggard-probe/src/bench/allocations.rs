//! Counts the allocations of a call with the tracing agent, in a separate worker.
//!
//! Counts are read around no calls and around some calls; the difference is the cost of the calls.
//! Allocations from an allocator's own pools, such as Python's small objects, are not visible.

use super::case::named;
use super::pin::Cpus;
use super::plan::{CasePlan, Plan, Runs};
use super::runner::Runner;
use super::trouble::Trouble;
use super::watch::{not_loaded, traced};
use super::worker::{Statement, Worker};
use crate::calls::{self, Tracing};
use crate::error::Error;
use laggard_core::calls::{By, View, totals};
use laggard_core::model::timings::Counter;
use std::time::Duration;

/// Functions that allocate. Functions that they call internally, such as `mmap`, would count twice.
const FUNCTIONS: [&str; 7] =
    ["malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign", "valloc"];
/// Calls are repeated for about this time, in nanoseconds.
const ENOUGH: f64 = 5e7;
/// Maximum number of repetitions.
const MOST: f64 = 1000.0;
/// Set-up code that takes longer is run again only if the timing took even longer.
const LONG: Duration = Duration::from_secs(2);
/// Time limit for a response, in addition to that of the set-up code.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether counting is cheap enough, given the time for set-up and timing of all sides.
pub(super) fn are_cheap(set_up: Duration, timing: Duration) -> bool {
    set_up <= LONG.max(timing)
}

/// The plan with a shorter timeout, because a program may hang with an agent loaded.
pub(super) fn limited(plan: &Plan, set_up: Duration) -> Plan {
    let mut plan = plan.clone();
    plan.limits.timeout = plan.limits.timeout.min(PATIENCE + set_up * 3);
    plan
}

/// Counts the allocations of a call. `call_ns` is the time of a call. Returns `None` for a command,
/// which would have to be run again.
pub(super) fn count(
    plan: &Plan,
    side: usize,
    case: &CasePlan,
    cpus: Option<Cpus>,
    call_ns: f64,
) -> Result<Option<Counter>, Error> {
    let Runs::Statement { code, setup, prepare } = &plan.sides[side].runs else { return Ok(None) };
    let statement = Statement { code, setup, prepare, check: "" };
    let options = calls::Options {
        functions: FUNCTIONS.map(str::to_owned).to_vec(),
        // The interpreter may be a wrapper script.
        children: true,
        stack_every: 0,
        ..calls::Options::default()
    };
    let tracing = Tracing::open(&options)?;
    let own = traced(&plan.sides[side], &tracing);
    let so_far = || -> u64 {
        let calls = tracing.so_far();
        totals(&View::whole(&calls), By::Function).rows.iter().map(|row| row.tally.count).sum()
    };
    let most = if prepare.is_empty() { MOST } else { 1.0 };
    let calls = (ENOUGH / call_ns.max(1.0)).clamp(1.0, most).ceil() as u64;
    let run = || -> Result<[u64; 3], Trouble> {
        let mut worker = Worker::start(plan, &own, cpus, &[])?;
        worker.set_up(plan, &statement, case)?;
        worker.run(calls.div_ceil(3), 0)?;
        let before = so_far();
        worker.run(0, 0)?;
        let around_none = so_far();
        worker.run(calls, 0)?;
        Ok([before, around_none, so_far()])
    };
    let [before, around_none, after] = run().map_err(|trouble| named(plan, side, trouble))?;
    // An interpreter has allocated memory before this point.
    if !tracing.was_loaded() || before == 0 {
        return Err(not_loaded("the tracing agent", &own));
    }
    let counted = (after - around_none).saturating_sub(around_none - before);
    Ok(Some(Counter {
        name: "allocations".into(),
        per_call: counted as f64 / calls as f64,
        source: "calls agent".into(),
    }))
}
