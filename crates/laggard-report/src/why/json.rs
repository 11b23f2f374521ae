//! A verdict as JSON of schema `laggard.why/1`.

use super::{Lag, WhyReport, named, verdict};
use crate::culprits::{self, how_to_get};
use laggard_core::culprit::{Seen, TimeRow, time_rows};
use serde::Serialize;

#[derive(Serialize)]
struct Shape<'a> {
    schema: &'static str,
    tool: &'a str,
    command: &'a [String],
    verdict: String,
    /// Whether B is detectably slower than A.
    lags: bool,
    ratio: Option<Ratio>,
    /// The ratio of two recordings, which has no confidence interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    single_ratio: Option<f64>,
    n: usize,
    /// Whether A is the second of the given sides, because the first one is slower.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    exchanged: bool,
    sides: Vec<Side<'a>>,
    culprits: Vec<culprits::Shape<'a>>,
    /// Share of the lag that no culprit explains; null if there is no lag to explain.
    not_explained: Option<f64>,
    /// Places where B is faster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faster: Vec<crate::divergence::FasterShape>,
    slices: Vec<Slice>,
    missing: Vec<&'static str>,
    notes: &'a [String],
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Ratio {
    middle: f64,
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct Side<'a> {
    name: &'a str,
    runs: &'a str,
    facts: &'a [(String, String)],
    /// Observations of one call that the judges used.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<&'a Seen>,
}

#[derive(Serialize)]
struct Slice {
    what: String,
    of: String,
    a_ns: f64,
    b_ns: f64,
}

/// The verdict as JSON.
pub fn json(report: &WhyReport) -> String {
    let timings = report.timings;
    let seen = |at: usize| report.pair.map(|pair| if at == 0 { pair.a } else { pair.b });
    let shape = Shape {
        schema: "laggard.why/1",
        tool: &timings.tool,
        command: &timings.command,
        verdict: verdict(report),
        lags: report.lag.is_there(),
        ratio: report.lag.ratio().map(|of| Ratio { middle: of.middle, low: of.low, high: of.high }),
        single_ratio: match report.lag {
            Lag::Recorded(ratio) => Some(ratio),
            Lag::Measured { .. } => None,
        },
        n: report.lag.n(),
        exchanged: report.is_exchanged,
        sides: timings
            .sides
            .iter()
            .enumerate()
            .map(|(at, side)| Side {
                name: &side.name,
                runs: &side.runs,
                facts: &side.facts,
                seen: seen(at),
            })
            .collect(),
        culprits: report
            .judgement
            .map_or_else(Vec::new, |found| found.culprits.iter().map(Into::into).collect()),
        not_explained: report.judgement.map(|judgement| judgement.not_explained),
        faster: report
            .judgement
            .map_or_else(Vec::new, |found| found.faster.iter().map(Into::into).collect()),
        slices: report.pair.map_or_else(Vec::new, |pair| {
            let slice = |row: &TimeRow| {
                let (what, of) = named(row);
                Slice { what, of, a_ns: row.ns[0], b_ns: row.ns[1] }
            };
            time_rows(&pair).iter().map(slice).collect()
        }),
        missing: report.judgement.map_or_else(Vec::new, |found| {
            found.missing.iter().map(|missing| how_to_get(*missing)).collect()
        }),
        notes: report.notes,
        warnings: timings.warning_texts(),
    };
    crate::shape::pretty(&shape)
}
