//! Costs by library, function, line, thread and other groups.

use super::border::borders;
use super::{Cost, ProcessLabels, View, python_place};
use crate::model::profile::{Frame, FrameKind, Profile};
use rustc_hash::FxHashMap;

/// Grouping of costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Program or library.
    Library,
    /// Function.
    Function,
    /// Source line in any language.
    Line,
    /// Python line.
    PythonLine,
    /// Thread.
    Thread,
    /// Process.
    Process,
    /// Event.
    Event,
    /// Calls from one library into another.
    Border,
}

impl By {
    /// All groupings.
    pub const ALL: [By; 8] = [
        By::Library,
        By::Function,
        By::Line,
        By::PythonLine,
        By::Thread,
        By::Process,
        By::Event,
        By::Border,
    ];

    /// The id on the command line and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            By::Library => "library",
            By::Function => "function",
            By::Line => "line",
            By::PythonLine => "python-line",
            By::Thread => "thread",
            By::Process => "process",
            By::Event => "event",
            By::Border => "border",
        }
    }

    /// Description for help texts.
    pub fn meaning(self) -> &'static str {
        match self {
            By::Library => "Programs and libraries",
            By::Function => "Functions",
            By::Line => "Source lines in any language",
            By::PythonLine => "Python lines, with callees",
            By::Thread => "Threads",
            By::Process => "Processes",
            By::Event => "Sampled events",
            By::Border => "Calls from one library into another",
        }
    }
}

/// A row of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Name of the group.
    pub name: String,
    /// Parent of the group: the library of a function, the function of a line, the process of a
    /// thread, the calling library; empty if it has none.
    pub of: String,
    /// Program, if the profile has several; otherwise empty.
    pub command: String,
    /// Self cost.
    pub own: Cost,
    /// Total cost, with callees.
    pub total: Cost,
}

/// A table of costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Grouping of the rows.
    pub by: By,
    /// Total cost, the base of shares.
    pub whole: Cost,
    /// Rows by decreasing self cost.
    pub rows: Vec<Row>,
}

/// Name for samples without frames.
const NO_STACK: &str = "[no stack]";
/// Name for samples without Python frames.
const NO_PYTHON: &str = "[no Python frame]";
const NO_GROUP: u32 = u32::MAX;

/// Sums costs of a view.
///
/// For libraries, `own` is the cost of the innermost native frame; Python frames belong to the
/// interpreter's library. For Python lines, it is the cost of the innermost Python frame with its native
/// callees.
pub fn totals(view: &View, by: By) -> Totals {
    let mut rows = match by {
        By::Library => {
            let library = |frame: &Frame| {
                let name = view.functions.library(frame);
                let is_code = !matches!(frame.kind, FrameKind::Python | FrameKind::Mark);
                is_code.then(|| (name.to_owned(), String::new()))
            };
            let has_python =
                view.profile.frames.iter().any(|frame| frame.kind == FrameKind::Python);
            frames(view, &view.stacks, library, if has_python { "[Python]" } else { "[no code]" })
        }
        By::Function => by_command(view, |stacks| functions(view, stacks)),
        By::Line => frames(view, &view.stacks, |frame| line(view, frame), NO_STACK),
        By::PythonLine => {
            let line = |frame: &Frame| {
                (frame.kind == FrameKind::Python).then(|| python_line(view.profile, frame))
            };
            frames(view, &view.stacks, line, NO_PYTHON)
        }
        By::Border => borders(view),
        By::Thread => {
            let labels = ProcessLabels::new(view.profile);
            threads(view, |thread| (labels.thread(thread), labels.process(thread)))
        }
        By::Process => {
            let labels = ProcessLabels::new(view.profile);
            threads(view, |thread| (labels.process(thread), String::new()))
        }
        By::Event => events(view.profile),
    };
    rows.retain(|row| row.total.samples > 0);
    rows.sort_by(|a, b| {
        let key =
            |row: &Row| (row.own.weight, row.total.weight, row.own.samples, row.total.samples);
        let names = |row: &'_ Row| (row.name.clone(), row.of.clone(), row.command.clone());
        key(b).cmp(&key(a)).then_with(|| names(a).cmp(&names(b)))
    });
    Totals { by, whole: view.whole, rows }
}

fn line(view: &View, frame: &Frame) -> Option<(String, String)> {
    let profile = view.profile;
    if frame.kind == FrameKind::Mark {
        return None;
    }
    if frame.kind == FrameKind::Python {
        return Some(python_line(profile, frame));
    }
    let function = profile.texts.get(frame.function).to_owned();
    let file = profile.texts.get(frame.file);
    if file.is_empty() || frame.line == 0 {
        return Some((
            format!("[{}]", view.functions.library(frame).trim_matches(['[', ']'])),
            function,
        ));
    }
    Some((format!("{file}:{}", frame.line), function))
}

fn python_line(profile: &Profile, frame: &Frame) -> (String, String) {
    (python_place(profile, frame), profile.texts.get(frame.function).to_owned())
}

/// Sums by the group that `name` returns for a frame. Frames without a group are skipped; stacks with
/// only such frames count as `otherwise`.
fn frames(
    view: &View,
    stacks: &[(u32, Cost)],
    name: impl Fn(&Frame) -> Option<(String, String)>,
    otherwise: &str,
) -> Vec<Row> {
    let mut numbers: FxHashMap<(String, String), u32> = FxHashMap::default();
    let mut rows = vec![];
    let mut group_of = |frame: &Frame| {
        let Some(key) = name(frame) else { return NO_GROUP };
        *numbers.entry(key).or_insert_with_key(|(name, of)| {
            rows.push(Row { name: name.clone(), of: of.clone(), ..Row::default() });
            rows.len() as u32 - 1
        })
    };
    let groups: Vec<u32> = view.profile.frames.iter().map(&mut group_of).collect();
    sum(view, stacks, &groups, rows, otherwise)
}

