//! Attribution of worker thread samples to the call that started the work.
//!
//! OpenBLAS and OpenMP workers have no caller in their stack. Their samples are placed below the stack
//! of a thread of the same process that was inside the launching function at about the same time. A
//! mark separates the two stacks.

use crate::model::NONE;
use crate::model::profile::{Frame, FrameKind, Node, Profile, state};
use rustc_hash::FxHashMap;

/// A kind of worker threads and its launching functions.
struct Pool {
    /// Function near the start of a worker's stack.
    workers: &'static [&'static str],
    /// Names or prefixes of functions that start and wait for workers.
    launchers: &'static [&'static str],
}

const POOLS: [Pool; 3] = [
    Pool {
        workers: &["blas_thread_server"],
        launchers: &["exec_blas", "exec_blas_async", "exec_blas_async_wait"],
    },
    Pool { workers: &["gomp_thread_start"], launchers: &["GOMP_parallel", "GOMP_taskgroup_end"] },
    Pool {
        workers: &["__kmp_launch_worker", "__kmp_launch_thread"],
        launchers: &["__kmpc_fork_call", "__kmp_fork_call", "__kmp_GOMP_fork_call"],
    },
];

/// Maximum time between a worker's sample and its caller's, in sampling periods.
const PERIODS: f64 = 3.0;
/// Number of outermost frames searched for a worker function.
const NEAR_START: usize = 8;
/// Name of the mark between the stacks.
const MARK: &str = "worker thread";

/// Attributes worker thread samples to their callers; returns their number.
pub fn join_workers(profile: &mut Profile) -> u64 {
    let Some(within) = window(profile) else { return 0 };
    let mut joined = 0;
    let mut nodes: FxHashMap<Node, u32> = profile.stacks.iter().copied().zip(0u32..).collect();
    for pool in &POOLS {
        joined += join(profile, pool, within, &mut nodes);
    }
    joined
}

/// Maximum time between two samples, in nanoseconds.
fn window(profile: &Profile) -> Option<u64> {
    if profile.about.rate > 0.0 {
        return Some((PERIODS * 1e9 / profile.about.rate) as u64);
    }
    let timed = |sample: &&crate::model::profile::Sample| {
        profile.events.get(sample.event as usize).is_some_and(|event| event.is_time())
    };
    let longest = profile.samples.iter().filter(timed).map(|sample| sample.weight).max()?;
    Some((PERIODS * longest as f64) as u64)
}

fn join(profile: &mut Profile, pool: &Pool, within: u64, nodes: &mut FxHashMap<Node, u32>) -> u64 {
    let launchers = launcher_nodes(profile, pool);
    let workers = worker_nodes(profile, pool);
    // By process: times inside a launching function, with the stack node.
    let mut calls: FxHashMap<u32, Vec<(u64, u32)>> = FxHashMap::default();
    for sample in &profile.samples {
        let launcher = at(&launchers, sample.stack);
        if let (true, Some(thread)) =
            (launcher != NONE, profile.threads.get(sample.thread as usize))
        {
            calls.entry(thread.pid).or_default().push((sample.time_ns, launcher));
        }
    }
    for times in calls.values_mut() {
        times.sort_unstable();
    }
    let mut moved: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut mark = NONE;
    let mut joined = 0;
    for i in 0..profile.samples.len() {
        let sample = profile.samples[i];
        if !workers.get(sample.stack as usize).copied().unwrap_or(false)
            || sample.state & state::JOINED != 0
        {
            continue;
        }
        let pid = profile.threads.get(sample.thread as usize).map(|thread| thread.pid);
        let Some(times) = pid.and_then(|pid| calls.get(&pid)) else { continue };
        let Some(caller) = nearest(times, sample.time_ns, within) else { continue };
        if mark == NONE {
            mark = mark_frame(profile);
        }
        let stack = match moved.get(&(caller, sample.stack)) {
            Some(&stack) => stack,
            None => {
                let stack = graft(profile, nodes, caller, mark, sample.stack);
                moved.insert((caller, sample.stack), stack);
                stack
            }
        };
        let sample = &mut profile.samples[i];
        (sample.stack, sample.state) = (stack, sample.state | state::JOINED);
        joined += 1;
    }
    joined
}

