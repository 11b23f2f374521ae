//! What to measure, and for how long.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is measured against what, in cases that have no sides of their own. The first is the
    /// reference.
    pub sides: Vec<SidePlan>,
    /// What is measured of every side; with none, one without a name or parameters. Of several, one
    /// that fails does not keep the others from being measured.
    pub cases: Vec<CasePlan>,
    /// How long.
    pub limits: Limits,
    /// Makes the random order of the sides repeatable.
    pub seed: u64,
    /// Whether results are compared before anything is timed.
    pub check: bool,
    /// Largest relative difference of results that are no whole numbers; none is by their type.
    pub tolerance: Option<f64>,
    /// Whether what the sides write is shown, on standard error. Else it goes nowhere.
    pub show_output: bool,
    /// Whether Python's garbage collector works while a statement is timed.
    pub collect_garbage: bool,
    /// Whether hardware events are counted where they can be.
    pub counters: bool,
    /// Whether instructions of a call are counted by callgrind, after the timing.
    pub instructions: bool,
    /// Whether allocations of a call are counted, after the timing, where that is cheap. It runs a
    /// statement's set-up once more.
    pub allocations: bool,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            sides: vec![],
            cases: vec![],
            limits: Limits::default(),
            seed: 0,
            check: true,
            tolerance: None,
            show_output: false,
            collect_garbage: false,
            counters: true,
            instructions: false,
            allocations: false,
        }
    }
}

impl Plan {
    /// The plan as it is for one of its cases.
    pub fn of(&self, case: &CasePlan) -> Cow<'_, Plan> {
        let Some(own) = &case.own else { return Cow::Borrowed(self) };
        Cow::Owned(Plan {
            sides: own.sides.clone(),
            check: own.check,
            tolerance: own.tolerance,
            ..self.clone()
        })
    }

    /// The sides of every case.
    pub(super) fn fields(&self) -> impl Iterator<Item = &[SidePlan]> {
        let sides = |case: &'_ CasePlan| case.own.is_none();
        let shared = self.cases.is_empty() || self.cases.iter().any(sides);
        let own = self.cases.iter().filter_map(|case| Some(&case.own.as_ref()?.sides[..]));
        shared.then_some(&self.sides[..]).into_iter().chain(own)
    }
}

/// One of what is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct SidePlan {
    /// What it is called: `A`, `B`, or a name the user gave.
    pub name: String,
    /// What it runs.
    pub runs: Runs,
    /// The interpreter of a statement; none is `python3`.
    pub python: Option<PathBuf>,
    /// Variables of its environment, beside ours.
    pub env: Vec<(OsString, OsString)>,
    /// Where it runs; none is here.
    pub directory: Option<PathBuf>,
    /// How many threads libraries are told to use.
    pub threads: Option<u32>,
    /// Processors to run on; none means all.
    pub cpus: Vec<usize>,
    /// Whether a command may end with another code than 0.
    pub ignore_failure: bool,
}

impl SidePlan {
    /// A side with nothing special about it.
    pub fn new(name: impl Into<String>, runs: Runs) -> SidePlan {
        SidePlan {
            name: name.into(),
            runs,
            python: None,
            env: vec![],
            directory: None,
            threads: None,
            cpus: vec![],
            ignore_failure: false,
        }
    }
}

/// What a side runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// Python, timed within a process that stays.
    Statement {
        /// What is timed.
        code: String,
        /// What runs before, once.
        setup: String,
    },
    /// A program, started for every call and timed from its start to its end.
    Command {
        /// The program and its arguments; no shell reads them.
        words: Vec<OsString>,
        /// A command that runs before every call and is not timed.
        prepare: Option<Vec<OsString>>,
    },
}

impl Runs {
    /// A statement without a set-up.
    pub fn statement(code: impl Into<String>) -> Runs {
        Runs::Statement { code: code.into(), setup: String::new() }
    }

    /// As the user wrote it.
    pub fn text(&self) -> String {
        match self {
            Runs::Statement { code, .. } => code.clone(),
            Runs::Command { words, .. } => {
                let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
                words.join(" ")
            }
        }
    }
}

/// One thing that is measured of every side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CasePlan {
    /// What it is called; empty when there is only one.
    pub name: String,
    /// Names and values. A statement has them as variables before its set-up runs (literals of
    /// Python, else texts); in a command's words, `{name}` is replaced.
    pub parameters: Vec<(String, String)>,
    /// What it has in place of the plan's.
    pub own: Option<Own>,
}

/// What a case of a suite has of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Own {
    /// As many sides as other cases have, of the same names.
    pub sides: Vec<SidePlan>,
    /// Whether results are compared before anything is timed.
    pub check: bool,
    /// Largest relative difference of results that are no whole numbers; none is by their type.
    pub tolerance: Option<f64>,
}

impl CasePlan {
    /// What it is called for people: its name and its parameters; empty when it has neither.
    pub fn label(&self) -> String {
        let parameters = self.parameters.iter().map(|(name, value)| format!("{name}={value}"));
        let name = std::iter::once(self.name.clone()).filter(|name| !name.is_empty());
        name.chain(parameters).collect::<Vec<_>>().join(" ")
    }
}

/// How long measuring may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time for warm-up and measuring of all cases together, set-up apart.
    pub time: Duration,
    /// Enough is known when the ratio lies within this share of itself, as 0.01.
    pub precision: f64,
    /// What is run before anything counts.
    pub warm_up: WarmUp,
    /// How often every side is measured.
    pub rounds: Rounds,
    /// Longest that a call may take, and a set-up.
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            time: Duration::from_secs(5),
            precision: 0.01,
            warm_up: WarmUp::UntilSteady,
            rounds: Rounds::AsNeeded { min: 30, max: 100_000 },
            timeout: Duration::from_secs(60),
        }
    }
}

/// What is run before anything counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// Rounds until times stay as they are, for at most a fifth of the time.
    UntilSteady,
    /// So many rounds.
    Rounds(u32),
}

/// How often every side is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// Until enough is known or time is up.
    AsNeeded {
        /// No fewer while there is time.
        min: u32,
        /// No more.
        max: u32,
    },
    /// So often, whatever time it takes.
    Exactly(u32),
}
