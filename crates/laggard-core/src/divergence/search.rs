//! Finds divergence points.

use super::calls::Calls;
use super::merged::{Merged, PRESENT, Path, SideStacks, are_equally_often, most};
use super::point::{Cause, Divergence, Place, Point, Step};
use rustc_hash::FxHashMap;

/// A function holds most of the lag if its difference is at least this share of it.
const MOST: f64 = 0.6;
/// The search ends when less than this share of the lag is left.
const LEFT: f64 = 0.05;
/// Maximum number of points.
const MOST_POINTS: usize = 12;

/// Finds the points where B's path diverges from A's, then the places where B is faster.
/// `is_same_statement`: whether both sides run the same text.
pub fn diverge(sides: [SideStacks<'_>; 2], is_same_statement: bool) -> Divergence {
    let merged = Merged::new(sides);
    let mut search = Search {
        left: [0, 1].map(|side: usize| (0..merged.paths[side].len()).collect()),
        merged: &merged,
        is_same_statement,
        slower: 1,
    };
    let mut found = Divergence {
        points: vec![],
        of_spent: [0, 1].map(|side: usize| vec![None; merged.paths[side].len()]),
    };
    let lag = search.lag();
    if lag <= 0.0 {
        return found;
    }
    let least = LEFT * lag;
    while search.lag() >= least && found.points.len() < MOST_POINTS {
        let chain = search.deepest(MOST * search.lag());
        let is_statement = chain.is_empty();
        search.add_point(&chain, &mut found);
        if is_statement {
            break;
        }
    }
    search.slower = 0;
    while let Some(largest) = search.largest().filter(|gap| *gap >= least)
        && found.points.len() < MOST_POINTS
    {
        let chain = search.deepest(MOST * largest);
        if chain.is_empty() || !search.is_significant(&chain) {
            break;
        }
        search.add_point(&chain, &mut found);
    }
    found
}

/// The paths that belong to no point yet.
pub(super) struct Search<'a> {
    pub(super) merged: &'a Merged,
    /// Indexes of the paths of A and B.
    left: [Vec<usize>; 2],
    is_same_statement: bool,
    /// The side whose lag is searched: 1 for B.
    slower: usize,
}

/// Time of A and B.
pub(super) type Times = [f64; 2];

