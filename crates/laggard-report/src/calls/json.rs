//! JSON of calls, schema `laggard.calls/1`.
//!
//! Times are in nanoseconds, shares are fractions of `whole`. Values that were not measured are null; see
//! `measure`. A quantile has the bounds of its histogram bucket. Tables are limited to the requested
//! number of rows.

use super::{CallsReport, Shown};
use crate::profile::json::About;
use crate::rows::kept;
use crate::shape;
use laggard_core::calls::{
    self, Arguments, Caller, Filter, Measure, PythonLine, PythonLines, Tally, Totals, TreeRow,
    View, blas,
};
use serde::Serialize;
use std::collections::BTreeMap;

pub(super) fn json(report: &CallsReport) -> String {
    let view = report.view;
    let whole = &view.whole;
    let (tables, arguments) = match report.shown {
        Shown::Whole(all, _, arguments) => (all.iter().collect(), Some(arguments)),
        Shown::Table(table) | Shown::Callers(_, table, _) | Shown::Callees(_, table) => {
            (vec![table], None)
        }
        Shown::Arguments(rows) => (vec![], Some(rows)),
        Shown::Tree(_) | Shown::PythonLines(_) | Shown::Histogram(..) => (vec![], None),
    };
    let tree = match report.shown {
        Shown::Tree(rows) => Some(rows),
        _ => None,
    };
    let lines = match report.shown {
        Shown::Whole(_, lines, _) | Shown::Callers(_, _, lines) | Shown::PythonLines(lines) => {
            Some(lines)
        }
        _ => None,
    };
    let of = match report.shown {
        Shown::Callers(function, ..) => Some(("callers", function)),
        Shown::Callees(function, _) => Some(("callees", function)),
        Shown::Histogram(function, _) => Some(("histogram", function)),
        _ => None,
    };
    let histogram = match report.shown {
        Shown::Histogram(_, tally) => Some(Histogram::new(tally, view)),
        _ => None,
    };
    let q = &view.calls.quality;
    shape::pretty(&Calls {
        schema: "laggard.calls/1",
        file: report.path,
        about: (&view.calls.profile.about).into(),
        losses: report.losses,
        filter: report.filter.into(),
        of: of.map(|(what, function)| Of { what, function }),
        measure: view.measure.word(),
        whole: TallyShape::new(whole, whole, view.measure),
        quality: Quality {
            too_deep: q.too_deep,
            table_full: q.table_full,
            not_wrapped: q
                .not_wrapped
                .iter()
                .map(|(function, reason)| NotWrapped { function, reason })
                .collect(),
            cost_ns: q.cost_ns,
            warnings: &view.calls.profile.quality.warnings,
        },
        tables: tables.into_iter().map(|t| (t.by.word(), Table::new(t, report.top))).collect(),
        tree: tree.map(|rows| Tree {
            distinct: rows.len() as u64,
            nodes: kept(rows, report.top).iter().map(|row| Node::new(row, view)).collect(),
        }),
        arguments: arguments.map(|rows| ArgumentTable {
            distinct: rows.len() as u64,
            rows: kept(rows, report.top)
                .iter()
                .map(|row| ArgumentShape::new(row, view.measure))
                .collect(),
        }),
        python_lines: lines
            .map(|lines| kept(&lines.rows, report.top).iter().map(Into::into).collect()),
        python_lines_rest_on: lines.map(Into::into),
        histogram,
    })
}

/// The document.
#[derive(Serialize)]
struct Calls<'a> {
    /// Name and version of the schema.
    schema: &'static str,
    /// The file.
    file: &'a str,
    /// The traced program.
    about: About<'a>,
    /// Parts of the file that could not be read.
    losses: &'a [String],
    /// Filter of the calls.
    filter: FilterShape<'a>,
    /// Function of the requested callers, callees or histogram.
    of: Option<Of<'a>>,
    /// What was measured: `time`, `instructions`, or only `calls`.
    measure: &'static str,
    /// All matching calls.
    whole: TallyShape,
    /// Quality of the call trace, over all calls.
    quality: Quality<'a>,
    /// Tables by grouping.
    tables: BTreeMap<&'static str, Table<'a>>,
    /// Null unless requested.
    tree: Option<Tree<'a>>,
    /// Null unless requested.
    arguments: Option<ArgumentTable<'a>>,
    /// Estimated Python lines; null unless requested.
    python_lines: Option<Vec<PythonLineShape<'a>>>,
    python_lines_rest_on: Option<RestOn>,
    /// Null unless requested.
    histogram: Option<Histogram>,
}

