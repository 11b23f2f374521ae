//! CPU family of BLAS kernels, detected from their names.

use super::{Cost, View};
use rustc_hash::FxHashMap;

/// CPU families in names of BLAS kernels, oldest first.
pub(crate) const FAMILIES: [&str; 18] = [
    "PRESCOTT",
    "CORE2",
    "PENRYN",
    "DUNNINGTON",
    "ATOM",
    "NEHALEM",
    "OPTERON",
    "BARCELONA",
    "BOBCAT",
    "SANDYBRIDGE",
    "BULLDOZER",
    "PILEDRIVER",
    "STEAMROLLER",
    "EXCAVATOR",
    "HASWELL",
    "ZEN",
    "SKYLAKEX",
    "COOPERLAKE",
];

/// Index of a function's family in [`FAMILIES`]; `None` if the name has no family.
pub(crate) fn family(name: &str) -> Option<usize> {
    let last = name.rsplit('_').next()?;
    FAMILIES.iter().position(|family| *family == last)
}

/// CPU families of the kernels in a view with their self cost, by decreasing cost.
pub fn kernel_families(view: &View) -> Vec<(&'static str, Cost)> {
    let mut costs: FxHashMap<usize, Cost> = FxHashMap::default();
    for &(stack, cost) in &view.stacks {
        let innermost = view.profile.frames_of(stack).next();
        let frame = innermost.and_then(|frame| view.profile.frames.get(frame as usize));
        let name = frame.map_or("", |frame| view.profile.texts.get(frame.function));
        if let Some(family) = family(name) {
            costs.entry(family).or_default().add(cost);
        }
    }
    let mut families: Vec<_> = costs.into_iter().collect();
    families.sort_by_key(|(family, cost)| (std::cmp::Reverse(cost.samples), *family));
    families.into_iter().map(|(family, cost)| (FAMILIES[family], cost)).collect()
}
