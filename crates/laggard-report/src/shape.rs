//! JSON shapes that several reports share.

use laggard_core::trace::summary;
use serde::Serialize;

/// The spread of a set of values, in the unit that the field's name ends with.
#[derive(Serialize)]
pub(crate) struct Spread {
    /// How many values.
    n: u64,
    /// The smallest; null, as all that follow, when n is 0.
    min: Option<i64>,
    /// A quarter is below.
    p25: Option<i64>,
    /// The one in the middle.
    median: Option<i64>,
    /// A quarter is above.
    p75: Option<i64>,
    /// 5 % are above.
    p95: Option<i64>,
    /// The largest.
    max: Option<i64>,
}

impl From<&summary::Spread> for Spread {
    fn from(spread: &summary::Spread) -> Spread {
        let some = |value: i64| (spread.n > 0).then_some(value);
        Spread {
            n: spread.n,
            min: some(spread.min),
            p25: some(spread.p25),
            median: some(spread.median),
            p75: some(spread.p75),
            p95: some(spread.p95),
            max: some(spread.max),
        }
    }
}

/// Pretty JSON with a final newline. Numbers that JSON cannot say become null.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    // Only a map with keys that are no strings can fail, and the shapes have none.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}
