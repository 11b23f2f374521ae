//! Sums by library, function, line, thread and more.

use super::{Cost, View, short_path};
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
}

impl By {
    /// All of them.
    pub const ALL: [By; 7] =
        [By::Library, By::Function, By::Line, By::PythonLine, By::Thread, By::Process, By::Event];

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
        }
    }
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// What it belongs to: the library of a function, the function of a line, the process of a
    /// thread; empty where there is nothing.
    pub of: String,
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
        By::Library => frames(
            view,
            |frame| {
                let name = view.functions.library(frame);
                let is_code = !matches!(frame.kind, FrameKind::Python | FrameKind::Mark);
                is_code.then(|| (name.to_owned(), String::new()))
            },
            "[Python]",
        ),
        By::Function => functions(view),
        By::Line => frames(view, |frame| line(view, frame), NO_STACK),
        By::PythonLine => frames(
            view,
            |frame| (frame.kind == FrameKind::Python).then(|| python_line(view.profile, frame)),
            NO_PYTHON,
        ),
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
        key(b).cmp(&key(a)).then_with(|| (&a.name, &a.of).cmp(&(&b.name, &b.of)))
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
    let file = short_path(profile.texts.get(frame.file));
    (format!("{file}:{}", frame.line), profile.texts.get(frame.function).to_owned())
}

/// Sums by what `name` makes of a frame; frames it makes nothing of are passed over, and stacks
/// of only such are `otherwise`.
fn frames(
    view: &View,
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
    sum(view, &groups, rows, otherwise)
}

fn functions(view: &View) -> Vec<Row> {
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
    sum(view, &groups, rows, NO_STACK)
}

/// Adds every stack to the rows that its frames belong to, to each once.
fn sum(view: &View, groups: &[u32], mut rows: Vec<Row>, otherwise: &str) -> Vec<Row> {
    let mut last_stack = vec![usize::MAX; rows.len()];
    let mut rest = Row { name: otherwise.to_owned(), ..Row::default() };
    let mut unread = Row { name: NO_STACK.to_owned(), ..Row::default() };
    for (number, &(stack, cost)) in view.stacks.iter().enumerate() {
        let mut is_innermost = true;
        for frame in view.profile.frames_of(stack) {
            let group = groups.get(frame as usize).copied().unwrap_or(NO_GROUP) as usize;
            let Some(row) = rows.get_mut(group) else { continue };
            if is_innermost {
                row.own.add(cost);
                is_innermost = false;
            }
            if last_stack[group] != number {
                last_stack[group] = number;
                row.total.add(cost);
            }
        }
        if is_innermost {
            let is_empty = view.profile.stacks.get(stack as usize).is_none();
            let row = if is_empty { &mut unread } else { &mut rest };
            row.own.add(cost);
            row.total.add(cost);
        }
    }
    rows.extend([rest, unread]);
    rows
}

fn threads(
    view: &View,
    name: impl Fn(&crate::model::profile::Thread) -> (String, String),
) -> Vec<Row> {
    let mut costs = vec![Cost::default(); view.profile.threads.len()];
    for sample in &view.samples {
        if let Some(cost) = costs.get_mut(sample.thread as usize) {
            cost.add(Cost { samples: 1, weight: sample.weight });
        }
    }
    merged(view.profile.threads.iter().map(name).zip(costs))
}

fn events(profile: &Profile) -> Vec<Row> {
    let mut costs = vec![Cost::default(); profile.events.len()];
    for sample in &profile.samples {
        if let Some(cost) = costs.get_mut(sample.event as usize) {
            cost.add(Cost { samples: 1, weight: sample.weight });
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
