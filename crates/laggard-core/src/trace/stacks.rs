//! Device time by operator and Python stack of the launch.

use super::summary::Analysis;
use crate::model::NONE;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Device operations launched by one operator from one Python line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stack {
    /// Operator.
    pub op: String,
    /// Number of device operations.
    pub count: u64,
    /// Sum of their durations.
    pub time_ns: i64,
    /// Frames of the first such launch, outermost first.
    pub frames: Vec<String>,
}

/// Maximum stack depth; outer frames beyond it are dropped.
const DEEPEST: usize = 256;

/// The stacks of all device operations, most time first.
pub fn stacks(analysis: &Analysis, top: Option<usize>) -> Vec<Stack> {
    let timeline = analysis.timeline;
    let (gpu, ops, python) = (&timeline.gpu, &timeline.ops, &timeline.python);
    // Count, time and first row by operator and innermost line.
    let mut groups: FxHashMap<(u32, u32), (u64, i64, u32)> = FxHashMap::default();
    for &row in &analysis.rows {
        let (op, frame) = (gpu.op[row as usize] as usize, gpu.python[row as usize] as usize);
        let old_stack = || ops.call_stack.get(op).copied().unwrap_or(NONE);
        let line = python.spans.name.get(frame).copied().unwrap_or_else(old_stack);
        let group = groups
            .entry((ops.spans.name.get(op).copied().unwrap_or(NONE), line))
            .or_insert((0, 0, row));
        group.0 += 1;
        group.1 = group.1.saturating_add(gpu.spans.dur[row as usize].max(0));
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|&(key, (count, time, _))| (Reverse(time), Reverse(count), key));
    groups.truncate(top.unwrap_or(usize::MAX));
    let rows_by_id: FxHashMap<u32, u32> = python.id.iter().copied().zip(0..).collect();
    let frames = |row: u32| {
        let mut frames = vec![];
        let mut at = gpu.python[row as usize];
        while let Some(&name) = python.spans.name.get(at as usize)
            && frames.len() < DEEPEST
        {
            frames.push(timeline.strings.get(name).to_owned());
            let parent = python.parent[at as usize];
            at = if parent == NONE {
                NONE
            } else {
                rows_by_id.get(&parent).copied().unwrap_or(NONE)
            };
        }
        if frames.is_empty()
            && let Some(&text) = ops.call_stack.get(gpu.op[row as usize] as usize)
        {
            frames.extend(
                timeline
                    .strings
                    .get(text)
                    .split(';')
                    .filter(|frame| !frame.is_empty())
                    .map(str::to_owned),
            );
        }
        frames.reverse();
        frames
    };
    let stack = |((op, _), (count, time_ns, row))| Stack {
        op: if op == NONE { "(no operator)".into() } else { timeline.strings.get(op).into() },
        count,
        time_ns,
        frames: frames(row),
    };
    groups.into_iter().map(stack).collect()
}
