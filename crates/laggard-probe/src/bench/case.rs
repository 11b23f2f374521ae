//! Measures one case: all sides in turn, round by round, until the precision goal is reached or the
//! time is up.

use super::counters::Counters;
use super::groups::was_interrupted;
use super::order::Order;
use super::pin::{Aside, Cpus};
use super::plan::{CasePlan, Plan, Rounds, WarmUp};
use super::progress::{Stage, Teller};
use super::runner::{About, Runner};
use super::size::{self, Clocks, Size};
use super::trouble::Trouble;
use crate::error::Error;
use laggard_core::model::timings::{Batch, Case, Counter, Series};
use laggard_core::stats::ratio::FEWEST_OF_ALL;
use laggard_core::stats::ratio::estimate_paired;
use laggard_core::stats::steady::is_steady;
use laggard_core::stats::summary::{Summary, bootstrap_median_interval};
use std::time::{Duration, Instant};

/// Results with fewer rounds are not reliable.
const FEW: usize = 5;
/// Share of the time limit that the warm-up may use.
const WARM_UP_SHARE: f64 = 0.2;
/// Bootstrap resamples for the interval that decides whether to continue; it need not be exact.
const RESAMPLES: usize = 400;
/// The interval is computed again when the number of rounds has grown by this factor.
const LOOK_AGAIN: f64 = 1.2;

/// The sides of a case, ready to run.
pub(super) struct Field<'a> {
    pub(super) plan: &'a Plan,
    pub(super) case: &'a CasePlan,
    pub(super) runners: Vec<Box<dyn Runner>>,
    pub(super) counters: Vec<Option<Counters>>,
    /// Start of the first batch of all cases.
    pub(super) origin: Instant,
    pub(super) warnings: Vec<String>,
    series: Vec<Series>,
    /// Clock overhead in a batch, by side.
    clocks: Vec<Clocks>,
    /// The CPU that all sides share, which this thread avoids.
    shared: Option<(usize, Option<Aside>)>,
}