#[derive(Serialize)]
struct FilterShape<'a> {
    library: Option<&'a str>,
    function: Option<&'a str>,
    thread: Option<&'a str>,
    process: Option<&'a str>,
}

impl<'a> From<&'a Filter> for FilterShape<'a> {
    fn from(filter: &'a Filter) -> FilterShape<'a> {
        FilterShape {
            library: filter.library.as_deref(),
            function: filter.function.as_deref(),
            thread: filter.thread.as_deref(),
            process: filter.process.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct Of<'a> {
    what: &'static str,
    function: &'a str,
}

#[derive(Serialize)]
struct Quality<'a> {
    /// Calls that were counted but not timed.
    too_deep: u64,
    /// Calls counted by function, not by call site.
    table_full: u64,
    /// Functions that were not traced.
    not_wrapped: Vec<NotWrapped<'a>>,
    /// Overhead per traced call.
    cost_ns: f64,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct NotWrapped<'a> {
    function: &'a str,
    reason: &'a str,
}

/// Statistics of a set of calls.
#[derive(Serialize)]
pub(crate) struct TallyShape {
    /// Number of calls started.
    calls: u64,
    /// Number of calls that did not return.
    unfinished: u64,
    /// Number of calls with a known duration.
    timed: u64,
    /// Share of all calls.
    calls_share: f64,
    /// Total time. This and the next two are null unless times were measured.
    total_ns: Option<u64>,
    /// Self time, without traced callees.
    self_ns: Option<u64>,
    self_share: Option<f64>,
    /// This and the following durations are null if no call was timed.
    min_ns: Option<u64>,
    median: Option<Quantile>,
    p99: Option<Quantile>,
    max_ns: Option<u64>,
    mean_ns: Option<f64>,
    /// Instructions with callees. This and the following are null unless instructions were counted.
    instructions: Option<u64>,
    instructions_per_call: Option<f64>,
    /// Self instructions; null if the set has only some of a function's calls.
    own_instructions: Option<u64>,
    own_instructions_share: Option<f64>,
}

#[derive(Serialize)]
struct Quantile {
    /// Centre of the bucket.
    ns: u64,
    low_ns: u64,
    high_ns: u64,
}

impl From<calls::Quantile> for Quantile {
    fn from(found: calls::Quantile) -> Quantile {
        Quantile { ns: found.ns, low_ns: found.low_ns, high_ns: found.high_ns }
    }
}

impl TallyShape {
    pub(crate) fn new(tally: &Tally, whole: &Tally, measure: Measure) -> TallyShape {
        let is_timed = measure == Measure::Time;
        TallyShape {
            calls: tally.count,
            unfinished: tally.unfinished,
            timed: tally.timed(),
            calls_share: tally.share_of_calls(whole),
            total_ns: is_timed.then_some(tally.total_ns),
            self_ns: is_timed.then_some(tally.self_ns),
            self_share: is_timed.then(|| tally.share_of(whole)),
            min_ns: tally.min_ns,
            median: tally.median().map(Into::into),
            p99: tally.quantile(0.99).map(Into::into),
            max_ns: tally.max_ns,
            mean_ns: tally.mean_ns(),
            instructions: tally.instructions,
            instructions_per_call: tally.instructions_per_call(),
            own_instructions: tally.own_instructions,
            own_instructions_share: tally.share_of_own(whole),
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
    /// Library, function or thread; by caller, the called function.
    name: &'a str,
    /// Library of a function, process of a thread.
    of: &'a str,
    /// Only for rows by caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    caller: Option<CallerShape<'a>>,
    #[serde(flatten)]
    tally: TallyShape,
}

#[derive(Serialize)]
struct CallerShape<'a> {
    library: &'a str,
    function: &'a str,
    /// Source file and line; empty if unknown.
    place: &'a str,
}

impl<'a> From<&'a Caller> for CallerShape<'a> {
    fn from(caller: &'a Caller) -> CallerShape<'a> {
        let Caller { library, function, place } = caller;
        CallerShape { library, function, place }
    }
}

impl<'a> Table<'a> {
    fn new(totals: &'a Totals, top: Option<usize>) -> Table<'a> {
        let row = |row: &'a calls::Row| Row {
            name: &row.name,
            of: &row.of,
            caller: row.caller.as_ref().map(Into::into),
            tally: TallyShape::new(&row.tally, &totals.whole, totals.measure),
        };
        Table {
            distinct: totals.rows.len() as u64,
            rows: kept(&totals.rows, top).iter().map(row).collect(),
        }
    }
}

#[derive(Serialize)]
struct Tree<'a> {
    /// Total number of nodes.
    distinct: u64,
    /// In depth-first order.
    nodes: Vec<Node<'a>>,
}

#[derive(Serialize)]
struct Node<'a> {
    /// 0 for a calling library, 1 for a calling function, 2 for a called function.
    depth: usize,
    name: &'a str,
    library: &'a str,
    #[serde(flatten)]
    tally: TallyShape,
}

