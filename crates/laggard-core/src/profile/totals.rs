//! Sums by library, function, line, thread and more.

use super::border::borders;
use super::{Cost, View, python_place};
use crate::model::profile::{Frame, FrameKind, Profile};
use rustc_hash::FxHashMap;

/// What to sum up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Program or library.
    Library,
    /// Function.
    Function,
    /// Line of source, of any language.
    Line,
    /// Line of Python.
    PythonLine,
    /// Thread.
    Thread,
    /// Process.
    Process,
    /// What samples count.
    Event,
    /// Calls from one library into another.
    Border,
}

impl By {
    /// All of them.
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

    /// As it is written on the command line and in JSON.
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

    /// What its rows are.
    pub fn meaning(self) -> &'static str {
        match self {
            By::Library => "programs and libraries",
            By::Function => "functions",
            By::Line => "lines of source, of any language",
            By::PythonLine => "lines of Python, with all they call",
            By::Thread => "threads",
            By::Process => "processes",
            By::Event => "what samples count",
            By::Border => "calls from one library into another",
        }
    }
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// What it belongs to: the library of a function, the function of a line, the process of a
    /// thread, the library that calls into another; empty where there is nothing.
    pub of: String,
    /// The program it ran in, where there are several; else empty.
    pub command: String,
    /// In it and in nothing it called.
    pub own: Cost,
    /// In it and in what it called.
    pub total: Cost,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// What its rows are.
    pub by: By,
    /// What shares are of.
    pub whole: Cost,
    /// Most of its own first.
    pub rows: Vec<Row>,
}

/// What stands for samples without any frame.
const NO_STACK: &str = "[no stack]";
/// What stands for samples without a frame of Python.
const NO_PYTHON: &str = "[no Python frame]";
const NO_GROUP: u32 = u32::MAX;

/// Sums a view up.
///
/// Of a library, `own` is where the innermost machine code was; Python's own frames are code of
/// the interpreter's library. Of a line of Python, it is where the innermost frame of Python was,
/// whatever that called.
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
        By::Thread => threads(view, |thread| {
            let texts = &view.profile.texts;
            let name = format!("{} ({})", texts.get(thread.name), thread.tid);
            (name, format!("{} ({})", texts.get(thread.process), thread.pid))
        }),
        By::Process => threads(view, |thread| {
            let name = view.profile.texts.get(thread.process);
            (format!("{name} ({})", thread.pid), String::new())
        }),
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

/// Sums by what `name` makes of a frame; frames it makes nothing of are passed over, and stacks
/// of only such are `otherwise`.
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

/// Rows of each program by itself, where there are several.
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

/// What stacks amount to in one group of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Costs {
    /// In it and in nothing it called.
    pub(crate) own: Cost,
    /// In it and in what it called.
    pub(crate) total: Cost,
}

/// Adds every stack to the groups that its frames belong to, to each once; a frame whose group is not
/// below `count` has none. Stacks without a group are counted in the last but one row, samples
/// without a stack in the last.
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

/// The rows that frames belong to with what they amount to, and one each for the others.
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

/// Rows of equal names as one.
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
