//! Finds divergence points.

use super::merged::{Merged, PRESENT, Path, PathFunction, SideStacks, are_equally_often};
use rustc_hash::FxHashMap;

/// A function holds most of the lag if its difference is at least this share of it.
const MOST: f64 = 0.6;
/// The search ends when less than this share of the lag is left.
const LEFT: f64 = 0.05;
/// A wrapper spends this share of its time in the function that it wraps.
const WRAPPED: f64 = 0.8;
/// Maximum number of nested wrappers.
const MOST_WRAPPERS: usize = 4;
/// Maximum number of callees per side.
const MOST_CALLEES: usize = 6;
/// Maximum number of points.
const MOST_POINTS: usize = 12;

/// The points of a pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Divergence {
    /// The points in the order in which they were found: each holds most of what was left.
    pub points: Vec<Point>,
    /// For A and B, the point of each entry of [`super::Stacks::spent`]; `None` for the rest.
    pub of_spent: [Vec<Option<usize>>; 2],
}

/// A point where the call paths diverge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// The function, or the statement.
    pub place: Place,
    /// Functions from the statement to the place, both excluded.
    pub path: Vec<Step>,
    /// Whether the paths diverge at the statement: the place is then on B's own path below it.
    pub is_own_path: bool,
    /// Time of A and B in it, in nanoseconds per call.
    pub ns: [f64; 2],
    /// Number of samples of A and B.
    pub samples: [u64; 2],
    /// What A and B call at this place, by decreasing time.
    pub callees: [Vec<Callee>; 2],
    /// What differs there.
    pub cause: Cause,
}

impl Point {
    /// The place: `Index.join (pandas/core/indexes/base.py:4618)`.
    pub fn label(&self) -> String {
        match &self.place.function {
            Some(function) if function.is_python => with_line(function, self.place.lines[1]),
            Some(function) => function.label(),
            None => self.python_label(),
        }
    }

    /// The Python function that leads to the place, or the statement.
    pub fn python_label(&self) -> String {
        match &self.place.python {
            Some(function) => with_line(function, self.place.lines[1]),
            None => match self.place.lines[1] {
                // Profiles of commands have no statement.
                0 => "program".into(),
                line => format!("statement (<statement>:{line})"),
            },
        }
    }
}

fn with_line(function: &PathFunction, line: u32) -> String {
    match line {
        0 => function.label(),
        line => format!("{} ({}:{line})", function.name, function.file),
    }
}

/// A place in the source of both sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The function; `None` for the statement.
    pub function: Option<PathFunction>,
    /// The Python function that runs it: itself or its innermost Python caller; `None` for the
    /// statement.
    pub python: Option<PathFunction>,
    /// Line of A and B in the Python function where the paths part; 0 if unknown.
    pub lines: [u32; 2],
}

/// A function of a call path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Its file, with the line in Python code.
    pub at: String,
    /// Whether it is a Python function.
    pub is_python: bool,
}

impl Step {
    fn new(function: &PathFunction, line: u32) -> Step {
        let at = match line {
            0 => function.file.clone(),
            line => format!("{}:{line}", function.file),
        };
        Step { name: function.name.clone(), at, is_python: function.is_python }
    }

    /// The function with its file: `Index.join (pandas/core/indexes/base.py:4618)`.
    pub fn label(&self) -> String {
        match (self.name.as_str(), self.at.as_str()) {
            ("", at) => format!("[{at}]"),
            (name, "") => name.to_owned(),
            (name, at) => format!("{name} ({at})"),
        }
    }
}

/// A function that is called at a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Callee {
    /// Its name.
    pub name: String,
    /// Its file or library.
    pub file: String,
    /// Calls per call of the side; `None` if they were not counted.
    pub calls: Option<f64>,
    /// Time in it, with its callees, in nanoseconds per call.
    pub ns: f64,
    /// The functions that it calls, by decreasing time.
    pub below: Vec<String>,
    /// Whether the other side also calls it here.
    pub is_common: bool,
}

/// What differs at a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cause {
    /// B calls functions that A does not, or the code of the function differs.
    OtherPath,
    /// B calls the same function more often: its name, and the calls of A and B.
    MoreCalls {
        /// The function.
        name: String,
        /// Calls of A and B.
        calls: [f64; 2],
    },
    /// The same path takes longer.
    #[default]
    Slower,
}

