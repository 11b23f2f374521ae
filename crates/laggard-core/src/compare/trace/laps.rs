//! Detection of steps, the unit of work that a trace repeats. Quantities per step make traces of
//! different lengths comparable.
//!
//! The first of these that a trace has is used: profiler steps, iterations of a serving engine,
//! forward passes, graph replays, a repeating kernel sequence, or the whole trace.

use super::cycle::cycle;
use super::found::Marker;
use crate::model::NONE;
use crate::model::timeline::{Spans, Timeline};
use crate::trace::Analysis;
use crate::trace::link::NameMemo;
use crate::trace::phase::Phase;
use crate::trace::steps::{launched_in, marks};
use rustc_hash::FxHashMap;

/// The steps of one trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Laps {
    pub(super) marker: Marker,
    /// Sorted by time.
    pub(super) all: Vec<Lap>,
    /// Step of every row of the analysis; `NONE` outside steps.
    pub(super) of_row: Vec<u32>,
}

/// One unit of work.
#[derive(Clone, Debug, Default)]
pub(super) struct Lap {
    /// Phase of a serving iteration; 0 if steps have no phase.
    pub(super) kind: u8,
    /// Start on the host, if known.
    pub(super) start: Option<i64>,
    /// Duration on the host, if known.
    pub(super) host_ns: Option<i64>,
}

/// Minimum share of device operations within steps.
const LEAST_SHARE: f64 = 0.5;
/// Minimum number of device operations of a graph replay that counts as a step.
const SMALLEST_REPLAY: usize = 20;
/// Minimum share of device operations that a cycle must cover.
const CYCLE_COVERS: f64 = 0.95;

/// Finds the steps of a trace. `in_order` holds indexes of the analysis's rows sorted by start, and
/// `kernels` the kernel of each row. `is_layer` tells whether a cycle of kernels is a model layer.
pub(super) fn laps(
    analysis: &Analysis,
    in_order: &[u32],
    kernels: &[u32],
    is_layer: impl Fn(&[u32]) -> bool,
) -> Laps {
    marked(analysis)
        .or_else(|| forward_passes(analysis))
        .or_else(|| replays(analysis))
        .or_else(|| cycles(in_order, kernels, is_layer))
        .unwrap_or_else(|| Laps::whole(analysis.rows.len()))
}

impl Laps {
    /// One step that contains all rows.
    pub(super) fn whole(rows: usize) -> Laps {
        Laps { marker: Marker::Whole, all: vec![Lap::default()], of_row: vec![0; rows] }
    }
}

/// Steps and iterations annotated on the host.
fn marked(analysis: &Analysis) -> Option<Laps> {
    let timeline = analysis.timeline;
    let (word, spans, marks) = marks(timeline)?;
    let marker = if word == "iteration" { Marker::Iteration } else { Marker::Step };
    let lap = |&row: &u32| {
        let name = timeline.strings.get(spans.name[row as usize]);
        let kind = match marker {
            Marker::Iteration => analysis.phases.of_annotation(name).unwrap_or(0),
            _ => 0,
        };
        let start = Some(spans.ts[row as usize]);
        Lap { kind, start, host_ns: Some(spans.dur[row as usize].max(0)) }
    };
    let bounds: Vec<(i64, i64)> =
        marks.iter().map(|&row| (spans.ts[row as usize], spans.end(row as usize))).collect();
    of_bounds(analysis, marker, marks.iter().map(lap).collect(), &bounds)
}

/// Assigns rows to steps by launch time; `None` if steps contain too few rows.
fn of_bounds(
    analysis: &Analysis,
    marker: Marker,
    all: Vec<Lap>,
    bounds: &[(i64, i64)],
) -> Option<Laps> {
    let of_row = launched_in(analysis, bounds);
    let held = of_row.iter().filter(|&&lap| lap != NONE).count();
    (held as f64 >= LEAST_SHARE * of_row.len() as f64 && held > 0).then_some(Laps {
        marker,
        all,
        of_row,
    })
}

/// Steps that last from each start to the next, the last one to the end of the trace; `None` with
/// fewer than two starts.
fn from_starts(analysis: &Analysis, marker: Marker, starts: &[i64]) -> Option<Laps> {
    if starts.len() < 2 {
        return None;
    }
    let ends = starts[1..].iter().map(|next| next.saturating_sub(1)).chain([i64::MAX]);
    let bounds: Vec<(i64, i64)> = starts.iter().copied().zip(ends).collect();
    let all = starts.iter().map(|&start| Lap { start: Some(start), ..Lap::default() });
    of_bounds(analysis, marker, all.collect(), &bounds)
}

