//! Compact call tree for flame graphs of millions of stacks.

use super::{Cost, View};
use crate::model::NONE;
use rustc_hash::FxHashMap;

/// A call tree by function. Node 0 is the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlatTree {
    /// Nodes; parents come before their children.
    pub nodes: Vec<FlatNode>,
    /// Node of each stack of the profile; the root for stacks without a node.
    pub of_stack: Vec<u32>,
}

/// A node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatNode {
    /// The caller's node; `NONE` for the root.
    pub parent: u32,
    /// Index of the function; `NONE` for the root.
    pub function: u32,
    /// Self cost.
    pub own: Cost,
}

/// Builds the tree of all stacks of a view.
pub fn flat_tree(view: &View) -> FlatTree {
    let stacks = &view.profile.stacks;
    // Stacks of other events and threads are not part of the tree.
    let mut is_used = vec![false; stacks.len()];
    for &(stack, _) in &view.stacks {
        let mut at = stack as usize;
        while let Some(used) = is_used.get_mut(at).filter(|used| !**used) {
            *used = true;
            at = stacks[at].parent as usize;
        }
    }
    let root = FlatNode { parent: NONE, function: NONE, own: Cost::default() };
    let mut tree = FlatTree { nodes: vec![root], of_stack: vec![0; stacks.len()] };
    // If every frame is a distinct function, nodes cannot be merged.
    let is_distinct = view.functions.len() == view.profile.frames.len();
    let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (at, node) in stacks.iter().enumerate().filter(|(at, _)| is_used[*at]) {
        let parent = tree.of_stack.get(node.parent as usize).copied().unwrap_or(0);
        let function = view.functions.of(node.frame);
        let mut add = || {
            tree.nodes.push(FlatNode { parent, function, own: Cost::default() });
            tree.nodes.len() as u32 - 1
        };
        tree.of_stack[at] = match is_distinct {
            true => add(),
            false => *known.entry((parent, function)).or_insert_with(add),
        };
    }
    for &(stack, cost) in &view.stacks {
        let node = tree.of_stack.get(stack as usize).copied().unwrap_or(0);
        tree.nodes[node as usize].own.add(cost);
    }
    tree
}
