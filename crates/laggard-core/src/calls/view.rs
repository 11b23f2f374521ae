//! Filtered call traces.

use super::name::{Asked, contains};
use super::{Measure, Tally};
use crate::model::calls::{CallRow, Calls};
use crate::profile::{Missing, file_name, frame_label};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Filter for calls; all conditions must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Substring of the called library's name, ignoring case.
    pub library: Option<String>,
    /// Called function: a name, a pattern or a substring.
    pub function: Option<String>,
    /// Substring of a thread name, or a thread id.
    pub thread: Option<String>,
    /// Substring of a program name, or a process id.
    pub process: Option<String>,
}

/// A call site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller {
    /// Its program or library.
    pub library: String,
    /// Its function; `[libx.so+0x12]` without a symbol.
    pub function: String,
    /// Source file and line; empty if unknown.
    pub place: String,
}

/// Calls that match a filter.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// The unfiltered call trace.
    pub calls: &'a Calls,
    /// Matching rows.
    pub rows: Vec<&'a CallRow>,
    /// Statistics of all matching calls.
    pub whole: Tally,
    /// Measure of the call trace; `Calls` if it is empty.
    pub measure: Measure,
    /// By function: self instructions and number of rows in the call trace.
    own: FxHashMap<u32, (u64, usize)>,
}

/// Library name of code without a known module.
const UNKNOWN: &str = "[unknown]";

impl<'a> View<'a> {
    /// View of all calls.
    pub fn whole(calls: &'a Calls) -> View<'a> {
        View {
            calls,
            rows: calls.rows.iter().collect(),
            whole: Tally::default(),
            measure: Measure::of(calls).unwrap_or(Measure::Calls),
            own: own(calls),
        }
        .summed()
    }

    /// View of the calls that match a filter.
    pub fn new(calls: &'a Calls, filter: &Filter) -> Result<View<'a>, Missing> {
        let mut view = View::whole(calls);
        if let Some(asked) = &filter.library {
            view.keep("library", asked, |view, row| contains(view.function(row).1, asked))?;
        }
        if let Some(asked) = &filter.thread {
            view.keep("thread", asked, |view, row| {
                let thread = view.calls.profile.threads.get(row.thread as usize);
                thread.is_some_and(|t| view.is_named(t.name, t.tid, asked))
            })?;
        }
        if let Some(asked) = &filter.process {
            view.keep("process", asked, |view, row| {
                let thread = view.calls.profile.threads.get(row.thread as usize);
                thread.is_some_and(|t| view.is_named(t.process, t.pid, asked))
            })?;
        }
        match &filter.function {
            Some(asked) => view.calls_of(asked),
            None => Ok(view.summed()),
        }
    }

    /// Calls to a function, given by name, pattern or substring.
    pub fn calls_of(&self, asked: &str) -> Result<View<'a>, Missing> {
        let wanted = Asked::new(asked, self.rows.iter().map(|row| self.function(row).0));
        let mut view = self.clone();
        view.keep("function", asked, |view, row| wanted.fits(view.function(row).0))?;
        Ok(view.summed())
    }

    /// Calls made by a function.
    pub fn calls_by(&self, asked: &str) -> Result<View<'a>, Missing> {
        let callers: Vec<String> = self.rows.iter().map(|row| self.caller(row).function).collect();
        let wanted = Asked::new(asked, callers.iter().map(String::as_str));
        let mut view = self.clone();
        view.keep("caller", asked, |view, row| wanted.fits(&view.caller(row).function))?;
        Ok(view.summed())
    }

    /// Name and library of the called function.
    pub fn function(&self, row: &CallRow) -> (&'a str, &'a str) {
        self.name(row.function)
    }

    /// Name and library of a function.
    pub fn name(&self, function: u32) -> (&'a str, &'a str) {
        let profile = &self.calls.profile;
        let Some(function) = self.calls.functions.get(function as usize) else {
            return (UNKNOWN, UNKNOWN);
        };
        let library = profile
            .modules
            .get(function.module as usize)
            .map_or("", |module| file_name(profile.texts.get(module.path)));
        (profile.texts.get(function.name), if library.is_empty() { UNKNOWN } else { library })
    }

