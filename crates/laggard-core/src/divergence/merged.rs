//! The stacks of both sides with aligned functions.

use super::stacks::{Spent, StackFrame, Stacks, enclosing_function, profile_of};
use crate::compare::align::align;
use crate::model::call_counts::{CallCounts, CountedFunction};
use crate::model::profile::FrameKind;
use crate::profile::{View, file_name, is_dispatch, short_path};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;

/// Evidence of one side.
#[derive(Clone, Copy, Debug)]
pub struct SideStacks<'a> {
    /// Its stacks.
    pub stacks: &'a Stacks,
    /// Its exact call counts, if known.
    pub counts: Option<&'a CallCounts>,
}

/// A function of one or both sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathFunction {
    /// Its name; for C functions the name that Python code uses, such as `list.insert`.
    pub name: String,
    /// The file of a Python function without the installation prefix, or the file name of a library.
    pub file: String,
    /// Whether it is a Python function.
    pub is_python: bool,
    /// Whether it is a C function that Python code can call.
    pub is_c_function: bool,
    /// Whether its only parameters are `*args` and `**kwargs`, and `self` or `cls`, as in a wrapper
    /// of a decorator.
    pub forwards: bool,
    /// Calls by A and B per call of the side; `None` if they were not counted.
    pub calls: [Option<f64>; 2],
    /// Where its source is on each side.
    pub sources: [Option<FunctionSource>; 2],
    /// Whether it is part of the interpreter: its evaluation loop and its object handling.
    pub is_interpreter: bool,
    /// Whether it is an interpreter function that dispatches calls.
    is_dispatch: bool,
    /// Whether A and B define it although they do not call it.
    is_defined: [bool; 2],
}

/// Source of a Python function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionSource {
    /// Path of the file.
    pub file: String,
    /// First and last line; 0 if unknown.
    pub lines: [u32; 2],
    /// Checksum of the bytecode, if known.
    pub code: Option<u32>,
}

impl PathFunction {
    /// The function with its file: `Index.join (pandas/core/indexes/base.py)`.
    pub fn label(&self) -> String {
        match (self.name.is_empty(), self.file.is_empty()) {
            (true, _) => format!("[{}]", self.file),
            (false, true) => self.name.clone(),
            (false, false) => format!("{} ({})", self.name, self.file),
        }
    }

    /// Whether the time in it counts as time of the Python function that runs it.
    pub(super) fn is_self_time(&self) -> bool {
        !self.is_python && !self.is_c_function && self.is_interpreter
    }

    /// Whether a path ends before it: the evaluation loop is not a callee of a Python function.
    pub(super) fn ends_path(&self) -> bool {
        self.is_dispatch && !self.is_c_function
    }

    /// Whether it is the wrapper of a decorator or dispatches to other functions. Its call count is the
    /// sum over many different functions, so it cannot be a place.
    pub(super) fn is_wrapper(&self) -> bool {
        const NAMES: [&str; 5] = ["wrapped", "inner", "public_api", "decorated", "forward"];
        // NumPy's dispatchers to other functions, before 1.25 and since then.
        const NATIVE: [&str; 2] = ["implement_array_function", "dispatcher_vectorcall"];
        let last = self.name.rsplit('.').next().unwrap_or_default();
        let is_named = NAMES.contains(&last) || last.ends_with("wrapper");
        self.forwards
            || self.name.contains("<locals>") && is_named
            || !self.is_python && NATIVE.contains(&last)
    }

    /// Whether only one side has it: a side neither calls nor defines it.
    pub(super) fn is_missing(&self, side: usize) -> bool {
        self.is_python && self.calls[side] == Some(0.0) && !self.is_defined[side]
    }

    /// Whether both sides call it equally often, if calls were counted.
    pub(super) fn is_called_equally(&self) -> Option<bool> {
        let [Some(a), Some(b)] = self.calls else { return None };
        Some(a > 0.0 && b > 0.0 && are_equally_often(a, b))
    }

