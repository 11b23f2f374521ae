//! What to measure, and for how long.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// A benchmark plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The sides of cases that have no sides of their own. The first side is the reference.
    pub sides: Vec<SidePlan>,
    /// The cases; if empty, one case without name and parameters. If one of several cases fails,
    /// the others are still measured.
    pub cases: Vec<CasePlan>,
    /// Time and precision limits.
    pub limits: Limits,
    /// Seed of the random order of the sides.
    pub seed: u64,
    /// Whether results are compared before anything is timed.
    pub check: ResultCheck,
    /// Maximum relative difference of non-integer results; `None` uses the default of their type.
    pub tolerance: Option<f64>,
    /// Whether the output of the sides is shown on standard error. Otherwise it is discarded.
    pub show_output: bool,
    /// Whether Python's garbage collector is enabled while a statement is timed.
    pub collect_garbage: bool,
    /// Whether hardware events are counted if they are available.
    pub counters: bool,
    /// Whether callgrind counts the instructions of a call after the timing.
    pub instructions: bool,
    /// Whether the allocations of a call are counted after the timing, if that is cheap. This runs
    /// the set-up code of a statement again.
    pub allocations: bool,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            sides: vec![],
            cases: vec![],
            limits: Limits::default(),
            seed: 0,
            check: ResultCheck::Require,
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
    /// The plan with the settings of one of its cases.
    pub fn of(&self, case: &CasePlan) -> Cow<'_, Plan> {
        let Some(own) = &case.own else { return Cow::Borrowed(self) };
        Cow::Owned(Plan {
            sides: own.sides.clone(),
            check: ResultCheck::require_if(own.check),
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

/// What to do about results that differ between sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultCheck {
    /// Do not compare results.
    Skip,
    /// Warn if results of the same type and shape differ; other differences are errors.
    Report,
    /// Any difference is an error.
    Require,
}

impl ResultCheck {
    /// Requires equal results, or skips the comparison.
    pub fn require_if(is_required: bool) -> ResultCheck {
        if is_required { ResultCheck::Require } else { ResultCheck::Skip }
    }
}

/// A side of a benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct SidePlan {
    /// Name: `A`, `B`, or a name from the user.
    pub name: String,
    /// What it runs.
    pub runs: Runs,
    /// Interpreter of a statement; `None` is `python3`.
    pub python: Option<PathBuf>,
    /// Additional environment variables.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; `None` is the current one.
    pub directory: Option<PathBuf>,
    /// Number of threads that libraries are configured to use.
    pub threads: Option<u32>,
    /// CPUs to run on; empty means all.
    pub cpus: Vec<usize>,
    /// Whether a command may exit with a non-zero status.
    pub ignore_failure: bool,
}

impl SidePlan {
    /// A side with default settings.
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
    /// Python code, timed within a process that stays alive.
    Statement {
        /// The timed code.
        code: String,
        /// Set-up code, run once.
        setup: String,
        /// Untimed code that runs before every call; may be empty.
        prepare: String,
    },
    /// A program, started for every call and timed from start to end.
    Command {
        /// The program and its arguments; no shell is involved.
        words: Vec<OsString>,
        /// An untimed command that runs before every call.
        prepare: Option<Vec<OsString>>,
    },
}

impl Runs {
    /// A statement without set-up code.
    pub fn statement(code: impl Into<String>) -> Runs {
        Runs::Statement { code: code.into(), setup: String::new(), prepare: String::new() }
    }

    /// The statement, or the command line with quotes where they are needed.
    pub fn text(&self) -> String {
        match self {
            Runs::Statement { code, .. } => code.clone(),
            Runs::Command { words, .. } => {
                let words: Vec<String> =
                    words.iter().map(|word| quoted(&word.to_string_lossy())).collect();
                words.join(" ")
            }
        }
    }

    /// The line that a shell runs, if the side is a command of the form `sh -c LINE`.
    pub(super) fn shell_line(&self) -> Option<&OsStr> {
        match self {
            Runs::Command { words, .. } => match &words[..] {
                [sh, flag, line] if sh == "sh" && flag == "-c" => Some(line),
                _ => None,
            },
            Runs::Statement { .. } => None,
        }
    }
}

/// A word of a command line, in quotes if it would otherwise be several words or shell syntax.
fn quoted(word: &str) -> String {
    let is_special = |c: char| c.is_whitespace() || "|&;<>*$`'\"\\".contains(c);
    if word.is_empty() || word.contains(is_special) {
        format!("'{}'", word.replace('\'', "'\\''"))
    } else {
        word.to_owned()
    }
}

/// A case: one set of inputs for every side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CasePlan {
    /// Name; empty if it is the only case.
    pub name: String,
    /// Names and values. For a statement they are variables that exist before its set-up code runs
    /// (Python literals, or strings otherwise); in the words of a command, `{name}` is replaced.
    pub parameters: Vec<(String, String)>,
    /// Settings that replace those of the plan.
    pub own: Option<Own>,
}

/// Settings of a case of a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct Own {
    /// The sides; all cases have the same number of sides with the same names.
    pub sides: Vec<SidePlan>,
    /// Whether results are compared before anything is timed.
    pub check: bool,
    /// Maximum relative difference of non-integer results; `None` uses the default of their type.
    pub tolerance: Option<f64>,
}

impl CasePlan {
    /// Name and parameters for display; empty if the case has neither.
    pub fn label(&self) -> String {
        let parameters = self.parameters.iter().map(|(name, value)| format!("{name}={value}"));
        let name = std::iter::once(self.name.clone()).filter(|name| !name.is_empty());
        name.chain(parameters).collect::<Vec<_>>().join(" ")
    }
}

/// Limits of the measurement.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time for warm-up and measurement of all cases, without set-up.
    pub time: Duration,
    /// Precision goal: half-width of the confidence interval of the ratio, relative to the ratio,
    /// such as 0.01.
    pub precision: f64,
    /// Warm-up before the measurement.
    pub warm_up: WarmUp,
    /// Number of rounds.
    pub rounds: Rounds,
    /// Factor by which slow calls may exceed the time, so that there are at least
    /// [`laggard_core::stats::ratio::FEWEST_OF_ALL`] rounds.
    pub overtime: f64,
    /// Maximum time of a call or of set-up code.
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            time: Duration::from_secs(5),
            overtime: 3.0,
            precision: 0.01,
            warm_up: WarmUp::UntilSteady,
            rounds: Rounds::AsNeeded { min: 30, max: 100_000 },
            timeout: Duration::from_secs(60),
        }
    }
}

/// Warm-up before the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// Rounds until the times are steady, for at most a fifth of the time.
    UntilSteady,
    /// A fixed number of rounds.
    Rounds(u32),
}

/// Number of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// Until the precision goal is reached or the time is up.
    AsNeeded {
        /// Minimum, if time permits.
        min: u32,
        /// Maximum.
        max: u32,
    },
    /// A fixed number, regardless of time.
    Exactly(u32),
}
