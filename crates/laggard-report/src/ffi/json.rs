//! The evidence of a run and its figures, as JSON.

use super::{FfiReport, name_of, tables};
use crate::bench::json::{Pair, pairs};
use crate::shape::pretty_columns;
use laggard_core::ffi::{Cost, Crossing, Known};
use laggard_core::model::ffi::{Cell, Launch, Who};
use serde::Serialize;

#[derive(Serialize)]
struct Shape<'a> {
    /// Name and version of the schema.
    schema: &'static str,
    command: &'a [String],
    /// Name and version of the tool.
    tool: &'a str,
    started_unix: f64,
    facts: Vec<Pair<'a>>,
    pythons: Vec<PythonShape<'a>>,
    /// Build profiles; the first is the reference.
    profiles: Vec<ProfileShape<'a>>,
    bindings: Vec<BindingShape<'a>>,
    /// The reference binding.
    floor: Option<&'a str>,
    builds: Vec<BuildShape<'a>>,
    skipped: Vec<SkippedShape<'a>>,
    categories: Vec<CategoryShape<'a>>,
    /// Measurements and figures.
    cells: Vec<CellShape<'a>>,
    /// Ranking of bindings over all categories.
    standings: Vec<StandingShape<'a>>,
    /// The second build profile compared with the first.
    differences: Vec<DifferenceShape<'a>>,
    crossovers: Vec<CrossoverShape<'a>>,
    profiling: Vec<ProfilingShape<'a>>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct PythonShape<'a> {
    name: &'a str,
    path: &'a str,
    facts: Vec<Pair<'a>>,
}

#[derive(Serialize)]
struct ProfileShape<'a> {
    name: &'a str,
    c_flags: &'a str,
    rust_flags: &'a str,
}

#[derive(Serialize)]
struct BindingShape<'a> {
    name: &'a str,
    about: &'a str,
    /// Whether it is the user's own function.
    is_users: bool,
}

#[derive(Serialize)]
struct BuildShape<'a> {
    binding: &'a str,
    python: &'a str,
    build: &'a str,
    /// Version of the binding's package.
    version: &'a str,
    commands: &'a [String],
    directory: &'a str,
    is_cached: bool,
    libraries: Vec<LibraryShape<'a>>,
}

#[derive(Serialize)]
struct LibraryShape<'a> {
    name: &'a str,
    functions: u64,
    with_frame_pointer: u64,
    callers: u64,
    callers_with_frame_pointer: u64,
    debug_info: &'a str,
}

#[derive(Serialize)]
struct SkippedShape<'a> {
    binding: &'a str,
    python: &'a str,
    build: Option<&'a str>,
    why: &'a str,
    hint: &'a str,
}

#[derive(Serialize)]
struct CategoryShape<'a> {
    name: &'a str,
    group: &'a str,
    about: &'a str,
    size: Option<u64>,
}

/// Times are nanoseconds per call.
#[derive(Serialize)]
struct CellShape<'a> {
    category: &'a str,
    size: Option<u64>,
    /// The caller: name of a binding, `loop`, `null` or `c`.
    who: &'a str,
    build: &'a str,
    python: &'a str,
    statement: &'a str,
    /// Calls across the language boundary per statement.
    calls: u64,
    rank: Option<u64>,
    /// Without loop overhead.
    net_ns: Option<Range>,
    best_ns: Option<f64>,
    cpu_ns: Option<f64>,
    /// With loop overhead.
    gross_ns: Option<f64>,
    first_call_ns: Option<f64>,
    /// Relative to the floor.
    ratio: Option<Range>,
    counters: Vec<CounterShape<'a>>,
    note: &'a str,
    /// Why it was not measured.
    trouble: Option<&'a str>,
    launches: Vec<LaunchShape>,
}

#[derive(Serialize)]
struct CounterShape<'a> {
    name: &'a str,
    /// Per call, without loop overhead.
    per_call: f64,
    source: &'a str,
}

/// One process: times of the statement per batch, with loop overhead.
#[derive(Serialize)]
struct LaunchShape {
    first_ns: f64,
    wall_ns: Vec<f64>,
    cpu_ns: Vec<f64>,
}

#[derive(Serialize)]
struct StandingShape<'a> {
    rank: u64,
    binding: &'a str,
    build: &'a str,
    python: &'a str,
    /// Geometric mean of the ratios to the floor.
    ratio: f64,
    categories: u64,
}

