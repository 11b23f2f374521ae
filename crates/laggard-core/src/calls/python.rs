//! Python lines that make calls, estimated from recorded stacks.

use super::View;
use crate::model::profile::{Frame, FrameKind};
use crate::profile::short_path;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Location of calls without a Python caller.
pub const NO_PYTHON: &str = "[no Python frame]";

/// Calls to a function from a Python line.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonLine {
    /// File and line of the innermost Python caller, or [`NO_PYTHON`].
    pub place: String,
    /// Python function of the line; empty if there is none.
    pub caller: String,
    /// The called function.
    pub function: String,
    /// Its library.
    pub library: String,
    /// Estimated number of calls: stack weights, scaled to the exact number of calls to the function.
    pub calls: f64,
    /// Share of the calls to the function.
    pub share: f64,
    /// Number of recorded stacks behind the estimate.
    pub stacks: u64,
}

/// Python lines with their calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PythonLines {
    /// Number of recorded stacks behind the estimates.
    pub stacks: u64,
    /// Calls to functions without recorded stacks.
    pub unknown_calls: u64,
    /// Rows by decreasing number of calls.
    pub rows: Vec<PythonLine>,
}

/// Stacks of one function.
#[derive(Default)]
struct Kept {
    /// Exact number of calls.
    count: u64,
    /// Total weight of its stacks.
    weight: u64,
    /// Weight and number of stacks by line and Python function.
    lines: BTreeMap<(String, String), (u64, u64)>,
}

/// Python lines that make the calls of a view; empty if no recorded stack has Python frames. Stacks are
/// recorded by function and thread, so a view filtered by caller includes the stacks of all callers.
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
    // Cached, because many stacks share the same callers.
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
    // Stable sort: equal numbers stay in the order of names.
    lines.rows.sort_by(|a, b| b.calls.total_cmp(&a.calls));
    lines
}
