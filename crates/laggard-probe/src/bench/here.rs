//! Sides that run in this process: the caller of the benchmark makes the calls.
#![allow(unsafe_code, reason = "getrusage has no safe interface")]

use super::case::Field;
use super::order::Order;
use super::pin::Cpus;
use super::plan::{CasePlan, Limits, Plan, Runs, SidePlan};
use super::process::queued_ns;
use super::progress::{Progress, Teller};
use super::runner::{About, Runner};
use super::trouble::Trouble;
use super::value::Value;
use super::{add_facts, begin};
use crate::error::Error;
use laggard_core::model::timings::{Batch, Timings};
use std::time::Instant;

/// A side of this process.
pub struct Here {
    /// Name: `A`, `B`, or a name from the user.
    pub name: String,
    /// Description of what it runs, for reports.
    pub runs: String,
    /// Makes this many calls. An error is the text of the exception.
    pub call: Box<dyn FnMut(u64) -> Result<(), String>>,
}

/// Measures sides of this process against each other. The sides share the process, so memory and
/// threads per side are unknown, and CPU time is that of the whole process.
pub fn measure_here(
    sides: Vec<Here>,
    limits: Limits,
    seed: u64,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Timings, Error> {
    let (mut plans, mut runners) = (vec![], vec![]);
    for Here { name, runs, call } in sides {
        plans.push(SidePlan::new(name, Runs::statement(runs)));
        runners.push(Box::new(InProcess { call }) as Box<dyn Runner>);
    }
    let plan = Plan { sides: plans, limits, seed, ..Plan::default() };
    super::check_plan(&plan)?;
    let mut timings = begin(&plan);
    let case = CasePlan::default();
    let mut teller = Teller::new(1, progress);
    let budget = plan.limits.time;
    teller.case(0, "", budget);
    let counters = runners.iter().map(|_| None).collect();
    let field = Field::new(&plan, &case, runners, counters, Instant::now());
    let (mut measured, abouts, warnings) =
        field.measure(budget, &mut Order::new(seed), &mut teller)?;
    timings.warnings.extend(warnings);
    add_facts(&mut timings.sides, &mut measured, abouts);
    timings.cases.push(measured);
    Ok(timings)
}

/// A side whose calls are made in this process.
struct InProcess {
    call: Box<dyn FnMut(u64) -> Result<(), String>>,
}

impl InProcess {
    fn make(&mut self, calls: u64) -> Result<(), Trouble> {
        (self.call)(calls).map_err(|traceback| {
            let last = traceback.trim_end().rsplit('\n').next().unwrap_or_default().to_owned();
            Trouble::Raised { place: "a call", last, traceback }
        })
    }
}

impl Runner for InProcess {
    fn value(&mut self) -> Result<Value, Trouble> {
        Err(Trouble::Plan("has no result to compare: it runs in this process".into()))
    }

    fn run(&mut self, calls: u64, lead: u64) -> Result<Batch, Trouble> {
        self.make(lead)?;
        let queued = || queued_ns("/proc/thread-self/schedstat");
        let (before, queued_before) = (usage(), queued());
        let began = Instant::now();
        self.make(calls)?;
        let wall_ns = began.elapsed().as_nanos() as u64;
        let after = usage();
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        let since = |after: libc::c_long, before: libc::c_long| (after - before).max(0) as u64;
        Ok(Batch {
            calls,
            wall_ns,
            user_ns: ns(after.ru_utime).saturating_sub(ns(before.ru_utime)),
            system_ns: ns(after.ru_stime).saturating_sub(ns(before.ru_stime)),
            minor_faults: since(after.ru_minflt, before.ru_minflt),
            major_faults: since(after.ru_majflt, before.ru_majflt),
            waits: since(after.ru_nvcsw, before.ru_nvcsw),
            preemptions: since(after.ru_nivcsw, before.ru_nivcsw),
            queued_ns: queued().saturating_sub(queued_before),
            ..Batch::default()
        })
    }

    fn bind(&mut self, _: Cpus) {}

    fn about(&mut self) -> Result<About, Trouble> {
        Ok(About { facts: vec![("process".into(), "this process".into())], ..About::default() })
    }

    fn is_batched(&self) -> bool {
        true
    }

    fn runs_empty(&self) -> bool {
        true
    }

    fn is_apart(&self) -> bool {
        false
    }

    fn pid(&self) -> Option<i32> {
        None
    }
}

/// Resource usage of this process so far.
fn usage() -> libc::rusage {
    // SAFETY: `usage` is valid for writes, and the kernel fills it in. All-zero bytes are a valid
    // `rusage`.
    unsafe {
        let mut usage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::plan::{Rounds, WarmUp};
    use std::hint::black_box;
    use std::time::Duration;

    fn side(name: &str, mut call: impl FnMut() -> Result<(), String> + 'static) -> Here {
        // `black_box`, because a call that the compiler removes takes no time.
        let call = Box::new(move |calls| (0..calls).try_for_each(|n| black_box((n, call())).1));
        Here { name: name.into(), runs: name.into(), call }
    }

    fn limits() -> Limits {
        Limits {
            time: Duration::from_millis(200),
            rounds: Rounds::Exactly(5),
            warm_up: WarmUp::Rounds(1),
            ..Limits::default()
        }
    }

    #[test]
    fn every_side_has_a_batch_in_every_round() {
        let sides = vec![side("A", || Ok(())), side("B", || Ok(()))];
        let timings =
            measure_here(sides, limits(), 1, &mut |_| ()).expect("the measurement succeeds");
        let [a, b] = &timings.cases[0].series[..] else { panic!("two sides") };
        assert_eq!((a.batches.len(), b.batches.len()), (5, 5));
        assert!(a.batches.iter().all(|batch| batch.calls > 0));
    }

    #[test]
    fn a_failing_side_is_reported_with_its_exception() {
        let failing = side("B", || Err("Traceback\nValueError: no".into()));
        let error = measure_here(vec![side("A", || Ok(())), failing], limits(), 1, &mut |_| ());
        let words = error.expect_err("it fails").to_string();
        assert!(words.contains('B') && words.contains("ValueError: no"), "{words}");
    }
}
