//! `cargo xtask bench python` and `cargo xtask bench fleet`: the Python package compared with the
//! command line, a query compared with DuckDB's JSON reader, and traces of many ranks.

use super::child::{self, Run};
use super::inputs::{Flavour, Input, Kitchen, parse_size};
use super::summary::range;
use super::{document, machine};
use crate::{package, project, python};
use anyhow::{Context, Result};
use laggard_samples::Style;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Benchmark the Python package against the command line
#[derive(clap::Args)]
pub(crate) struct PythonArgs {
    /// Trace sizes in gigabytes; suffix k for mostly kernels
    #[arg(long, value_delimiter = ',', default_value = "0.9,1.1k")]
    sizes: Vec<String>,
    /// Runs of each command
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(2..))]
    rounds: u32,
    /// Small traces, no update of docs/benchmarks.md
    #[arg(long)]
    quick: bool,
}

/// Benchmark many ranks: ingest, table sizes, reports, one and two Spark workers
#[derive(clap::Args)]
pub(crate) struct FleetArgs {
    /// Fewer ranks, no Spark, no update of docs/benchmarks.md
    #[arg(long)]
    quick: bool,
}

/// The interpreter of an environment with the package.
fn environment(is_for_spark: bool) -> Result<PathBuf> {
    let wheel = package::wheel(&python::ready()?)?;
    let mut ready = package::environments(&wheel, is_for_spark)?;
    ready.pop().context("no environment with the package")
}

/// A measured command.
struct Way {
    label: &'static str,
    command: Command,
    runs: Vec<Run>,
}

const LOAD_AND_REPORT: &str =
    "import laggard, sys; print(laggard.load(sys.argv[1], index=False).report())";
const LOAD: &str = "import laggard, sys; laggard.load(sys.argv[1], index=False)";
const AGAIN: &str = "import laggard, sys; print(laggard.load(sys.argv[1]).report())";
const START: &str = "import laggard";
const SQL: &str = "select class, count(*), sum(dur_ns) from kernels group by class order by 3 desc";
/// The same sum by kernel name, since DuckDB has no kernel classes.
const BY_DUCKDB: &str = "import duckdb, sys; print(duckdb.sql(f\"\"\"with e as (select unnest(traceEvents) as e from
read_json('{sys.argv[1]}', columns={{'traceEvents': 'STRUCT(cat VARCHAR, name VARCHAR, dur DOUBLE)[]'}},
maximum_object_size=2147483647)) select e.name, count(*), sum(e.dur) from e where e.cat = 'kernel' group by 1 order by 3
desc\"\"\"))";

pub(crate) fn python(args: &PythonArgs) -> Result<ExitCode> {
    let program = project::laggard()?;
    let with_package = environment(false)?;
    let kitchen = Kitchen::new(python::ready()?)?;
    machine::warn_of_load();
    let mut section = format!(
        "## Python package\n\n{}\n{}. CPU is user and system time of the whole process, including interpreter start-up and imports. Each of {} rounds ran all commands.\n",
        machine::describe(),
        machine::python(&with_package),
        args.rounds,
    );
    let sizes = if args.quick { vec!["0.1".to_owned()] } else { args.sizes.clone() };
    for size in &sizes {
        let (gigabytes, flavour) = parse_size(size)?;
        let input = Input { flavour, style: Style::Native, gigabytes, compressed: false };
        let (trace, _) = kitchen.serve(&input)?;
        let mut ways = ways(&program, &with_package, &trace);
        for _ in 0..args.rounds {
            for way in &mut ways {
                way.runs.push(child::measure(&mut way.command)?);
            }
        }
        write!(section, "\n### {}\n\n{}", input.title(), table(&ways))?;
    }
    // DuckDB reads the whole file as one JSON value, whose size is limited.
    let input =
        Input { flavour: Flavour::Host, style: Style::Native, gigabytes: 0.1, compressed: false };
    let (trace, _) = kitchen.serve(&input)?;
    let mut asked = query_ways(&with_package, &trace);
    for _ in 0..args.rounds.min(3) {
        for way in &mut asked {
            way.runs.push(child::measure(&mut way.command)?);
        }
    }
    write!(section, "\n### Sum by class, {}\n\n{}", input.title(), table(&asked))?;
    finish("python", &section, args.quick)
}