    /// Call site of a row.
    pub fn caller(&self, row: &CallRow) -> Caller {
        let profile = &self.calls.profile;
        let unknown =
            || Caller { library: UNKNOWN.into(), function: UNKNOWN.into(), place: String::new() };
        let Some(frame) = profile.frames.get(row.caller as usize) else { return unknown() };
        let library = file_name(profile.module_path(frame));
        if library.is_empty() && frame.address == 0 && frame.function == 0 {
            return unknown();
        }
        let file = file_name(profile.texts.get(frame.file));
        Caller {
            library: if library.is_empty() { UNKNOWN } else { library }.to_owned(),
            function: frame_label(profile, frame),
            place: if file.is_empty() || frame.line == 0 {
                String::new()
            } else {
                format!("{file}:{}", frame.line)
            },
        }
    }

    /// Thread name and process name of a row.
    pub fn thread(&self, row: &CallRow) -> (String, String) {
        let profile = &self.calls.profile;
        match profile.threads.get(row.thread as usize) {
            Some(thread) => (
                format!("{} ({})", profile.texts.get(thread.name), thread.tid),
                format!("{} ({})", profile.texts.get(thread.process), thread.pid),
            ),
            None => (UNKNOWN.to_owned(), String::new()),
        }
    }

    fn is_named(&self, name: u32, number: u32, asked: &str) -> bool {
        contains(self.calls.profile.texts.get(name), asked) || asked == number.to_string()
    }

    /// Keeps matching rows. Returns the available values as an error if no row matches.
    fn keep(
        &mut self,
        what: &'static str,
        asked: &str,
        is_kept: impl Fn(&View, &CallRow) -> bool,
    ) -> Result<(), Missing> {
        let before = self.clone();
        self.rows.retain(|row| is_kept(&before, row));
        if !self.rows.is_empty() || before.rows.is_empty() {
            return Ok(());
        }
        let mut there: Vec<_> = before
            .rows
            .iter()
            .map(|row| {
                let name = match what {
                    "library" => before.function(row).1.to_owned(),
                    "function" => before.function(row).0.to_owned(),
                    "caller" => before.caller(row).function,
                    "thread" => before.thread(row).0,
                    _ => before.thread(row).1,
                };
                (Reverse((row.self_ns, row.instructions)), name)
            })
            .collect();
        there.sort();
        let mut names: Vec<String> = vec![];
        for (_, name) in there {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Err(Missing { what, asked: asked.to_owned(), there: names })
    }

    /// Self instructions of the called functions; `None` unless the rows include all rows of these
    /// functions.
    pub(super) fn own_of<'r>(&self, rows: impl IntoIterator<Item = &'r CallRow>) -> Option<u64> {
        let mut seen: FxHashMap<u32, usize> = FxHashMap::default();
        for row in rows {
            *seen.entry(row.function).or_default() += 1;
        }
        if seen.is_empty() {
            return None;
        }
        seen.iter().try_fold(0u64, |sum, (function, rows)| {
            let &(own, all) = self.own.get(function)?;
            (all == *rows).then(|| sum.saturating_add(own))
        })
    }

    fn summed(mut self) -> View<'a> {
        self.whole = Tally::default();
        for row in &self.rows {
            self.whole.add(row);
        }
        self.whole.own_instructions = self.own_of(self.rows.iter().copied());
        self
    }
}

fn own(calls: &Calls) -> FxHashMap<u32, (u64, usize)> {
    let mut all: FxHashMap<u32, (u64, usize)> = FxHashMap::default();
    for row in &calls.instructions {
        let (own, _) = all.entry(row.function).or_default();
        *own = own.saturating_add(row.own);
    }
    for row in &calls.rows {
        if let Some((_, rows)) = all.get_mut(&row.function) {
            *rows += 1;
        }
    }
    all
}