impl<'a> Field<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        case: &'a CasePlan,
        runners: Vec<Box<dyn Runner>>,
        counters: Vec<Option<Counters>>,
        origin: Instant,
    ) -> Field<'a> {
        let series = vec![Series::default(); runners.len()];
        Field {
            plan,
            case,
            runners,
            counters,
            origin,
            warnings: vec![],
            series,
            clocks: vec![],
            shared: None,
        }
    }

    /// Measures for at most `budget`. Returns the case, the facts of the sides, and warnings. If the
    /// measurement is interrupted, the case contains the rounds so far.
    pub(super) fn measure(
        mut self,
        budget: Duration,
        order: &mut Order,
        teller: &mut Teller,
    ) -> Result<(Case, Vec<About>, Vec<String>), Error> {
        let measured = self.complete(budget, order, teller);
        let abouts = match measured {
            Err(_) if was_interrupted() => self.interrupted()?,
            measured => measured?,
        };
        let case = Case {
            name: self.case.name.clone(),
            parameters: self.case.parameters.clone(),
            series: self.series,
        };
        Ok((case, abouts, self.warnings))
    }

    /// Warns that the user ended the measurement. The facts of killed processes are unknown.
    fn interrupted(&mut self) -> Result<Vec<About>, Error> {
        let rounds = self.series[0].batches.len();
        if rounds == 0 {
            return Err(Error::Interrupted);
        }
        let many = if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") };
        self.warn(&format!("interrupted after {many}"));
        Ok(self.runners.iter().map(|_| About::default()).collect())
    }

    /// Warms up and measures all rounds. Returns the facts of the sides.
    fn complete(
        &mut self,
        budget: Duration,
        order: &mut Order,
        teller: &mut Teller,
    ) -> Result<Vec<About>, Error> {
        let started = Instant::now();
        teller.stage(Stage::WarmUp);
        let mut sizes = self.find_sizes(budget)?;
        self.share_processor();
        self.look();
        self.warm_up(started, budget, &mut sizes, order, teller)?;
        self.look();
        self.calibrate_counters()?;
        teller.stage(Stage::Sampling);
        self.sample(started, budget, &sizes, order, teller)?;
        self.abouts()
    }

    fn find_sizes(&mut self, budget: Duration) -> Result<Vec<Size>, Error> {
        let enough = budget.mul_f64(WARM_UP_SHARE) / self.runners.len() as u32;
        let mut calls = vec![];
        for (side, runner) in self.runners.iter_mut().enumerate() {
            let run = &mut self.series[side].warm_up;
            let mut start_ns = 0;
            let found = Clocks::of(runner.as_mut()).and_then(|clocks| {
                start_ns = self.origin.elapsed().as_nanos() as u64;
                Ok((clocks, size::time_of_call(runner.as_mut(), enough, run)?))
            });
            runner.rest();
            if let Some(batch) = run.first_mut() {
                batch.start_ns = start_ns;
            }
            let (clocks, call) = found.map_err(|trouble| named(self.plan, side, trouble))?;
            self.clocks.push(clocks);
            calls.push((call, runner.is_batched()));
        }
        Ok(size::sizes(&calls, self.clock()))
    }

    /// Binds all sides to one CPU if none of them uses more than one at a time, so that a
    /// disturbance of that CPU affects all sides. On two CPUs, one side may be slower for seconds
    /// just because of the CPU it runs on: the same statement compared with itself differed by ±5
    /// to 100 %, and by ±1 % on one CPU.
    fn share_processor(&mut self) {
        let has_own = self.plan.sides.iter().any(|side| !side.cpus.is_empty())
            || self.runners.iter().any(|runner| !runner.is_apart());
        if has_own || self.runners.len() < 2 || !self.series.iter().all(works_alone) {
            return;
        }
        let Some(cpu) = Cpus::of_this_thread().ok().and_then(|cpus| cpus.last()) else { return };
        let Ok(one) = Cpus::of(&[cpu]) else { return };
        self.runners.iter_mut().for_each(|runner| runner.bind(one));
        self.shared = Some((cpu, Aside::step(&[cpu])));
    }

    /// Reading time of the slowest clock.
    fn clock(&self) -> u64 {
        self.clocks.iter().map(|clocks| clocks.wall).max().unwrap_or(0)
    }

    /// Runs one batch of every side, in the given order.
    fn round(&mut self, round: u32, sizes: &[Size], order: &[usize]) -> Result<Vec<Batch>, Error> {
        // A command runs no process between its calls that could be killed.
        if was_interrupted() {
            return Err(Error::Interrupted);
        }
        let mut batches = vec![Batch::default(); self.runners.len()];
        for (place, &side) in (0..).zip(order) {
            let Size { calls, lead } = sizes[side];
            let runner = &mut self.runners[side];
            let counters = &mut self.counters[side];
            if let Some(counters) = counters {
                counters.before();
            }
            let start_ns = self.origin.elapsed().as_nanos() as u64;
            let batch = runner.run(calls, lead);
            runner.rest();
            let batch = batch.map_err(|trouble| named(self.plan, side, trouble))?;
            if let Some(counters) = counters {
                counters.after(calls + lead);
            }
            let batch = self.clocks[side].taken_off(batch);
            batches[side] = Batch { round, place, start_ns, ..batch };
        }
        Ok(batches)
    }

    /// Lets the sides do their housekeeping.
    fn look(&mut self) {
        for runner in &mut self.runners {
            runner.look();
        }
    }

    fn warm_up(
        &mut self,
        started: Instant,
        budget: Duration,
        sizes: &mut [Size],
        order: &mut Order,
        teller: &mut Teller,
    ) -> Result<(), Error> {
        let first = self.series.iter().map(|series| series.warm_up.len()).max().unwrap_or(0) as u32;
        let until = started + budget.mul_f64(WARM_UP_SHARE);
        let sides = self.runners.len();
        let mut times = vec![vec![]; sides];
        let mut slowest_round = self.expected_round(sizes);
        for round in 0.. {
            let is_enough = match self.plan.limits.warm_up {
                WarmUp::Rounds(rounds) => round >= rounds,
                WarmUp::UntilSteady => {
                    times.iter().all(|times: &Vec<f64>| is_steady(times))
                        || Instant::now() + slowest_round > until
                }
            };
            if is_enough {
                break;
            }
            let began = Instant::now();
            let batches = self.round(first + round, sizes, &order.next(sides))?;
            slowest_round = slowest_round.max(began.elapsed());
            for (side, batch) in batches.into_iter().enumerate() {
                times[side].push(batch.per_call(batch.wall_ns));
                self.series[side].warm_up.push(batch);
            }
            teller.round(round + 1, started.elapsed());
        }
        let is_steady = times.iter().all(|times| is_steady(times));
        if self.plan.limits.warm_up == WarmUp::UntilSteady && !is_steady && times[0].len() >= FEW {
            self.warn("times were still changing when the warm-up ended");
        }
        self.resize(sizes, &times);
        Ok(())
    }

    /// Updates the batch sizes to the time of a call after the warm-up.
    fn resize(&self, sizes: &mut [Size], times: &[Vec<f64>]) {
        if times.iter().any(|times| times.len() < FEW) {
            return;
        }
        // The minimum, because disturbances only add time.
        let recent = |times: &Vec<f64>| {
            times[times.len() / 2..].iter().copied().fold(f64::INFINITY, f64::min)
        };
        let both = times.iter().zip(&self.runners);
        let calls: Vec<(f64, bool)> =
            both.map(|(times, runner)| (recent(times), runner.is_batched())).collect();
        sizes.copy_from_slice(&size::sizes(&calls, self.clock()));
    }

    /// Expected duration of a round, from the calls so far.
    fn expected_round(&self, sizes: &[Size]) -> Duration {
        let time = |(series, size): (&Series, &Size)| {
            let last = series.warm_up.last().map_or(0.0, |batch| batch.per_call(batch.wall_ns));
            last * (size.calls + size.lead) as f64
        };
        Duration::from_nanos(self.series.iter().zip(sizes).map(time).sum::<f64>() as u64)
    }

    fn calibrate_counters(&mut self) -> Result<(), Error> {
        for (side, (runner, counters)) in
            self.runners.iter_mut().zip(&mut self.counters).enumerate()
        {
            let Some(counters) = counters else { continue };
            let done = counters.calibrate(&mut || runner.run(0, 0).map(|_| ()));
            runner.rest();
            done.map_err(|trouble| named(self.plan, side, trouble))?;
        }
        Ok(())
    }

    fn sample(
        &mut self,
        started: Instant,
        budget: Duration,
        sizes: &[Size],
        order: &mut Order,
        teller: &mut Teller,
    ) -> Result<(), Error> {
        let limits = &self.plan.limits;
        let (min, max, is_exact) = match limits.rounds {
            Rounds::AsNeeded { min, max } => (min.max(FEW as u32), max.max(1), false),
            Rounds::Exactly(rounds) => (rounds.max(1), rounds.max(1), true),
        };
        let sides = self.runners.len();
        let mut look_at = min;
        let mut width = None;
        let mut longest = self.expected_round(sizes);
        // Earlier cases may have used all of the time.
        let fair = limits.time / self.plan.cases.len().max(1) as u32;
        let overtime = budget.max(fair).mul_f64(limits.overtime.max(1.0));
        let is_slow = started.elapsed() + longest * FEWEST_OF_ALL as u32 > budget;
        let first = if is_slow && !is_exact { self.keep_warm_up(sizes) } else { 0 };
        for round in first..max {
            let is_few = round > 0 && (round as usize) < FEWEST_OF_ALL;
            let expected = started.elapsed() + longest;
            let is_late = expected > if is_few { overtime } else { budget };
            if !is_late && expected > budget {
                teller.now.budget = overtime;
            }
            if is_late && round > 0 && !is_exact {
                break;
            }
            let began = Instant::now();
            let batches = self.round(round, sizes, &order.next(sides))?;
            // A moving average, because one disturbed round does not predict the next.
            longest = (longest * 3 + began.elapsed()) / 4;
            for (series, batch) in self.series.iter_mut().zip(batches) {
                series.batches.push(batch);
            }
            let rounds = round + 1;
            if rounds == look_at && !is_exact {
                look_at = (f64::from(rounds) * LOOK_AGAIN).ceil() as u32;
                width = self.width();
                teller.now.width = width;
                if width.is_some_and(|width| width <= limits.precision) {
                    break;
                }
            }
            if teller.round(rounds, started.elapsed()) {
                self.look();
            }
        }
        self.judge(is_exact, width);
        Ok(())
    }

    /// Counts the calls that found out the batch sizes as the first round, because calls are too slow
    /// to be repeated. Returns the number of rounds.
    fn keep_warm_up(&mut self, sizes: &[Size]) -> u32 {
        let is_a_round = |(series, size): (&Series, &Size)| {
            let [batch] = &series.warm_up[..] else { return false };
            (batch.calls, 0) == (size.calls, size.lead)
        };
        if !self.series.iter().zip(sizes).all(is_a_round) {
            return 0;
        }
        for ((place, series), clocks) in (0..).zip(&mut self.series).zip(&self.clocks) {
            let batches = std::mem::take(&mut series.warm_up).into_iter();
            series.batches.extend(batches.map(|batch| Batch { place, ..clocks.taken_off(batch) }));
        }
        1
    }

    /// Largest distance of an interval's ends from its middle, as a share of the middle. The
    /// intervals are those of the ratio of every later side to the first, or of the median if there
    /// is only one side.
    fn width(&self) -> Option<f64> {
        let wide = |middle: f64, low: f64, high: f64| (high - middle).max(middle - low) / middle;
        let seed = self.plan.seed;
        let first = self.series[0].wall();
        if self.series.len() == 1 {
            let (low, high) = bootstrap_median_interval(&first, RESAMPLES, seed);
            return (first.len() > 1).then(|| wide(Summary::of(&first).median, low, high));
        }
        self.series[1..].iter().try_fold(0.0, |widest: f64, series| {
            let ratio = estimate_paired(&first, &series.wall(), RESAMPLES, seed)?.ratio;
            Some(widest.max(wide(ratio.middle, ratio.low, ratio.high)))
        })
    }

    /// Warns if there are too few rounds or the precision goal was missed.
    fn judge(&mut self, is_exact: bool, width: Option<f64>) {
        let rounds = self.series[0].batches.len();
        let precision = self.plan.limits.precision;
        if rounds < FEW {
            let many = if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") };
            let why = if is_exact {
                "as requested"
            } else {
                "the time limit is too short for these calls"
            };
            self.warn(&format!("only {many} measured ({why}): too few for a reliable result"));
        } else if !is_exact && width.is_none_or(|width| width > precision) {
            let width = self.width().unwrap_or(f64::INFINITY);
            if width > precision {
                self.warn(&format!(
                    "stopped at the time limit with ±{:.1} % precision (goal ±{} %)",
                    width * 100.0,
                    precision * 100.0
                ));
            }
        }
    }

    fn warn(&mut self, what: &str) {
        let name = self.case.label();
        let warning =
            if name.is_empty() { what.to_owned() } else { format!("case {name}: {what}") };
        self.warnings.push(warning);
    }

    fn abouts(&mut self) -> Result<Vec<About>, Error> {
        let mut abouts = vec![];
        for (side, runner) in self.runners.iter_mut().enumerate() {
            let about = runner.about().map_err(|trouble| named(self.plan, side, trouble))?;
            let series = &mut self.series[side];
            (series.threads, series.peak_memory) = (about.threads, about.peak_memory);
            let mut about = about;
            if let Some((cpu, _)) = &self.shared {
                let value = format!("{cpu}, shared by all sides: none uses more than one CPU");
                about.facts.push(("cpu".into(), value));
            }
            if let Some(counters) = &mut self.counters[side] {
                series.counters = counters.take().per_call().collect::<Vec<Counter>>();
            }
            abouts.push(about);
        }
        Ok(abouts)
    }
}

/// Whether a side has used at most one CPU at a time so far and rarely waited.
fn works_alone(series: &Series) -> bool {
    const ROUNDING: f64 = 1.05;
    let sum = |of: fn(&Batch) -> u64| series.warm_up.iter().map(of).sum::<u64>();
    let cpu = sum(|batch| batch.user_ns + batch.system_ns) as f64;
    let waits = sum(|batch| batch.waits);
    cpu <= ROUNDING * sum(|batch| batch.wall_ns) as f64 && waits * 20 <= sum(|batch| batch.calls)
}

/// Adds the name of the side to a trouble.
pub(super) fn named(plan: &Plan, side: usize, trouble: Trouble) -> Error {
    Error::Side { side: plan.sides[side].name.clone(), trouble }
}