fn with(python: &Path, code: &str, trace: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-c", code]).arg(trace);
    command
}

/// The commands to compare; the first is the reference.
fn ways(program: &Path, python: &Path, trace: &Path) -> Vec<Way> {
    let way = |label, command| Way { label, command, runs: vec![] };
    let mut report = Command::new(program);
    report.args(["report", "--no-index"]).arg(trace);
    let mut again = Command::new(program);
    again.arg("report").arg(trace);
    let mut query = Command::new(python);
    query.args(["-m", "laggard", "query", SQL]).arg(trace);
    vec![
        way("`laggard report --no-index`", report),
        way("`laggard.load(…, index=False).report()`", with(python, LOAD_AND_REPORT, trace)),
        way("`laggard.load(…, index=False)`", with(python, LOAD, trace)),
        way("`laggard report`, with index", again),
        way("`laggard.load(…).report()`, with index", with(python, AGAIN, trace)),
        way("`laggard query`, sum by class, with index", query),
        way("`import laggard`", with(python, START, trace)),
    ]
}

fn query_ways(python: &Path, trace: &Path) -> Vec<Way> {
    let mut query = Command::new(python);
    query.args(["-m", "laggard", "query", "--no-index", SQL]).arg(trace);
    vec![
        Way { label: "`laggard query --no-index`", command: query, runs: vec![] },
        Way {
            label: "DuckDB `read_json`, sum by kernel",
            command: with(python, BY_DUCKDB, trace),
            runs: vec![],
        },
    ]
}

fn table(ways: &[Way]) -> String {
    let mut text = String::from(
        "| | n | CPU s, median (min..max) | wall s, median (min..max) | CPU, × first row (min..max) |\n|---|---:|---:|---:|---:|\n",
    );
    for way in ways {
        let of = |get: fn(&Run) -> f64| way.runs.iter().map(get).collect::<Vec<_>>();
        let ratios: Vec<f64> = way
            .runs
            .iter()
            .zip(&ways[0].runs)
            .map(|(run, first)| run.cpu_s / first.cpu_s)
            .collect();
        text += &format!(
            "| {} | {} | {} | {} | {} |\n",
            way.label,
            way.runs.len(),
            range(&of(|run| run.cpu_s), 3),
            range(&of(|run| run.wall_s), 3),
            range(&ratios, 3),
        );
    }
    text
}

pub(crate) fn fleet(args: &FleetArgs) -> Result<ExitCode> {
    if !args.quick {
        package::ensure_java()?;
    }
    let with_package = environment(!args.quick)?;
    machine::warn_of_load();
    let place = project::target()?.join("bench/fleet");
    std::fs::create_dir_all(&place)
        .with_context(|| format!("cannot create {}", place.display()))?;
    let kitchen = Kitchen::new(python::ready()?)?;
    let (bases, ranks) = kitchen.job()?;
    let mut script = Command::new(&with_package);
    script.arg(project::root().join("crates/laggard-py/benches/fleet.py"));
    script.arg("--laggard-python").arg(&with_package).arg("--out").arg(&place);
    script.arg("--ranks").arg(ranks).arg("--base").args(bases);
    if args.quick {
        script.args(["--only", "size,ingest,report", "--rounds", "3", "--large-mb", "50"]);
    } else {
        script.args(["--trace-mb", "400", "--traces", "10"]);
    }
    let measured = child::measure(&mut script)?;
    let section = format!("## Many ranks\n\n{}\n\n{}", machine::describe(), measured.stdout);
    finish("fleet", &section, args.quick)
}

/// Prints a section, and writes it to the page unless `quick`.
fn finish(name: &str, section: &str, quick: bool) -> Result<ExitCode> {
    println!("{section}");
    if !quick {
        let path = document::replace_section(name, section)?;
        eprintln!("bench: wrote section {name} to {}", project::short(&path));
    }
    Ok(ExitCode::SUCCESS)
}
