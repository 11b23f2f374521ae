//! JSON of a comparison of profiles, schema `laggard.compare-profile/1`.
//!
//! Amounts are in `unit`, as means per recording or per call. Tables are limited to the requested number
//! of rows.

use super::tables::{aligned_word, only_word};
use super::words::Words;
use super::{CompareProfile, Given, Shown};
use crate::divergence;
use crate::profile::json::About;
use crate::rows::kept;
use crate::shape;
use laggard_core::compare::align::{Aligned, Named};
use laggard_core::compare::profile::{self, Finding, Recordings, Scale, Spread};
use laggard_core::model::profile::FrameKind;
use serde::Serialize;

pub(super) fn json(report: &CompareProfile) -> String {
    let comparison = report.comparison;
    let library = |finding: &&Finding| Row::new(report, finding, comparison.library(finding));
    let function = |finding: &&Finding| Row::new(report, finding, comparison.function(finding));
    let functions: Vec<&Finding> = match report.shown {
        Shown::Libraries => vec![],
        Shown::OnlyIn(side) => comparison.only_in(side),
        Shown::Whole | Shown::Functions => comparison.functions.iter().collect(),
    };
    let libraries: Vec<&Finding> = match report.shown {
        Shown::Whole | Shown::Libraries => comparison.libraries.iter().collect(),
        Shown::Functions | Shown::OnlyIn(_) => vec![],
    };
    shape::pretty(&Shape {
        schema: "laggard.compare-profile/1",
        verdict: super::verdict(report),
        a: Side::new(&report.a, &comparison.sides[0]),
        b: Side::new(&report.b, &comparison.sides[1]),
        narrowed: report.narrowed,
        scale: comparison.scale.word(),
        calls: match comparison.scale {
            Scale::PerCall(calls) => Some(calls),
            _ => None,
        },
        unit: Words::of(report).field(),
        interval_from: match comparison.spread {
            Spread::Recordings => "recordings",
            Spread::Sampling => "sampling",
        },
        whole: Gap::new(&comparison.whole, &comparison.whole),
        divergence: report.divergence.map_or_else(Vec::new, divergence::shapes),
        distinct_functions: functions.len() as u64,
        distinct_libraries: libraries.len() as u64,
        libraries: kept(&libraries, report.top).iter().map(library).collect(),
        findings: kept(&functions, report.top).iter().map(function).collect(),
    })
}

#[derive(Serialize)]
struct Shape<'a> {
    /// Name and version of the schema.
    schema: &'static str,
    /// The first line of the text report.
    verdict: String,
    /// The reference side.
    a: Side<'a>,
    b: Side<'a>,
    /// Description of the filter; empty without a filter.
    narrowed: &'a str,
    /// Scale of amounts: `time`, `weight`, `samples`, `share` or `call`.
    scale: &'static str,
    /// Calls per recording of A and B, if amounts are per call.
    calls: Option<[f64; 2]>,
    /// Unit of amounts: `ns`, `bytes`, `count`, `samples` or `share` (a fraction).
    unit: &'static str,
    /// Source of intervals: `recordings` (variation between recordings) or `sampling` (sampling error
    /// only).
    interval_from: &'static str,
    whole: Gap,
    /// Places where B's call paths diverge from A's.
    divergence: Vec<divergence::DivergenceShape<'a>>,
    /// Total number of rows.
    distinct_functions: u64,
    distinct_libraries: u64,
    /// Libraries by decreasing difference in self cost.
    libraries: Vec<Row<'a>>,
    /// Functions by decreasing difference in self cost.
    findings: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Side<'a> {
    event: &'a str,
    /// Number of functions with samples.
    functions: u64,
    recordings: Vec<RecordingShape<'a>>,
}

#[derive(Serialize)]
struct RecordingShape<'a> {
    file: &'a str,
    samples: u64,
    weight: u64,
    about: About<'a>,
    losses: &'a [String],
}

