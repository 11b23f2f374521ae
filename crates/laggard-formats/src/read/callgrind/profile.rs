//! Converts a callgrind call graph to a profile: costs of functions and lines with inferred
//! callers.
//!
//! The costs of functions and lines are exact and add up to callgrind's total. The file has a call
//! graph but no stacks. Stacks are inferred as in gprof: the cost of a function is split among its
//! callers in proportion to the cost of their calls, up to functions without callers. This is
//! correct if the cost of a function does not depend on the callers of its caller, which the file
//! does not record.
//!
//! The number of paths grows exponentially with the size of the graph. Paths are followed from the
//! roots, the most expensive first, until there are [`MOST_CONTEXTS`]. The remaining cost of a
//! function is still split among its callers, but each of these has only the chain of its heaviest
//! callers above it. A warning states the share of this cost; for interpreters it is most of the
//! cost. Calls that close a cycle are not followed: the cost of the cycle is attributed to the
//! calls that enter it.

use super::{Graph, read_with};
use crate::error::Error;
use crate::source::{Bytes, Source};
use laggard_core::model::NONE;
use laggard_core::model::profile::{
    Event, Frame, FrameKind, Interner, Module, Profile, Sample, Thread, Unit,
};
use rustc_hash::FxHashMap;
use std::collections::BinaryHeap;

/// Maximum number of distinct paths from a root to a function.
const MOST_CONTEXTS: usize = 20_000;
/// Maximum depth of a path.
const DEEPEST: u32 = 200;
/// Smaller shares of a function are rounding errors.
const SMALLEST_SHARE: f64 = 1e-9;
/// Minimum share of all costs below chains that is reported in a warning.
const WORTH_SAYING: f64 = 0.005;
/// Frame that replaces the outer callers of a chain that is too long.
const FURTHER_CALLERS: &str = "further callers";

