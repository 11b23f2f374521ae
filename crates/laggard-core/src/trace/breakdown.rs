//! Device time by class, kernel, phase, operator, Python line and other keys.

use super::link::is_users;
use super::summary::{Analysis, Breakdown, CountTime, Group};
use crate::model::NONE;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Key of a breakdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Kernel class.
    Class,
    /// Group of kernel classes.
    Group,
    /// Kernel name.
    Kernel,
    /// Phase.
    Phase,
    /// CPU operator of the launch.
    Op,
    /// CPU operator with the shapes of its inputs.
    Shape,
    /// Python line of the launch.
    Python,
    /// `nn.Module` of the launch.
    Module,
    /// Device and stream.
    Stream,
    /// Runtime call of the launch.
    Launch,
    /// Grid and block of the launch.
    Geometry,
}

impl By {
    /// All keys.
    pub const ALL: [By; 11] = [
        By::Class,
        By::Group,
        By::Kernel,
        By::Phase,
        By::Op,
        By::Shape,
        By::Python,
        By::Module,
        By::Stream,
        By::Launch,
        By::Geometry,
    ];

    /// Its name on the command line and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            By::Class => "class",
            By::Group => "group",
            By::Kernel => "kernel",
            By::Phase => "phase",
            By::Op => "op",
            By::Shape => "shape",
            By::Python => "python",
            By::Module => "module",
            By::Stream => "stream",
            By::Launch => "launch",
            By::Geometry => "geometry",
        }
    }

    /// Description for help texts.
    pub fn meaning(self) -> &'static str {
        match self {
            By::Class => "Kernel class",
            By::Group => "Group of kernel classes",
            By::Kernel => "Kernel",
            By::Phase => "Phase",
            By::Op => "CPU operator that launched the operation",
            By::Shape => "CPU operator with its input shapes",
            By::Python => "Python line that launched the operation",
            By::Module => "nn.Module that launched the operation",
            By::Stream => "Device and stream",
            By::Launch => "Runtime call that launched the operation",
            By::Geometry => "Grid and block size of the launch",
        }
    }
}

/// Breaks down device time; `top` limits the rows.
pub fn breakdown(analysis: &Analysis, by: By, top: Option<usize>) -> Breakdown {
    let keys = Keys::new(analysis, by);
    let groups = grouped(analysis, &keys.of_row, keys.labels.len());
    let mut total = CountTime::default();
    for group in &groups {
        total.count += group.count;
        total.time_ns = total.time_ns.saturating_add(group.time_ns);
    }
    let mut order: Vec<usize> = (0..groups.len()).filter(|&i| groups[i].count > 0).collect();
    order.sort_by_key(|&i| (Reverse(groups[i].time_ns), Reverse(groups[i].count), keys.labels[i]));
    let distinct = order.len() as u64;
    order.truncate(top.unwrap_or(usize::MAX));
    let rows = order
        .into_iter()
        .map(|i| Group { name: keys.name(analysis, by, i), ..groups[i].clone() })
        .collect();
    Breakdown { by, rows, distinct, total }
}

/// Group of every row of the analysis.
pub(crate) struct Keys {
    /// Group by index into the analysis's rows.
    pub(crate) of_row: Vec<u32>,
    labels: Vec<(u32, u32)>,
}

impl Keys {
    pub(crate) fn new(analysis: &Analysis, by: By) -> Keys {
        let mut numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut labels = vec![];
        let mut old_stacks = OldStacks::default();
        // Adjacent rows often share a key.
        let mut last = ((NONE, NONE), NONE);
        let of_row = analysis.rows.iter().map(|&row| {
            let mut label = label(analysis, by, row as usize);
            if by == By::Python && label.0 == NONE {
                label = old_stacks.label(analysis, row as usize);
            }
            if last.1 == NONE || last.0 != label {
                let number = *numbers.entry(label).or_insert_with(|| {
                    labels.push(label);
                    labels.len() as u32 - 1
                });
                last = (label, number);
            }
            last.1
        });
        Keys { of_row: of_row.collect(), labels }
    }

    /// The names of all groups.
    pub(crate) fn names(&self, analysis: &Analysis, by: By) -> Vec<String> {
        (0..self.labels.len()).map(|group| self.name(analysis, by, group)).collect()
    }

    fn name(&self, analysis: &Analysis, by: By, group: usize) -> String {
        let timeline = analysis.timeline;
        let (a, b) = self.labels[group];
        let text = |id: u32, none: &str| {
            if id == NONE { none.to_owned() } else { timeline.strings.get(id).to_owned() }
        };
        match by {
            By::Class => analysis
                .rules
                .classes()
                .get(a as usize)
                .map_or_else(String::new, |class| class.name.clone()),
            By::Group => {
                let class = analysis
                    .rules
                    .classes()
                    .iter()
                    .find(|class| group_number(analysis, &class.group) == a);
                class.map_or_else(String::new, |class| class.group.clone())
            }
            By::Kernel => text(a, "(no name)"),
            By::Phase => analysis.phases.label(a as u8).to_owned(),
            By::Op => text(a, "(no operator)"),
            By::Shape if b == NONE => text(a, "(no operator)"),
            By::Shape => format!("{} {}", text(a, ""), text(b, "")),
            By::Python if b == OLD_STACK => user_frame(timeline.strings.get(a)).to_owned(),
            By::Python => text(a, "(no Python frame)"),
            By::Module => text(a, "(no module)"),
            By::Stream => {
                format!("device {} stream {}", timeline.ids.text(a), timeline.ids.text(b))
            }
            By::Launch => text(a, "(launch not recorded)"),
            By::Geometry => format!("grid {} block {}", text(a, "?"), text(b, "?")),
        }
    }
}

