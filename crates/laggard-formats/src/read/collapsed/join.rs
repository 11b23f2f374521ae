//! Merges the trees of all parts and converts the result to a profile.

use super::Counts;
use super::part::{Part, ROOT};
use crate::read::label;
use laggard_core::model::NONE;
use laggard_core::model::profile::{Event, Interner, Node, Profile, Sample, Thread, Unit, state};
use rustc_hash::FxHashMap;

/// Converts all parts to a profile.
pub(super) fn profile(parts: Vec<Part>, counts: Counts) -> Profile {
    let Part { names, nodes, counts: sums, fractions, .. } = joined(parts);
    let mut profile = Profile::default();
    let mut interner = Interner::default();
    profile.events = match counts {
        Counts::One => vec!["samples"],
        Counts::Two => vec!["first", "second"],
    }
    .into_iter()
    .map(|name| Event { name: name.to_owned(), unit: Unit::Count })
    .collect();
    profile.about.method = "collapsed stacks".to_owned();
    let mut frames = Vec::with_capacity(names.len());
    let mut roots = Vec::with_capacity(names.len());
    for number in 0..names.len() as u32 {
        let name = names.get(number);
        let root = Root::of(name);
        frames.push(match root {
            Some(_) => NONE,
            None => {
                let frame = label::frame(name, &mut profile, &mut interner);
                interner.frame(&mut profile, frame)
            }
        });
        roots.push(root);
    }
    profile.threads.push(Thread::default());
    let is_plain = roots.iter().all(Option::is_none);
    let places = if is_plain {
        let node =
            |(parent, name): &(u32, u32)| Node { parent: *parent, frame: frames[*name as usize] };
        profile.stacks = nodes.all.iter().map(node).collect();
        vec![]
    } else {
        places(&nodes.all, &frames, &roots, &mut profile, &mut interner)
    };
    let mut lost = 0;
    let mut rows: FxHashMap<(u32, u32, u32), usize> = FxHashMap::default();
    for (event, sums) in (0u32..).zip(&sums[..counts as usize]) {
        for (node, count) in (0u32..).zip(sums) {
            let count = match fractions.get(&(node, event as usize)) {
                Some(fraction) => count.saturating_add(fraction.round() as u64),
                None => *count,
            };
            if count == 0 {
                lost += u64::from(fractions.contains_key(&(node, event as usize)));
                continue;
            }
            let (stack, thread) = places.get(node as usize).copied().unwrap_or((node, 0));
            let state = if stack == NONE { state::CUT } else { 0 };
            let sample = Sample { time_ns: 0, thread, stack, event, count, weight: count, state };
            if is_plain {
                profile.samples.push(sample);
                continue;
            }
            // Different stacks can become equal when their thread is removed.
            let row = *rows.entry((stack, thread, event)).or_insert(profile.samples.len());
            match profile.samples.get_mut(row) {
                None => profile.samples.push(sample),
                Some(known) => {
                    known.count = known.count.saturating_add(count);
                    known.weight = known.count;
                }
            }
        }
    }
    if lost > 0 {
        let text = format!("stacks skipped because their count rounds to zero: {lost}");
        profile.quality.warnings.push(text);
    }
    // Remove the thread of stacks without a thread if there are no such stacks.
    if profile.threads.len() > 1 && profile.samples.iter().all(|sample| sample.thread > 0) {
        profile.threads.remove(0);
        profile.samples.iter_mut().for_each(|sample| sample.thread -= 1);
    }
    profile
}

/// Merges all parts into the first.
fn joined(parts: Vec<Part>) -> Part {
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_default();
    for part in parts {
        let names: Vec<u32> = (0..part.names.len() as u32)
            .map(|name| all.names.number(part.names.get(name)))
            .collect();
        let known = all.nodes.all.len() as u32;
        let mut nodes: Vec<u32> = Vec::with_capacity(part.nodes.all.len());
        for ((parent, name), hash) in part.nodes.all.into_iter().zip(part.nodes.hashes) {
            let parent = if parent == ROOT { ROOT } else { nodes[parent as usize] };
            // The children of a new node are new, too.
            let is_new = parent != ROOT && parent >= known;
            let found = if is_new { None } else { all.nodes.find(hash) };
            nodes.push(found.unwrap_or_else(|| all.nodes.add(parent, names[name as usize], hash)));
        }
        for (sums, own) in all.counts.iter_mut().zip(&part.counts) {
            if !own.is_empty() {
                sums.resize(all.nodes.all.len(), 0);
            }
            for (node, count) in nodes.iter().zip(own) {
                sums[*node as usize] = sums[*node as usize].saturating_add(*count);
            }
        }
        for ((node, event), fraction) in part.fractions {
            *all.fractions.entry((nodes[node as usize], event)).or_default() += fraction;
        }
    }
    all
}

/// An outermost label that is not a frame.
enum Root {
    /// A process in py-spy output: `process 12:"python app.py"`.
    Process(u32, String),
    /// A thread in py-spy output: `thread (12): name`.
    Thread(u32, String),
    /// A sample without frames, as written by our writer.
    NoStack,
}

impl Root {
    fn of(label: &[u8]) -> Option<Root> {
        if label == label::NO_STACK.as_bytes() {
            return Some(Root::NoStack);
        }
        let is_other = !label.starts_with(b"thread (") && !label.starts_with(b"process ");
        let text = if is_other { None } else { std::str::from_utf8(label).ok() }?;
        if let Some(rest) = text.strip_prefix("thread (") {
            let (number, name) = rest.split_once(')')?;
            let number = match number.strip_prefix("0x") {
                // A pthread id is an address, which does not fit: keep the low 32 bits.
                Some(hex) => u64::from_str_radix(hex, 16).ok()? as u32,
                None => number.parse().ok()?,
            };
            let name = name.strip_prefix(':').unwrap_or(name).trim();
            return Some(Root::Thread(number, name.to_owned()));
        }
        let (number, command) = text.strip_prefix("process ")?.split_once(':')?;
        let command = command.strip_prefix('"')?.strip_suffix('"')?;
        Some(Root::Process(number.parse().ok()?, command.to_owned()))
    }
}

/// Stack and thread of each node, if outermost frames are threads or processes.
fn places(
    nodes: &[(u32, u32)],
    frames: &[u32],
    roots: &[Option<Root>],
    profile: &mut Profile,
    interner: &mut Interner,
) -> Vec<(u32, u32)> {
    let mut threads = FxHashMap::default();
    let mut number = |profile: &mut Profile, thread: Thread| {
        *threads.entry((thread.pid, thread.tid, thread.name)).or_insert_with(|| {
            profile.threads.push(thread);
            profile.threads.len() as u32 - 1
        })
    };
    let mut places: Vec<(u32, u32)> = Vec::with_capacity(nodes.len());
    for (parent, name) in nodes {
        let (above, thread) = places.get(*parent as usize).copied().unwrap_or((NONE, 0));
        let place = match &roots[*name as usize] {
            Some(Root::NoStack) => (above, thread),
            Some(Root::Process(pid, command)) => {
                let process = profile.texts.add(command);
                let of = Thread { pid: *pid, tid: *pid, name: process, process, cpu_ns: 0 };
                (above, number(profile, of))
            }
            Some(Root::Thread(tid, name)) => {
                let mut of = profile.threads[thread as usize].clone();
                (of.tid, of.name) = (*tid, profile.texts.add(name));
                (above, number(profile, of))
            }
            None => (interner.node(profile, above, frames[*name as usize]), thread),
        };
        places.push(place);
    }
    places
}
