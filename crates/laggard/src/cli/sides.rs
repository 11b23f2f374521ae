//! Options of `bench` and `why` for sides and measurements.

use super::{duration, percent};
use clap::Args;
use laggard_core::stats::growth::FEWEST_VALUES;
use std::path::PathBuf;
use std::time::Duration;

/// Options of all sides.
#[derive(Args, Debug, Default)]
pub struct SidesArgs {
    /// Set-up code: Python that every side runs once before timing; repeatable
    #[arg(long, value_name = "STATEMENT")]
    pub setup: Vec<String>,
    /// Treat sides as command lines, run without a shell unless --shell is given
    #[arg(long, conflicts_with_all = ["setup", "python", "a_python", "b_python", "no_check", "tolerance"])]
    pub commands: bool,
    /// Run each command with `sh -c`; starting the shell is part of the time
    #[arg(long, requires = "commands")]
    pub shell: bool,
    /// Untimed statement to run before every call; repeatable. With --commands, a single command
    #[arg(long, value_name = "STATEMENT")]
    pub prepare: Vec<String>,
    /// Do not check that the results of the sides are equal
    #[arg(long)]
    pub no_check: bool,
    /// Maximum relative difference between results, such as 1e-6
    #[arg(long, value_name = "SHARE", conflicts_with = "no_check", value_parser = tolerance)]
    pub tolerance: Option<f64>,
    /// Options of individual sides
    #[command(flatten)]
    pub each: EachSideArgs,
}

/// Options of individual sides.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Options for sides")]
pub struct EachSideArgs {
    /// Name of a side in all output, such as A=old; repeatable
    #[arg(long, value_name = "SIDE=NAME", value_parser = side_name)]
    pub name: Vec<SideName>,
    /// Python interpreter of all sides [default: python3]
    #[arg(long, value_name = "PYTHON")]
    pub python: Option<PathBuf>,
    /// Python interpreter of A
    #[arg(long, value_name = "PYTHON")]
    pub a_python: Option<PathBuf>,
    /// Python interpreter of B
    #[arg(long, value_name = "PYTHON")]
    pub b_python: Option<PathBuf>,
    /// Environment variable of A; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub a_env: Vec<(String, String)>,
    /// Environment variable of B; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub b_env: Vec<(String, String)>,
    /// Working directory of A
    #[arg(long, value_name = "DIRECTORY")]
    pub a_dir: Option<PathBuf>,
    /// Working directory of B
    #[arg(long, value_name = "DIRECTORY")]
    pub b_dir: Option<PathBuf>,
    /// Number of OpenMP and BLAS threads of A, set with environment variables
    #[arg(long, value_name = "N")]
    pub a_threads: Option<u16>,
    /// Number of OpenMP and BLAS threads of B, set with environment variables
    #[arg(long, value_name = "N")]
    pub b_threads: Option<u16>,
    /// Set python, env, dir, threads or name of any side, such as C.python=pypy3 or
    /// C.env=NAME=VALUE; repeatable
    #[arg(long = "set", value_name = "SIDE.WHAT=VALUE", value_parser = setting)]
    pub set: Vec<Setting>,
}

/// Limits and precision of the measurement.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options for the measurement")]
pub struct EffortArgs {
    /// Stop when the 95 % CI of the ratio is within ± PERCENT
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    pub precision: f64,
    /// Maximum time per case, such as 10, 10s, 500ms or 2m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub time: Duration,
    /// Measure exactly N rounds, regardless of --precision and --time
    #[arg(long, visible_alias = "repeats", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rounds: Option<u32>,
    /// Number of warm-up rounds [default: until timings are stable]
    #[arg(long, value_name = "N")]
    pub warmup: Option<u32>,
    /// Abort a side that does not respond within TIME
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub timeout: Duration,
}

/// A parameter and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// A Python identifier.
    pub name: String,
    /// Values as given.
    pub values: Vec<String>,
}

/// Name of one side, given with `--name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideName {
    /// Index of the side: 0 is A.
    pub side: usize,
    /// The name.
    pub name: String,
}

/// Setting of one side, given with `--set`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Index of the side: 0 is A.
    pub side: usize,
    /// The setting.
    pub what: Set,
}

/// Settings that a side can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Set {
    /// Name in reports.
    Name(String),
    /// Python interpreter.
    Python(PathBuf),
    /// Environment variable.
    Env(String, String),
    /// Working directory.
    Dir(PathBuf),
    /// Number of OpenMP and BLAS threads.
    Threads(u16),
}

pub(super) fn parameter(text: &str) -> Result<Parameter, String> {
    const HOW: &str = "expected NAME=V1,V2,…";
    let (name, values) = text.split_once('=').ok_or(HOW)?;
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if !is_name || values.iter().any(String::is_empty) {
        return Err(HOW.into());
    }
    Ok(Parameter { name: name.to_owned(), values })
}

/// A parameter with numbers to which the growth of a time can be fitted, by increasing value.
pub(super) fn numbers(text: &str) -> Result<Parameter, String> {
    let mut parameter = parameter(text)?;
    let number = |value: &String| {
        let number = value.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
        number.map(|number| (number, value.clone()))
    };
    let numbers: Option<Vec<(f64, String)>> = parameter.values.iter().map(number).collect();
    let mut numbers = numbers.ok_or("the values must be positive numbers")?;
    numbers.sort_by(|x, y| x.0.total_cmp(&y.0));
    numbers.dedup_by(|x, y| x.0 == y.0);
    if numbers.len() < FEWEST_VALUES {
        return Err("at least three different values are needed".into());
    }
    parameter.values = numbers.into_iter().map(|(_, value)| value).collect();
    Ok(parameter)
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".into()),
    }
}

fn side_name(text: &str) -> Result<SideName, String> {
    const HOW: &str = "expected SIDE=NAME, such as A=old";
    let (letter, name) = text.split_once('=').ok_or(HOW)?;
    Ok(SideName { side: side_of(letter).ok_or(HOW)?, name: valid_name(name)?.ok_or(HOW)? })
}

/// The name without surrounding spaces; `None` if it is empty.
fn valid_name(name: &str) -> Result<Option<String>, String> {
    let name = name.trim();
    if name.contains(char::is_control) {
        return Err("the name contains control characters".into());
    }
    Ok(Some(name.to_owned()).filter(|name| !name.is_empty()))
}

/// Index of the side with this letter.
fn side_of(letter: &str) -> Option<usize> {
    match letter.to_ascii_uppercase().as_bytes() {
        &[letter @ b'A'..=b'Z'] => Some(usize::from(letter - b'A')),
        _ => None,
    }
}

fn setting(text: &str) -> Result<Setting, String> {
    const HOW: &str = "expected C.python=…, C.env=NAME=VALUE, C.dir=…, C.threads=N or C.name=…";
    let (place, value) = text.split_once('=').ok_or(HOW)?;
    let (side, what) = place.split_once('.').ok_or(HOW)?;
    let side = side_of(side).ok_or(HOW)?;
    let what = match what {
        _ if value.is_empty() => return Err(HOW.into()),
        "name" => Set::Name(valid_name(value)?.ok_or(HOW)?),
        "python" => Set::Python(value.into()),
        "dir" => Set::Dir(value.into()),
        "env" => variable(value).map(|(name, value)| Set::Env(name, value))?,
        "threads" => Set::Threads(value.parse().map_err(|_| "expected a number of threads")?),
        _ => return Err(HOW.into()),
    };
    Ok(Setting { side, what })
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1, such as 1e-6".into()),
    }
}
