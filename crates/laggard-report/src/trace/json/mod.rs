//! JSON of one trace, schema `laggard.report.trace/1`.
//!
//! The order of fields is stable. Times are in nanoseconds, sizes in bytes and shares from 0 to 1.
//! Names are unchanged from the trace. The requested number of rows limits `breakdowns`,
//! `unclassified`, `stacks`, `streams`, `work` and `steps`; other lists are complete.

mod about;
mod device;
mod rows;

use super::TraceReport;
use crate::rows::kept;
use crate::shape;
use laggard_core::trace::summary;
use serde::{Serialize, Serializer};

pub(super) fn json(report: &TraceReport) -> String {
    shape::pretty(&Trace::new(report))
}

/// The top-level object.
#[derive(Serialize)]
struct Trace<'a> {
    /// Schema name and version.
    schema: &'static str,
    /// Path as the user typed it.
    file: &'a str,
    /// The selected phase; null for all phases.
    phase: Option<&'a str>,
    totals: about::Totals,
    about: about::About<'a>,
    /// Events by phase letter and category.
    categories: Vec<about::Category<'a>>,
    /// Lost and repaired events by reason.
    losses: Vec<about::Loss<'a>>,
    /// Counts of linked device operations.
    links: device::Links,
    /// Busy and idle time of every device.
    devices: Vec<device::Device<'a>>,
    /// Device time breakdowns by key; only the selected one if one is selected.
    breakdowns: Breakdowns<'a>,
    /// Unclassified kernels, if requested.
    unclassified: Option<rows::Breakdown<'a>>,
    /// Device time by operator and Python stack, if requested.
    stacks: Vec<rows::Stack<'a>>,
    /// Launch latencies.
    launches: device::Launches,
    /// Copies and fills by kind.
    copies: Vec<rows::Copies<'a>>,
    /// Arithmetic throughput by operator and shape.
    work: Vec<rows::Work<'a>>,
    /// Collectives.
    collectives: Vec<rows::Collectives<'a>>,
    /// Training steps or serving iterations; null without step markers.
    steps: Option<rows::Steps<'a>>,
    /// Share of device time in unclassified kernels.
    unclassified_share: f64,
    /// Peak memory; null if not recorded.
    peak_memory: Option<about::PeakMemory>,
}

impl<'a> Trace<'a> {
    fn new(report: &TraceReport<'a>) -> Trace<'a> {
        let TraceReport { summary, top, .. } = *report;
        let breakdowns: Vec<&summary::Breakdown> = match report.breakdown {
            Some(breakdown) => vec![breakdown],
            None => summary.breakdowns.iter().collect(),
        };
        Trace {
            schema: "laggard.report.trace/1",
            file: report.path,
            phase: report.phase,
            totals: (&summary.totals).into(),
            about: (&summary.about).into(),
            categories: summary.categories.iter().map(Into::into).collect(),
            losses: summary.losses.iter().map(Into::into).collect(),
            links: (&summary.links).into(),
            devices: summary.devices.iter().map(|d| device::Device::new(d, top)).collect(),
            breakdowns: Breakdowns(
                breakdowns
                    .into_iter()
                    .map(|b| (b.by.word(), rows::Breakdown::new(b, top)))
                    .collect(),
            ),
            unclassified: report.unclassified.map(|table| rows::Breakdown::new(table, top)),
            stacks: kept(report.stacks.unwrap_or_default(), top).iter().map(Into::into).collect(),
            launches: (&summary.launches).into(),
            copies: summary.copies.iter().map(Into::into).collect(),
            work: kept(&summary.work, top).iter().map(Into::into).collect(),
            collectives: summary.collectives.iter().map(Into::into).collect(),
            steps: summary.steps.as_ref().map(|steps| rows::Steps::new(steps, top)),
            unclassified_share: summary.unclassified_share,
            peak_memory: summary.peak_memory.as_ref().map(Into::into),
        }
    }
}

/// A JSON object whose keys are in the order of the report.
struct Breakdowns<'a>(Vec<(&'static str, rows::Breakdown<'a>)>);

impl Serialize for Breakdowns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, breakdown)| (key, breakdown)))
    }
}