/// Reads a file as a profile. `progress` receives the file size once, or 0 if unknown.
pub fn read_profile(source: Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Profile, Error> {
    let bytes = match &source.bytes {
        Bytes::Mapped(map) => map.len() as u64,
        Bytes::Stream(_) => 0,
    };
    let path = source.path.clone();
    let graph = read_with(source, true)?;
    progress(bytes);
    if graph.functions.is_empty() {
        let what = "no function costs found".to_owned();
        return Err(Error::NotARecording { path, what });
    }
    Ok(profile(&graph))
}

/// Converts a graph to a profile. The graph must have lines (see [`read_profile`]).
pub fn profile(graph: &Graph) -> Profile {
    let edges = Edges::of(graph);
    let contexts = contexts(graph, &edges);
    let mut made = Made::of(graph);
    made.samples(&edges, &contexts);
    let said = graph.losses.to_string();
    let warnings = &mut made.profile.quality.warnings;
    warnings.extend(Some(said).filter(|said| !said.is_empty()));
    warnings.push(
        "stacks are inferred from a call graph: the cost of a function is split among its callers \
         in proportion to the cost of their calls; the costs of functions and lines are exact"
            .to_owned(),
    );
    let share = made.in_chains / made.whole.max(1.0);
    if share > WORTH_SAYING {
        let event = graph.events.first().map_or("", String::as_str);
        warnings.push(format!(
            "too many call paths: for {:.0} % of {event}, only the direct caller is exact; the outer \
             callers are those with the highest cost",
            share * 100.0
        ));
    }
    if edges.cycles > 0 {
        let n = edges.cycles;
        warnings.push(format!("cyclic calls omitted from stacks: {n}"));
    }
    made.profile
}

/// All calls of one function by another.
#[derive(Clone, Copy, Debug)]
struct Edge {
    caller: u32,
    callee: u32,
    /// Inclusive cost in the first event, or the number of calls if that cost is zero.
    weight: f64,
    /// Text: source file of the call. File and line are 0 if there are several call sites.
    file: u32,
    line: u32,
}

/// The call graph without calls that close a cycle.
struct Edges {
    all: Vec<Edge>,
    /// By caller: its edge numbers.
    below: Vec<Vec<u32>>,
    /// By function: total weight of all edges to it.
    into: Vec<f64>,
    /// By function: its inclusive cost.
    inclusive: Vec<f64>,
    /// Functions, callers before callees.
    order: Vec<u32>,
    /// Number of removed edges.
    cycles: usize,
}

impl Edges {
    fn of(graph: &Graph) -> Edges {
        let functions = graph.functions.len();
        let mut all: Vec<Edge> = vec![];
        let mut counts: Vec<u64> = vec![];
        let mut known: FxHashMap<(u32, u32), usize> = FxHashMap::default();
        for (number, call) in graph.calls.iter().enumerate() {
            let cost = graph.inclusive(number).first().copied().unwrap_or(0) as f64;
            let place = *known.entry((call.caller, call.callee)).or_insert(all.len());
            if place == all.len() {
                let (caller, callee) = (call.caller, call.callee);
                let (file, line) = (call.file, call.line);
                all.push(Edge { caller, callee, weight: 0.0, file, line });
                counts.push(0);
            } else if (all[place].file, all[place].line) != (call.file, call.line) {
                (all[place].file, all[place].line) = (0, 0);
            }
            all[place].weight += cost;
            counts[place] = counts[place].saturating_add(call.count);
        }
        let mut inclusive: Vec<f64> = (0..functions as u32)
            .map(|function| graph.own(function).first().copied().unwrap_or(0) as f64)
            .collect();
        for edge in all.iter().filter(|edge| edge.caller != edge.callee) {
            inclusive[edge.caller as usize] += edge.weight;
        }
        // Callees whose calls cost nothing are split by the number of calls.
        let mut costs = vec![0.0; functions];
        all.iter().for_each(|edge| costs[edge.callee as usize] += edge.weight);
        for (edge, count) in all.iter_mut().zip(&counts) {
            if costs[edge.callee as usize] == 0.0 {
                edge.weight = *count as f64;
            }
        }
        let mut edges = Edges {
            all,
            below: vec![vec![]; functions],
            into: vec![],
            inclusive,
            order: vec![],
            cycles: 0,
        };
        for (number, edge) in (0..).zip(&edges.all) {
            if edge.weight > 0.0 {
                edges.below[edge.caller as usize].push(number);
            }
        }
        edges.cut_cycles();
        edges.into = vec![0.0; functions];
        for number in edges.below.iter().flatten() {
            let edge = &edges.all[*number as usize];
            edges.into[edge.callee as usize] += edge.weight;
        }
        edges
    }

    /// Removes edges that lead back to a function on the current path. Starts at functions without
    /// callers, then at the most expensive ones.
    fn cut_cycles(&mut self) {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            Not,
            OnTheWay,
            Done,
        }
        let functions = self.below.len();
        let mut is_called = vec![false; functions];
        for number in self.below.iter().flatten() {
            let edge = &self.all[*number as usize];
            is_called[edge.callee as usize] |= edge.caller != edge.callee;
        }
        let mut order: Vec<usize> = (0..functions).collect();
        order.sort_by(|&a, &b| {
            let by_cost = self.inclusive[b].total_cmp(&self.inclusive[a]);
            is_called[a].cmp(&is_called[b]).then(by_cost).then(a.cmp(&b))
        });
        let mut seen = vec![Seen::Not; functions];
        let mut back = vec![false; self.all.len()];
        for root in order {
            if seen[root] != Seen::Not {
                continue;
            }
            // Functions on the current path, each with the number of its edges followed so far.
            let mut way = vec![(root, 0)];
            seen[root] = Seen::OnTheWay;
            while let Some((function, followed)) = way.last_mut() {
                let Some(&number) = self.below[*function].get(*followed) else {
                    seen[*function] = Seen::Done;
                    self.order.push(*function as u32);
                    way.pop();
                    continue;
                };
                *followed += 1;
                let callee = self.all[number as usize].callee as usize;
                match seen[callee] {
                    Seen::Not => {
                        seen[callee] = Seen::OnTheWay;
                        way.push((callee, 0));
                    }
                    Seen::OnTheWay => back[number as usize] = true,
                    Seen::Done => {}
                }
            }
        }
        self.order.reverse();
        self.cycles = back.iter().filter(|is_back| **is_back).count();
        for below in &mut self.below {
            below.retain(|number| !back[*number as usize]);
        }
    }
}

/// A path from a root to a function.
#[derive(Clone, Copy, Debug)]
struct Context {
    function: u32,
    /// Context of the caller; `NONE` at a root.
    parent: u32,
    /// Edge from the caller; `NONE` at a root.
    edge: u32,
    /// Share of the function's cost on this path.
    share: f64,
    depth: u32,
}

/// A path to follow. Ordered by cost, then by order of discovery.
#[derive(PartialEq)]
struct Waiting {
    cost: f64,
    number: u32,
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> std::cmp::Ordering {
        self.cost.total_cmp(&other.cost).then(other.number.cmp(&self.number))
    }
}