    /// Whether its bytecode is known to differ.
    pub(crate) fn is_changed(&self) -> bool {
        let code = |side: usize| self.sources[side].as_ref()?.code;
        matches!((code(0), code(1)), (Some(a), Some(b)) if a != b)
    }
}

/// Whether two numbers of calls are equal within a tolerance for caches and garbage collection.
pub(crate) fn are_equally_often(a: f64, b: f64) -> bool {
    const TOLERANCE: f64 = 0.1;
    (a - b).abs() <= TOLERANCE * a.max(b)
}

/// The key with the largest time; 0 if there is none.
pub(super) fn most(times: FxHashMap<u32, f64>) -> u32 {
    let largest = times.into_iter().max_by(|x, y| x.1.total_cmp(&y.1).then_with(|| y.0.cmp(&x.0)));
    largest.map_or(0, |(key, _)| key)
}

/// Number of the caller of functions that no Python function calls.
const STATEMENT: u32 = u32::MAX;

/// A function with this share of a side's time surely runs there.
pub(super) const PRESENT: f64 = 0.002;

/// A call path with its time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path {
    /// Functions and lines from the statement inwards. A recursive function occurs several times.
    pub(super) steps: Vec<(u32, u32)>,
    /// Position of the innermost call of each function.
    innermost: FxHashMap<u32, usize>,
    /// Line of the statement; 0 for stacks without it.
    pub(super) statement_line: u32,
    /// Time per call in nanoseconds.
    pub(super) ns: f64,
    /// Number of samples.
    pub(super) samples: u64,
}

impl Path {
    fn new(steps: Vec<(u32, u32)>, statement_line: u32, spent: &Spent) -> Path {
        let innermost = steps.iter().enumerate().map(|(at, step)| (step.0, at)).collect();
        Path { steps, innermost, statement_line, ns: spent.ns, samples: spent.samples }
    }

    /// The functions, each once.
    pub(super) fn functions(&self) -> impl Iterator<Item = u32> {
        self.innermost.keys().copied()
    }

    /// Position of the innermost call of a function.
    pub(super) fn position(&self, function: u32) -> Option<usize> {
        self.innermost.get(&function).copied()
    }

    /// Position of the last function of a chain, in which each function calls the next one. `None`
    /// if the chain is empty or the path does not lead through it.
    pub(super) fn position_of(&self, chain: &[u32], merged: &Merged) -> Option<usize> {
        let (&first, rest) = chain.split_first()?;
        let mut position = self.position(first)?;
        for &function in rest {
            let next = self.next_python(position, merged)?;
            if self.steps[next].0 != function {
                return None;
            }
            position = self.position(function)?;
        }
        Some(position)
    }

    /// Position of the first Python function below a position.
    pub(super) fn next_python(&self, position: usize, merged: &Merged) -> Option<usize> {
        (position + 1..self.steps.len()).find(|&at| merged.function(self.steps[at].0).is_python)
    }
}

/// Call paths of both sides.
#[derive(Clone, Debug, Default)]
pub(super) struct Merged {
    pub(super) functions: Vec<PathFunction>,
    /// Paths of each side, in the order of [`Stacks::spent`].
    pub(super) paths: [Vec<Path>; 2],
    /// Number of calls by caller and callee, per call of the side. The caller is [`STATEMENT`] for the
    /// first function of a thread.
    edges: [FxHashMap<(u32, u32), f64>; 2],
    /// Callees of each caller.
    callees: [FxHashMap<u32, Vec<u32>>; 2],
    /// Functions to which a caller leads, as far as they were asked for.
    reached: [RefCell<FxHashMap<Option<u32>, FxHashSet<u32>>>; 2],
}