fn group_number(analysis: &Analysis, group: &str) -> u32 {
    analysis
        .rules
        .classes()
        .iter()
        .position(|class| class.group == group)
        .map_or(NONE, |i| i as u32)
}

/// The value that identifies a row's group.
fn label(analysis: &Analysis, by: By, row: usize) -> (u32, u32) {
    let timeline = analysis.timeline;
    let gpu = &timeline.gpu;
    let name_of = |names: &[u32], at: &[u32]| {
        at.get(row).and_then(|&i| names.get(i as usize)).copied().unwrap_or(NONE)
    };
    match by {
        By::Class => (u32::from(analysis.class(row as u32).0), 0),
        By::Group => {
            (group_number(analysis, &analysis.rules.class(analysis.class(row as u32)).group), 0)
        }
        By::Kernel => (gpu.spans.name[row], 0),
        By::Phase => (u32::from(gpu.phase.get(row).copied().unwrap_or(0)), 0),
        By::Op => (name_of(&timeline.ops.spans.name, &gpu.op), 0),
        By::Shape => {
            (name_of(&timeline.ops.spans.name, &gpu.op), name_of(&timeline.ops.dims, &gpu.op))
        }
        By::Python => (name_of(&timeline.python.spans.name, &gpu.python), 0),
        By::Module => (name_of(&timeline.python.spans.name, &gpu.module), 0),
        By::Stream => (gpu.device[row], gpu.stream[row]),
        By::Launch => (name_of(&timeline.runtime.spans.name, &gpu.launch), 0),
        By::Geometry => (gpu.grid[row], gpu.block[row]),
    }
}

/// Marks a label whose text is a whole stack, as recorded with operators in traces from 2021.
const OLD_STACK: u32 = 1;

/// Groups stacks by their innermost user frame.
#[derive(Default)]
struct OldStacks<'a> {
    stack_of_frame: FxHashMap<&'a str, u32>,
}

impl<'a> OldStacks<'a> {
    fn label(&mut self, analysis: &Analysis<'a>, row: usize) -> (u32, u32) {
        let timeline = analysis.timeline;
        let stack = timeline
            .gpu
            .op
            .get(row)
            .and_then(|&op| timeline.ops.call_stack.get(op as usize))
            .copied()
            .unwrap_or(NONE);
        match timeline.strings.get(stack) {
            "" => (NONE, 0),
            text => (*self.stack_of_frame.entry(user_frame(text)).or_insert(stack), OLD_STACK),
        }
    }
}

/// The innermost frame of a stack that does not belong to the framework.
fn user_frame(stack: &str) -> &str {
    let mut frames = stack.split(';').filter(|frame| !frame.is_empty());
    frames.clone().find(|frame| is_users(frame)).or_else(|| frames.next()).unwrap_or(stack)
}

/// Count, time and distribution of every group.
fn grouped(analysis: &Analysis, of_row: &[u32], groups: usize) -> Vec<Group> {
    let dur = &analysis.timeline.gpu.spans.dur;
    let mut starts = vec![0usize; groups + 1];
    for &group in of_row {
        starts[group as usize + 1] += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut next = starts.clone();
    let mut sorted = vec![0i64; of_row.len()];
    let mut first_row = vec![NONE; groups];
    for (&row, &group) in analysis.rows.iter().zip(of_row) {
        let at = &mut next[group as usize];
        sorted[*at] = dur[row as usize].max(0);
        *at += 1;
        if first_row[group as usize] == NONE {
            first_row[group as usize] = row;
        }
    }
    (0..groups)
        .map(|i| {
            let (from, to, first) = (starts[i], starts[i + 1], first_row[i]);
            let durations = &mut sorted[from..to];
            if durations.is_empty() {
                return Group::default();
            }
            let time_ns = durations.iter().fold(0i64, |sum, &dur| sum.saturating_add(dur));
            let (min_ns, max_ns) = durations
                .iter()
                .fold((i64::MAX, i64::MIN), |(min, max), &dur| (min.min(dur), max.max(dur)));
            let middle = (durations.len() - 1) / 2;
            let median_ns = *durations.select_nth_unstable(middle).1;
            let class = analysis.rules.class(analysis.class(first)).name.clone();
            Group {
                name: String::new(),
                class,
                count: (to - from) as u64,
                time_ns,
                min_ns,
                median_ns,
                max_ns,
            }
        })
        .collect()
}