impl Cause {
    /// The id in JSON, which is that of the culprit if there is one.
    pub fn word(&self) -> &'static str {
        match self {
            Cause::OtherPath => "other-path",
            Cause::MoreCalls { .. } => "more-calls",
            Cause::Slower => "slower",
        }
    }
}

/// Finds the points where B's path diverges from A's. `is_same_statement`: whether both sides run
/// the same text.
pub fn diverge(sides: [SideStacks<'_>; 2], is_same_statement: bool) -> Divergence {
    let merged = Merged::new(sides);
    let mut search = Search {
        left: [0, 1].map(|side: usize| (0..merged.paths[side].len()).collect()),
        merged: &merged,
        is_same_statement,
    };
    let mut found = Divergence {
        points: vec![],
        of_spent: [0, 1].map(|side: usize| vec![None; merged.paths[side].len()]),
    };
    let lag = search.lag();
    if lag <= 0.0 {
        return found;
    }
    while search.lag() >= LEFT * lag && found.points.len() < MOST_POINTS {
        let function = search.deepest();
        let taken = search.take(function);
        for side in [0, 1] {
            for &at in &taken[side] {
                found.of_spent[side][at] = Some(found.points.len());
            }
        }
        found.points.push(search.point(function, &taken));
        if function.is_none() {
            break;
        }
    }
    found
}

/// The paths that belong to no point yet.
struct Search<'a> {
    merged: &'a Merged,
    /// Indexes of the paths of A and B.
    left: [Vec<usize>; 2],
    is_same_statement: bool,
}

/// Time of A and B.
type Times = [f64; 2];

fn gap([a, b]: Times) -> f64 {
    b - a
}

