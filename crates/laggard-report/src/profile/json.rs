//! JSON of a profile, schema `laggard.profile/1`.
//!
//! Times are in nanoseconds, shares are fractions of `whole`, weights are in the unit of the event.
//! Tables are limited to the requested number of rows.

use super::{ProfileReport, Shown, ShownTree, TreeKind};
use crate::rows::kept;
use crate::shape;
use laggard_core::model::profile;
use laggard_core::profile::{ChildrenSummary, Cost, Excluded, Filter, Totals, kernel_families};
use serde::Serialize;
use std::collections::BTreeMap;

pub(super) fn json(report: &ProfileReport) -> String {
    let view = report.view;
    let tables: Vec<&Totals> = match report.shown {
        Shown::Whole(all) => all.iter().collect(),
        Shown::Table(table) => vec![table],
        Shown::Tree(_) => vec![],
    };
    let tree = if let Shown::Tree(tree) = report.shown { Some(tree) } else { None };
    shape::pretty(&Profile {
        schema: "laggard.profile/1",
        file: report.path,
        about: (&view.profile.about).into(),
        losses: report.losses,
        filter: report.filter.into(),
        event: Event { name: view.event_name(), unit: view.unit().word(), is_time: view.is_time() },
        whole: view.whole.into(),
        start_up_hidden: view.start_up.into(),
        quality: Quality::new(report),
        kernels: match report.filter.library {
            Some(_) => {
                kernel_families(view).into_iter().map(|(name, cost)| (name, cost.samples)).collect()
            }
            None => BTreeMap::new(),
        },
        tables: tables.into_iter().map(|t| (t.by.word(), Table::new(t, report.top))).collect(),
        tree: tree.map(|tree| TreeShape::new(tree, report.top)),
    })
}

/// The document.
#[derive(Serialize)]
struct Profile<'a> {
    /// Name and version of the schema.
    schema: &'static str,
    /// The file.
    file: &'a str,
    /// The recorded program.
    about: About<'a>,
    /// Parts of the file that could not be read.
    losses: &'a [String],
    /// Filter of the samples.
    filter: FilterShape<'a>,
    /// Sampled event.
    event: Event<'a>,
    /// All matching samples.
    whole: CostShape,
    /// Excluded start-up samples.
    start_up_hidden: CostShape,
    /// Quality of the recording, over all samples.
    quality: Quality<'a>,
    /// Samples by CPU family of the library's kernels; empty without a library filter.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kernels: BTreeMap<&'static str, u64>,
    /// Tables by grouping.
    tables: BTreeMap<&'static str, Table<'a>>,
    /// Null unless requested.
    tree: Option<TreeShape<'a>>,
}

/// The recorded program.
#[derive(Serialize)]
pub(crate) struct About<'a> {
    command: &'a [String],
    exit_code: Option<i32>,
    started_unix: f64,
    duration_ns: u64,
    user_ns: u64,
    system_ns: u64,
    rate: f64,
    method: &'a str,
    tool: &'a str,
    facts: Vec<Fact<'a>>,
}

#[derive(Serialize)]
struct Fact<'a> {
    name: &'a str,
    value: &'a str,
}

impl<'a> From<&'a profile::About> for About<'a> {
    fn from(about: &'a profile::About) -> About<'a> {
        About {
            command: &about.command,
            exit_code: about.exit_code,
            started_unix: about.started_unix,
            duration_ns: about.duration_ns,
            user_ns: about.user_ns,
            system_ns: about.system_ns,
            rate: about.rate,
            method: &about.method,
            tool: &about.tool,
            facts: about.facts.iter().map(|(name, value)| Fact { name, value }).collect(),
        }
    }
}

#[derive(Serialize)]
struct FilterShape<'a> {
    library: Option<&'a str>,
    thread: Option<&'a str>,
    process: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    event: Option<&'a str>,
    from_ns: Option<u64>,
    to_ns: Option<u64>,
}

impl<'a> From<&'a Filter> for FilterShape<'a> {
    fn from(filter: &'a Filter) -> FilterShape<'a> {
        FilterShape {
            library: filter.library.as_deref(),
            thread: filter.thread.as_deref(),
            process: filter.process.as_deref(),
            pid: filter.pid,
            event: filter.event.as_deref(),
            from_ns: filter.from_ns,
            to_ns: filter.to_ns,
        }
    }
}

#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    /// Unit of weights: ns, bytes or count.
    unit: &'a str,
    /// Whether weights are nanoseconds.
    is_time: bool,
}

#[derive(Serialize)]
struct CostShape {
    samples: u64,
    weight: u64,
}

impl From<Cost> for CostShape {
    fn from(cost: Cost) -> CostShape {
        CostShape { samples: cost.samples, weight: cost.weight }
    }
}

#[derive(Serialize)]
struct Quality<'a> {
    samples: u64,
    /// Number of complete stacks.
    complete: u64,
    lost: u64,
    late: u64,
    unsampled_threads: u64,
    cut: Vec<CutShape<'a>>,
    with_python: u64,
    mismatched: u64,
    joined: u64,
    /// Samples whose innermost native frame has a symbol.
    named: u64,
    with_code: u64,
    cpu_ns: Option<u64>,
    sampled_ns: Option<u64>,
    /// Share of `cpu_ns` without samples.
    kernel_share: Option<f64>,
    /// CPU time without samples by place.
    unsampled: Option<UnsampledShape>,
    children: Option<ChildrenShape<'a>>,
    handler_ns: u64,
    overhead: Option<[f64; 3]>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct UnsampledShape {
    kernel_ns: u64,
    children_ns: u64,
    other_ns: u64,
}

