//! Flags that say what is timed against what, and how: those of `bench` and `why`.

use super::{duration, percent};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// What the sides share.
#[derive(Args, Debug, Default)]
pub struct SidesArgs {
    /// Python statements that run once before, on every side; may be given again for more lines
    #[arg(long, value_name = "STATEMENT")]
    pub setup: Vec<String>,
    /// The sides are command lines, run without a shell; a run is a call
    #[arg(long, conflicts_with_all = ["setup", "python", "a_python", "b_python", "no_check", "tolerance"])]
    pub commands: bool,
    /// A command to run before every run of a side, untimed
    #[arg(long, value_name = "COMMAND", requires = "commands")]
    pub prepare: Option<String>,
    /// Do not compare the results of the sides before they are timed
    #[arg(long)]
    pub no_check: bool,
    /// How far results may differ, relative to their size
    #[arg(long, value_name = "SHARE", conflicts_with = "no_check", value_parser = tolerance)]
    pub tolerance: Option<f64>,
    /// How each side runs
    #[command(flatten)]
    pub each: EachSideArgs,
}

/// How each side of a bench runs.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Options for single sides")]
pub struct EachSideArgs {
    /// The interpreter of all sides [default: python3]
    #[arg(long, value_name = "PYTHON")]
    pub python: Option<PathBuf>,
    /// The interpreter of A
    #[arg(long, value_name = "PYTHON")]
    pub a_python: Option<PathBuf>,
    /// The interpreter of B
    #[arg(long, value_name = "PYTHON")]
    pub b_python: Option<PathBuf>,
    /// A variable of A's environment; may be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub a_env: Vec<(String, String)>,
    /// A variable of B's environment; may be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub b_env: Vec<(String, String)>,
    /// The directory A runs in
    #[arg(long, value_name = "DIRECTORY")]
    pub a_dir: Option<PathBuf>,
    /// The directory B runs in
    #[arg(long, value_name = "DIRECTORY")]
    pub b_dir: Option<PathBuf>,
    /// Threads that A's libraries may use, by the variables that OpenMP and the BLAS libraries obey
    #[arg(long, value_name = "N")]
    pub a_threads: Option<u16>,
    /// Threads that B's libraries may use
    #[arg(long, value_name = "N")]
    pub b_threads: Option<u16>,
    /// The same for any side by its letter, as C.python=pypy3, C.env=NAME=VALUE, C.dir=…, C.threads=1,
    /// C.name=mine; may be given again
    #[arg(long = "set", value_name = "SIDE.WHAT=VALUE", value_parser = setting)]
    pub set: Vec<Setting>,
}

/// How long and how exactly to measure.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options for the measurement")]
pub struct EffortArgs {
    /// Stop once half the width of the ratio's interval is at most this
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    pub precision: f64,
    /// Stop after this time for a case, precise or not (10, 10s, 500ms, 2m)
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub time: Duration,
    /// Measure exactly so many rounds, whatever the precision and the time
    #[arg(long, visible_alias = "repeats", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rounds: Option<u32>,
    /// Rounds before those that count [default: until times are steady]
    #[arg(long, value_name = "N")]
    pub warmup: Option<u32>,
    /// Give a side up that does not answer for this time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub timeout: Duration,
}

/// A parameter and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// A name, as Python has them.
    pub name: String,
    /// As they were written.
    pub values: Vec<String>,
}

/// Something about one side, beyond what A and B have flags for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Which side: 0 is A.
    pub side: usize,
    /// What about it.
    pub what: Set,
}

/// What can be set of a side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Set {
    /// What it is called.
    Name(String),
    /// Its interpreter.
    Python(PathBuf),
    /// A variable of its environment.
    Env(String, String),
    /// The directory it runs in.
    Dir(PathBuf),
    /// How many threads its libraries may use.
    Threads(u16),
}

pub(super) fn parameter(text: &str) -> Result<Parameter, String> {
    const HOW: &str = "give it as NAME=V1,V2,…";
    let (name, values) = text.split_once('=').ok_or(HOW)?;
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if !is_name || values.iter().any(String::is_empty) {
        return Err(HOW.into());
    }
    Ok(Parameter { name: name.to_owned(), values })
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("give it as NAME=VALUE".into()),
    }
}

fn setting(text: &str) -> Result<Setting, String> {
    const HOW: &str = "give it as C.python=…, C.env=NAME=VALUE, C.dir=…, C.threads=N or C.name=…";
    let (place, value) = text.split_once('=').ok_or(HOW)?;
    let (side, what) = place.split_once('.').ok_or(HOW)?;
    let &[letter @ b'A'..=b'Z'] = side.to_ascii_uppercase().as_bytes() else {
        return Err(HOW.into());
    };
    let what = match what {
        _ if value.is_empty() => return Err(HOW.into()),
        "name" => Set::Name(value.to_owned()),
        "python" => Set::Python(value.into()),
        "dir" => Set::Dir(value.into()),
        "env" => variable(value).map(|(name, value)| Set::Env(name, value))?,
        "threads" => Set::Threads(value.parse().map_err(|_| "give a number of threads")?),
        _ => return Err(HOW.into()),
    };
    Ok(Setting { side: usize::from(letter - b'A'), what })
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("give a share of the result, as 1e-6".into()),
    }
}
