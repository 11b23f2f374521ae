//! Costs of calls between libraries.

use super::{Row, View};
use crate::model::profile::FrameKind;
use rustc_hash::FxHashMap;

/// One row per pair of calling and called library. `total` is the cost below such calls; a stack with
/// several of them counts once. `own` is the cost in the called library itself. Python code and the
/// kernel count as libraries.
pub(super) fn borders(view: &View) -> Vec<Row> {
    let mut numbers: FxHashMap<(&str, &str), usize> = FxHashMap::default();
    let mut rows: Vec<Row> = vec![];
    let mut last_stack: Vec<usize> = vec![];
    for (number, &(stack, cost)) in view.stacks.iter().enumerate() {
        let frames =
            view.profile.frames_of(stack).filter_map(|f| view.profile.frames.get(f as usize));
        let frames = frames.filter(|frame| frame.kind != FrameKind::Mark);
        let mut libraries = frames.map(|frame| view.functions.library(frame));
        let Some(mut callee) = libraries.next() else { continue };
        let mut is_first = true;
        for caller in libraries {
            if caller == callee {
                continue;
            }
            let row = *numbers.entry((caller, callee)).or_insert_with(|| {
                let (of, name) = (caller.to_owned(), callee.to_owned());
                rows.push(Row { name, of, ..Row::default() });
                last_stack.push(usize::MAX);
                rows.len() - 1
            });
            if last_stack[row] != number {
                last_stack[row] = number;
                rows[row].total.add(cost);
                if is_first {
                    rows[row].own.add(cost);
                }
            }
            is_first = false;
            callee = caller;
        }
    }
    rows
}
