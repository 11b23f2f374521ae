//! What is said of a bench while it goes on, between rounds and never during a call.

use std::time::{Duration, Instant};

/// Time between two words about rounds.
const PAUSE: Duration = Duration::from_millis(250);

/// How far a bench is.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// The case's number, from 0.
    pub case: usize,
    /// How many there are.
    pub cases: usize,
    /// What the case is called.
    pub name: &'a str,
    /// What is being done.
    pub stage: Stage,
    /// Rounds of this stage so far.
    pub rounds: u32,
    /// Time since the case began to be measured.
    pub elapsed: Duration,
    /// Time that the case has at most.
    pub budget: Duration,
    /// How wide the widest interval is, as a share of its middle; none while that is not known.
    pub width: Option<f64>,
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Interpreters are started and set-ups run.
    SetUp,
    /// Results are compared.
    Check,
    /// Batches are sized and sides get warm.
    WarmUp,
    /// Batches that count.
    Sampling,
    /// Allocations are counted.
    Allocations,
    /// Instructions are counted.
    Instructions,
}

/// Says it, not too often.
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

    /// A case begins.
    pub(super) fn case(&mut self, case: usize, name: &'a str, budget: Duration) {
        (self.now.case, self.now.name, self.now.budget) = (case, name, budget);
        (self.now.elapsed, self.now.width) = (Duration::ZERO, None);
        self.stage(Stage::SetUp);
    }

    /// Something else is done from now on.
    pub(super) fn stage(&mut self, stage: Stage) {
        (self.now.stage, self.now.rounds) = (stage, 0);
        (self.tell)(&self.now);
        self.last = Instant::now();
    }

    /// A round is over. Whether it was time to say so.
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