impl<'a> Node<'a> {
    fn new(row: &'a TreeRow, view: &View) -> Node<'a> {
        Node {
            depth: row.depth,
            name: &row.name,
            library: &row.library,
            tally: TallyShape::new(&row.tally, &view.whole, view.measure),
        }
    }
}

#[derive(Serialize)]
struct ArgumentTable<'a> {
    /// Total number of rows.
    distinct: u64,
    rows: Vec<ArgumentShape<'a>>,
}

#[derive(Serialize)]
struct ArgumentShape<'a> {
    function: &'a str,
    library: &'a str,
    values: &'a [i64],
    /// Names of the values; absent if the function is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Vec<&'static str>>,
    calls: u64,
    /// Null unless times were measured.
    total_ns: Option<u64>,
}

impl<'a> ArgumentShape<'a> {
    fn new(row: &'a Arguments, measure: Measure) -> ArgumentShape<'a> {
        ArgumentShape {
            function: &row.function,
            library: &row.library,
            values: &row.values,
            names: blas::parameters(&row.function).map(|all| {
                all.iter().take(row.values.len()).map(|parameter| parameter.name).collect()
            }),
            calls: row.count,
            total_ns: (measure == Measure::Time).then_some(row.total_ns),
        }
    }
}

#[derive(Serialize)]
struct PythonLineShape<'a> {
    /// File and line of the innermost Python caller.
    place: &'a str,
    /// Its Python function.
    caller: &'a str,
    /// The called function.
    function: &'a str,
    library: &'a str,
    estimated_calls: f64,
    /// Share of the calls to the function.
    share: f64,
    /// Number of recorded stacks behind the estimate.
    stacks: u64,
}

impl<'a> From<&'a PythonLine> for PythonLineShape<'a> {
    fn from(line: &'a PythonLine) -> PythonLineShape<'a> {
        let PythonLine { place, caller, function, library, calls, share, stacks } = line;
        PythonLineShape {
            place,
            caller,
            function,
            library,
            estimated_calls: *calls,
            share: *share,
            stacks: *stacks,
        }
    }
}

/// Estimated Python lines.
#[derive(Serialize)]
struct RestOn {
    /// Total number of rows.
    distinct: u64,
    /// Number of recorded stacks.
    stacks: u64,
    /// Calls to functions without recorded stacks.
    unknown_calls: u64,
}

impl From<&PythonLines> for RestOn {
    fn from(lines: &PythonLines) -> RestOn {
        let PythonLines { stacks, unknown_calls, rows } = lines;
        RestOn { distinct: rows.len() as u64, stacks: *stacks, unknown_calls: *unknown_calls }
    }
}

#[derive(Serialize)]
struct Histogram {
    #[serde(flatten)]
    tally: TallyShape,
    classes: Vec<ClassShape>,
}

#[derive(Serialize)]
struct ClassShape {
    low_ns: u64,
    high_ns: u64,
    calls: u64,
}

impl Histogram {
    fn new(tally: &Tally, view: &View) -> Histogram {
        Histogram {
            tally: TallyShape::new(tally, &view.whole, view.measure),
            classes: tally
                .classes()
                .map(|class| ClassShape {
                    low_ns: class.low_ns,
                    high_ns: class.high_ns,
                    calls: class.count,
                })
                .collect(),
        }
    }
}