/// The most expensive paths, callers before callees.
fn contexts(graph: &Graph, edges: &Edges) -> Vec<Context> {
    let mut contexts: Vec<Context> = vec![];
    let mut waiting = BinaryHeap::new();
    let add = |contexts: &mut Vec<Context>, waiting: &mut BinaryHeap<Waiting>, new: Context| {
        let cost = new.share * edges.inclusive[new.function as usize];
        waiting.push(Waiting { cost, number: contexts.len() as u32 });
        contexts.push(new);
    };
    let roots = (0..graph.functions.len() as u32).filter(|f| edges.into[*f as usize] == 0.0);
    for function in roots {
        let root = Context { function, parent: NONE, edge: NONE, share: 1.0, depth: 0 };
        add(&mut contexts, &mut waiting, root);
    }
    while let Some(Waiting { cost, number }) = waiting.pop() {
        let from = contexts[number as usize];
        // Skip paths with a cost below one event.
        if contexts.len() >= MOST_CONTEXTS || cost < 1.0 && from.depth > 0 {
            break;
        }
        if from.depth >= DEEPEST {
            continue;
        }
        for &edge in &edges.below[from.function as usize] {
            let Edge { callee, weight, .. } = edges.all[edge as usize];
            let share = from.share * weight / edges.into[callee as usize];
            let depth = from.depth + 1;
            let new = Context { function: callee, parent: number, edge, share, depth };
            add(&mut contexts, &mut waiting, new);
        }
    }
    contexts
}

/// The profile under construction.
struct Made<'a> {
    graph: &'a Graph,
    profile: Profile,
    interner: Interner,
    /// By function of the graph.
    modules: Vec<u32>,
    names: Vec<u32>,
    /// Total cost in the first event, and the part of it below chains.
    whole: f64,
    in_chains: f64,
}

/// A path to a function.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// Node of the calling frame; `NONE` at a root.
    above: u32,
    /// Share of the function's cost.
    share: f64,
    /// Share of the path whose callers are a chain.
    in_chain: f64,
}

