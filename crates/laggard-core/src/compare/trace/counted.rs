//! Selection of the measured steps, without warm-up and partial steps, and the mix of step kinds by
//! which both sides are weighted.

use super::amounts::{Counted, Mix};
use super::run::Run;
use crate::model::NONE;
use crate::stats::summary::quantile;

/// With fewer steps of a kind, no steps are excluded.
const FEWEST: usize = 4;
/// Minimum slowdown of a warm-up step relative to later steps.
const WARM_UP: f64 = 1.1;
/// Maximum share of warm-up steps.
const MOST_WARM_UP: f64 = 0.25;
/// Maximum number of warm-up steps.
const LONGEST_WARM_UP: usize = 100;
/// Share of the median number of device operations below which a step is partial.
const PARTIAL: f64 = 0.5;

/// Size of a step.
struct Size {
    lap: usize,
    pieces: usize,
    wall: f64,
}

/// Selects the measured steps of these traces.
pub(super) fn count(runs: &[Run]) -> Counted<'_> {
    let mut counted = Counted {
        runs: runs.iter().collect(),
        slots: vec![],
        kinds: vec![],
        warm_up: 0,
        partial: 0,
    };
    for run in runs {
        let mut sizes: Vec<Size> =
            (0..run.laps.all.len()).map(|lap| Size { lap, pieces: 0, wall: 0.0 }).collect();
        for (piece, &lap) in run.pieces.iter().zip(&run.laps.of_row) {
            if let Some(size) = sizes.get_mut(lap as usize) {
                size.pieces += 1;
                size.wall += piece.own_time() as f64;
            }
        }
        let mut is_counted = vec![false; sizes.len()];
        let mut kinds: Vec<u8> = run.laps.all.iter().map(|lap| lap.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let own = |size: &&Size| run.laps.all[size.lap].kind == kind && size.pieces > 0;
            let sizes: Vec<&Size> = sizes.iter().filter(own).collect();
            let whole = without_partial(&sizes);
            counted.partial += (sizes.len() - whole.len()) as u64;
            let warm_up = warm_up(whole);
            counted.warm_up += warm_up as u64;
            for size in &whole[warm_up..] {
                is_counted[size.lap] = true;
            }
        }
        let mut slots = vec![NONE; is_counted.len()];
        for (lap, _) in is_counted.iter().enumerate().filter(|(_, counts)| **counts) {
            slots[lap] = counted.kinds.len() as u32;
            counted.kinds.push(run.laps.all[lap].kind);
        }
        counted.slots.push(slots);
    }
    counted
}

/// Drops the first and the last step if they are partial.
fn without_partial<'a, 's>(sizes: &'s [&'a Size]) -> &'s [&'a Size] {
    if sizes.len() < FEWEST {
        return sizes;
    }
    let usual = median(sizes.iter().map(|size| size.pieces as f64));
    let is_partial = |size: &&Size| (size.pieces as f64) < PARTIAL * usual;
    let from = usize::from(sizes.first().is_some_and(is_partial));
    let to = sizes.len() - usize::from(sizes.last().is_some_and(is_partial));
    &sizes[from..to]
}

/// Number of steps at the start that take clearly longer than the following ones.
fn warm_up(sizes: &[&Size]) -> usize {
    if sizes.len() < FEWEST {
        return 0;
    }
    let most = ((sizes.len() as f64 * MOST_WARM_UP) as usize).clamp(1, LONGEST_WARM_UP);
    let takes_longer = |lap: usize| {
        let rest = || sizes[lap + 1..].iter().map(|size| size.wall);
        let usual = median(rest());
        let spread = median(rest().map(|wall| (wall - usual).abs()));
        sizes[lap].wall > WARM_UP * usual + 3.0 * spread
    };
    (0..most).take_while(|&lap| takes_longer(lap)).count()
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

/// A's mix of the step kinds that both sides have. Steps of other kinds are dropped. If the sides
/// have no kind in common, all steps are treated as one kind.
pub(super) fn mix<'a>(a: &mut Counted<'a>, b: &mut Counted<'a>) -> Mix {
    let has = |side: &Counted, kind: u8| side.kinds.contains(&kind);
    let mut shared = a.kinds.clone();
    shared.sort_unstable();
    shared.dedup();
    shared.retain(|&kind| has(b, kind));
    if shared.is_empty() {
        for side in [a, b] {
            side.kinds.fill(0);
        }
        return Mix(vec![(0, 1.0)]);
    }
    for side in [&mut *a, &mut *b] {
        side.keep(|kind| shared.contains(&kind));
    }
    let count = |kind: u8| a.kinds.iter().filter(|own| **own == kind).count();
    let all = a.kinds.len().max(1) as f64;
    Mix(shared.into_iter().map(|kind| (kind, count(kind) as f64 / all)).collect())
}
