//! `Graph`: the call tree of one side or two sides, ready to be drawn.

use laggard_core::compare::diff_tree::DiffTree;
use laggard_core::compare::profile::{ProfileComparison, Scale};
use laggard_core::model::NONE;
use laggard_core::model::profile::{FrameKind, Unit};
use laggard_core::profile::{Functions, View, flat_tree};
use rustc_hash::FxHashMap;

/// A call tree with the weights of each side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// Name of the sampled event.
    pub event: String,
    /// Unit of weights.
    pub unit: Unit,
    /// Empty if weights are for the whole run, `call` if they are per call, or `share` if they are
    /// parts per million of the side's samples.
    pub per: String,
    /// One side, or A and B.
    pub sides: Vec<Side>,
    /// The functions.
    pub functions: Vec<Function>,
    /// The nodes. The first is the root, and parents precede their children.
    pub nodes: Vec<Node>,
    /// Frames that were pruned.
    pub hidden: Hidden,
}

/// A side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Its name.
    pub name: String,
    /// Total weight.
    pub whole: f64,
    /// Number of samples.
    pub samples: u64,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name as displayed.
    pub name: String,
    /// Its library; empty if it has none.
    pub library: String,
    /// Kind of code.
    pub kind: FrameKind,
    /// Source file; empty if unknown.
    pub file: String,
    /// Line in the source file; 0 if unknown.
    pub line: u32,
}

/// A function at one position of the tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// Node of the caller; `NONE` for the root.
    pub parent: u32,
    /// Index of the function; `NONE` for the root.
    pub function: u32,
    /// Self weight by side.
    pub own: [f64; 2],
}

/// Frames that were too small to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hidden {
    /// Number of pruned frames.
    pub nodes: u64,
    /// Share of a side's total below which frames are pruned.
    pub least: f64,
}

impl Graph {
    /// The tree of a view, and the node of each stack of the profile.
    pub fn of_view(view: &View, name: &str) -> (Graph, Vec<u32>) {
        let tree = flat_tree(view);
        let weight = |cost: laggard_core::profile::Cost| match view.whole.weight {
            0 => cost.samples as f64,
            _ => cost.weight as f64,
        };
        let node = |node: &laggard_core::profile::FlatNode| Node {
            parent: node.parent,
            function: node.function,
            own: [weight(node.own), 0.0],
        };
        let graph = Graph {
            event: view.event_name().to_owned(),
            unit: view.unit(),
            per: String::new(),
            sides: vec![Side {
                name: name.to_owned(),
                whole: weight(view.whole),
                samples: view.whole.samples,
            }],
            functions: (0..view.functions.len() as u32)
                .map(|number| Function::of(view, &view.functions, number))
                .collect(),
            nodes: tree.nodes.iter().map(node).collect(),
            hidden: Hidden::default(),
        };
        (graph, tree.of_stack)
    }

    /// The tree of a comparison; `tree` has the scale of the comparison.
    pub fn of_pair(
        tree: &DiffTree,
        comparison: &ProfileComparison,
        names: [&str; 2],
        (event, unit): (&str, Unit),
    ) -> Graph {
        let (unit, per) = match comparison.scale {
            Scale::Time => (Unit::Nanos, ""),
            Scale::Weight => (unit, ""),
            Scale::Samples => (Unit::Count, ""),
            Scale::Share => (Unit::Count, "share"),
            Scale::PerCall(_) => (unit, "call"),
        };
        // Shares are stored in parts per million.
        let factor = if comparison.scale == Scale::Share { 1e6 } else { 1.0 };
        let side = |at: usize| Side {
            name: names[at].to_owned(),
            whole: comparison.whole.amounts[at] * factor,
            samples: comparison.whole.samples[at],
        };
        Graph {
            event: event.to_owned(),
            unit,
            per: per.to_owned(),
            sides: vec![side(0), side(1)],
            functions: tree
                .names
                .iter()
                .map(|function| Function {
                    name: function.name.clone(),
                    library: function.library.clone(),
                    kind: function.kind,
                    file: String::new(),
                    line: 0,
                })
                .collect(),
            nodes: tree
                .nodes
                .iter()
                .map(|node| Node {
                    parent: node.parent,
                    function: node.function,
                    own: node.own.map(|own| own * factor),
                })
                .collect(),
            hidden: Hidden::default(),
        }
    }

    /// Whether weights are parts per million of each side's samples.
    pub(crate) fn is_of_shares(&self) -> bool {
        self.per == "share"
    }

    /// Total weight of each node, including its descendants, by side.
    pub fn totals(&self) -> Vec<[f64; 2]> {
        let mut totals: Vec<[f64; 2]> = self.nodes.iter().map(|node| node.own).collect();
        for at in (1..totals.len()).rev() {
            let ([a, b], parent) = (totals[at], self.nodes[at].parent as usize);
            if let Some(of_parent) = totals.get_mut(parent).filter(|_| parent < at) {
                of_parent[0] += a;
                of_parent[1] += b;
            }
        }
        totals
    }