impl<'a> Made<'a> {
    fn of(graph: &'a Graph) -> Made<'a> {
        let mut profile = Profile::default();
        let mut interner = Interner::default();
        let (mut modules, mut names) = (vec![], vec![]);
        for function in &graph.functions {
            modules.push(match graph.texts.get(function.object) {
                "" => NONE,
                path => {
                    let module = Module { path: profile.texts.add(path), id: 0 };
                    interner.module(&mut profile, module)
                }
            });
            names.push(profile.texts.add(graph.texts.get(function.name)));
        }
        let program = graph.command.split_whitespace().next().unwrap_or_default();
        let name = profile.texts.add(program.rsplit('/').next().unwrap_or_default());
        let (pid, tid) = (graph.pid, graph.pid);
        profile.threads.push(Thread { pid, tid, name, process: name, cpu_ns: 0 });
        let event = |name: &String| Event { name: name.clone(), unit: Unit::Count };
        profile.events = graph.events.iter().map(event).collect();
        profile.about.command = graph.command.split_whitespace().map(str::to_owned).collect();
        profile.about.tool.clone_from(&graph.creator);
        profile.about.method = "callgrind, simulated CPU".into();
        Made { graph, profile, interner, modules, names, whole: 0.0, in_chains: 0.0 }
    }

    /// Splits the costs of every line among the paths to its function.
    fn samples(&mut self, edges: &Edges, contexts: &[Context]) {
        let paths = self.paths(edges, contexts);
        let graph = self.graph;
        let events = graph.events.len();
        for (line, costs) in graph.lines.iter().zip(graph.of_lines.chunks(events.max(1))) {
            let frame = self.frame(line.function, line.file, line.line);
            for (event, &cost) in (0..).zip(costs) {
                let mut left = cost;
                let mut parts: Vec<(&Path, u64)> = vec![];
                for path in &paths[line.function as usize] {
                    let part = ((cost as f64 * path.share) as u64).min(left);
                    left -= part;
                    parts.push((path, part));
                }
                // The most expensive path receives the rounding error.
                if let Some((_, part)) = parts.first_mut() {
                    *part += left;
                }
                for (path, part) in parts.into_iter().filter(|(_, part)| *part > 0) {
                    if event == 0 {
                        self.whole += part as f64;
                        self.in_chains += part as f64 * path.in_chain;
                    }
                    let stack = self.interner.node(&mut self.profile, path.above, frame);
                    self.profile.samples.push(Sample {
                        time_ns: 0,
                        thread: 0,
                        stack,
                        event,
                        // Every event was counted, so weight equals count.
                        count: part,
                        weight: part,
                        state: 0,
                    });
                }
            }
        }
    }

    /// By function: all paths to it, the one with the largest share first. Shares add up to 1.
    fn paths(&mut self, edges: &Edges, contexts: &[Context]) -> Vec<Vec<Path>> {
        let mut paths: Vec<Vec<Path>> = vec![vec![]; self.graph.functions.len()];
        // The part of each call that no context covers.
        let mut left: Vec<f64> = vec![0.0; edges.all.len()];
        for &number in edges.below.iter().flatten() {
            let edge = &edges.all[number as usize];
            left[number as usize] = edge.weight / edges.into[edge.callee as usize];
        }
        let nodes = self.nodes(edges, contexts);
        for (context, &above) in contexts.iter().zip(&nodes) {
            if let Some(left) = left.get_mut(context.edge as usize) {
                *left -= context.share;
            }
            let share = context.share;
            paths[context.function as usize].push(Path { above, share, in_chain: 0.0 });
        }
        let chains = self.chains(edges);
        for (edge, share) in edges.all.iter().zip(left) {
            if share > SMALLEST_SHARE {
                let frame = self.frame(edge.caller, edge.file, edge.line);
                let chain = chains[edge.caller as usize];
                let above = self.interner.node(&mut self.profile, chain, frame);
                paths[edge.callee as usize].push(Path { above, share, in_chain: 1.0 });
            }
        }
        for paths in &mut paths {
            paths.sort_by_key(|path| path.above);
            paths.dedup_by(|again, path| {
                let is_same = again.above == path.above;
                if is_same {
                    let chained = again.in_chain * again.share + path.in_chain * path.share;
                    path.share += again.share;
                    path.in_chain = chained / path.share;
                }
                is_same
            });
            paths.sort_by(|a, b| b.share.total_cmp(&a.share));
        }
        paths
    }

    /// By function: the node of its heaviest caller, with that caller's heaviest caller above it,
    /// and so on.
    fn chains(&mut self, edges: &Edges) -> Vec<u32> {
        let functions = self.graph.functions.len();
        let mut heaviest: Vec<Option<u32>> = vec![None; functions];
        for &number in edges.below.iter().flatten() {
            let edge = &edges.all[number as usize];
            let best = &mut heaviest[edge.callee as usize];
            let weight = |number: u32| edges.all[number as usize].weight;
            if best.is_none_or(|best| weight(best) < edge.weight) {
                *best = Some(number);
            }
        }
        let (mut chains, mut depths) = (vec![NONE; functions], vec![0; functions]);
        for &function in &edges.order {
            let Some(number) = heaviest[function as usize] else { continue };
            let edge = &edges.all[number as usize];
            let caller = edge.caller as usize;
            let (above, depth) = match depths[caller] < DEEPEST {
                true => (chains[caller], depths[caller] + 1),
                false => (self.further_callers(), 2),
            };
            let frame = self.frame(edge.caller, edge.file, edge.line);
            chains[function as usize] = self.interner.node(&mut self.profile, above, frame);
            depths[function as usize] = depth;
        }
        chains
    }

    /// The node that replaces the outer callers of a chain that is too long.
    fn further_callers(&mut self) -> u32 {
        let function = self.profile.texts.add(FURTHER_CALLERS);
        let kind = FrameKind::Mark;
        let frame = Frame { kind, module: NONE, address: 0, function, file: 0, line: 0 };
        let frame = self.interner.frame(&mut self.profile, frame);
        self.interner.node(&mut self.profile, NONE, frame)
    }

    /// By context: the node of the calling frame; `NONE` at a root.
    fn nodes(&mut self, edges: &Edges, contexts: &[Context]) -> Vec<u32> {
        let mut nodes: Vec<u32> = Vec::with_capacity(contexts.len());
        for context in contexts {
            let node = match contexts.get(context.parent as usize) {
                None => NONE,
                Some(parent) => {
                    let edge = &edges.all[context.edge as usize];
                    let frame = self.frame(parent.function, edge.file, edge.line);
                    let above = nodes[context.parent as usize];
                    self.interner.node(&mut self.profile, above, frame)
                }
            };
            nodes.push(node);
        }
        nodes
    }

    fn frame(&mut self, function: u32, file: u32, line: u32) -> u32 {
        let file = self.profile.texts.add(self.graph.texts.get(file));
        let (module, name) = (self.modules[function as usize], self.names[function as usize]);
        let kind = FrameKind::Native;
        let frame = Frame { kind, module, address: 0, function: name, file, line };
        self.interner.frame(&mut self.profile, frame)
    }
}