impl Merged {
    /// Aligns the functions of both sides.
    pub(super) fn new(sides: [SideStacks<'_>; 2]) -> Merged {
        // The frames of the stacks, then those of the counted functions.
        let frames = sides.map(|side| {
            let counted = counted_frames(side.counts);
            let mut frames = qualified(&side.stacks.frames, side.counts);
            frames.extend(counted);
            frames
        });
        let profiles = [profile_of(&frames[0]), profile_of(&frames[1])];
        let views = [View::whole(&profiles[0]), View::whole(&profiles[1])];
        let alignment = align(&views[..1], &views[1..]);
        let number = |side: usize, frame: u32| alignment.function(side, 0, &views[side], frame);
        let mut merged = Merged {
            functions: vec![PathFunction::default(); alignment.functions.len()],
            ..Merged::default()
        };
        let version = |side: usize| sides[side].counts.map(|counts| counts.python.as_str());
        let is_comparable = version(0) == version(1);
        for side in [1, 0] {
            let SideStacks { stacks, counts } = sides[side];
            for (frame, at) in frames[side].iter().zip(0u32..) {
                merged.describe(side, number(side, at), frame);
            }
            let first = stacks.frames.len() as u32;
            if let Some(counts) = counts {
                let of_counted = |at: usize| number(side, first + at as u32);
                merged.count(side, counts, is_comparable, of_counted);
            }
        }
        for side in [0, 1] {
            let stacks = sides[side].stacks;
            let path = |spent: &Spent| merged.path(stacks, spent, |frame| number(side, frame));
            merged.paths[side] = stacks.spent.iter().map(path).collect();
        }
        merged.settle(sides.map(|side| side.counts.is_some()));
        merged
    }

    fn describe(&mut self, side: usize, number: u32, frame: &StackFrame) {
        let Some(function) = self.functions.get_mut(number as usize) else { return };
        let is_python = frame.kind == FrameKind::Python;
        if function.name.is_empty() {
            function.name.clone_from(&frame.name);
            function.file =
                if is_python { short_path(&frame.file) } else { &frame.file }.to_owned();
        }
        function.is_python |= is_python;
        function.is_interpreter |=
            !is_python && (frame.file.starts_with("python") || frame.file.starts_with("libpython"));
        function.is_dispatch |= function.is_interpreter && is_dispatch(&frame.name);
        if is_python && function.sources[side].is_none() {
            let file = frame.file.clone();
            function.sources[side] = Some(FunctionSource { file, ..FunctionSource::default() });
        }
    }

    fn count(
        &mut self,
        side: usize,
        counts: &CallCounts,
        is_comparable: bool,
        of: impl Fn(usize) -> u32,
    ) {
        let calls = counts.calls.max(1) as f64;
        for (at, counted) in counts.functions.iter().enumerate() {
            let Some(function) = self.functions.get_mut(of(at) as usize) else { continue };
            if counted.is_comprehension() {
                continue;
            }
            function.forwards |= counted.forwards;
            if counted.is_python() {
                function.sources[side] = Some(FunctionSource {
                    file: counted.file.clone(),
                    lines: counted.lines,
                    // Bytecode of different versions of Python is not comparable.
                    code: is_comparable.then_some(counted.code),
                });
            } else {
                function.is_c_function = true;
                function.name = counted.full_name();
            }
        }
        for &(caller, callee, count) in &counts.edges {
            // A comprehension is part of its function, not called by it.
            if counts.functions.get(callee as usize).is_none_or(CountedFunction::is_comprehension) {
                continue;
            }
            let callee = of(callee as usize);
            let Some(function) = self.functions.get_mut(callee as usize) else { continue };
            *function.calls[side].get_or_insert(0.0) += count as f64 / calls;
            let caller = usize::try_from(caller).ok();
            let caller = caller.filter(|&caller| caller < counts.functions.len()).map(&of);
            let edge = (caller.unwrap_or(STATEMENT), callee);
            *self.edges[side].entry(edge).or_default() += count as f64 / calls;
            self.callees[side].entry(edge.0).or_default().push(callee);
        }
        let defined: FxHashSet<(&str, &str)> =
            counts.defined.iter().map(|(name, file)| (name.as_str(), file.as_str())).collect();
        for function in &mut self.functions {
            let definition = (function.name.as_str(), file_name(&function.file));
            function.is_defined[side] = function.is_python && defined.contains(&definition);
        }
    }

    /// Sets missing call counts to 0 on sides whose calls were counted. The calls of functions that
    /// have time although no call was counted are unknown: threads and generators may have started
    /// before.
    fn settle(&mut self, is_counted: [bool; 2]) {
        for side in [0, 1] {
            let mut times: FxHashMap<u32, f64> = FxHashMap::default();
            let mut whole = 0.0;
            for path in &self.paths[side] {
                whole += path.ns;
                for step in &path.steps {
                    *times.entry(step.0).or_default() += path.ns;
                }
            }
            for (function, number) in self.functions.iter_mut().zip(0u32..) {
                let can_be_counted = function.is_python || function.is_c_function;
                let calls = &mut function.calls[side];
                if !is_counted[side] || !can_be_counted {
                    *calls = None;
                    continue;
                }
                let share = times.get(&number).map_or(0.0, |ns| ns / whole);
                if calls.is_none_or(|calls| calls == 0.0) {
                    *calls = (!function.is_python || share < PRESENT).then_some(0.0);
                }
            }
        }
    }

    /// The path of a stack. Native code of the interpreter is omitted above the innermost Python
    /// function, and wrappers above any function, because they only lead to it.
    fn path(&self, stacks: &Stacks, spent: &Spent, number: impl Fn(u32) -> u32) -> Path {
        let mut steps: Vec<(u32, u32)> = vec![];
        let mut statement_line = 0;
        for at in stacks.path(spent.node) {
            let Some(frame) = stacks.frames.get(at as usize) else { continue };
            if frame.is_statement() {
                // The loop that calls a callable is not the user's code.
                statement_line = if frame.file == "<statement>" { frame.line } else { 0 };
            } else {
                steps.push((number(at), frame.line));
            }
        }
        let innermost = steps.iter().rposition(|step| self.function(step.0).is_python);
        let is_kept = |at: &usize| {
            let function = self.function(steps[*at].0);
            let leads_on =
                steps.get(at + 1).is_some_and(|next| !self.function(next.0).is_self_time());
            let only_leads = match Some(*at) < innermost {
                true => function.is_wrapper() || function.is_self_time(),
                false => function.is_wrapper() && leads_on,
            };
            !only_leads
        };
        let steps = (0..steps.len()).filter(is_kept).map(|at| steps[at]).collect();
        Path::new(steps, statement_line, spent)
    }

    /// Whether any side runs Python code.
    pub(super) fn has_python(&self) -> bool {
        self.functions.iter().any(|function| function.is_python)
    }

    pub(super) fn function(&self, number: u32) -> &PathFunction {
        &self.functions[number as usize]
    }

    /// Whether the calls of a side are known.
    pub(super) fn has_edges(&self, side: usize) -> bool {
        !self.edges[side].is_empty()
    }

    /// Whether a side gets from a function, or from the statement, to another function directly or through
    /// functions that only this side has.
    pub(super) fn leads_to(&self, side: usize, from: Option<u32>, to: u32) -> bool {
        let mut reached = self.reached[side].borrow_mut();
        reached.entry(from).or_insert_with(|| self.functions_below(side, from)).contains(&to)
    }

    fn functions_below(&self, side: usize, from: Option<u32>) -> FxHashSet<u32> {
        let is_statement = |number: &u32| {
            let function = self.function(*number);
            function.file == "<statement>" && function.is_python
        };
        let mut open: Vec<u32> = match from {
            Some(from) => vec![from],
            None => {
                let statements = (0..self.functions.len() as u32).filter(is_statement);
                statements.chain([STATEMENT]).collect()
            }
        };
        let mut below = FxHashSet::default();
        while let Some(caller) = open.pop() {
            for &callee in self.callees[side].get(&caller).into_iter().flatten() {
                let function = self.function(callee);
                let is_own = function.is_wrapper() || function.is_missing(1 - side);
                if below.insert(callee) && is_own {
                    open.push(callee);
                }
            }
        }
        below
    }

    /// How often a function calls another one during one call of it, if calls were counted.
    pub(super) fn calls_per_call(&self, side: usize, caller: u32, callee: u32) -> Option<f64> {
        let calls = self.function(caller).calls[side].filter(|calls| *calls > 0.0)?;
        Some(self.edges[side].get(&(caller, callee))? / calls)
    }

    /// Share of the calls of a chain's last function that belong to the chain.
    pub(super) fn part(&self, side: usize, chain: &[u32]) -> f64 {
        let Some((&first, &last)) = chain.first().zip(chain.last()) else { return 1.0 };
        let of = |function: u32| self.function(function).calls[side];
        let mut calls = of(first).unwrap_or(0.0);
        for step in chain.windows(2) {
            calls *= self.calls_per_call(side, step[0], step[1]).unwrap_or(0.0);
        }
        of(last).filter(|all| *all > 0.0).map_or(1.0, |all| calls / all)
    }

    /// Calls of a function by another one and by itself. All calls of it if the caller is not known,
    /// or if it `has_time` below the caller although another function calls it, such as a wrapper.
    pub(super) fn calls(
        &self,
        side: usize,
        caller: Option<u32>,
        callee: u32,
        has_time: bool,
    ) -> Option<f64> {
        let all = self.function(callee).calls[side]?;
        let Some(caller) = caller else { return Some(all) };
        let edge = |caller: u32| self.edges[side].get(&(caller, callee)).copied();
        Some(match edge(caller) {
            Some(calls) if caller != callee => calls + edge(callee).unwrap_or(0.0),
            Some(calls) => calls,
            None if has_time => all,
            None => 0.0,
        })
    }
}

/// Frames with the qualified names of counted functions, which code before Python 3.11 does not have:
/// `Index.join` for `join`, if the line is in it.
fn qualified(frames: &[StackFrame], counts: Option<&CallCounts>) -> Vec<StackFrame> {
    let mut known: FxHashMap<(&str, &str), Vec<&CountedFunction>> = FxHashMap::default();
    for counted in counts.into_iter().flat_map(|counts| &counts.functions) {
        if let Some((_, last)) = counted.name.rsplit_once('.').filter(|_| counted.is_python()) {
            known.entry((&counted.file, last)).or_default().push(counted);
        }
    }
    let mut frames = frames.to_vec();
    for frame in frames.iter_mut().filter(|frame| frame.kind == FrameKind::Python) {
        let found = known.get(&(frame.file.as_str(), frame.name.as_str())).into_iter().flatten();
        let around =
            found.filter(|counted| (counted.lines[0]..=counted.lines[1]).contains(&frame.line));
        if let Some(counted) = around.min_by_key(|counted| counted.lines[1] - counted.lines[0]) {
            frame.name = enclosing_function(&counted.name).to_owned();
        }
    }
    frames
}

/// Frames of counted functions, so that functions without samples are aligned too.
fn counted_frames(counts: Option<&CallCounts>) -> Vec<StackFrame> {
    let frames = counts.into_iter().flat_map(|counts| &counts.functions);
    frames
        .map(|counted| match counted.is_python() {
            true => StackFrame {
                kind: FrameKind::Python,
                name: enclosing_function(&counted.name).to_owned(),
                file: counted.file.clone(),
                line: 0,
            },
            false => {
                let (library, symbol) = counted.symbol.clone();
                let name = if symbol.is_empty() { counted.full_name() } else { symbol };
                StackFrame { kind: FrameKind::Native, name, file: library, line: 0 }
            }
        })
        .collect()
}
