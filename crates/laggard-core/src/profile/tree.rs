//! Call trees: top-down, callers and callees of a function, and library trees.

use super::view::contains;
use super::{By, Cost, Missing, View, frame_label, totals};
use crate::model::NONE;
use crate::model::profile::FrameKind;
use rustc_hash::FxHashMap;

/// A call tree. Node 0 is the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Nodes; parents come before their children.
    pub nodes: Vec<TreeNode>,
    /// Total cost, the base of shares.
    pub whole: Cost,
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeNode {
    /// Label.
    pub name: String,
    /// Its library; empty if it has none.
    pub library: String,
    /// Kind of code; a mark for the root.
    pub kind: FrameKind,
    /// Self cost.
    pub own: Cost,
    /// Total cost, with children.
    pub total: Cost,
    /// Indexes of children, by decreasing total cost.
    pub children: Vec<u32>,
}

/// Hidden children of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// Number of hidden children.
    pub nodes: u64,
    /// Their total cost.
    pub cost: Cost,
}

impl Tree {
    /// Children of a node with at least this share of the whole, and the hidden rest.
    pub fn children(&self, node: u32, least: f64) -> (Vec<u32>, Hidden) {
        let mut hidden = Hidden::default();
        let Some(node) = self.nodes.get(node as usize) else { return (vec![], hidden) };
        let kept = node.children.iter().copied().filter(|&child| {
            let total = self.nodes[child as usize].total;
            let is_kept = total.share_of(self.whole) >= least;
            if !is_kept {
                hidden.nodes += 1;
                hidden.cost.add(total);
            }
            is_kept
        });
        (kept.collect(), hidden)
    }

    /// Nodes in depth-first order with their depth, without the root.
    pub fn walk(&self, least: f64) -> Vec<(usize, u32)> {
        let mut order = vec![];
        let mut open: Vec<(usize, u32)> =
            self.children(0, least).0.into_iter().rev().map(|child| (0, child)).collect();
        while let Some((depth, node)) = open.pop() {
            order.push((depth, node));
            let below = self.children(node, least).0;
            open.extend(below.into_iter().rev().map(|child| (depth + 1, child)));
        }
        order
    }
}

/// Key of a node: a function, or a line in one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Function(u32),
    Place(u32),
}

struct Builder<'a, 'p> {
    view: &'a View<'p>,
    tree: Tree,
    known: FxHashMap<(u32, Step), u32>,
    places: FxHashMap<String, u32>,
}

impl<'a, 'p> Builder<'a, 'p> {
    fn new(view: &'a View<'p>, root: &str) -> Builder<'a, 'p> {
        let root = TreeNode {
            name: root.to_owned(),
            library: String::new(),
            kind: FrameKind::Mark,
            own: Cost::default(),
            total: Cost::default(),
            children: vec![],
        };
        let tree = Tree { nodes: vec![root], whole: view.whole };
        Builder { view, tree, known: FxHashMap::default(), places: FxHashMap::default() }
    }

    fn function(&self, frame: u32) -> Step {
        Step::Function(self.view.functions.of(frame))
    }

    /// The Python line of a frame, or its function if there is none.
    fn place(&mut self, frame: u32) -> Step {
        let profile = self.view.profile;
        match profile.frames.get(frame as usize) {
            Some(found) if found.kind == FrameKind::Python => {
                let label = frame_label(profile, found);
                Step::Place(*self.places.entry(label).or_insert(frame))
            }
            _ => self.function(frame),
        }
    }

    /// Adds a path from the root.
    fn add(&mut self, path: impl IntoIterator<Item = Step>, cost: Cost) {
        let mut at = 0;
        self.tree.nodes[0].total.add(cost);
        for step in path {
            at = match self.known.get(&(at, step)) {
                Some(&node) => node,
                None => self.node(at, step),
            };
            self.tree.nodes[at as usize].total.add(cost);
        }
        self.tree.nodes[at as usize].own.add(cost);
    }

    fn node(&mut self, parent: u32, step: Step) -> u32 {
        let (view, number) = (self.view, self.tree.nodes.len() as u32);
        let (frame, name) = match step {
            Step::Function(function) => (
                view.functions.example(view.profile, function),
                view.functions.label(view.profile, function),
            ),
            Step::Place(frame) => {
                let frame = view.profile.frames.get(frame as usize);
                (frame, frame.map_or_else(String::new, |frame| frame_label(view.profile, frame)))
            }
        };
        self.tree.nodes.push(TreeNode {
            name,
            library: frame.map_or("", |frame| view.functions.library(frame)).to_owned(),
            kind: frame.map_or(FrameKind::Native, |frame| frame.kind),
            own: Cost::default(),
            total: Cost::default(),
            children: vec![],
        });
        self.tree.nodes[parent as usize].children.push(number);
        self.known.insert((parent, step), number);
        number
    }

