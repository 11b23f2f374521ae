//! Merged call tree of two sides, for differential flame graphs.

use super::align::Alignment;
use super::profile::Scale;
use crate::model::NONE;
use crate::model::profile::FrameKind;
use crate::profile::View;
use rustc_hash::FxHashMap;

/// A call tree with the costs of both sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiffTree {
    /// Functions, with the same indexes as [`Alignment::functions`].
    pub names: Vec<DiffFunction>,
    /// Node 0 is the root. Parents come before their children.
    pub nodes: Vec<DiffNode>,
}

/// A function as displayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffFunction {
    /// Its name.
    pub name: String,
    /// Its library; empty if it has none.
    pub library: String,
    /// Kind of code.
    pub kind: FrameKind,
}

/// A node of the tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiffNode {
    /// The caller's node; `NONE` for the root.
    pub parent: u32,
    /// Index in [`DiffTree::names`]; `NONE` for the root.
    pub function: u32,
    /// Self cost of A and B, in the scale of the comparison.
    pub own: [f64; 2],
}

impl DiffTree {
    /// Total cost of A and B in each node.
    pub fn totals(&self) -> Vec<[f64; 2]> {
        let mut totals: Vec<[f64; 2]> = self.nodes.iter().map(|node| node.own).collect();
        for at in (1..self.nodes.len()).rev() {
            let below = totals[at];
            if let Some(above) = totals.get_mut(self.nodes[at].parent as usize) {
                above[0] += below[0];
                above[1] += below[1];
            }
        }
        totals
    }
}

/// Builds the tree of both sides from aligned functions. Costs are means over the recordings of a
/// side. Samples without a stack count as self cost of the root. Nodes are in the order of first use.
pub fn diff_tree(a: &[View], b: &[View], alignment: &Alignment, scale: Scale) -> DiffTree {
    let names = alignment.functions.iter().map(|function| DiffFunction {
        name: function.name.clone(),
        library: function.library.clone(),
        kind: function.kind,
    });
    let root = DiffNode { parent: NONE, function: NONE, own: [0.0; 2] };
    let mut tree = DiffTree { names: names.collect(), nodes: vec![root] };
    let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (side, views) in [a, b].into_iter().enumerate() {
        for (recording, view) in views.iter().enumerate() {
            let place = places(view, &mut tree, &mut known, |frame| {
                alignment.function(side, recording, view, frame)
            });
            for &(stack, cost) in &view.stacks {
                let at = place.get(stack as usize).copied().unwrap_or(0);
                tree.nodes[at as usize].own[side] +=
                    scale.amount(side, cost, view.whole) / views.len() as f64;
            }
        }
    }
    tree
}

/// Tree node of each stack node. Only stacks used by the view are added.
fn places(
    view: &View,
    tree: &mut DiffTree,
    known: &mut FxHashMap<(u32, u32), u32>,
    function: impl Fn(u32) -> u32,
) -> Vec<u32> {
    let stacks = &view.profile.stacks;
    let mut place = vec![NONE; stacks.len()];
    for &(stack, _) in &view.stacks {
        let mut at = stack as usize;
        // 0 marks used nodes until their place is known.
        while place.get(at) == Some(&NONE) {
            place[at] = 0;
            at = stacks[at].parent as usize;
        }
    }
    for (at, node) in stacks.iter().enumerate() {
        if place[at] == NONE {
            continue;
        }
        let parent = place.get(node.parent as usize).copied().unwrap_or(0);
        let function = function(node.frame);
        place[at] = *known.entry((parent, function)).or_insert_with(|| {
            tree.nodes.push(DiffNode { parent, function, own: [0.0; 2] });
            tree.nodes.len() as u32 - 1
        });
    }
    place
}
