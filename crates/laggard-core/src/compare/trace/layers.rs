//! Detection of model layers: by `nn.Module` calls if recorded, else by a kernel sequence that
//! repeats within a step, else by attention and state-space kernels.

use super::cycle::{cycle, with_period};
use super::found::{Architecture, LayersBy};
use super::run::{Kernel, Run};
use crate::model::NONE;
use crate::model::timeline::Spans;
use crate::trace::Analysis;
use crate::trace::devices::Role;
use crate::trace::link::NameMemo;
use crate::trace::nest::{self, Moment};
use rustc_hash::{FxHashMap, FxHashSet};

/// The layers of one trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Layering {
    pub(super) by: LayersBy,
    /// Names of layers, in model order.
    pub(super) names: Vec<String>,
    /// Layer of every device operation; `NONE` outside layers. Empty without layers.
    pub(super) of: Vec<u32>,
}

/// Minimum number of layers.
const FEWEST_LAYERS: usize = 2;
/// Minimum share of device time that a repeating sequence must cover.
const CYCLE_COVERS: f64 = 0.3;

/// Finds the layers.
pub(super) fn layering(analysis: &Analysis, run: &Run) -> Layering {
    let by_lap = run.by_lap();
    by_modules(analysis, run)
        .or_else(|| by_cycle(run, &by_lap))
        .or_else(|| by_markers(run, &by_lap))
        .unwrap_or_default()
}

/// Splits `nn.Module: Block_3` into `Block` and `3`.
fn module(name: &str) -> Option<(&str, u32)> {
    let (class, number) = name.strip_prefix("nn.Module: ")?.rsplit_once('_')?;
    Some((class, number.parse().ok()?))
}

/// Launches within a class of modules.
#[derive(Default)]
struct Use {
    instances: FxHashSet<u32>,
    launches: u64,
    time: i64,
    /// The last launch counted.
    last: Option<u32>,
}

/// Maximum number of enclosing modules examined per launch.
const DEEPEST: usize = 256;

/// Layers by the module class that launches most device time. Among classes with nearly as much
/// time, the one with the most instances wins.
fn by_modules(analysis: &Analysis, run: &Run) -> Option<Layering> {
    /// Minimum share of the best class's time.
    const AS_GOOD: f64 = 0.9;
    /// Minimum share of all launches within modules. Layers make up most of a model; classes of
    /// single operators do not.
    const MOST_OF_IT: f64 = 0.6;
    let timeline = analysis.timeline;
    let frames = &timeline.python.spans;
    let is_module = NameMemo::new(timeline, |name| u8::from(module(name).is_some()));
    let rows: Vec<usize> =
        (0..frames.len()).filter(|&row| is_module.get(timeline, frames.name[row]) == 1).collect();
    if rows.is_empty() {
        return None;
    }
    let spans = Spans {
        ts: rows.iter().map(|&row| frames.ts[row]).collect::<Vec<_>>().into(),
        dur: rows.iter().map(|&row| frames.dur[row]).collect::<Vec<_>>().into(),
        name: rows.iter().map(|&row| frames.name[row]).collect::<Vec<_>>().into(),
        track: rows.iter().map(|&row| frames.track[row]).collect::<Vec<_>>().into(),
        kind: rows.iter().map(|&row| frames.kind[row]).collect::<Vec<_>>().into(),
    };
    let calls = &timeline.runtime.spans;
    let mut time_of_launch = vec![0i64; calls.len()];
    for piece in &run.pieces {
        if let Some(time) = time_of_launch.get_mut(piece.launch as usize) {
            *time = time.saturating_add(piece.dur.max(1));
        }
    }
    let mut moments: Vec<Moment> = (0..calls.len())
        .filter(|&call| time_of_launch[call] > 0)
        .map(|call| Moment { track: calls.track[call], ts: calls.ts[call], asker: call as u32 })
        .collect();
    moments.sort();
    let name_of = |row: u32| timeline.strings.get(spans.name[row as usize]);
    let mut uses: FxHashMap<&str, Use> = FxHashMap::default();
    let mut launches = 0u64;
    nest::visit(&spans, timeline.tracks.len(), &moments, |launch, open| {
        launches += u64::from(!open.is_empty());
        let innermost = open.iter().rev().take(DEEPEST);
        for (class, number) in innermost.filter_map(|&row| module(name_of(row))) {
            let used = uses.entry(class).or_default();
            used.instances.insert(number);
            if used.last.replace(launch) != Some(launch) {
                used.time = used.time.saturating_add(time_of_launch[launch as usize]);
                used.launches += 1;
            }
        }
    });
    let is_layer = |used: &Use| {
        used.instances.len() >= FEWEST_LAYERS
            && used.launches as f64 >= MOST_OF_IT * launches as f64
    };
    let repeated = || uses.iter().filter(|(_, used)| is_layer(used));
    let best = repeated().map(|(_, used)| used.time).max()?;
    let (&class, used) =
        repeated().filter(|(_, used)| used.time as f64 >= AS_GOOD * best as f64).max_by_key(
            |(class, used)| (used.instances.len(), used.time, std::cmp::Reverse(**class)),
        )?;
    let mut numbers: Vec<u32> = used.instances.iter().copied().collect();
    numbers.sort_unstable();
    let place: FxHashMap<u32, u32> = numbers.iter().copied().zip(0..).collect();
    let mut layer_of_launch = vec![NONE; calls.len()];
    nest::visit(&spans, timeline.tracks.len(), &moments, |launch, open| {
        let outermost = &open[open.len().saturating_sub(DEEPEST)..];
        let mut modules = outermost.iter().filter_map(|&row| module(name_of(row)));
        let number = modules.find(|(name, _)| *name == class).map(|found| found.1);
        layer_of_launch[launch as usize] =
            number.and_then(|number| place.get(&number).copied()).unwrap_or(NONE);
    });
    let of = |piece: &super::run::Piece| {
        layer_of_launch.get(piece.launch as usize).copied().unwrap_or(NONE)
    };
    Some(Layering {
        by: LayersBy::Modules(class.to_owned()),
        names: numbers.iter().map(|number| format!("{class}_{number}")).collect(),
        of: run.pieces.iter().map(of).collect(),
    })
}