/// Separate rows for each program, if there are several.
fn by_command(view: &View, rows: impl Fn(&[(u32, Cost)]) -> Vec<Row>) -> Vec<Row> {
    let profile = view.profile;
    let command = |thread: u32| profile.threads.get(thread as usize).map_or(0, |t| t.process);
    let mut commands: Vec<u32> = view.samples.iter().map(|sample| command(sample.thread)).collect();
    commands.sort_unstable();
    commands.dedup();
    if commands.len() < 2 {
        return rows(&view.stacks);
    }
    let mut stacks: FxHashMap<u32, FxHashMap<u32, Cost>> = FxHashMap::default();
    for sample in &view.samples {
        let own = stacks.entry(command(sample.thread)).or_default();
        own.entry(sample.stack).or_default().add(Cost::of(sample));
    }
    let of_command = |number: u32| {
        let mut own: Vec<(u32, Cost)> = stacks
            .get(&number)
            .into_iter()
            .flatten()
            .map(|(&stack, &cost)| (stack, cost))
            .collect();
        own.sort_unstable_by_key(|(stack, _)| *stack);
        let name = profile.texts.get(number);
        rows(&own).into_iter().map(move |row| Row { command: name.to_owned(), ..row })
    };
    commands.into_iter().flat_map(of_command).collect()
}

fn functions(view: &View, stacks: &[(u32, Cost)]) -> Vec<Row> {
    let row = |function: u32| {
        let frame = view.functions.example(view.profile, function);
        let of = frame.map_or("", |frame| view.functions.library(frame)).to_owned();
        Row { name: view.functions.label(view.profile, function), of, ..Row::default() }
    };
    let rows = (0..view.functions.len() as u32).map(row).collect();
    let groups: Vec<u32> = (0u32..)
        .zip(&view.profile.frames)
        .map(|(number, frame)| match frame.kind {
            FrameKind::Mark => NO_GROUP,
            _ => view.functions.of(number),
        })
        .collect();
    sum(view, stacks, &groups, rows, NO_STACK)
}

/// Costs of one group of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Costs {
    /// Self cost.
    pub(crate) own: Cost,
    /// Total cost, with callees.
    pub(crate) total: Cost,
}

/// Adds every stack once to each group of its frames. Frames with a group of `count` or more have no
/// group. The second-last row counts stacks without a group, the last row samples without a stack.
pub(crate) fn sum_groups(
    view: &View,
    stacks: &[(u32, Cost)],
    groups: &[u32],
    count: usize,
) -> Vec<Costs> {
    let mut costs = vec![Costs::default(); count + 2];
    let mut last_stack = vec![usize::MAX; count];
    for (number, &(stack, cost)) in stacks.iter().enumerate() {
        let mut is_innermost = true;
        for frame in view.profile.frames_of(stack) {
            let group = groups.get(frame as usize).copied().unwrap_or(NO_GROUP) as usize;
            let Some(last_stack) = last_stack.get_mut(group) else { continue };
            if is_innermost {
                costs[group].own.add(cost);
                is_innermost = false;
            }
            if *last_stack != number {
                *last_stack = number;
                costs[group].total.add(cost);
            }
        }
        if is_innermost {
            let is_empty = view.profile.stacks.get(stack as usize).is_none();
            let row = &mut costs[count + usize::from(is_empty)];
            row.own.add(cost);
            row.total.add(cost);
        }
    }
    costs
}

/// Rows of the groups, plus rows for stacks without a group and samples without a stack.
fn sum(
    view: &View,
    stacks: &[(u32, Cost)],
    groups: &[u32],
    mut rows: Vec<Row>,
    otherwise: &str,
) -> Vec<Row> {
    let costs = sum_groups(view, stacks, groups, rows.len());
    rows.extend([otherwise, NO_STACK].map(|name| Row { name: name.to_owned(), ..Row::default() }));
    for (row, Costs { own, total }) in rows.iter_mut().zip(costs) {
        (row.own, row.total) = (own, total);
    }
    rows
}

fn threads(
    view: &View,
    name: impl Fn(&crate::model::profile::Thread) -> (String, String),
) -> Vec<Row> {
    let mut costs = vec![Cost::default(); view.profile.threads.len()];
    for sample in &view.samples {
        if let Some(cost) = costs.get_mut(sample.thread as usize) {
            cost.add(Cost::of(sample));
        }
    }
    merged(view.profile.threads.iter().map(name).zip(costs))
}

fn events(profile: &Profile) -> Vec<Row> {
    let mut costs = vec![Cost::default(); profile.events.len()];
    for sample in &profile.samples {
        if let Some(cost) = costs.get_mut(sample.event as usize) {
            cost.add(Cost::of(sample));
        }
    }
    merged(profile.events.iter().map(|event| (event.name.clone(), String::new())).zip(costs))
}

/// Merges rows with equal names.
fn merged(named: impl Iterator<Item = ((String, String), Cost)>) -> Vec<Row> {
    let mut numbers: FxHashMap<(String, String), usize> = FxHashMap::default();
    let mut rows: Vec<Row> = vec![];
    for (key, cost) in named {
        let number = *numbers.entry(key).or_insert_with_key(|(name, of)| {
            rows.push(Row { name: name.clone(), of: of.clone(), ..Row::default() });
            rows.len() - 1
        });
        rows[number].own.add(cost);
        rows[number].total.add(cost);
    }
    rows
}