impl Search<'_> {
    fn path(&self, side: usize, at: usize) -> &Path {
        &self.merged.paths[side][at]
    }

    fn times(&self, of: &[Vec<usize>; 2]) -> Times {
        [0, 1].map(|side: usize| of[side].iter().map(|&at| self.path(side, at).ns).sum())
    }

    /// B minus A in the paths that are left.
    fn lag(&self) -> f64 {
        gap(self.times(&self.left))
    }

    /// The deepest common Python function that holds most of the lag that is left; `None` if only the
    /// statement does. In profiles without Python frames, any function.
    fn deepest(&self) -> Option<u32> {
        let lag = self.lag();
        let whole_a = self.merged.paths[0].iter().map(|path| path.ns).sum::<f64>();
        let mut times: FxHashMap<u32, Times> = FxHashMap::default();
        // Sums of depth and time in B.
        let mut depths: FxHashMap<u32, (f64, f64)> = FxHashMap::default();
        for side in [0, 1] {
            for &at in &self.left[side] {
                let path = self.path(side, at);
                for (depth, &(function, _)) in path.steps.iter().enumerate() {
                    times.entry(function).or_default()[side] += path.ns;
                    if side == 1 {
                        let sum = depths.entry(function).or_default();
                        *sum = (sum.0 + depth as f64 * path.ns, sum.1 + path.ns);
                    }
                }
            }
        }
        let is_candidate = |&(&number, &times): &(&u32, &Times)| {
            let function = self.merged.function(number);
            let is_common = function.is_called_equally().unwrap_or(times[0] > PRESENT * whole_a);
            let is_place = function.is_python || !self.merged.has_python();
            is_place && !is_wrapper(function) && is_common && gap(times) >= MOST * lag
        };
        let depth = |number: u32| depths.get(&number).map_or(0.0, |(sum, ns)| sum / ns.max(1e-9));
        let deepest = times
            .iter()
            .filter(is_candidate)
            .max_by(|(x, _), (y, _)| depth(**x).total_cmp(&depth(**y)).then_with(|| y.cmp(x)));
        deepest.map(|(&number, _)| number)
    }

    /// Removes the paths through a function, or all paths, and returns them.
    fn take(&mut self, function: Option<u32>) -> [Vec<usize>; 2] {
        [0, 1].map(|side: usize| {
            let all = std::mem::take(&mut self.left[side]);
            let is_through = |at: &usize| {
                function.is_none_or(|function| self.path(side, *at).position(function).is_some())
            };
            let (taken, left) = all.into_iter().partition(is_through);
            self.left[side] = left;
            taken
        })
    }

    fn point(&self, function: Option<u32>, taken: &[Vec<usize>; 2]) -> Point {
        let calls = Calls::new(self, function, taken);
        let cause = match function {
            None if !self.is_same_statement => Cause::Slower,
            _ => calls.cause(),
        };
        let mut lines = [0, 1].map(|side: usize| calls.line(side, &cause));
        let (path, last) = match function {
            Some(number) => (self.leading_to(number, &taken[1]), Some(number)),
            None => {
                let mut path = self.own_path(taken);
                // The function that is called more often is the place, not what it calls.
                if matches!(cause, Cause::MoreCalls { .. }) {
                    path.truncate(1);
                }
                let last = path.pop();
                let is_python = |&(number, _): &(u32, u32)| self.merged.function(number).is_python;
                if let Some(&(_, line)) =
                    last.iter().chain(path.iter().rev()).find(|x| is_python(x))
                {
                    lines = [0, line];
                }
                (path, last.map(|(number, _)| number))
            }
        };
        let functions = path.iter().map(|step| step.0).chain(last);
        let python = functions.rev().find(|&number| self.merged.function(number).is_python);
        let describe = |number: u32| self.merged.function(number).clone();
        let samples = [0, 1].map(|side: usize| {
            let samples = taken[side].iter().map(|&at| self.path(side, at).samples);
            samples.fold(0, u64::saturating_add)
        });
        Point {
            is_own_path: function.is_none() && last.is_some(),
            place: Place { function: last.map(describe), python: python.map(describe), lines },
            path: path
                .iter()
                .map(|&(number, line)| Step::new(self.merged.function(number), line))
                .collect(),
            ns: self.times(taken),
            samples,
            callees: [0, 1].map(|side| calls.listed(side)),
            cause,
        }
    }

    /// B's hottest path to a function.
    fn leading_to(&self, function: u32, taken: &[usize]) -> Vec<(u32, u32)> {
        let mut sums: FxHashMap<&[(u32, u32)], f64> = FxHashMap::default();
        for &at in taken {
            let path = self.path(1, at);
            if let Some(position) = path.position(function) {
                *sums.entry(&path.steps[..position]).or_default() += path.ns;
            }
        }
        let hottest =
            sums.into_iter().max_by(|x, y| x.1.total_cmp(&y.1).then_with(|| y.0.cmp(x.0)));
        hottest.map_or_else(Vec::new, |(steps, _)| self.shown(steps))
    }

    /// B's own path below the statement: the callee with most of the lag, then its callee, and so on,
    /// until the time is mostly self time or divided among several callees.
    fn own_path(&self, taken: &[Vec<usize>; 2]) -> Vec<(u32, u32)> {
        let mut here = taken.clone();
        let mut steps: Vec<(u32, u32)> = vec![];
        for depth in 0.. {
            let whole = gap(self.times(&here));
            let mut times: FxHashMap<u32, Times> = FxHashMap::default();
            for side in [0, 1] {
                for &at in &here[side] {
                    let path = self.path(side, at);
                    if let Some(&(function, _)) = path.steps.get(depth) {
                        times.entry(function).or_default()[side] += path.ns;
                    }
                }
            }
            let best = times.into_iter().max_by(|(x, of_x), (y, of_y)| {
                gap(*of_x).total_cmp(&gap(*of_y)).then_with(|| y.cmp(x))
            });
            let Some((next, times)) = best else { break };
            let function = self.merged.function(next);
            if gap(times) < MOST * whole || whole <= 0.0 || function.ends_path() {
                break;
            }
            for side in [0, 1] {
                here[side].retain(|&at| {
                    self.path(side, at).steps.get(depth).is_some_and(|step| step.0 == next)
                });
            }
            let mut lines: FxHashMap<u32, f64> = FxHashMap::default();
            for &at in &here[1] {
                let path = self.path(1, at);
                *lines.entry(path.steps[depth].1).or_default() += path.ns;
            }
            steps.push((next, most(lines)));
        }
        self.shown(&steps)
    }

    /// A path without wrappers and without native code that only leads to a Python function.
    fn shown(&self, steps: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let function = |at: usize| steps.get(at).map(|step| self.merged.function(step.0));
        let is_shown = |at: &usize| match (function(*at), function(at + 1)) {
            (Some(here), Some(next)) => !is_wrapper(here) && (here.is_python || !next.is_python),
            _ => true,
        };
        (0..steps.len()).filter(is_shown).map(|at| steps[at]).collect()
    }
}

