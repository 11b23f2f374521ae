//! Tree of calling libraries, their functions, and the functions they call.

use super::{By, Tally, View, totals};
use std::collections::BTreeMap;

/// A row of the tree, in depth-first order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeRow {
    /// 0 for a calling library, 1 for a calling function, 2 for a called function.
    pub depth: usize,
    /// The library or function.
    pub name: String,
    /// Library of a called function; empty at other depths.
    pub library: String,
    /// Statistics of the calls.
    pub tally: Tally,
}

/// A group of rows with its subgroups.
#[derive(Default)]
struct Branch<'a> {
    tally: Tally,
    children: BTreeMap<(&'a str, &'a str), Branch<'a>>,
}

/// Builds the tree, sorted by decreasing self time, instructions or calls on every level.
pub fn tree(view: &View) -> Vec<TreeRow> {
    let table = totals(view, By::Caller);
    let mut root = Branch::default();
    for row in &table.rows {
        let Some(caller) = &row.caller else { continue };
        let path = [
            (caller.library.as_str(), ""),
            (caller.function.as_str(), ""),
            (row.name.as_str(), row.of.as_str()),
        ];
        let mut at = &mut root;
        for step in path {
            at = at.children.entry(step).or_default();
            at.tally.merge(&row.tally);
        }
    }
    let mut rows = vec![];
    walk(&root, 0, &mut rows);
    rows
}

fn walk(branch: &Branch, depth: usize, rows: &mut Vec<TreeRow>) {
    let mut children: Vec<_> = branch.children.iter().collect();
    children.sort_by_key(|(_, child)| {
        std::cmp::Reverse((child.tally.self_ns, child.tally.instructions, child.tally.count))
    });
    for ((name, library), child) in children {
        let (name, library) = ((*name).to_owned(), (*library).to_owned());
        rows.push(TreeRow { depth, name, library, tally: child.tally.clone() });
        walk(child, depth + 1, rows);
    }
}
