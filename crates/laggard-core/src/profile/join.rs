//! Worker threads under the call they work for.
//!
//! A worker of OpenBLAS or OpenMP has no caller of its own. Its samples get the frames of a thread
//! of the same process that was, at about the same time, inside the function that hands work to
//! such workers; a mark stands between the two.

use crate::model::NONE;
use crate::model::profile::{Frame, FrameKind, Node, Profile, state};
use rustc_hash::FxHashMap;

/// Workers of one kind, and the functions that hand them work.
struct Pool {
    /// Function near the start of a worker's stack.
    workers: &'static [&'static str],
    /// How names of functions that wait for workers start.
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

/// How many sampling periods a worker's sample may be away from its caller's.
const PERIODS: f64 = 3.0;
/// How many outermost frames of a stack a worker's function is looked for in.
const NEAR_START: usize = 8;
/// What the mark says.
const MARK: &str = "worker thread";

/// Puts the samples of worker threads under their callers; returns how many.
pub fn join_workers(profile: &mut Profile) -> u64 {
    let Some(within) = window(profile) else { return 0 };
    let mut joined = 0;
    let mut nodes: FxHashMap<Node, u32> = profile.stacks.iter().copied().zip(0u32..).collect();
    for pool in &POOLS {
        joined += join(profile, pool, within, &mut nodes);
    }
    joined
}

/// How far apart in time two samples may be.
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
    // When which process was inside a launcher, and at which node.
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

/// Per node, the innermost node of a launcher at or above it.
fn launcher_nodes(profile: &Profile, pool: &Pool) -> Vec<u32> {
    let is_launcher: Vec<bool> = named(profile, |name| {
        pool.launchers.iter().any(|&launcher| match launcher {
            // `GOMP_parallel_loop_dynamic` and its like; `exec_blas` is a name of its own.
            "GOMP_parallel" => name.starts_with(launcher),
            _ => name == launcher,
        })
    });
    let mut found: Vec<u32> = Vec::with_capacity(profile.stacks.len());
    for (number, node) in (0u32..).zip(&profile.stacks) {
        let own = is_launcher.get(node.frame as usize).copied().unwrap_or(false);
        found.push(if own { number } else { at(&found, node.parent) });
    }
    // A worker's own stack must not be taken for a caller's.
    let workers = worker_nodes(profile, pool);
    for (node, is_worker) in found.iter_mut().zip(workers) {
        if is_worker {
            *node = NONE;
        }
    }
    found
}

/// Per node, whether its stack is that of a worker without Python.
fn worker_nodes(profile: &Profile, pool: &Pool) -> Vec<bool> {
    let is_worker = named(profile, |name| pool.workers.contains(&name));
    // Depth, whether a worker's function was near the start, whether Python is in it.
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

/// Per frame, whether its function has such a name.
fn named(profile: &Profile, is_such: impl Fn(&str) -> bool) -> Vec<bool> {
    profile.frames.iter().map(|frame| is_such(profile.texts.get(frame.function))).collect()
}

/// The node of the call nearest in time.
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

/// The worker's stack below the caller's, with the mark between them.
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