fn at(nodes: &[u32], stack: u32) -> u32 {
    nodes.get(stack as usize).copied().unwrap_or(NONE)
}

/// For each node, the innermost launching function in its stack.
fn launcher_nodes(profile: &Profile, pool: &Pool) -> Vec<u32> {
    let is_launcher: Vec<bool> = named(profile, |name| {
        pool.launchers.iter().any(|&launcher| match launcher {
            // Also matches `GOMP_parallel_loop_dynamic` and similar; other names must match exactly.
            "GOMP_parallel" => name.starts_with(launcher),
            _ => name == launcher,
        })
    });
    let mut found: Vec<u32> = Vec::with_capacity(profile.stacks.len());
    for (number, node) in (0u32..).zip(&profile.stacks) {
        let own = is_launcher.get(node.frame as usize).copied().unwrap_or(false);
        found.push(if own { number } else { at(&found, node.parent) });
    }
    // Stacks of workers are not callers.
    let workers = worker_nodes(profile, pool);
    for (node, is_worker) in found.iter_mut().zip(workers) {
        if is_worker {
            *node = NONE;
        }
    }
    found
}

/// For each node, whether its stack belongs to a worker and has no Python frames.
fn worker_nodes(profile: &Profile, pool: &Pool) -> Vec<bool> {
    let is_worker = named(profile, |name| pool.workers.contains(&name));
    // Depth, whether a worker function is near the start, whether it contains Python frames.
    let mut nodes: Vec<(usize, bool, bool)> = Vec::with_capacity(profile.stacks.len());
    for node in &profile.stacks {
        let (depth, worker, python) =
            nodes.get(node.parent as usize).map_or((0, false, false), |n| (n.0 + 1, n.1, n.2));
        let own = depth < NEAR_START && is_worker.get(node.frame as usize) == Some(&true);
        let frame = profile.frames.get(node.frame as usize);
        let is_python = frame.is_some_and(|frame| frame.kind == FrameKind::Python);
        nodes.push((depth, worker || own, python || is_python));
    }
    nodes.into_iter().map(|(_, worker, python)| worker && !python).collect()
}

/// For each frame, whether its function name matches.
fn named(profile: &Profile, is_such: impl Fn(&str) -> bool) -> Vec<bool> {
    profile.frames.iter().map(|frame| is_such(profile.texts.get(frame.function))).collect()
}

/// Node of the call that is nearest in time.
fn nearest(times: &[(u64, u32)], time: u64, within: u64) -> Option<u32> {
    let after = times.partition_point(|&(other, _)| other < time);
    let around = [after.checked_sub(1), Some(after)];
    let near = around.into_iter().flatten().filter_map(|i| times.get(i));
    let (other, node) = near.min_by_key(|(other, _)| other.abs_diff(time))?;
    (other.abs_diff(time) <= within).then_some(*node)
}

fn mark_frame(profile: &mut Profile) -> u32 {
    let function = profile.texts.add(MARK);
    let mark =
        Frame { kind: FrameKind::Mark, module: NONE, address: 0, function, file: 0, line: 0 };
    if let Some(known) = profile.frames.iter().position(|frame| *frame == mark) {
        return known as u32;
    }
    profile.frames.push(mark);
    profile.frames.len() as u32 - 1
}

/// Places the worker's stack below the caller's, separated by the mark.
fn graft(
    profile: &mut Profile,
    nodes: &mut FxHashMap<Node, u32>,
    caller: u32,
    mark: u32,
    worker: u32,
) -> u32 {
    let mut frames: Vec<u32> = profile.frames_of(worker).collect();
    frames.push(mark);
    frames.into_iter().rev().fold(caller, |parent, frame| {
        *nodes.entry(Node { parent, frame }).or_insert_with_key(|node| {
            profile.stacks.push(*node);
            profile.stacks.len() as u32 - 1
        })
    })
}