    /// The larger of a node's shares of both sides.
    fn share(&self, total: [f64; 2]) -> f64 {
        let shares = self.sides.iter().zip(total);
        shares
            .map(|(side, total)| if side.whole > 0.0 { total / side.whole } else { 0.0 })
            .fold(0.0, f64::max)
    }

    /// Prunes frames below a share, and the smallest frames if there are more than `most`. The
    /// pruned children of a node are merged into one node named `(12 smaller)`. Also returns the
    /// new index of each node.
    pub fn pruned(&self, least: f64, most: usize) -> (Graph, Vec<u32>) {
        let totals = self.totals();
        let shares: Vec<f64> = totals.iter().map(|total| self.share(*total)).collect();
        let least = least.max(nth_largest(&shares, most));
        let mut graph = Graph {
            functions: vec![],
            nodes: vec![],
            hidden: Hidden { nodes: 0, least },
            ..self.clone_about()
        };
        let mut functions: FxHashMap<u32, u32> = FxHashMap::default();
        let mut numbers: Vec<u32> = vec![0; self.nodes.len()];
        // By kept parent: the node for its pruned descendants and their number.
        let mut smaller: FxHashMap<u32, (u32, u64)> = FxHashMap::default();
        for (at, node) in self.nodes.iter().enumerate() {
            let parent = numbers.get(node.parent as usize).copied().unwrap_or(NONE);
            let is_below_hidden =
                graph.nodes.get(parent as usize).is_some_and(|parent| parent.function == SMALLER);
            if is_below_hidden {
                numbers[at] = parent;
                graph.nodes[parent as usize].own[0] += node.own[0];
                graph.nodes[parent as usize].own[1] += node.own[1];
                graph.hidden.nodes += 1;
                if let Some((_, count)) = smaller.get_mut(&graph.nodes[parent as usize].parent) {
                    *count += 1;
                }
                continue;
            }
            if at > 0 && shares[at] < least {
                let (number, count) = smaller.entry(parent).or_insert_with(|| {
                    graph.nodes.push(Node { parent, function: SMALLER, own: [0.0; 2] });
                    (graph.nodes.len() as u32 - 1, 0)
                });
                *count += 1;
                numbers[at] = *number;
                graph.nodes[*number as usize].own[0] += node.own[0];
                graph.nodes[*number as usize].own[1] += node.own[1];
                graph.hidden.nodes += 1;
                continue;
            }
            let function = match self.functions.get(node.function as usize) {
                None => NONE,
                Some(function) => *functions.entry(node.function).or_insert_with(|| {
                    graph.functions.push(function.clone());
                    graph.functions.len() as u32 - 1
                }),
            };
            numbers[at] = graph.nodes.len() as u32;
            graph.nodes.push(Node { parent, function, own: node.own });
        }
        let mut remarks: FxHashMap<u64, u32> = FxHashMap::default();
        let mut counts: Vec<(u32, u64)> = smaller.into_values().collect();
        counts.sort_unstable();
        for (number, count) in counts {
            let function = *remarks.entry(count).or_insert_with(|| {
                graph.functions.push(Function::remark(format!("({count} smaller)")));
                graph.functions.len() as u32 - 1
            });
            graph.nodes[number as usize].function = function;
        }
        (graph, numbers)
    }

    /// A copy without functions and nodes.
    fn clone_about(&self) -> Graph {
        Graph {
            event: self.event.clone(),
            unit: self.unit,
            per: self.per.clone(),
            sides: self.sides.clone(),
            ..Graph::default()
        }
    }

    /// The function of a node; `None` for the root.
    pub fn function(&self, node: &Node) -> Option<&Function> {
        self.functions.get(node.function as usize)
    }
}

/// Placeholder for the function of merged frames until their number is known.
const SMALLER: u32 = NONE - 1;

/// The threshold that about `most` shares reach; 0 if there are no more than `most`.
fn nth_largest(shares: &[f64], most: usize) -> f64 {
    if shares.len() <= most || most == 0 {
        return 0.0;
    }
    let mut ordered = shares.to_vec();
    let (_, nth, _) = ordered.select_nth_unstable_by(most, |a, b| b.total_cmp(a));
    let nth = *nth;
    // If many frames have the same share, such as stacks with one sample, none of them is kept.
    let reaching = shares.iter().filter(|share| **share >= nth).count();
    if reaching > most + most / 10 { nth.next_up() } else { nth }
}

impl Function {
    fn of(view: &View, functions: &Functions, number: u32) -> Function {
        let Some(frame) = functions.example(view.profile, number) else {
            return Function::remark("[unknown]".to_owned());
        };
        Function {
            name: functions.label(view.profile, number),
            library: functions.library(frame).to_owned(),
            kind: frame.kind,
            file: view.profile.texts.get(frame.file).to_owned(),
            line: frame.line,
        }
    }

    fn remark(name: String) -> Function {
        Function {
            name,
            library: String::new(),
            kind: FrameKind::Mark,
            file: String::new(),
            line: 0,
        }
    }
}
