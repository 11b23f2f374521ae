//! Links device operations to their origin: to the launch by correlation id, and from there to the
//! operator, Python frames and phase on the launching thread.
//!
//! One launch may start many kernels (a graph replay). The external id is only used for operations
//! whose launch was not recorded.

use super::nest::{self, Moment};
use super::phase::Phases;
use crate::model::NONE;
use crate::model::timeline::{Spans, Timeline};
use rustc_hash::FxHashMap;
use std::thread;

/// Fills in the device table's columns for launch, operator, Python frame, module and phase.
pub fn link(timeline: &mut Timeline, phases: &Phases) {
    let launch = launches(timeline);
    let mut moments: Vec<Moment> = {
        let mut asked = vec![false; timeline.runtime.spans.len()];
        for &row in launch.iter().filter(|&&row| row != NONE) {
            asked[row as usize] = true;
        }
        let spans = &timeline.runtime.spans;
        let rows = asked.iter().enumerate().filter(|(_, asked)| **asked).map(|(row, _)| row);
        rows.map(|row| Moment { track: spans.track[row], ts: spans.ts[row], asker: row as u32 })
            .collect()
    };
    if !moments.is_sorted() {
        moments.sort();
    }
    let timeline_read = &*timeline;
    let (of_ops, of_python) = thread::scope(|scope| {
        let python = scope.spawn(|| python_at(timeline_read, &moments));
        let ops = ops_at(timeline_read, phases, &moments);
        (ops, python.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let OpsAt { op: op_of_launch, phase: phase_of_launch } = of_ops;
    let PythonAt { python: python_of_launch, module: module_of_launch } = of_python;

    let through = |of_launch: &[u32]| -> Vec<u32> {
        launch.iter().map(|&row| of_launch.get(row as usize).copied().unwrap_or(NONE)).collect()
    };
    let gpu = &timeline.gpu;
    let mut op = through(&op_of_launch);
    hint_by_external_id(timeline, &launch, &mut op);
    let python = through(&python_of_launch);
    let module = through(&module_of_launch);
    let own = own_phases(timeline, phases);
    let phase = launch.iter().enumerate().map(|(row, &launch)| {
        match phase_of_launch.get(launch as usize) {
            Some(&phase) => phase,
            None => own.at(gpu.spans.ts[row]),
        }
    });
    let phase: Vec<u8> = phase.collect();
    let gpu = &mut timeline.gpu;
    (gpu.op, gpu.python, gpu.module) = (op.into(), python.into(), module.into());
    (gpu.phase, gpu.launch) = (phase.into(), launch.into());
}

/// Maximum number of enclosing operators and frames examined per launch.
const DEEPEST: usize = 256;

/// Operator and phase of every launch.
struct OpsAt {
    op: Vec<u32>,
    phase: Vec<u8>,
}

fn ops_at(timeline: &Timeline, phases: &Phases, moments: &[Moment]) -> OpsAt {
    let ops = &timeline.ops.spans;
    let mut at = OpsAt {
        op: vec![NONE; timeline.runtime.spans.len()],
        phase: marked_phases(timeline, phases, moments),
    };
    let phase_of_name = NameMemo::new(timeline, |name| phases.of_op(name).unwrap_or(0));
    nest::visit(ops, timeline.tracks.len(), moments, |launch, open| {
        let launch = launch as usize;
        at.op[launch] = open.last().copied().unwrap_or(NONE);
        if at.phase[launch] == 0 {
            let phase = |&row: &u32| phase_of_name.get(timeline, ops.name[row as usize]);
            at.phase[launch] =
                open.iter().rev().take(DEEPEST).map(phase).find(|&phase| phase != 0).unwrap_or(0);
        }
    });
    at
}

/// Python frame and module of every launch.
struct PythonAt {
    python: Vec<u32>,
    module: Vec<u32>,
}

fn python_at(timeline: &Timeline, moments: &[Moment]) -> PythonAt {
    let frames = &timeline.python.spans;
    let launches = timeline.runtime.spans.len();
    let mut at = PythonAt { python: vec![NONE; launches], module: vec![NONE; launches] };
    let role_of_name = NameMemo::new(timeline, frame_role);
    nest::visit(frames, timeline.tracks.len(), moments, |launch, open| {
        let role = |&&row: &&u32| role_of_name.get(timeline, frames.name[row as usize]);
        let users = open.iter().rev().take(DEEPEST).find(|row| role(row) == USER).or(open.last());
        at.python[launch as usize] = users.copied().unwrap_or(NONE);
        let module = open.iter().rev().take(DEEPEST).find(|row| role(row) == MODULE);
        at.module[launch as usize] = module.copied().unwrap_or(NONE);
    });
    at
}

/// The runtime row of every device row; `NONE` without a matching correlation id.
fn launches(timeline: &Timeline) -> Vec<u32> {
    let runtime = &timeline.runtime;
    let looks_like_launch = NameMemo::new(timeline, |name| {
        u8::from(["Launch", "Memcpy", "Memset", "launch"].iter().any(|word| name.contains(word)))
    });
    let is_launch =
        |row: u32| looks_like_launch.get(timeline, runtime.spans.name[row as usize]) == 1;
    let table = RowsById::new(&runtime.correlation, |old, new| !is_launch(old) && is_launch(new));
    timeline.gpu.correlation.iter().map(|&correlation| table.get(correlation)).collect()
}

/// Rows by id: an array if the ids are dense, else a hash map.
enum RowsById {
    Dense(Vec<u32>),
    Sparse(FxHashMap<u32, u32>),
}

impl RowsById {
    /// `better(old, new)` decides whether a later row with the same id replaces an earlier one.
    fn new(ids: &[u32], better: impl Fn(u32, u32) -> bool) -> RowsById {
        let largest = ids.iter().copied().filter(|&id| id != NONE).max().unwrap_or(0) as usize;
        let rows = ids.iter().enumerate().filter(|(_, id)| **id != NONE);
        if largest < 32 * ids.len() + 1024 {
            let mut table = vec![NONE; largest + 1];
            for (row, &id) in rows {
                let slot = &mut table[id as usize];
                if *slot == NONE || better(*slot, row as u32) {
                    *slot = row as u32;
                }
            }
            return RowsById::Dense(table);
        }
        let mut table = FxHashMap::default();
        table.reserve(ids.len());
        for (row, &id) in rows {
            let slot = table.entry(id).or_insert(row as u32);
            if *slot != row as u32 && better(*slot, row as u32) {
                *slot = row as u32;
            }
        }
        RowsById::Sparse(table)
    }

    fn get(&self, id: u32) -> u32 {
        match self {
            RowsById::Dense(table) => table.get(id as usize).copied().unwrap_or(NONE),
            RowsById::Sparse(table) => table.get(&id).copied().unwrap_or(NONE),
        }
    }
}

fn hint_by_external_id(timeline: &Timeline, launch: &[u32], op: &mut [u32]) {
    let external = &timeline.gpu.external;
    let orphan = |row: usize| launch[row] == NONE && external[row] != NONE && external[row] != 0;
    if !(0..launch.len()).any(orphan) {
        return;
    }
    let ops = RowsById::new(&timeline.ops.external, |_, _| false);
    for row in 0..launch.len() {
        if orphan(row) {
            op[row] = ops.get(external[row]);
        }
    }
}

/// A property of names, computed once per name.
pub(crate) struct NameMemo<F> {
    known: std::cell::RefCell<Vec<u8>>,
    compute: F,
}

/// Marks names whose property is not computed yet.
const UNKNOWN: u8 = u8::MAX;

impl<F: Fn(&str) -> u8> NameMemo<F> {
    pub(crate) fn new(timeline: &Timeline, compute: F) -> Self {
        NameMemo { known: vec![UNKNOWN; timeline.strings.len()].into(), compute }
    }

    pub(crate) fn get(&self, timeline: &Timeline, name: u32) -> u8 {
        let mut known = self.known.borrow_mut();
        let Some(slot) = known.get_mut(name as usize) else { return 0 };
        if *slot == UNKNOWN {
            *slot = (self.compute)(timeline.strings.get(name));
        }
        *slot
    }
}

const FRAMEWORK: u8 = 0;
const USER: u8 = 1;
const MODULE: u8 = 2;

fn frame_role(name: &str) -> u8 {
    match name {
        _ if name.starts_with("nn.Module: ") => MODULE,
        _ if is_users(name) => USER,
        _ => FRAMEWORK,
    }
}

/// Whether a Python frame belongs to neither the interpreter nor the framework.
pub(crate) fn is_users(frame: &str) -> bool {
    let own = ["<", "torch/", "threading.py(", "contextlib.py(", "nn.Module: "];
    !own.iter().any(|start| frame.starts_with(start)) && !frame.contains("site-packages/torch/")
}

/// Phases by time: sorted start times, each with the phase that begins there.
#[derive(Default)]
struct Segments(Vec<(i64, u8)>);

impl Segments {
    /// Built from annotations that may nest; the one that started last takes precedence.
    fn new(spans: &Spans, mut marks: Vec<(u32, u8)>) -> Segments {
        marks.sort_by_key(|&(row, _)| {
            (spans.ts[row as usize], std::cmp::Reverse(spans.dur[row as usize]))
        });
        let mut segments = vec![];
        let mut open: Vec<(i64, u8)> = vec![];
        let close_until = |open: &mut Vec<(i64, u8)>, segments: &mut Vec<(i64, u8)>, ts: i64| {
            while let Some(&(end, _)) = open.last()
                && end <= ts
            {
                open.pop();
                while open.last().is_some_and(|outer| outer.0 <= end) {
                    open.pop();
                }
                segments.push((end, open.last().map_or(0, |outer| outer.1)));
            }
        };
        for (row, phase) in marks {
            let row = row as usize;
            close_until(&mut open, &mut segments, spans.ts[row]);
            open.push((spans.end(row), phase));
            segments.push((spans.ts[row], phase));
        }
        close_until(&mut open, &mut segments, i64::MAX);
        Segments(segments)
    }

    fn at(&self, ts: i64) -> u8 {
        match self.0.partition_point(|&(start, _)| start <= ts) {
            0 => 0,
            i => self.0[i - 1].1,
        }
    }
}

/// The phase of every launch by its enclosing annotations; those of its own thread take precedence.
fn marked_phases(timeline: &Timeline, phases: &Phases, moments: &[Moment]) -> Vec<u8> {
    let mut found = vec![0; timeline.runtime.spans.len()];
    let spans = &timeline.annotations.spans;
    let marks = marks(timeline, phases, "user_annotation");
    if marks.is_empty() {
        return found;
    }
    let mut by_track: FxHashMap<u32, Vec<(u32, u8)>> = FxHashMap::default();
    for &mark in &marks {
        by_track.entry(spans.track[mark.0 as usize]).or_default().push(mark);
    }
    let anywhere = Segments::new(spans, marks);
    for moments in moments.chunk_by(|a, b| a.track == b.track) {
        let own = by_track.remove(&moments[0].track).unwrap_or_default();
        let own = Segments::new(spans, own);
        for moment in moments {
            let phase = own.at(moment.ts);
            found[moment.asker as usize] = if phase == 0 { anywhere.at(moment.ts) } else { phase };
        }
    }
    found
}

/// Phases by annotations on the device, for operations without a recorded launch.
fn own_phases(timeline: &Timeline, phases: &Phases) -> Segments {
    Segments::new(&timeline.annotations.spans, marks(timeline, phases, "gpu_user_annotation"))
}

fn marks(timeline: &Timeline, phases: &Phases, category: &str) -> Vec<(u32, u8)> {
    let spans = &timeline.annotations.spans;
    let phase_of_name = NameMemo::new(timeline, |name| phases.of_annotation(name).unwrap_or(0));
    let rows = (0..spans.len())
        .filter(|&row| timeline.kinds[spans.kind[row] as usize].category == category);
    rows.map(|row| (row as u32, phase_of_name.get(timeline, spans.name[row])))
        .filter(|mark| mark.1 != 0)
        .collect()
}
