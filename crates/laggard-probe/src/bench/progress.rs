//! Progress of a benchmark, reported between rounds and never during a call.

use std::time::{Duration, Instant};

/// Minimum time between two progress reports within a stage.
const PAUSE: Duration = Duration::from_millis(250);

/// Progress of a benchmark.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Index of the case.
    pub case: usize,
    /// Number of cases.
    pub cases: usize,
    /// Name of the case.
    pub name: &'a str,
    /// The current stage.
    pub stage: Stage,
    /// Completed rounds of this stage.
    pub rounds: u32,
    /// Time since the measurement of the case started.
    pub elapsed: Duration,
    /// Time limit of the case.
    pub budget: Duration,
    /// Half-width of the widest confidence interval relative to its middle; `None` until it is
    /// known.
    pub width: Option<f64>,
}

/// A stage of the measurement of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Starting interpreters and running set-up code.
    SetUp,
    /// Comparing results.
    Check,
    /// Choosing batch sizes and warming up.
    WarmUp,
    /// Timing batches.
    Sampling,
    /// Counting allocations.
    Allocations,
    /// Counting instructions.
    Instructions,
}

/// Reports progress at a limited rate.
pub(super) struct Teller<'a, 'b> {
    pub(super) now: Progress<'a>,
    tell: &'b mut dyn FnMut(&Progress),
    last: Instant,
}

impl<'a, 'b> Teller<'a, 'b> {
    pub(super) fn new(cases: usize, tell: &'b mut dyn FnMut(&Progress)) -> Teller<'a, 'b> {
        let now = Progress {
            case: 0,
            cases,
            name: "",
            stage: Stage::SetUp,
            rounds: 0,
            elapsed: Duration::ZERO,
            budget: Duration::ZERO,
            width: None,
        };
        Teller { now, tell, last: Instant::now() }
    }

    /// Starts a case.
    pub(super) fn case(&mut self, case: usize, name: &'a str, budget: Duration) {
        (self.now.case, self.now.name, self.now.budget) = (case, name, budget);
        (self.now.elapsed, self.now.width) = (Duration::ZERO, None);
        self.stage(Stage::SetUp);
    }

    /// Starts a stage.
    pub(super) fn stage(&mut self, stage: Stage) {
        (self.now.stage, self.now.rounds) = (stage, 0);
        (self.tell)(&self.now);
        self.last = Instant::now();
    }

    /// Ends a round. Returns whether progress was reported.
    pub(super) fn round(&mut self, rounds: u32, elapsed: Duration) -> bool {
        let is_time = self.last.elapsed() >= PAUSE;
        if is_time {
            (self.now.rounds, self.now.elapsed) = (rounds, elapsed);
            (self.tell)(&self.now);
            self.last = Instant::now();
        }
        is_time
    }
}
