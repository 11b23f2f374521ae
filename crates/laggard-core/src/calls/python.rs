//! Which lines of Python made the calls, as far as the stacks of a share of them tell.

use super::View;
use crate::model::profile::{Frame, FrameKind};
use crate::profile::short_path;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Where calls with no Python above them are said to be made.
pub const NO_PYTHON: &str = "[no Python frame]";

/// Calls of a function from a line of Python.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonLine {
    /// File and line of the innermost Python frame above the call, or [`NO_PYTHON`].
    pub place: String,
    /// Its Python function; empty where there is none.
    pub caller: String,
    /// The function that is called.
    pub function: String,
    /// Its library.
    pub library: String,
    /// Calls, estimated: the weights of its stacks, scaled so that those of the function are its
    /// exact count.
    pub calls: f64,
    /// The same as a share of the calls of the function.
    pub share: f64,
    /// Kept stacks that it rests on.
    pub stacks: u64,
}

/// Lines of Python with what they call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PythonLines {
    /// Kept stacks that the estimates rest on.
    pub stacks: u64,
    /// Calls of functions that no stack was kept of: nothing is known of their lines.
    pub unknown_calls: u64,
    /// Most calls first.
    pub rows: Vec<PythonLine>,
}

/// What the stacks of one function say.
#[derive(Default)]
struct Kept {
    /// Calls, exactly.
    count: u64,
    /// What all its stacks stand for.
    weight: u64,
    /// Weight and number of stacks, by place and Python function.
    lines: BTreeMap<(String, String), (u64, u64)>,
}

/// The lines of Python that make the calls of a view; no rows where no kept stack has Python in it.
/// Stacks are of a function on a thread: a view of certain callers has those of all callers.
pub fn python_lines(view: &View) -> PythonLines {
    let profile = &view.calls.profile;
    let is_python = |frame: &&Frame| frame.kind == FrameKind::Python;
    let mut kept: BTreeMap<(&str, &str), Kept> = BTreeMap::new();
    let mut shown: FxHashSet<(u32, u32)> = FxHashSet::default();
    for row in &view.rows {
        let count = &mut kept.entry(view.function(row)).or_default().count;
        *count = count.saturating_add(row.count);
        shown.insert((row.function, row.thread));
    }
    // Stacks are many, their ends few.
    let mut places: FxHashMap<u32, Option<(String, String)>> = FxHashMap::default();
    let (mut stacks, mut has_python) = (0, false);
    for sample in &profile.samples {
        if !shown.contains(&(sample.event, sample.thread)) {
            continue;
        }
        let place = places.entry(sample.stack).or_insert_with(|| {
            let frames = profile.frames_of(sample.stack);
            let mut frames = frames.filter_map(|number| profile.frames.get(number as usize));
            let frame = frames.find(is_python)?;
            let file = short_path(profile.texts.get(frame.file));
            Some((format!("{file}:{}", frame.line), profile.texts.get(frame.function).to_owned()))
        });
        has_python |= place.is_some();
        stacks += 1;
        let place = place.clone().unwrap_or_else(|| (NO_PYTHON.to_owned(), String::new()));
        let of = kept.entry(view.name(sample.event)).or_default();
        of.weight = of.weight.saturating_add(sample.weight);
        let (weight, number) = of.lines.entry(place).or_default();
        *weight = weight.saturating_add(sample.weight);
        *number += 1;
    }
    if !has_python {
        return PythonLines::default();
    }
    let mut lines = PythonLines { stacks, ..PythonLines::default() };
    for ((function, library), of) in kept {
        if of.weight == 0 {
            lines.unknown_calls = lines.unknown_calls.saturating_add(of.count);
            continue;
        }
        for ((place, caller), (weight, stacks)) in of.lines {
            let share = weight as f64 / of.weight as f64;
            let (function, library) = (function.to_owned(), library.to_owned());
            let calls = share * of.count as f64;
            lines.rows.push(PythonLine { place, caller, function, library, calls, share, stacks });
        }
    }
    // Stable: equal numbers stay in the order of names.
    lines.rows.sort_by(|a, b| b.calls.total_cmp(&a.calls));
    lines
}
