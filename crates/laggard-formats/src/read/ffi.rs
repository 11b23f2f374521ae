//! Reads the evidence in the JSON of `laggard ffi`.

use crate::error::Error;
use crate::source::Source;
use laggard_core::model::ffi::{
    Binding, Build, Category, Cell, Ffi, Launch, Library, Overhead, Profile, Python, Skipped, Who,
};
use laggard_core::model::timings::{Batch, Counter};
use laggard_core::stats::ratio::Interval;
use serde::Deserialize;
use std::path::PathBuf;

/// Name and version of the format.
pub const SCHEMA: &str = "laggard.ffi/1";

/// Maximum size of a file.
const LARGEST: u64 = 1 << 30;
/// Maximum number of cells. Five interpreters have about 5,000. Cells are looked up linearly.
const MOST_CELLS: usize = 20_000;
/// Times have picosecond precision: with this many calls they are whole nanoseconds.
const CALLS: u64 = 1000;

/// Whether a file with this head contains a result of the suite.
pub fn is_ffi(head: &[u8]) -> bool {
    head.trim_ascii_start().starts_with(b"{")
        && memchr::memmem::find(head, SCHEMA.as_bytes()).is_some()
}

/// Reads a result.
pub fn read(source: Source) -> Result<Ffi, Error> {
    let (path, text) = source.whole(LARGEST)?;
    let damaged = |why: String| Error::NotFfi { path: path.clone(), why };
    let shape: Shape = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if shape.schema != SCHEMA {
        return Err(damaged(format!("its schema is {:?}, not {SCHEMA}", shape.schema)));
    }
    if shape.cells.len() > MOST_CELLS {
        return Err(damaged(format!(
            "it has {} cells, more than any run can have",
            shape.cells.len()
        )));
    }
    shape.evidence(&path)
}

#[derive(Deserialize)]
struct Shape {
    schema: String,
    command: Vec<String>,
    tool: String,
    started_unix: f64,
    facts: Vec<Pair>,
    pythons: Vec<PythonShape>,
    profiles: Vec<ProfileShape>,
    bindings: Vec<BindingShape>,
    builds: Vec<BuildShape>,
    skipped: Vec<SkippedShape>,
    categories: Vec<CategoryShape>,
    cells: Vec<CellShape>,
    profiling: Vec<ProfilingShape>,
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct PythonShape {
    name: String,
    path: String,
    facts: Vec<Pair>,
}

#[derive(Deserialize)]
struct ProfileShape {
    name: String,
    c_flags: String,
    rust_flags: String,
}

#[derive(Deserialize)]
struct BindingShape {
    name: String,
    about: String,
    is_users: bool,
}

#[derive(Deserialize)]
struct BuildShape {
    binding: String,
    python: String,
    build: String,
    version: String,
    commands: Vec<String>,
    directory: String,
    is_cached: bool,
    libraries: Vec<LibraryShape>,
}

#[derive(Deserialize)]
struct LibraryShape {
    name: String,
    functions: u64,
    with_frame_pointer: u64,
    callers: u64,
    callers_with_frame_pointer: u64,
    debug_info: String,
}

#[derive(Deserialize)]
struct SkippedShape {
    binding: String,
    python: String,
    build: Option<String>,
    why: String,
    hint: String,
}

#[derive(Deserialize)]
struct CategoryShape {
    name: String,
    group: String,
    about: String,
    size: Option<u64>,
}

#[derive(Deserialize)]
struct CellShape {
    category: String,
    size: Option<u64>,
    who: String,
    build: String,
    python: String,
    statement: String,
    calls: u64,
    counters: Vec<CounterShape>,
    note: String,
    trouble: Option<String>,
    launches: Vec<LaunchShape>,
}

#[derive(Deserialize)]
struct CounterShape {
    name: String,
    per_call: f64,
    source: String,
}

#[derive(Deserialize)]
struct LaunchShape {
    first_ns: f64,
    wall_ns: Vec<f64>,
    cpu_ns: Vec<f64>,
}

#[derive(Deserialize)]
struct ProfilingShape {
    build: String,
    method: String,
    workload: String,
    call_ratio: Option<Range>,
    whole_ratio: Option<f64>,
    n: usize,
    samples: u64,
    complete: Option<f64>,
    recorded_bytes: Option<u64>,
    why_not: String,
}

#[derive(Deserialize)]
struct Range {
    middle: f64,
    low: Option<f64>,
    high: Option<f64>,
}

/// Names through which parts of a file refer to each other.
struct Names {
    path: PathBuf,
    pythons: Vec<String>,
    profiles: Vec<String>,
    bindings: Vec<String>,
    categories: Vec<(String, Option<u64>)>,
}

impl Names {
    fn place<T: PartialEq + std::fmt::Debug>(
        &self,
        what: &str,
        all: &[T],
        wanted: &T,
    ) -> Result<usize, Error> {
        let why = || format!("it refers to an unknown {what} {wanted:?}");
        let found = all.iter().position(|name| name == wanted);
        found.ok_or_else(|| Error::NotFfi { path: self.path.clone(), why: why() })
    }

    fn python(&self, name: &String) -> Result<usize, Error> {
        self.place("interpreter", &self.pythons, name)
    }

    fn profile(&self, name: &String) -> Result<usize, Error> {
        self.place("build profile", &self.profiles, name)
    }

    fn binding(&self, name: &String) -> Result<usize, Error> {
        self.place("binding", &self.bindings, name)
    }