#[derive(Serialize)]
struct ChildrenShape<'a> {
    are_followed: bool,
    followed: u64,
    excluded: Vec<ExcludedShape<'a>>,
}

#[derive(Serialize)]
struct ExcludedShape<'a> {
    program: &'a str,
    reason: &'a str,
    count: u64,
}

impl<'a> From<&'a ChildrenSummary> for ChildrenShape<'a> {
    fn from(children: &'a ChildrenSummary) -> ChildrenShape<'a> {
        let excluded = |one: &'a Excluded| ExcludedShape {
            program: &one.program,
            reason: &one.reason,
            count: one.count,
        };
        ChildrenShape {
            are_followed: children.are_followed,
            followed: children.followed,
            excluded: children.excluded.iter().map(excluded).collect(),
        }
    }
}

#[derive(Serialize)]
struct CutShape<'a> {
    library: &'a str,
    reason: &'a str,
    count: u64,
}

impl<'a> Quality<'a> {
    fn new(report: &ProfileReport<'a>) -> Quality<'a> {
        let q = report.quality;
        let cut = |cut: &'a laggard_core::profile::Cut| CutShape {
            library: &cut.library,
            reason: &cut.reason,
            count: cut.count,
        };
        Quality {
            samples: q.samples,
            complete: q.complete,
            lost: q.lost,
            late: q.late,
            unsampled_threads: q.unsampled_threads,
            cut: q.cut.iter().map(cut).collect(),
            with_python: q.with_python,
            mismatched: q.mismatched,
            joined: q.joined,
            named: q.named.0,
            with_code: q.named.1,
            cpu_ns: q.cpu_ns,
            sampled_ns: q.sampled_ns,
            kernel_share: q.kernel_share,
            unsampled: q.unsampled.map(|unsampled| UnsampledShape {
                kernel_ns: unsampled.kernel_ns,
                children_ns: unsampled.children_ns,
                other_ns: unsampled.other_ns,
            }),
            children: q.children.as_ref().map(ChildrenShape::from),
            handler_ns: q.handler_ns,
            overhead: q.overhead,
            warnings: &q.warnings,
        }
    }
}

#[derive(Serialize)]
struct Table<'a> {
    /// Total number of rows.
    distinct: u64,
    rows: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    /// Parent: library, function or process.
    of: &'a str,
    /// Program, if there are several.
    #[serde(skip_serializing_if = "str::is_empty")]
    command: &'a str,
    self_samples: u64,
    self_weight: u64,
    self_share: f64,
    total_samples: u64,
    total_weight: u64,
    total_share: f64,
}

impl<'a> Table<'a> {
    fn new(totals: &'a Totals, top: Option<usize>) -> Table<'a> {
        let row = |row: &'a laggard_core::profile::Row| Row {
            name: &row.name,
            of: &row.of,
            command: &row.command,
            self_samples: row.own.samples,
            self_weight: row.own.weight,
            self_share: row.own.share_of(totals.whole),
            total_samples: row.total.samples,
            total_weight: row.total.weight,
            total_share: row.total.share_of(totals.whole),
        };
        Table {
            distinct: totals.rows.len() as u64,
            rows: kept(&totals.rows, top).iter().map(row).collect(),
        }
    }
}

#[derive(Serialize)]
struct TreeShape<'a> {
    /// `tree`, `callers`, `callees` or `library`.
    kind: &'static str,
    /// Function or library; null for `tree`.
    of: Option<&'a str>,
    /// Nodes below this share are omitted.
    least_share: f64,
    /// Total number of nodes.
    distinct: u64,
    /// In depth-first order.
    nodes: Vec<NodeShape<'a>>,
}

#[derive(Serialize)]
struct NodeShape<'a> {
    /// 0 for the outermost.
    depth: usize,
    name: &'a str,
    library: &'a str,
    self_samples: u64,
    self_weight: u64,
    total_samples: u64,
    total_weight: u64,
    total_share: f64,
}

impl<'a> TreeShape<'a> {
    fn new(shown: &'a ShownTree, top: Option<usize>) -> TreeShape<'a> {
        let (kind, of) = match &shown.kind {
            TreeKind::TopDown => ("tree", None),
            TreeKind::Callers(of) => ("callers", Some(of.as_str())),
            TreeKind::Callees(of) => ("callees", Some(of.as_str())),
            TreeKind::Library(of) => ("library", Some(of.as_str())),
        };
        let node = |&(depth, node): &(usize, u32)| {
            let node = &shown.tree.nodes[node as usize];
            NodeShape {
                depth,
                name: &node.name,
                library: &node.library,
                self_samples: node.own.samples,
                self_weight: node.own.weight,
                total_samples: node.total.samples,
                total_weight: node.total.weight,
                total_share: node.total.share_of(shown.tree.whole),
            }
        };
        TreeShape {
            kind,
            of,
            least_share: shown.least,
            distinct: shown.tree.nodes.len() as u64 - 1,
            nodes: kept(&shown.tree.walk(shown.least), top).iter().map(node).collect(),
        }
    }
}