    fn finish(mut self) -> Tree {
        let key: Vec<Cost> = self.tree.nodes.iter().map(|node| node.total).collect();
        for node in &mut self.tree.nodes {
            node.children.sort_by_key(|&child| {
                let cost = key[child as usize];
                (std::cmp::Reverse((cost.weight, cost.samples)), child)
            });
        }
        self.tree
    }
}

/// Frames of a stack, outermost first.
fn outermost_first(view: &View, stack: u32) -> Vec<u32> {
    let mut frames: Vec<u32> = view.profile.frames_of(stack).collect();
    frames.reverse();
    frames
}

/// Tree from the program's entry point to the innermost functions.
pub fn top_down(view: &View) -> Tree {
    let mut builder = Builder::new(view, "all");
    for &(stack, cost) in &view.stacks {
        let path: Vec<Step> =
            outermost_first(view, stack).into_iter().map(|frame| builder.function(frame)).collect();
        builder.add(path, cost);
    }
    builder.finish()
}

/// Tree from a function to its callees.
pub fn callees(view: &View, function: &str) -> Result<Tree, Missing> {
    around(view, function, |frames, at| frames[at..].to_vec())
}

/// Tree from a function to its callers.
pub fn callers(view: &View, function: &str) -> Result<Tree, Missing> {
    around(view, function, |frames, at| frames[..=at].iter().rev().copied().collect())
}

/// Tree of the stacks that contain a function. `path` maps a stack and the index of the function's
/// outermost frame to a path in the tree.
fn around(
    view: &View,
    function: &str,
    path: impl Fn(&[u32], usize) -> Vec<u32>,
) -> Result<Tree, Missing> {
    let wanted = matching(view, function)?;
    let mut builder = Builder::new(view, function);
    for &(stack, cost) in &view.stacks {
        let frames = outermost_first(view, stack);
        let is_wanted =
            |&frame: &u32| wanted.get(view.functions.of(frame) as usize).copied().unwrap_or(false);
        if let Some(at) = frames.iter().position(is_wanted) {
            let path: Vec<Step> =
                path(&frames, at).into_iter().map(|frame| builder.function(frame)).collect();
            builder.add(path, cost);
        }
    }
    Ok(builder.finish())
}

/// Matching functions: those with exactly this name, otherwise those that contain it.
fn matching(view: &View, asked: &str) -> Result<Vec<bool>, Missing> {
    let profile = view.profile;
    let all = 0..view.functions.len() as u32;
    let name = |function: u32| {
        let frame = view.functions.example(profile, function);
        frame.map_or("", |frame| profile.texts.get(frame.function))
    };
    let label = |function: u32| view.functions.label(profile, function);
    let mut wanted: Vec<bool> =
        all.clone().map(|f| name(f) == asked || label(f) == asked).collect();
    if !wanted.contains(&true) {
        wanted = all.map(|f| contains(&label(f), asked)).collect();
    }
    if wanted.contains(&true) {
        return Ok(wanted);
    }
    let there = totals(view, By::Function).rows.into_iter().take(10).map(|row| row.name).collect();
    Err(Missing { what: "function", asked: asked.to_owned(), there })
}

/// Tree from the caller of a library (a Python line, if there is one) over its entry function to the
/// innermost function. The view must be filtered by that library.
pub fn library_tree(view: &View) -> Tree {
    let mut builder = Builder::new(view, "all");
    for &(stack, cost) in &view.stacks {
        // Innermost first: all nodes up to the entry function are in the library or below it.
        let mut nodes = vec![];
        let mut at = stack;
        while let Some(node) = view.profile.stacks.get(at as usize)
            && view.is_in_library(at)
        {
            nodes.push(node.frame);
            at = node.parent;
        }
        let above: Vec<u32> = view.profile.frames_of(at).collect();
        let is_python = |&&frame: &&u32| {
            view.profile.frames.get(frame as usize).is_some_and(|f| f.kind == FrameKind::Python)
        };
        let caller = above.iter().find(is_python).or(above.first()).copied().unwrap_or(NONE);
        let mut path = if caller == NONE { vec![] } else { vec![builder.place(caller)] };
        path.extend(nodes.iter().rev().map(|&frame| builder.function(frame)));
        builder.add(path, cost);
    }
    builder.finish()
}
