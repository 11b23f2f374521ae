//! A whole tree of calls in few bytes a node: what pictures of a million stacks are made from.

use super::{Cost, View};
use crate::model::NONE;
use rustc_hash::FxHashMap;

/// A tree of calls by function. Node 0 is its root, which stands for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlatTree {
    /// The nodes; parents come before their children.
    pub nodes: Vec<FlatNode>,
    /// The node of each of the profile's stacks; the root's for those that have none.
    pub of_stack: Vec<u32>,
}

/// A function at one place of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatNode {
    /// The caller's node; `NONE` for the root.
    pub parent: u32,
    /// Number of the function; `NONE` for the root.
    pub function: u32,
    /// In it and in nothing below.
    pub own: Cost,
}

/// The tree of all stacks of a view.
pub fn flat_tree(view: &View) -> FlatTree {
    let stacks = &view.profile.stacks;
    // Stacks of other events and threads have no place in it.
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
    // Where every frame is a function of its own, no two nodes can be one.
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