#[derive(Serialize)]
struct DifferenceShape<'a> {
    category: &'a str,
    who: &'a str,
    python: &'a str,
    ratio: Range,
    gap_ns: Range,
    adjusted_p: f64,
    /// Largest difference of the null control, as a share.
    bound: f64,
    /// `slower`, `faster`, `none` or `unknown`.
    cost: &'static str,
    text: String,
}

#[derive(Serialize)]
struct CrossoverShape<'a> {
    binding: &'a str,
    python: &'a str,
    /// `at`, `before`, `after` or `unknown`.
    crossing: &'static str,
    elements: Option<f64>,
    points: Vec<PointShape>,
}

#[derive(Serialize)]
struct PointShape {
    elements: u64,
    call_ns: f64,
    work_ns: f64,
}

#[derive(Serialize)]
struct ProfilingShape<'a> {
    build: &'a str,
    method: &'a str,
    workload: &'a str,
    /// CPU time per call with profiling, divided by that without.
    call_ratio: Option<Range>,
    /// CPU time of whole runs including the recorder, divided by that of the program alone.
    whole_ratio: Option<f64>,
    n: u64,
    samples: u64,
    complete: Option<f64>,
    recorded_bytes: Option<u64>,
    why_not: &'a str,
}

/// A value and its confidence interval, if known.
#[derive(Serialize)]
struct Range {
    middle: f64,
    low: Option<f64>,
    high: Option<f64>,
}

impl From<Known> for Range {
    fn from(of: Known) -> Range {
        Range { middle: of.middle, low: of.range.map(|r| r.0), high: of.range.map(|r| r.1) }
    }
}

/// The run as JSON.
pub fn json(report: &FfiReport) -> String {
    let FfiReport { ffi, figures, .. } = *report;
    let python = |at: usize| ffi.pythons[at].name.as_str();
    let profile = |at: usize| ffi.profiles[at].name.as_str();
    let binding = |at: usize| ffi.bindings[at].name.as_str();
    let category = |at: usize| ffi.categories[at].name.as_str();
    pretty_columns(&Shape {
        schema: "laggard.ffi/1",
        command: &ffi.command,
        tool: &ffi.tool,
        started_unix: ffi.started_unix,
        facts: pairs(&ffi.facts),
        pythons: ffi
            .pythons
            .iter()
            .map(|of| PythonShape { name: &of.name, path: &of.path, facts: pairs(&of.facts) })
            .collect(),
        profiles: ffi
            .profiles
            .iter()
            .map(|of| ProfileShape {
                name: &of.name,
                c_flags: &of.c_flags,
                rust_flags: &of.rust_flags,
            })
            .collect(),
        bindings: ffi
            .bindings
            .iter()
            .map(|of| BindingShape { name: &of.name, about: &of.about, is_users: of.is_users })
            .collect(),
        floor: figures.floor.map(binding),
        builds: ffi
            .builds
            .iter()
            .map(|of| BuildShape {
                binding: binding(of.binding),
                python: python(of.python),
                build: profile(of.profile),
                version: &of.version,
                commands: &of.commands,
                directory: &of.directory,
                is_cached: of.is_cached,
                libraries: of
                    .libraries
                    .iter()
                    .map(|library| LibraryShape {
                        name: &library.name,
                        functions: library.frame_setups.1,
                        with_frame_pointer: library.frame_setups.0,
                        callers: library.of_callers.1,
                        callers_with_frame_pointer: library.of_callers.0,
                        debug_info: &library.debug_info,
                    })
                    .collect(),
            })
            .collect(),
        skipped: ffi
            .skipped
            .iter()
            .map(|of| SkippedShape {
                binding: &of.binding,
                python: python(of.python),
                build: of.profile.map(profile),
                why: &of.why,
                hint: &of.hint,
            })
            .collect(),
        categories: ffi
            .categories
            .iter()
            .map(|of| CategoryShape {
                name: &of.name,
                group: &of.group,
                about: &of.about,
                size: of.size,
            })
            .collect(),
        cells: cells(report),
        standings: figures
            .standings
            .iter()
            .map(|of| StandingShape {
                rank: of.rank as u64,
                binding: binding(of.binding),
                build: profile(of.profile),
                python: python(of.python),
                ratio: of.ratio,
                categories: of.categories as u64,
            })
            .collect(),
        differences: figures
            .differences
            .iter()
            .map(|of| DifferenceShape {
                category: category(of.category),
                who: who(report, of.who),
                python: python(of.python),
                ratio: of.ratio.into(),
                gap_ns: of.gap_ns.into(),
                adjusted_p: of.p,
                bound: of.bound,
                cost: match of.cost {
                    Cost::Slower => "slower",
                    Cost::Faster => "faster",
                    Cost::None { .. } => "none",
                    Cost::Unknown => "unknown",
                },
                text: tables::verdict(of),
            })
            .collect(),
        crossovers: figures
            .crossed
            .iter()
            .map(|of| {
                let (crossing, elements) = match of.crossing {
                    Crossing::At(size) => ("at", Some(size)),
                    Crossing::Before(size) => ("before", Some(size as f64)),
                    Crossing::After(size) => ("after", Some(size as f64)),
                    Crossing::Unknown => ("unknown", None),
                };
                let point = |point: &laggard_core::ffi::Point| PointShape {
                    elements: point.size,
                    call_ns: point.call_ns,
                    work_ns: point.work_ns,
                };
                CrossoverShape {
                    binding: binding(of.binding),
                    python: python(of.python),
                    crossing,
                    elements,
                    points: of.points.iter().map(point).collect(),
                }
            })
            .collect(),
        profiling: ffi
            .overheads
            .iter()
            .map(|of| ProfilingShape {
                build: profile(of.profile),
                method: &of.method,
                workload: &of.workload,
                whole_ratio: of.ratio.map(|_| of.whole),
                call_ratio: of.ratio.map(|ratio| Range {
                    middle: ratio.middle,
                    low: Some(ratio.low),
                    high: Some(ratio.high),
                }),
                n: of.n as u64,
                samples: of.samples,
                complete: of.complete,
                recorded_bytes: of.bytes,
                why_not: &of.why_not,
            })
            .collect(),
        warnings: &ffi.warnings,
    })
}

