//! Reads the evidence in the JSON of `laggard why`.

use crate::error::Error;
use crate::source::Source;
use laggard_core::compare::timings::Verdict;
use laggard_core::culprit::Seen;
use laggard_core::model::timings::Side;
use laggard_core::stats::ratio::Interval;
use serde::Deserialize;

/// Name and version of the format.
pub const SCHEMA: &str = "laggard.why/1";

/// Content of a file.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The command that wrote the file.
    pub command: Vec<String>,
    /// Both sides.
    pub sides: [Side; 2],
    /// Wall time of B divided by that of A.
    pub ratio: Option<Interval>,
    /// The same ratio for the recordings.
    pub single_ratio: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// Number of rounds.
    pub n: usize,
    /// Whether A is the second of the sides that were given.
    pub is_exchanged: bool,
    /// Evidence of both sides, if there was a lag.
    pub seen: Option<[Seen; 2]>,
    /// Notes about unavailable data.
    pub notes: Vec<String>,
}

#[derive(Deserialize)]
struct Shape {
    schema: String,
    #[serde(default)]
    command: Vec<String>,
    lags: bool,
    ratio: Option<Ratio>,
    single_ratio: Option<f64>,
    n: usize,
    #[serde(default)]
    exchanged: bool,
    sides: [ShapeSide; 2],
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Ratio {
    middle: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct ShapeSide {
    name: String,
    runs: String,
    #[serde(default)]
    facts: Vec<(String, String)>,
    seen: Option<Seen>,
}

/// Whether a file with this head contains a verdict.
pub fn is_why(head: &[u8]) -> bool {
    head.trim_ascii_start().starts_with(b"{")
        && memchr::memmem::find(head, SCHEMA.as_bytes()).is_some()
}

/// Reads a verdict.
pub fn read(source: Source) -> Result<Evidence, Error> {
    let (path, text) = source.whole(LARGEST)?;
    let damaged = |why: String| Error::NotWhy { path: path.clone(), why };
    let shape: Shape = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if shape.schema != SCHEMA {
        return Err(damaged(format!("its schema is {:?}, not {SCHEMA}", shape.schema)));
    }
    let ratio = shape.ratio.map(|Ratio { middle, low, high }| Interval { middle, low, high });
    let verdict = match ratio {
        _ if shape.lags => Verdict::Slower,
        None => Verdict::TooFew,
        Some(ratio) if ratio.holds(1.0) => {
            Verdict::NoDetectableDifference { within: (ratio.high - 1.0).max(1.0 - ratio.low) }
        }
        Some(_) => Verdict::Faster,
    };
    let [a, b] = shape.sides;
    let mut seen = a.seen.zip(b.seen).map(|(a, b)| [a, b]);
    for side in seen.iter_mut().flatten() {
        limit_numbers(side);
        if side.stacks.spent.len() > MOST_STACKS {
            return Err(damaged(format!("it has more than {MOST_STACKS} stacks")));
        }
    }
    let side = |name, runs, facts| Side { name, runs, facts };
    Ok(Evidence {
        command: shape.command,
        sides: [side(a.name, a.runs, a.facts), side(b.name, b.runs, b.facts)],
        ratio,
        single_ratio: shape.single_ratio,
        verdict,
        n: shape.n,
        is_exchanged: shape.exchanged,
        seen,
        notes: shape.notes.into_iter().chain(shape.warnings).collect(),
    })
}

/// Maximum number of stacks of a side. Files of laggard have a few thousand.
const MOST_STACKS: usize = 100_000;

/// Limits counts, so that their sums do not overflow.
fn limit_numbers(side: &mut Seen) {
    const LARGEST_COUNT: u64 = 1 << 40;
    side.work.iter_mut().for_each(|work| work.samples = work.samples.min(LARGEST_COUNT));
    side.stacks.spent.iter_mut().for_each(|spent| spent.samples = spent.samples.min(LARGEST_COUNT));
}

/// Maximum size of a file.
const LARGEST: u64 = 256 << 20;
