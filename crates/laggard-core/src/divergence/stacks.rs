//! Stacks of one side with their times per call.

use crate::model::NONE;
use crate::model::call_counts::COMPREHENSIONS;
use crate::model::profile::{Frame, FrameKind, Interner, Module, Profile};
use crate::profile::file_name;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Stacks of one side, from the statement inwards. Stacks without the statement, such as those of
/// other threads and of commands, are complete.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stacks {
    /// Code locations.
    pub frames: Vec<StackFrame>,
    /// Node of the caller (`NONE` for the outermost frame) and frame.
    pub nodes: Vec<(u32, u32)>,
    /// Time by innermost node.
    pub spent: Vec<Spent>,
}

/// A code location without its address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "FrameRow", into = "FrameRow")]
pub struct StackFrame {
    /// Kind of code.
    pub kind: FrameKind,
    /// The function; empty if unknown.
    pub name: String,
    /// File of a Python function, or file name of a library.
    pub file: String,
    /// Line in a Python function; 0 for native code.
    pub line: u32,
}

/// A frame in JSON.
type FrameRow = (u8, String, String, u32);

impl From<FrameRow> for StackFrame {
    fn from((kind, name, file, line): FrameRow) -> StackFrame {
        let kind = FrameKind::from_number(kind).unwrap_or(FrameKind::Native);
        StackFrame { kind, name, file, line }
    }
}

impl From<StackFrame> for FrameRow {
    fn from(frame: StackFrame) -> FrameRow {
        (frame.kind as u8, frame.name, frame.file, frame.line)
    }
}

impl StackFrame {
    /// Whether it is the frame of the timed statement, or the loop of the Python package that calls a
    /// timed callable.
    pub(super) fn is_statement(&self) -> bool {
        let is_loop = || self.name == "_repeat" && self.file.ends_with("/laggard/recording.py");
        let is_text = || self.name == "statement" && self.file == "<statement>";
        self.kind == FrameKind::Python && (is_text() || is_loop())
    }
}

/// Time in stacks with the same innermost node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "SpentRow", into = "SpentRow")]
pub struct Spent {
    /// The innermost node; `NONE` if the stack could not be read.
    pub node: u32,
    /// Index in [`crate::culprit::Seen::work`]; 0 if the function is not needed.
    pub work: u32,
    /// Time per call, in nanoseconds.
    pub ns: f64,
    /// Number of samples.
    pub samples: u64,
}

/// A time in JSON.
type SpentRow = (u32, u32, f64, u64);

impl From<SpentRow> for Spent {
    fn from((node, work, ns, samples): SpentRow) -> Spent {
        Spent { node, work, ns, samples }
    }
}

impl From<Spent> for SpentRow {
    fn from(spent: Spent) -> SpentRow {
        (spent.node, spent.work, spent.ns, spent.samples)
    }
}

/// Nodes below this share of the time are merged into their callers.
const LEAST_SHARE: f64 = 0.0005;

impl Stacks {
    /// Stacks of a profile whose interpreter frames are folded. `spent` refers to stacks of the profile.
    pub fn new(profile: &Profile, spent: impl IntoIterator<Item = Spent>) -> Stacks {
        let mut builder = Builder { profile, ..Builder::new(profile) };
        let mut sums: FxHashMap<(u32, u32), Spent> = FxHashMap::default();
        let mut nodes: FxHashMap<u32, u32> = FxHashMap::default();
        for one in spent {
            let node = *nodes.entry(one.node).or_insert_with(|| builder.add(one.node));
            let sum = sums.entry((node, one.work)).or_insert(Spent {
                node,
                work: one.work,
                ns: 0.0,
                samples: 0,
            });
            sum.ns += one.ns;
            sum.samples += one.samples;
        }
        let mut stacks = builder.stacks;
        stacks.spent = sums.into_values().collect();
        stacks.prune();
        stacks
    }

    /// The stacks of several profiles.
    pub(super) fn joined(all: impl Iterator<Item = Stacks>) -> Stacks {
        let mut joined = Stacks::default();
        for stacks in all {
            let (frames, nodes) = (joined.frames.len() as u32, joined.nodes.len() as u32);
            let moved = |node: u32| if node == NONE { NONE } else { node + nodes };
            joined.frames.extend(stacks.frames);
            let of_nodes = stacks.nodes.iter();
            joined.nodes.extend(of_nodes.map(|&(above, frame)| (moved(above), frame + frames)));
            let spent = stacks.spent.iter();
            joined.spent.extend(spent.map(|one| Spent { node: moved(one.node), ..*one }));
        }
        joined
    }

