//! The data of one trace that a comparison needs: its device operations in order, each with its
//! step, layer and exposed time. The trace itself can be dropped.

use super::found::{Architecture, Rate};
use super::laps::{Laps, laps};
use super::layers::{Layering, layering};
use crate::model::NONE;
use crate::trace::devices::{Cause, Role, Waits, by_device, gaps, role};
use crate::trace::exposed::add_exposed;
use crate::trace::phase::Phases;
use crate::trace::summary::Summary;
use crate::trace::throughput::{Arithmetic, arithmetic};
use crate::trace::{Analysis, By, Keys};

/// One trace.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The file.
    pub path: String,
    /// Summary of the trace.
    pub summary: Summary,
    /// Device operations, in trace order.
    pub(super) pieces: Vec<Piece>,
    /// Indexes of `pieces`, sorted by start.
    pub(super) in_order: Vec<u32>,
    /// Distinct kernels; `Piece::kernel` is an index.
    pub(super) kernels: Vec<Kernel>,
    /// Labels of device operations by class, phase, operator and other keys.
    pub(super) labels: Vec<Labels>,
    /// Units of work.
    pub(super) laps: Laps,
    /// Names of step kinds.
    pub(super) phases: Phases,
    /// Layers of the model.
    pub(super) layers: Layering,
    /// Architecture, inferred from the kernels.
    pub(super) architecture: Architecture,
    /// Metrics of the host by step.
    pub(super) host: Vec<HostLap>,
}

/// A device operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) dur: i64,
    /// The part of its time that is attributed to it.
    pub(super) exposed: i64,
    /// The idle gap before it.
    pub(super) gap: i64,
    /// Cause of the idle gap.
    pub(super) cause: Cause,
    pub(super) role: Role,
    pub(super) kernel: u32,
    /// Row of the runtime call that launched it.
    pub(super) launch: u32,
}

impl Piece {
    /// Device time attributed to it: its exposed time and the idle gap before it.
    pub(super) fn own_time(&self) -> i64 {
        self.exposed.saturating_add(self.gap)
    }
}

/// A kernel, copy or fill by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) class: String,
    /// Group of its class.
    pub(super) group: String,
}

/// Labels of device operations by one key.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    pub(super) by: By,
    /// Index into `names` by device operation.
    pub(super) of: Vec<u32>,
    pub(super) names: Vec<String>,
    /// Arithmetic rate by name.
    pub(super) rates: Vec<Option<Rate>>,
}

/// Metrics of the host in one step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostLap {
    pub(super) launches: u64,
    /// Time in launch calls.
    pub(super) call_ns: i64,
}

/// Keys that every comparison needs.
const ALWAYS: [By; 7] =
    [By::Class, By::Phase, By::Shape, By::Kernel, By::Op, By::Python, By::Geometry];

impl Run {
    /// Extracts the data of a trace; `by` is an additional key.
    pub fn new(analysis: &Analysis, path: &str, summary: Summary, by: Option<By>) -> Run {
        let spans = &analysis.timeline.gpu.spans;
        let mut in_order: Vec<u32> = (0..analysis.rows.len() as u32).collect();
        in_order.sort_by_key(|&at| spans.ts[analysis.rows[at as usize] as usize]);
        let extra = by.filter(|by| !ALWAYS.contains(by));
        let labels: Vec<Labels> =
            ALWAYS.into_iter().chain(extra).map(|by| Labels::new(analysis, by)).collect();
        let (kernels, of_piece) = kernels(analysis, &labels);
        let is_layer = |period: &[u32]| {
            super::layers::clusters(period.iter().map(|&kernel| &kernels[kernel as usize])).len()
                == 1
        };
        let laps = laps(analysis, &in_order, &of_piece, is_layer);
        let pieces = pieces(analysis, &of_piece, &laps, &in_order);
        let mut run = Run {
            path: path.to_owned(),
            summary,
            host: host(analysis, &laps),
            architecture: architecture(&kernels),
            pieces,
            in_order,
            kernels,
            labels,
            laps,
            phases: analysis.phases.clone(),
            layers: Layering::default(),
        };
        run.layers = layering(analysis, &run);
        run
    }

    /// Whether it has no device operations, or none of the selected phase.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// A copy with all device operations in one step.
    pub(super) fn as_a_whole(&self) -> Run {
        let laps = Laps::whole(self.pieces.len());
        let host = self.host.iter().fold(HostLap::default(), |sum, lap| HostLap {
            launches: sum.launches + lap.launches,
            call_ns: sum.call_ns.saturating_add(lap.call_ns),
        });
        Run { laps, host: vec![host], ..self.clone() }
    }

    /// Labels by a key, if extracted.
    pub(super) fn labels(&self, by: By) -> Option<&Labels> {
        self.labels.iter().find(|labels| labels.by == by)
    }

    /// The kernel of a device operation.
    pub(super) fn kernel(&self, piece: u32) -> &Kernel {
        &self.kernels[self.pieces[piece as usize].kernel as usize]
    }

