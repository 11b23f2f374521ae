//! JSON of one trace, schema `laggard.report.trace/1`.
//!
//! Fields are documented here and keep their order. Times are in nanoseconds, sizes in bytes,
//! shares from 0 to 1; names are as the trace has them. Rows of `breakdowns`, `unclassified`,
//! `stacks`, `streams`, `work` and `steps` are bounded by the rows asked for; all else is whole.

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

/// The whole of it.
#[derive(Serialize)]
struct Trace<'a> {
    /// Name and version of this shape.
    schema: &'static str,
    /// The file, as the user named it.
    file: &'a str,
    /// The phase that device work is narrowed to; null for all.
    phase: Option<&'a str>,
    /// Counts and times.
    totals: about::Totals,
    /// What the trace is.
    about: about::About<'a>,
    /// Events by phase letter and category.
    categories: Vec<about::Category<'a>>,
    /// What was lost or repaired.
    losses: Vec<about::Loss<'a>>,
    /// How much device work was traced to its launch.
    links: device::Links,
    /// Busy and idle time of every device.
    devices: Vec<device::Device<'a>>,
    /// Device time by something, by its name; only the one asked for, if one was.
    breakdowns: Breakdowns<'a>,
    /// Kernels no rule caught, if asked for.
    unclassified: Option<rows::Breakdown<'a>>,
    /// Device time by operator with its Python stacks, if asked for.
    stacks: Vec<rows::Stack<'a>>,
    /// From the host's call to the device's start.
    launches: device::Launches,
    /// Copies and fills by kind.
    copies: Vec<rows::Copies<'a>>,
    /// Arithmetic achieved, by operator and shape.
    work: Vec<rows::Work<'a>>,
    /// Collective operations.
    collectives: Vec<rows::Collectives<'a>>,
    /// Steps, or iterations of a serving loop; null where nothing marks them.
    steps: Option<rows::Steps<'a>>,
    /// Share of device time in kernels no rule caught.
    unclassified_share: f64,
    /// Memory at its peak; null where not recorded.
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

/// An object in the order of the report.
struct Breakdowns<'a>(Vec<(&'static str, rows::Breakdown<'a>)>);

impl Serialize for Breakdowns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, breakdown)| (key, breakdown)))
    }
}