impl<'a> Side<'a> {
    fn new(given: &Given<'a>, recorded: &Recordings) -> Side<'a> {
        let pairs = given.recordings.iter().zip(&recorded.wholes);
        Side {
            event: given.event,
            functions: recorded.functions as u64,
            recordings: pairs
                .map(|(recording, whole)| RecordingShape {
                    file: recording.path,
                    samples: whole.samples,
                    weight: whole.weight,
                    about: recording.about.into(),
                    losses: recording.losses,
                })
                .collect(),
        }
    }
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    /// Library of a function; empty if it has none.
    library: &'a str,
    /// `native`, `inlined`, `python`, `kernel`; null for libraries.
    kind: Option<&'static str>,
    /// `A` or `B`; null if both sides have it.
    only_in: Option<&'static str>,
    /// If only one side has it: probability that the other has no sample by chance.
    missed_by_chance: Option<f64>,
    /// Rule that matched the sides: `name`, `library`, `file`, `clone`, `moved`.
    aligned_by: Option<&'static str>,
    /// Names on each side.
    names_a: Vec<NameShape<'a>>,
    names_b: Vec<NameShape<'a>>,
    /// The other side's variant for another CPU.
    variant_of: Option<NameShape<'a>>,
    #[serde(rename = "self")]
    own: Gap,
    total: Gap,
}

#[derive(Serialize)]
struct NameShape<'a> {
    name: &'a str,
    library: &'a str,
}

impl<'a> Row<'a> {
    fn new(report: &CompareProfile<'a>, finding: &Finding, aligned: &'a Aligned) -> Row<'a> {
        let comparison = report.comparison;
        let names = |names: &'a [Named]| -> Vec<NameShape<'a>> {
            names.iter().map(|n| NameShape { name: &n.name, library: &n.library }).collect()
        };
        let is_function = std::ptr::eq(comparison.function_at(finding.number), aligned);
        let variant = aligned.variant_of.filter(|_| is_function).map(|other| {
            let other = comparison.function_at(other);
            NameShape { name: &other.name, library: &other.library }
        });
        Row {
            name: &aligned.name,
            library: &aligned.library,
            kind: is_function.then(|| kind(aligned.kind)),
            only_in: only_word(finding),
            missed_by_chance: finding.missed,
            aligned_by: aligned_word(aligned),
            names_a: names(&aligned.names[0]),
            names_b: names(&aligned.names[1]),
            variant_of: variant,
            own: Gap::new(&finding.own, &comparison.whole),
            total: Gap::new(&finding.total, &comparison.whole),
        }
    }
}

fn kind(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Native => "native",
        FrameKind::Inlined => "inlined",
        FrameKind::Python => "python",
        FrameKind::Kernel => "kernel",
        FrameKind::Mark => "mark",
    }
}

#[derive(Serialize)]
struct Gap {
    a: f64,
    b: f64,
    /// B minus A.
    gap: f64,
    /// B divided by A; null if either is 0.
    ratio: Option<f64>,
    /// Share of the overall difference; null if that is 0.
    share_of_gap: Option<f64>,
    /// 95 % confidence interval of the difference; see `interval_from`.
    interval: Option<[f64; 2]>,
    /// Number of samples in all recordings.
    n_a: u64,
    n_b: u64,
    /// Null for single recordings.
    p: Option<f64>,
    /// Corrected for multiple comparisons.
    adjusted_p: Option<f64>,
    /// `slower`, `faster`, `not detectable`, `too few samples`, `single sample`.
    verdict: &'static str,
}

impl Gap {
    fn new(gap: &profile::Gap, whole: &profile::Gap) -> Gap {
        let is_judged = gap.verdict != profile::GapVerdict::SingleSample;
        Gap {
            a: gap.amounts[0],
            b: gap.amounts[1],
            gap: gap.gap(),
            ratio: gap.ratio(),
            share_of_gap: gap.share_of(whole),
            interval: gap.interval.map(|range| [range.low, range.high]),
            n_a: gap.samples[0],
            n_b: gap.samples[1],
            p: is_judged.then_some(gap.p),
            adjusted_p: is_judged.then_some(gap.adjusted_p),
            verdict: gap.verdict.word(),
        }
    }
}