/// Whether a function is the wrapper of a decorator or dispatches to other functions. Its call
/// count is the sum over many different functions, so it cannot be a place.
fn is_wrapper(function: &PathFunction) -> bool {
    const NAMES: [&str; 6] = ["wrapper", "wrapped", "inner", "public_api", "_wrapper", "decorated"];
    let last = function.name.rsplit('.').next().unwrap_or_default();
    function.forwards || function.name.contains("<locals>") && NAMES.contains(&last)
}

/// The key with the largest time; 0 if there is none.
fn most(times: FxHashMap<u32, f64>) -> u32 {
    let largest = times.into_iter().max_by(|x, y| x.1.total_cmp(&y.1).then_with(|| y.0.cmp(&x.0)));
    largest.map_or(0, |(key, _)| key)
}

/// What A and B call at a point.
struct Calls<'a> {
    merged: &'a Merged,
    caller: Option<u32>,
    /// By callee: its paths below the caller on each side. `None` is self time.
    callees: [FxHashMap<Option<u32>, Below>; 2],
}

/// Time in a callee.
#[derive(Clone, Debug, Default)]
struct Below {
    ns: f64,
    /// Time by line of the caller.
    lines: FxHashMap<u32, f64>,
    /// Time by the next function.
    next: FxHashMap<u32, f64>,
}

impl Below {
    fn join(&mut self, other: Below) {
        self.ns += other.ns;
        other.lines.into_iter().for_each(|(line, ns)| *self.lines.entry(line).or_default() += ns);
        other.next.into_iter().for_each(|(next, ns)| *self.next.entry(next).or_default() += ns);
    }
}

