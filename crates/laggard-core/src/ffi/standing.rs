//! Ranking of bindings over all categories, by the geometric mean of their ratios to the floor.

use super::Figure;
use crate::model::ffi::{Ffi, Who};

/// Rank of a binding over the categories common to all bindings.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Place in [`Ffi::bindings`].
    pub binding: usize,
    /// Place in [`Ffi::pythons`].
    pub python: usize,
    /// Place in [`Ffi::profiles`].
    pub profile: usize,
    /// 1 is the fastest.
    pub rank: usize,
    /// Geometric mean of its ratios to the floor.
    pub ratio: f64,
    /// Category with the lowest ratio, and that ratio.
    pub least: (usize, f64),
    /// Category with the highest ratio, and that ratio.
    pub most: (usize, f64),
    /// Number of categories.
    pub categories: usize,
}

pub(super) fn standings(ffi: &Ffi, figures: &[Figure]) -> Vec<Standing> {
    let mut found = vec![];
    for python in 0..ffi.pythons.len() {
        for profile in 0..ffi.profiles.len() {
            let mut group = of_group(ffi, figures, python, profile);
            group.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
            for (rank, standing) in (1..).zip(&mut group) {
                standing.rank = rank;
            }
            found.extend(group);
        }
    }
    found
}

fn of_group(ffi: &Ffi, figures: &[Figure], python: usize, profile: usize) -> Vec<Standing> {
    let ratio = |binding: usize, category: usize| {
        let is_it = |cell: &crate::model::ffi::Cell| {
            cell.who == Who::Binding(binding)
                && (cell.category, cell.python, cell.profile) == (category, python, profile)
        };
        let at = ffi.cells.iter().position(is_it)?;
        Some(figures[at].ratio?.middle)
    };
    let categories: Vec<usize> = (0..ffi.categories.len())
        .filter(|&category| ffi.categories[category].size.is_none())
        .collect();
    let is_there = |binding: &usize| {
        !ffi.bindings[*binding].is_users
            && categories.iter().any(|&category| ratio(*binding, category).is_some())
    };
    let bindings: Vec<usize> = (0..ffi.bindings.len()).filter(is_there).collect();
    // Means over different categories are not comparable.
    let shared: Vec<usize> = categories
        .into_iter()
        .filter(|&category| bindings.iter().all(|&binding| ratio(binding, category).is_some()))
        .collect();
    let standing = |&binding: &usize| {
        let ratios: Vec<(usize, f64)> = shared
            .iter()
            .filter_map(|&category| Some((category, ratio(binding, category)?)))
            .collect();
        let by_ratio = |a: &&(usize, f64), b: &&(usize, f64)| a.1.total_cmp(&b.1);
        let logs: f64 = ratios.iter().map(|(_, ratio)| ratio.ln()).sum();
        Some(Standing {
            binding,
            python,
            profile,
            rank: 0,
            ratio: (logs / ratios.len() as f64).exp(),
            least: *ratios.iter().min_by(by_ratio)?,
            most: *ratios.iter().max_by(by_ratio)?,
            categories: ratios.len(),
        })
    };
    bindings.iter().filter_map(standing).collect()
}