/// Identifier of a caller. No binding has the name `loop`, `null` or `c`.
fn who<'a>(report: &FfiReport<'a>, who: Who) -> &'a str {
    match who {
        Who::Loop => "loop",
        Who::Null => "null",
        Who::C => "c",
        Who::Binding(_) => name_of(report.ffi, who),
    }
}

fn cells<'a>(report: &FfiReport<'a>) -> Vec<CellShape<'a>> {
    let FfiReport { ffi, figures, .. } = *report;
    let cell = |(cell, figure): (&'a Cell, &'a laggard_core::ffi::Figure)| {
        let measured = |value: f64| figure.net.is_some().then_some(value);
        CellShape {
            category: &ffi.categories[cell.category].name,
            size: ffi.categories[cell.category].size,
            who: who(report, cell.who),
            build: &ffi.profiles[cell.profile].name,
            python: &ffi.pythons[cell.python].name,
            statement: &cell.statement,
            calls: cell.calls,
            rank: figure.rank.map(|rank| rank as u64),
            net_ns: figure.net.map(Range::from),
            best_ns: measured(figure.best_ns),
            cpu_ns: measured(figure.cpu_ns),
            gross_ns: measured(figure.gross_ns),
            first_call_ns: measured(figure.first_ns),
            ratio: figure.ratio.map(Range::from),
            counters: figure
                .counted
                .iter()
                .map(|(name, per_call, source)| CounterShape { name, per_call: *per_call, source })
                .collect(),
            note: &cell.note,
            trouble: cell.trouble.as_deref(),
            launches: cell.launches.iter().map(launch).collect(),
        }
    };
    ffi.cells.iter().zip(&figures.cells).map(cell).collect()
}

fn launch(launch: &Launch) -> LaunchShape {
    // No clock resolves less than a picosecond.
    let short = |ns: f64| (ns * 1e3).round() / 1e3;
    let batches = launch.batches.iter();
    LaunchShape {
        first_ns: launch.first_ns,
        wall_ns: batches.clone().map(|batch| short(batch.per_call(batch.wall_ns))).collect(),
        cpu_ns: batches
            .map(|batch| short(batch.per_call(batch.user_ns + batch.system_ns)))
            .collect(),
    }
}