/// Annotations named forward, else calls of the outermost module.
fn forward_passes(analysis: &Analysis) -> Option<Laps> {
    let timeline = analysis.timeline;
    let is_forward = NameMemo::new(timeline, |name| {
        u8::from(analysis.phases.of_annotation(name) == Some(Phase::Forward as u8))
    });
    let annotations = &timeline.annotations.spans;
    let starts = outermost(timeline, annotations, |row| {
        is_forward.get(timeline, annotations.name[row]) == 1
            && timeline.kinds[annotations.kind[row] as usize].category == "user_annotation"
    });
    let annotated = most_frequent(annotations, starts);
    let by_annotation = from_starts(analysis, Marker::Forward, &annotated);
    by_annotation.or_else(|| {
        let is_module = NameMemo::new(timeline, |name| u8::from(name.starts_with("nn.Module: ")));
        let frames = &timeline.python.spans;
        let rows =
            outermost(timeline, frames, |row| is_module.get(timeline, frames.name[row]) == 1);
        from_starts(analysis, Marker::Forward, &most_frequent(frames, rows))
    })
}

/// Wanted rows that are not nested in another wanted row of their thread, sorted by start.
fn outermost(timeline: &Timeline, spans: &Spans, wanted: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..spans.len()).filter(|&row| wanted(row)).collect();
    rows.sort_by_key(|&row| (spans.ts[row], std::cmp::Reverse(spans.dur[row])));
    let mut busy_until = vec![i64::MIN; timeline.tracks.len()];
    rows.retain(|&row| {
        let Some(end) = busy_until.get_mut(spans.track[row] as usize) else { return false };
        let is_outer = spans.ts[row] >= *end;
        *end = (*end).max(spans.end(row));
        is_outer
    });
    rows
}

/// Starts of the rows whose name has the most total time.
fn most_frequent(spans: &Spans, rows: Vec<usize>) -> Vec<i64> {
    let mut time: FxHashMap<u32, i64> = FxHashMap::default();
    for &row in &rows {
        let sum = time.entry(spans.name[row]).or_default();
        *sum = sum.saturating_add(spans.dur[row].max(0));
    }
    let Some((name, _)) = time.into_iter().max_by_key(|&(name, time)| (time, name)) else {
        return vec![];
    };
    rows.into_iter().filter(|&row| spans.name[row] == name).map(|row| spans.ts[row]).collect()
}

/// Graph replays.
fn replays(analysis: &Analysis) -> Option<Laps> {
    let timeline = analysis.timeline;
    let calls = &timeline.runtime.spans;
    let is_graph = NameMemo::new(timeline, |name| u8::from(name.contains("GraphLaunch")));
    let mut sizes: FxHashMap<u32, usize> = FxHashMap::default();
    for &row in &analysis.rows {
        let launch = timeline.gpu.launch[row as usize];
        if let Some(&name) = calls.name.get(launch as usize)
            && is_graph.get(timeline, name) == 1
        {
            *sizes.entry(launch).or_default() += 1;
        }
    }
    let large = sizes.into_iter().filter(|&(_, size)| size >= SMALLEST_REPLAY);
    let mut starts: Vec<i64> = large.map(|(launch, _)| calls.ts[launch as usize]).collect();
    starts.sort_unstable();
    from_starts(analysis, Marker::Replay, &starts)
}

/// A kernel sequence whose repetitions cover nearly the whole trace.
fn cycles(in_order: &[u32], kernels: &[u32], is_layer: impl Fn(&[u32]) -> bool) -> Option<Laps> {
    let sequence: Vec<u32> = in_order.iter().map(|&at| kernels[at as usize]).collect();
    let found = cycle(&sequence)?;
    let period = &sequence[found.start..found.start + found.period];
    if (found.covered() as f64) < CYCLE_COVERS * sequence.len() as f64 || is_layer(period) {
        return None;
    }
    let mut of_row = vec![NONE; kernels.len()];
    for (place, &at) in in_order.iter().enumerate() {
        of_row[at as usize] = found.of(place).map_or(NONE, |lap| lap as u32);
    }
    Some(Laps { marker: Marker::Cycle, all: vec![Lap::default(); found.repeats], of_row })
}
