//! What both sides call at a point.

use super::merged::{Merged, PathFunction, are_equally_often, most};
use super::point::{Callee, Cause};
use rustc_hash::FxHashMap;

/// A wrapper spends this share of its time in the function that it wraps.
const WRAPPED: f64 = 0.8;
/// Maximum number of nested wrappers.
const MOST_WRAPPERS: usize = 4;
/// Maximum number of callees per side.
const MOST_CALLEES: usize = 6;

/// What A and B call at a point.
pub(super) struct Calls<'a> {
    merged: &'a Merged,
    caller: Option<u32>,
    /// Share of the caller's calls that belong to the point, by side.
    parts: [f64; 2],
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
    /// The calls of the last function of a chain, or of the statement.
    pub(super) fn new(merged: &'a Merged, chain: &[u32], taken: &[Vec<usize>; 2]) -> Calls<'a> {
        let callees = [0, 1].map(|side: usize| {
            let mut callees: FxHashMap<Option<u32>, Below> = FxHashMap::default();
            for &at in &taken[side] {
                let path = &merged.paths[side][at];
                let (line, below) = match path.position_of(chain, merged) {
                    Some(position) => (path.steps[position].1, &path.steps[position + 1..]),
                    None => (path.statement_line, &path.steps[..]),
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
        let parts = [0, 1].map(|side: usize| merged.part(side, chain));
        let mut calls = Calls { merged, caller: chain.last().copied(), parts, callees };
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
        let has_time = self.ns(side, Some(callee)) > 0.0;
        Some(self.merged.calls(side, self.caller, callee, has_time)? * self.parts[side])
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
    pub(super) fn cause(&self) -> Cause {
        let gap = |callee: Option<u32>| self.ns(1, callee) - self.ns(0, callee);
        let own = gap(None);
        let (mut other, mut more, mut same) = (0.0, 0.0, 0.0);
        // The callee whose additional calls take most of the time.
        let mut most_called: Option<(f64, u32, [f64; 2])> = None;
        for callee in self.all() {
            let gap = gap(Some(callee));
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
        let is_changed = caller.is_some_and(PathFunction::is_changed);
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
    pub(super) fn line(&self, side: usize, cause: &Cause) -> u32 {
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
    pub(super) fn listed(&self, side: usize) -> Vec<Callee> {
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
