//! Divergence points of two profiles.

use super::{Divergence, SideStacks, Spent, Stacks, diverge};
use crate::profile::View;

/// Finds where B's call paths diverge from A's in samples of time. `calls` is the number of calls in
/// each profile, or 1. Empty if B does not take longer.
pub fn diverge_views(views: [&View<'_>; 2], calls: [f64; 2]) -> Divergence {
    let stacks = [0, 1].map(|side: usize| {
        let View { profile, stacks, .. } = views[side];
        let spent = stacks.iter().map(|&(node, cost)| Spent {
            node,
            work: 0,
            ns: cost.weight as f64 / calls[side].max(f64::MIN_POSITIVE),
            samples: cost.samples,
        });
        Stacks::new(profile, spent)
    });
    let [a, b] = &stacks;
    diverge([a, b].map(|stacks| SideStacks { stacks, counts: None }), true)
}
