//! Divergence points of two profiles.

use super::{Divergence, SideStacks, Spent, Stacks, diverge};
use crate::profile::View;

/// Finds where B's call paths diverge from A's in samples of time. A side is the mean of its profiles.
/// `calls` is the number of calls in each profile of a side, or 1. Empty if B does not take longer.
pub fn diverge_views(sides: [&[View<'_>]; 2], calls: [f64; 2]) -> Divergence {
    let stacks = [0, 1].map(|side: usize| {
        let scale = (calls[side] * sides[side].len() as f64).max(f64::MIN_POSITIVE);
        let stacks_of = |view: &View<'_>| {
            let spent = view.stacks.iter().map(|&(node, cost)| Spent {
                node,
                work: 0,
                ns: cost.weight as f64 / scale,
                samples: cost.samples,
            });
            Stacks::new(view.profile, spent)
        };
        Stacks::joined(sides[side].iter().map(stacks_of))
    });
    let [a, b] = &stacks;
    diverge([a, b].map(|stacks| SideStacks { stacks, counts: None }), true)
}