impl<'a> Calls<'a> {
    fn new(search: &Search<'a>, caller: Option<u32>, taken: &[Vec<usize>; 2]) -> Calls<'a> {
        let merged = search.merged;
        let callees = [0, 1].map(|side: usize| {
            let mut callees: FxHashMap<Option<u32>, Below> = FxHashMap::default();
            for &at in &taken[side] {
                let path = &merged.paths[side][at];
                let (line, below) = match caller.map(|caller| path.position(caller)) {
                    Some(Some(position)) => (path.steps[position].1, &path.steps[position + 1..]),
                    _ => (path.statement_line, &path.steps[..]),
                };
                let is_own = |step: &(u32, u32)| merged.function(step.0).is_self_time();
                let callee = below.first().filter(|step| !is_own(step)).map(|step| step.0);
                let sum = callees.entry(callee).or_default();
                sum.ns += path.ns;
                *sum.lines.entry(line).or_default() += path.ns;
                if let Some(next) = below.get(1).filter(|step| !is_own(step)) {
                    *sum.next.entry(next.0).or_default() += path.ns;
                }
            }
            callees
        });
        let mut calls = Calls { merged, caller, callees };
        for _ in 0..MOST_WRAPPERS {
            calls.remove_wrappers();
        }
        calls
    }

    /// Replaces functions that only one side has and that only call a function which the other side
    /// calls directly.
    fn remove_wrappers(&mut self) {
        for side in [0, 1] {
            let wrapped = |(callee, below): (&Option<u32>, &Below)| {
                let callee = (*callee)?;
                if self.callees[1 - side].contains_key(&Some(callee)) {
                    return None;
                }
                let (&next, &ns) = below.next.iter().max_by(|x, y| x.1.total_cmp(y.1))?;
                let is_direct = self.callees[1 - side].contains_key(&Some(next));
                (is_direct && ns >= WRAPPED * below.ns).then_some((callee, next))
            };
            let replaced: Vec<(u32, u32)> = self.callees[side].iter().filter_map(wrapped).collect();
            for (wrapper, function) in replaced {
                if let Some(mut below) = self.callees[side].remove(&Some(wrapper)) {
                    below.next.clear();
                    self.callees[side].entry(Some(function)).or_default().join(below);
                }
            }
        }
    }

    fn ns(&self, side: usize, callee: Option<u32>) -> f64 {
        self.callees[side].get(&callee).map_or(0.0, |below| below.ns)
    }

    /// All callees of both sides.
    fn all(&self) -> Vec<u32> {
        let mut all: Vec<u32> =
            self.callees.iter().flat_map(|of| of.keys().flatten().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn calls_of(&self, side: usize, callee: u32) -> Option<f64> {
        self.merged.calls(side, self.caller, callee, self.ns(side, Some(callee)) > 0.0)
    }

    /// Calls of a callee by A and B, if counted on both sides.
    fn counts(&self, callee: u32) -> Option<[f64; 2]> {
        let of = |side| self.calls_of(side, callee);
        Some([of(0)?, of(1)?])
    }

    /// Whether a side calls a callee here.
    fn is_called(&self, side: usize, callee: u32) -> bool {
        match self.counts(callee) {
            Some(counts) => counts[side] > 0.0,
            None => self.ns(side, Some(callee)) > 0.0,
        }
    }

    /// Selects the cause by the largest part of the difference.
    fn cause(&self) -> Cause {
        let own = gap([self.ns(0, None), self.ns(1, None)]);
        let (mut other, mut more, mut same) = (0.0, 0.0, 0.0);
        // The callee whose additional calls take most of the time.
        let mut most_called: Option<(f64, u32, [f64; 2])> = None;
        for callee in self.all() {
            let gap = gap([0, 1].map(|side| self.ns(side, Some(callee))));
            if !self.is_called(0, callee) || !self.is_called(1, callee) {
                // Other native code is judged by what it does, such as copying.
                let function = self.merged.function(callee);
                let is_path = function.is_python || function.is_c_function;
                let sum = if is_path || !self.merged.has_python() { &mut other } else { &mut same };
                *sum += gap;
                continue;
            }
            match self.counts(callee) {
                Some(counts)
                    if counts[1] > counts[0] && !are_equally_often(counts[0], counts[1]) =>
                {
                    more += gap;
                    if most_called.is_none_or(|(largest, ..)| gap > largest) {
                        most_called = Some((gap, callee, counts));
                    }
                }
                _ => same += gap,
            }
        }
        let largest = other.max(more).max(same).max(own);
        let caller = self.caller.map(|caller| self.merged.function(caller));
        let is_changed = caller.and_then(PathFunction::has_same_code) == Some(false);
        match most_called {
            Some((_, callee, calls)) if more >= largest => {
                Cause::MoreCalls { name: self.merged.function(callee).name.clone(), calls }
            }
            _ if other >= largest || own >= largest && is_changed => Cause::OtherPath,
            _ => Cause::Slower,
        }
    }

    /// The line of the caller with the most time in callees that differ; in all callees if no
    /// callee differs.
    fn line(&self, side: usize, cause: &Cause) -> u32 {
        let differs = |callee: &Option<u32>| match (cause, callee) {
            (Cause::OtherPath, Some(callee)) => !self.is_called(1 - side, *callee),
            (Cause::MoreCalls { name, .. }, Some(callee)) => {
                self.merged.function(*callee).name == *name
            }
            _ => false,
        };
        let sum = |is_counted: &dyn Fn(&Option<u32>) -> bool| {
            let mut lines: FxHashMap<u32, f64> = FxHashMap::default();
            for (_, below) in self.callees[side].iter().filter(|(callee, _)| is_counted(callee)) {
                below.lines.iter().for_each(|(line, ns)| *lines.entry(*line).or_default() += ns);
            }
            lines
        };
        match sum(&differs) {
            lines if lines.is_empty() => most(sum(&|_| true)),
            lines => most(lines),
        }
    }

    /// The callees of a side, by decreasing time.
    fn listed(&self, side: usize) -> Vec<Callee> {
        let mut listed: Vec<(u32, &Below)> = self.callees[side]
            .iter()
            .filter_map(|(callee, below)| Some(((*callee)?, below)))
            .collect();
        listed.sort_by(|x, y| y.1.ns.total_cmp(&x.1.ns).then_with(|| x.0.cmp(&y.0)));
        listed.truncate(MOST_CALLEES);
        let name = |number: u32| self.merged.function(number).name.clone();
        listed
            .into_iter()
            .map(|(number, below)| {
                let mut next: Vec<(&u32, &f64)> = below.next.iter().collect();
                next.sort_by(|x, y| y.1.total_cmp(x.1).then_with(|| x.0.cmp(y.0)));
                let next = next.into_iter().map(|(next, _)| name(*next));
                Callee {
                    name: name(number),
                    file: self.merged.function(number).file.clone(),
                    calls: self.calls_of(side, number),
                    ns: below.ns,
                    below: next.filter(|name| !name.is_empty()).take(3).collect(),
                    is_common: self.is_called(1 - side, number),
                }
            })
            .collect()
    }
}