    /// Device operations of every step, sorted by start.
    pub(super) fn by_lap(&self) -> Vec<Vec<u32>> {
        let mut laps = vec![vec![]; self.laps.all.len()];
        for &at in &self.in_order {
            if let Some(lap) = laps.get_mut(self.laps.of_row[at as usize] as usize) {
                lap.push(at);
            }
        }
        laps
    }
}

impl Labels {
    fn new(analysis: &Analysis, by: By) -> Labels {
        let keys = Keys::new(analysis, by);
        let names = keys.names(analysis, by);
        let rates = match by {
            By::Class | By::Shape => {
                arithmetic(analysis, &keys.of_row, names.len()).iter().map(rate).collect()
            }
            _ => vec![None; names.len()],
        };
        Labels { by, of: keys.of_row, names, rates }
    }
}

fn rate(sum: &Arithmetic) -> Option<Rate> {
    let seconds = sum.time_ns as f64 / 1e9;
    (sum.n > 0 && seconds > 0.0).then(|| Rate {
        flops_per_s: sum.flops / seconds,
        peak_share: sum.at_peak_ns.map(|ns| ns / sum.time_ns as f64),
        n: sum.n,
    })
}

/// Distinct kernels, and the kernel of each row.
fn kernels(analysis: &Analysis, labels: &[Labels]) -> (Vec<Kernel>, Vec<u32>) {
    let Some(labels) = labels.iter().find(|labels| labels.by == By::Kernel) else {
        return (vec![], vec![]);
    };
    let mut kernels: Vec<Kernel> = labels
        .names
        .iter()
        .map(|name| Kernel { name: name.clone(), ..Kernel::default() })
        .collect();
    for (&row, &kernel) in analysis.rows.iter().zip(&labels.of) {
        let kernel = &mut kernels[kernel as usize];
        if kernel.class.is_empty() {
            let class = analysis.rules.class(analysis.class(row));
            (kernel.class, kernel.group) = (class.name.clone(), class.group.clone());
        }
    }
    (kernels, labels.of.clone())
}

fn pieces(analysis: &Analysis, kernels: &[u32], laps: &Laps, in_order: &[u32]) -> Vec<Piece> {
    let timeline = analysis.timeline;
    let gpu = &timeline.gpu;
    let waits = Waits::new(timeline);
    let mut exposed = vec![0i64; gpu.spans.len()];
    let mut idle = vec![(0i64, Cause::Other); gpu.spans.len()];
    for rows in by_device(timeline).into_values() {
        add_exposed(analysis, &rows, &mut exposed);
        for (row, gap, cause) in gaps(analysis, &waits, &rows) {
            idle[row as usize] = (gap, cause);
        }
    }
    // The idle gap before the first operation of the first step starts when the step starts on the
    // host. Earlier idle time has causes outside the trace.
    let first = in_order.iter().find(|&&at| laps.of_row[at as usize] != NONE);
    if let Some(&at) = first
        && let Some(start) = laps.all[laps.of_row[at as usize] as usize].start
    {
        let row = analysis.rows[at as usize] as usize;
        let since = gpu.spans.ts[row].saturating_sub(start).max(0);
        let is_first = gpu.spans.ts.iter().min() == Some(&gpu.spans.ts[row]);
        idle[row] = match is_first {
            true => (since, Cause::HostBound),
            false => (idle[row].0.min(since), idle[row].1),
        };
    }
    let piece = |(&row, &kernel): (&u32, &u32)| {
        let at = row as usize;
        let ((gap, cause), role) = (idle[at], role(analysis, row));
        let (dur, launch) = (gpu.spans.dur[at].max(0), gpu.launch[at]);
        Piece { dur, exposed: exposed[at], gap, cause, role, kernel, launch }
    };
    analysis.rows.iter().zip(kernels).map(piece).collect()
}

fn host(analysis: &Analysis, laps: &Laps) -> Vec<HostLap> {
    let timeline = analysis.timeline;
    let mut host = vec![HostLap::default(); laps.all.len()];
    let mut seen = vec![false; timeline.runtime.spans.len()];
    for (&row, &lap) in analysis.rows.iter().zip(&laps.of_row) {
        let launch = timeline.gpu.launch[row as usize] as usize;
        if let (Some(lap), Some(seen)) = (host.get_mut(lap as usize), seen.get_mut(launch))
            && !std::mem::replace(seen, true)
        {
            lap.launches += 1;
            lap.call_ns = lap.call_ns.saturating_add(timeline.runtime.spans.dur[launch].max(0));
        }
    }
    host
}

fn architecture(kernels: &[Kernel]) -> Architecture {
    let has = |group: &str| kernels.iter().any(|kernel| kernel.group == group);
    match (has("Attention"), has("SSM")) {
        (true, true) => Architecture::Hybrid,
        (true, false) => Architecture::Transformer,
        (false, true) => Architecture::StateSpace,
        (false, false) => Architecture::Unknown,
    }
}