    fn who(&self, name: &String) -> Result<Who, Error> {
        Ok(match name.as_str() {
            "loop" => Who::Loop,
            "null" => Who::Null,
            "c" => Who::C,
            _ => Who::Binding(self.binding(name)?),
        })
    }
}

fn facts(pairs: Vec<Pair>) -> Vec<(String, String)> {
    pairs.into_iter().map(|pair| (pair.name, pair.value)).collect()
}

impl Shape {
    fn evidence(self, path: &std::path::Path) -> Result<Ffi, Error> {
        let names = Names {
            path: path.to_owned(),
            pythons: self.pythons.iter().map(|of| of.name.clone()).collect(),
            profiles: self.profiles.iter().map(|of| of.name.clone()).collect(),
            bindings: self.bindings.iter().map(|of| of.name.clone()).collect(),
            categories: self.categories.iter().map(|of| (of.name.clone(), of.size)).collect(),
        };
        let builds = self.builds.into_iter().map(|of| build(of, &names));
        let skipped = self.skipped.into_iter().map(|of| skipped(of, &names));
        let cells = self.cells.into_iter().map(|of| cell(of, &names));
        let overheads = self.profiling.into_iter().map(|of| overhead(of, &names));
        let mut ffi = Ffi {
            builds: builds.collect::<Result<_, _>>()?,
            skipped: skipped.collect::<Result<_, _>>()?,
            cells: cells.collect::<Result<_, _>>()?,
            overheads: overheads.collect::<Result<_, _>>()?,
            command: self.command,
            tool: self.tool,
            started_unix: self.started_unix,
            facts: facts(self.facts),
            pythons: self
                .pythons
                .into_iter()
                .map(|of| Python { name: of.name, path: of.path, facts: facts(of.facts) })
                .collect(),
            profiles: self
                .profiles
                .into_iter()
                .map(|of| Profile { name: of.name, c_flags: of.c_flags, rust_flags: of.rust_flags })
                .collect(),
            bindings: self
                .bindings
                .into_iter()
                .map(|of| Binding { name: of.name, about: of.about, is_users: of.is_users })
                .collect(),
            categories: self
                .categories
                .into_iter()
                .map(|of| Category {
                    name: of.name,
                    group: of.group,
                    about: of.about,
                    calls: 1,
                    size: of.size,
                })
                .collect(),
            warnings: self.warnings,
        };
        put_loops_back(&mut ffi);
        Ok(ffi)
    }
}

/// The file has counts per call without the loop. Evidence has counts of whole statements.
fn put_loops_back(ffi: &mut Ffi) {
    let loops: Vec<Cell> = ffi.cells.iter().filter(|cell| cell.who == Who::Loop).cloned().collect();
    for cell in &mut ffi.cells {
        let is_around = |of: &&Cell| (of.category, of.python) == (cell.category, cell.python);
        let around =
            loops.iter().find(is_around).filter(|_| !matches!(cell.who, Who::Loop | Who::C));
        for counter in &mut cell.counters {
            let same = |of: &&Counter| of.name == counter.name;
            let of_loop = around.and_then(|around| around.counters.iter().find(same));
            let whole = counter.per_call + of_loop.map_or(0.0, |of| of.per_call);
            counter.per_call = whole * cell.calls.max(1) as f64;
        }
    }
}

fn build(of: BuildShape, names: &Names) -> Result<Build, Error> {
    let library = |of: LibraryShape| Library {
        name: of.name,
        frame_setups: (of.with_frame_pointer, of.functions),
        of_callers: (of.callers_with_frame_pointer, of.callers),
        debug_info: of.debug_info,
    };
    Ok(Build {
        binding: names.binding(&of.binding)?,
        python: names.python(&of.python)?,
        profile: names.profile(&of.build)?,
        version: of.version,
        commands: of.commands,
        directory: of.directory,
        is_cached: of.is_cached,
        libraries: of.libraries.into_iter().map(library).collect(),
    })
}

fn skipped(of: SkippedShape, names: &Names) -> Result<Skipped, Error> {
    Ok(Skipped {
        binding: of.binding,
        python: names.python(&of.python)?,
        profile: of.build.as_ref().map(|name| names.profile(name)).transpose()?,
        why: of.why,
        hint: of.hint,
    })
}

fn cell(of: CellShape, names: &Names) -> Result<Cell, Error> {
    let counter =
        |of: CounterShape| Counter { name: of.name, per_call: of.per_call, source: of.source };
    Ok(Cell {
        category: names.place("category", &names.categories, &(of.category, of.size))?,
        python: names.python(&of.python)?,
        profile: names.profile(&of.build)?,
        who: names.who(&of.who)?,
        statement: of.statement,
        calls: of.calls,
        note: of.note,
        launches: of.launches.iter().map(launch).collect(),
        counters: of.counters.into_iter().map(counter).collect(),
        trouble: of.trouble,
    })
}

fn launch(of: &LaunchShape) -> Launch {
    let whole = |ns: f64| (ns.max(0.0) * CALLS as f64).round() as u64;
    let batch = |(round, (wall, cpu)): (u32, (&f64, &f64))| Batch {
        round,
        calls: CALLS,
        wall_ns: whole(*wall),
        user_ns: whole(*cpu),
        ..Batch::default()
    };
    let batches = (0..).zip(of.wall_ns.iter().zip(&of.cpu_ns)).map(batch).collect();
    Launch { first_ns: of.first_ns, batches }
}

fn overhead(of: ProfilingShape, names: &Names) -> Result<Overhead, Error> {
    let interval = |range: Range| Interval {
        middle: range.middle,
        low: range.low.unwrap_or(range.middle),
        high: range.high.unwrap_or(range.middle),
    };
    Ok(Overhead {
        profile: names.profile(&of.build)?,
        method: of.method,
        workload: of.workload,
        ratio: of.call_ratio.map(interval),
        whole: of.whole_ratio.unwrap_or(1.0),
        n: of.n,
        samples: of.samples,
        complete: of.complete,
        bytes: of.recorded_bytes,
        why_not: of.why_not,
    })
}