/// Whether a device operation is compute.
fn computes(run: &Run, at: u32) -> bool {
    run.pieces[at as usize].role == Role::Compute
}

/// Assigns layers within each step. `layers_of` takes the number of a step and its compute
/// operations, and returns their layers.
fn lap_by_lap(
    run: &Run,
    by_lap: &[Vec<u32>],
    by: LayersBy,
    mut layers_of: impl FnMut(usize, &[u32]) -> Vec<u32>,
) -> Option<Layering> {
    let mut of = vec![NONE; run.pieces.len()];
    let mut count = 0;
    for (number, lap) in by_lap.iter().enumerate() {
        let computing: Vec<u32> = lap.iter().copied().filter(|&at| computes(run, at)).collect();
        for (&at, layer) in computing.iter().zip(layers_of(number, &computing)) {
            of[at as usize] = layer;
            count = if layer == NONE { count } else { count.max(layer + 1) };
        }
    }
    let names = (0..count).map(|layer| format!("layer {layer}")).collect();
    (count as usize >= FEWEST_LAYERS).then_some(Layering { by, names, of })
}

/// The step with the median number of device operations.
pub(super) fn typical(by_lap: &[Vec<u32>]) -> Option<&Vec<u32>> {
    middle(by_lap.iter().collect())
}

fn middle(mut laps: Vec<&Vec<u32>>) -> Option<&Vec<u32>> {
    laps.retain(|lap| !lap.is_empty());
    laps.sort_by_key(|lap| lap.len());
    laps.get(laps.len() / 2).copied()
}

/// Layers by a repeating sequence. The period is determined per kind of step, because prefill and
/// decode iterations run different kernels.
fn by_cycle(run: &Run, by_lap: &[Vec<u32>]) -> Option<Layering> {
    let sequence = |pieces: &[u32]| -> Vec<u32> {
        pieces.iter().map(|&at| run.pieces[at as usize].kernel).collect()
    };
    let time = |pieces: &[u32]| {
        pieces.iter().map(|&at| run.pieces[at as usize].dur).fold(0, i64::saturating_add)
    };
    let kind = |lap: usize| run.laps.all[lap].kind;
    let mut periods: FxHashMap<u8, Option<usize>> = FxHashMap::default();
    for lap in 0..by_lap.len() {
        periods.entry(kind(lap)).or_insert_with(|| {
            let of_kind = by_lap.iter().enumerate().filter(|(other, _)| kind(*other) == kind(lap));
            let of_kind: Vec<&Vec<u32>> = of_kind.map(|(_, pieces)| pieces).collect();
            let pieces: Vec<u32> =
                middle(of_kind)?.iter().copied().filter(|&at| computes(run, at)).collect();
            let found = cycle(&sequence(&pieces))?;
            let covered = time(&pieces[found.start..found.start + found.covered()]);
            let is_enough = covered as f64 >= CYCLE_COVERS * time(&pieces) as f64;
            is_enough.then_some(found.period)
        });
    }
    lap_by_lap(run, by_lap, LayersBy::Cycle, |lap, pieces| {
        let period = periods.get(&kind(lap)).copied().flatten();
        let found = period.and_then(|period| with_period(&sequence(pieces), period));
        let of = |place| found.and_then(|(_, cycle)| cycle.of(place)).map_or(NONE, |n| n as u32);
        (0..pieces.len()).map(of).collect()
    })
}

/// Start indexes of groups of attention or state-space kernels without a matrix product in between.
pub(super) fn clusters<'a>(kernels: impl Iterator<Item = &'a Kernel>) -> Vec<usize> {
    let mut starts = vec![];
    let mut is_open = false;
    for (place, kernel) in kernels.enumerate() {
        if is_marker(kernel) {
            if !is_open {
                starts.push(place);
            }
            is_open = true;
        } else if kernel.group == "GEMM" {
            is_open = false;
        }
    }
    starts
}

/// Whether a kernel occurs once per layer in transformers and state-space models.
pub(super) fn is_marker(kernel: &Kernel) -> bool {
    (kernel.group == "Attention" || kernel.group == "SSM") && !kernel.class.contains("Backward")
}

fn by_markers(run: &Run, by_lap: &[Vec<u32>]) -> Option<Layering> {
    let what = match run.architecture {
        Architecture::Hybrid => "attention and state-space",
        Architecture::Transformer => "attention",
        Architecture::StateSpace => "state-space",
        Architecture::Unknown => return None,
    };
    lap_by_lap(run, by_lap, LayersBy::Markers(what.to_owned()), |_, pieces| {
        let starts = clusters(pieces.iter().map(|&at| run.kernel(at)));
        let mut lengths: Vec<usize> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        lengths.sort_unstable();
        // The end of the last layer is estimated from the usual length of a layer.
        let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(pieces.len());
        let of = |place: usize| {
            let next = starts.partition_point(|&start| start <= place);
            match next.checked_sub(1) {
                Some(layer) if place < starts[layer] + usual || next < starts.len() => layer as u32,
                _ => NONE,
            }
        };
        (0..pieces.len()).map(of).collect()
    })
}