impl Search<'_> {
    fn path(&self, side: usize, at: usize) -> &Path {
        &self.merged.paths[side][at]
    }

    fn gap(&self, times: Times) -> f64 {
        times[self.slower] - times[1 - self.slower]
    }

    fn times(&self, of: &[Vec<usize>; 2]) -> Times {
        [0, 1].map(|side: usize| of[side].iter().map(|&at| self.path(side, at).ns).sum())
    }

    /// The difference in the paths that are left.
    fn lag(&self) -> f64 {
        self.gap(self.times(&self.left))
    }

    /// Times of the functions in the paths that are left.
    fn times_by_function(&self) -> FxHashMap<u32, Times> {
        let mut times: FxHashMap<u32, Times> = FxHashMap::default();
        for side in [0, 1] {
            for path in self.left[side].iter().map(|&at| self.path(side, at)) {
                for function in path.functions() {
                    times.entry(function).or_default()[side] += path.ns;
                }
            }
        }
        times
    }

    /// Mean depth of the functions' innermost calls on the slower side.
    fn depths(&self) -> FxHashMap<u32, f64> {
        // Sums of depth and time.
        let mut sums: FxHashMap<u32, (f64, f64)> = FxHashMap::default();
        for path in self.left[self.slower].iter().map(|&at| self.path(self.slower, at)) {
            for function in path.functions() {
                let depth = path.position(function).unwrap_or(0);
                let sum = sums.entry(function).or_default();
                *sum = (sum.0 + depth as f64 * path.ns, sum.1 + path.ns);
            }
        }
        sums.into_iter().map(|(function, (sum, ns))| (function, sum / ns.max(1e-9))).collect()
    }

    /// Whether a function can be a place: a Python function that both sides run equally often. In
    /// profiles without Python frames, any function.
    fn is_candidate(&self, number: u32, times: Times) -> bool {
        let function = self.merged.function(number);
        let other = 1 - self.slower;
        let whole = || self.merged.paths[other].iter().map(|path| path.ns).sum::<f64>();
        let is_present = || times[other] > PRESENT * whole();
        let is_place = function.is_python || !self.merged.has_python();
        is_place
            && !function.is_wrapper()
            && function.is_called_equally().unwrap_or_else(is_present)
    }

    /// The largest difference of a candidate.
    fn largest(&self) -> Option<f64> {
        let candidates = self.times_by_function().into_iter();
        let candidates = candidates.filter(|(number, times)| self.is_candidate(*number, *times));
        candidates.map(|(_, times)| self.gap(times)).max_by(f64::total_cmp)
    }

    /// The deepest candidate whose difference is at least `least`, with the calls below it that lead
    /// to this difference; empty if there is none but the statement.
    fn deepest(&self, least: f64) -> Vec<u32> {
        let times = self.times_by_function();
        let depths = self.depths();
        let depth = |number: u32| depths.get(&number).copied().unwrap_or(0.0);
        let deepest = times
            .into_iter()
            .filter(|&(number, times)| {
                self.gap(times) >= least
                    && self.is_candidate(number, times)
                    && self.has_common_path(number)
            })
            .max_by(|(x, _), (y, _)| depth(*x).total_cmp(&depth(*y)).then_with(|| y.cmp(x)));
        let mut chain: Vec<u32> = deepest.into_iter().map(|(number, _)| number).collect();
        while let Some(next) = self.next(&chain, least) {
            chain.push(next);
        }
        chain
    }

    /// Whether the paths to a function are mostly common. Otherwise both sides call it equally often by
    /// chance, at different places.
    fn has_common_path(&self, number: u32) -> bool {
        let (mut common, mut whole) = (0.0, 0.0);
        for path in self.left[self.slower].iter().map(|&at| self.path(self.slower, at)) {
            let Some(position) = path.position(number) else { continue };
            whole += path.ns;
            if self.is_common(&path.steps[..position], number) {
                common += path.ns;
            }
        }
        common >= whole / 2.0
    }

    /// Whether the other side calls a function on this path too: each function of the path calls the next
    /// one there. Functions that only one side has are transparent.
    fn is_common(&self, above: &[(u32, u32)], number: u32) -> bool {
        let other = 1 - self.slower;
        if !self.merged.has_edges(other) {
            return true;
        }
        let is_shared = |number: &u32| {
            let function = self.merged.function(*number);
            function.is_python && !function.is_wrapper() && !function.is_missing(other)
        };
        let shared = above.iter().map(|step| step.0).filter(is_shared).chain([number]);
        let mut from = None;
        shared.into_iter().all(|to| {
            let is_recursive = from == Some(to);
            // Threads and generators that were not counted call their functions unseen.
            let is_unknown = self.merged.function(to).calls[other].is_none();
            let leads = is_recursive || is_unknown || self.merged.leads_to(other, from, to);
            from = Some(to);
            leads
        })
    }

    /// A function that the last one of a chain calls equally often on both sides, and whose difference
    /// there is at least `least`. Other callers may call it more often on one side.
    fn next(&self, chain: &[u32], least: f64) -> Option<u32> {
        let &last = chain.last()?;
        let mut times: FxHashMap<u32, Times> = FxHashMap::default();
        for side in [0, 1] {
            for path in self.left[side].iter().map(|&at| self.path(side, at)) {
                let Some(position) = path.position_of(chain, self.merged) else { continue };
                if let Some(next) = path.next_python(position, self.merged) {
                    times.entry(path.steps[next].0).or_default()[side] += path.ns;
                }
            }
        }
        let is_next = |&(number, times): &(u32, Times)| {
            let rate = |side: usize| self.merged.calls_per_call(side, last, number);
            let is_equal = || Some(are_equally_often(rate(0)?, rate(1)?));
            let is_new = !chain.contains(&number) && !self.merged.function(number).is_wrapper();
            self.gap(times) >= least && is_new && is_equal() == Some(true)
        };
        let largest = times
            .into_iter()
            .filter(is_next)
            .max_by(|x, y| self.gap(x.1).total_cmp(&self.gap(y.1)).then_with(|| y.0.cmp(&x.0)));
        largest.map(|(number, _)| number)
    }

    /// Indexes of the paths through a chain, or all paths.
    fn through(&self, chain: &[u32]) -> [Vec<usize>; 2] {
        [0, 1].map(|side: usize| {
            let is_through = |at: &usize| {
                let path = self.path(side, *at);
                chain.is_empty() || path.position_of(chain, self.merged).is_some()
            };
            self.left[side].iter().copied().filter(is_through).collect()
        })
    }

    /// Whether the difference is larger than the uncertainty of sampling.
    fn is_significant(&self, chain: &[u32]) -> bool {
        /// Standard errors.
        const ERRORS: f64 = 3.0;
        let taken = self.through(chain);
        let times = self.times(&taken);
        let variance = |side: usize| times[side].powi(2) / self.samples(side, &taken).max(1) as f64;
        self.gap(times) > ERRORS * (variance(0) + variance(1)).sqrt()
    }

    fn samples(&self, side: usize, taken: &[Vec<usize>; 2]) -> u64 {
        let samples = taken[side].iter().map(|&at| self.path(side, at).samples);
        samples.fold(0, u64::saturating_add)
    }

    /// Adds the point at the end of a chain, and removes the paths through it from the search.
    fn add_point(&mut self, chain: &[u32], found: &mut Divergence) {
        let taken = self.through(chain);
        for side in [0, 1] {
            let of_spent = &mut found.of_spent[side];
            for &at in &taken[side] {
                of_spent[at] = Some(found.points.len());
            }
            self.left[side].retain(|&at| of_spent[at].is_none());
        }
        found.points.push(self.point(chain, &taken));
    }

    fn point(&self, chain: &[u32], taken: &[Vec<usize>; 2]) -> Point {
        let function = chain.last().copied();
        let calls = Calls::new(self.merged, chain, taken);
        let cause = match function {
            None if !self.is_same_statement => Cause::Slower,
            _ => calls.cause(),
        };
        let mut lines = [0, 1].map(|side: usize| calls.line(side, &cause));
        let mut divided = vec![];
        let (path, last) = match function {
            Some(number) => (self.leading_to(chain, &taken[self.slower]), Some(number)),
            None => {
                let (mut path, callees) = self.own_path(taken);
                divided = callees;
                // The function that is called more often is the place, not what it calls.
                if matches!(cause, Cause::MoreCalls { .. }) {
                    path.truncate(1);
                    divided.clear();
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
        Point {
            is_own_path: function.is_none() && last.is_some(),
            divided,
            place: Place { function: last.map(describe), python: python.map(describe), lines },
            path: path
                .iter()
                .map(|&(number, line)| Step::new(self.merged.function(number), line))
                .collect(),
            ns: self.times(taken),
            samples: [0, 1].map(|side: usize| self.samples(side, taken)),
            callees: [0, 1].map(|side| calls.listed(side)),
            cause,
        }
    }

    /// The slower side's hottest path to the end of a chain.
    fn leading_to(&self, chain: &[u32], taken: &[usize]) -> Vec<(u32, u32)> {
        let mut sums: FxHashMap<Vec<(u32, u32)>, f64> = FxHashMap::default();
        for &at in taken {
            let path = self.path(self.slower, at);
            if let Some(position) = path.position_of(chain, self.merged) {
                let mut steps = without_recursion(&path.steps[..=position]);
                steps.pop();
                *sums.entry(steps).or_default() += path.ns;
            }
        }
        let hottest =
            sums.into_iter().max_by(|x, y| x.1.total_cmp(&y.1).then_with(|| y.0.cmp(&x.0)));
        hottest.map_or_else(Vec::new, |(steps, _)| self.shown(&steps))
    }

    /// B's own path below the statement: the callee with most of the lag, then its callee, and so on,
    /// until the time is mostly self time or divided among several callees, which are also returned.
    fn own_path(&self, taken: &[Vec<usize>; 2]) -> (Vec<(u32, u32)>, Vec<String>) {
        /// A callee with this share of the lag is named.
        const NAMED: f64 = 0.2;
        let mut divided = vec![];
        let mut here = [0, 1].map(|side: usize| {
            let path = |&at: &usize| {
                let path = self.path(side, at);
                (without_recursion(&path.steps), path.ns)
            };
            taken[side].iter().map(path).collect::<Vec<_>>()
        });
        let mut steps: Vec<(u32, u32)> = vec![];
        for depth in 0.. {
            let whole =
                self.gap([0, 1].map(|side: usize| here[side].iter().map(|path| path.1).sum()));
            let mut times: FxHashMap<u32, Times> = FxHashMap::default();
            for side in [0, 1] {
                for (path, ns) in &here[side] {
                    if let Some(&(function, _)) = path.get(depth) {
                        times.entry(function).or_default()[side] += ns;
                    }
                }
            }
            let mut callees: Vec<(u32, f64)> =
                times.into_iter().map(|(function, times)| (function, self.gap(times))).collect();
            callees.sort_by(|x, y| y.1.total_cmp(&x.1).then_with(|| x.0.cmp(&y.0)));
            let Some(&(next, gap)) = callees.first() else { break };
            if gap < MOST * whole || whole <= 0.0 || self.merged.function(next).ends_path() {
                callees.retain(|&(function, gap)| {
                    gap >= NAMED * whole && self.merged.function(function).is_python
                });
                let label = |&(function, _): &(u32, f64)| self.merged.function(function).label();
                divided = callees.iter().map(label).collect();
                break;
            }
            for side in &mut here {
                side.retain(|(path, _)| path.get(depth).is_some_and(|step| step.0 == next));
            }
            let mut lines: FxHashMap<u32, f64> = FxHashMap::default();
            for (path, ns) in &here[1] {
                *lines.entry(path[depth].1).or_default() += ns;
            }
            steps.push((next, most(lines)));
        }
        (self.shown(&steps), divided)
    }

    /// A path without native code that only leads to a Python function.
    fn shown(&self, steps: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let function = |at: usize| steps.get(at).map(|step| self.merged.function(step.0));
        let is_shown = |at: &usize| match (function(*at), function(at + 1)) {
            (Some(here), Some(next)) => here.is_python || !next.is_python,
            _ => true,
        };
        (0..steps.len()).filter(is_shown).map(|at| steps[at]).collect()
    }
}

/// Steps in which a function that calls itself, directly or through others, occurs once.
fn without_recursion(steps: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut once: Vec<(u32, u32)> = vec![];
    for &step in steps {
        if let Some(first) = once.iter().position(|known| known.0 == step.0) {
            once.truncate(first);
        }
        once.push(step);
    }
    once
}