    /// Merges small nodes into their callers and removes nodes and frames that are not used.
    fn prune(&mut self) {
        let mut totals = vec![0.0; self.nodes.len()];
        for spent in &self.spent {
            if let Some(total) = totals.get_mut(spent.node as usize) {
                *total += spent.ns;
            }
        }
        for at in (0..self.nodes.len()).rev() {
            let below = totals[at];
            if let Some(above) = totals.get_mut(self.nodes[at].0 as usize) {
                *above += below;
            }
        }
        let whole: f64 = self.spent.iter().map(|spent| spent.ns).sum();
        let mut kept = Stacks::default();
        let mut frames: FxHashMap<u32, u32> = FxHashMap::default();
        // New node of each old node; small nodes become their callers.
        let mut places = vec![NONE; self.nodes.len()];
        for (at, &(parent, frame)) in self.nodes.iter().enumerate() {
            let above = places.get(parent as usize).copied().unwrap_or(NONE);
            places[at] = above;
            if totals[at] >= LEAST_SHARE * whole || above == NONE {
                let frame = *frames.entry(frame).or_insert_with(|| {
                    kept.frames.push(self.frames[frame as usize].clone());
                    kept.frames.len() as u32 - 1
                });
                kept.nodes.push((above, frame));
                places[at] = kept.nodes.len() as u32 - 1;
            }
        }
        let mut sums: FxHashMap<(u32, u32), Spent> = FxHashMap::default();
        for spent in &self.spent {
            let node = places.get(spent.node as usize).copied().unwrap_or(NONE);
            let sum = sums.entry((node, spent.work)).or_insert(Spent {
                node,
                ns: 0.0,
                samples: 0,
                ..*spent
            });
            sum.ns += spent.ns;
            sum.samples += spent.samples;
        }
        kept.spent = sums.into_values().collect();
        // A stable order, independent of the hash map.
        kept.spent.sort_by_key(|spent| (spent.node, spent.work));
        *self = kept;
    }

    /// Frames of a stack, outermost first.
    pub(crate) fn path(&self, node: u32) -> Vec<u32> {
        /// Frames of deeper stacks are omitted. Damaged files may contain many deep stacks.
        const DEEPEST: usize = 2000;
        const MOST_FRAMES: usize = 10_000_000;
        let deepest = (MOST_FRAMES / self.spent.len().max(1)).min(DEEPEST);
        let mut frames = vec![];
        let mut at = node;
        while frames.len() < deepest
            && let Some(&(parent, frame)) = self.nodes.get(at as usize)
        {
            frames.push(frame);
            // A caller has a smaller number, so this ends for damaged files too.
            at = if parent < at { parent } else { NONE };
        }
        frames.reverse();
        frames
    }
}

/// A profile of frames without samples, for alignment.
pub(super) fn profile_of(frames: &[StackFrame]) -> Profile {
    let mut profile = Profile::default();
    let mut interner = Interner::default();
    for frame in frames {
        let is_python = frame.kind == FrameKind::Python;
        let file = profile.texts.add(&frame.file);
        let module = match is_python {
            true => NONE,
            false => interner.module(&mut profile, Module { path: file, id: 0 }),
        };
        let function = profile.texts.add(&frame.name);
        let file = if is_python { file } else { 0 };
        let frame =
            Frame { kind: frame.kind, module, address: 0, function, file, line: frame.line };
        profile.frames.push(frame);
    }
    profile
}

/// The name of a comprehension's or generator expression's function: `f` for `f.<locals>.<genexpr>`.
/// From Python 3.12 on, comprehensions are part of it.
pub(super) fn enclosing_function(name: &str) -> &str {
    let mut name = name;
    while let Some((function, part)) = name.rsplit_once(".<locals>.")
        && COMPREHENSIONS.contains(&part)
    {
        name = function;
    }
    name
}

/// Converts stacks of a profile.
struct Builder<'a> {
    profile: &'a Profile,
    stacks: Stacks,
    /// Index in `stacks.frames` of each frame of the profile; `NONE` until it is converted.
    of_frame: Vec<u32>,
    frames: FxHashMap<StackFrame, u32>,
    nodes: FxHashMap<(u32, u32), u32>,
}

impl<'a> Builder<'a> {
    fn new(profile: &'a Profile) -> Builder<'a> {
        Builder {
            profile,
            stacks: Stacks::default(),
            of_frame: vec![NONE; profile.frames.len()],
            frames: FxHashMap::default(),
            nodes: FxHashMap::default(),
        }
    }

    /// Adds a stack and returns its innermost node.
    fn add(&mut self, stack: u32) -> u32 {
        let all: Vec<u32> = self.profile.frames_of(stack).filter_map(|at| self.frame(at)).collect();
        let is_statement = |frame: &u32| self.stacks.frames[*frame as usize].is_statement();
        // Innermost first: the last statement is the outermost one.
        let used = all.iter().rposition(is_statement).map_or(all.len(), |at| at + 1);
        let mut node = NONE;
        for &frame in all[..used].iter().rev() {
            node = *self.nodes.entry((node, frame)).or_insert_with_key(|key| {
                self.stacks.nodes.push(*key);
                self.stacks.nodes.len() as u32 - 1
            });
        }
        node
    }

    /// The frame without its address. Inlined functions and marks are omitted.
    fn frame(&mut self, number: u32) -> Option<u32> {
        let frame = self.profile.frames.get(number as usize)?;
        if matches!(frame.kind, FrameKind::Inlined | FrameKind::Mark) {
            return None;
        }
        let known = self.of_frame[number as usize];
        if known != NONE {
            return Some(known);
        }
        let texts = &self.profile.texts;
        let is_python = frame.kind == FrameKind::Python;
        let name = texts.get(frame.function);
        let new = StackFrame {
            kind: frame.kind,
            name: if is_python { enclosing_function(name) } else { name }.to_owned(),
            file: match is_python {
                true => texts.get(frame.file),
                false => file_name(self.profile.module_path(frame)),
            }
            .to_owned(),
            line: if is_python { frame.line } else { 0 },
        };
        let frames = &mut self.stacks.frames;
        let new = *self.frames.entry(new).or_insert_with_key(|new| {
            frames.push(new.clone());
            frames.len() as u32 - 1
        });
        self.of_frame[number as usize] = new;
        Some(new)
    }
}
