//! `cargo xtask bench ffi`: duration of the FFI suite, agreement of two runs, and a no-op compared
//! with timeit and pyperf.

use super::{child, document, machine, summary};
use crate::{project, python};
use anyhow::{Context, Result, ensure};
use laggard_core::stats::summary::Summary;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Benchmark the FFI suite: duration, agreement of two runs, comparison with timeit and pyperf
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs of each tool on the no-op
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..))]
    rounds: u32,
    /// Skip the two full runs, no update of docs/benchmarks.md
    #[arg(long)]
    quick: bool,
}

/// Bindings whose no-op all tools measure; the first is the floor.
const BINDINGS: [&str; 5] = ["capi", "nanobind", "pyo3", "pybind11", "ctypes"];

struct Lab {
    program: PathBuf,
    python: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let lab = Lab { program: project::laggard()?, python: python::ready()? };
    python::install_bindings(&lab.python);
    python::install(&lab.python, "pyperf").context("cannot install pyperf")?;
    machine::warn_of_load();
    let began = Instant::now();
    lab.laggard(&["build"])?;
    let built = began.elapsed().as_secs_f64();
    let began = Instant::now();
    lab.laggard(&["build"])?;
    let again = began.elapsed().as_secs_f64();
    let (quick, quick_s) = lab.suite(&["--quick"])?;
    let mut section = format!(
        "## FFI suite\n\n{}\n{}.\n\n`laggard ffi build` takes {built:.1} s (about 0.1 s if everything is cached), and {again:.2} s when repeated. `laggard ffi --quick` with {} bindings, {} categories and both build profiles takes {quick_s:.0} s.\n\n",
        machine::describe(),
        machine::python(&lab.python),
        quick["bindings"].as_array().map_or(0, Vec::len),
        plain_categories(&quick),
    );
    section += &peers(&lab, args.rounds)?;
    if !args.quick {
        section += &agreement(&lab)?;
    }
    println!("{section}");
    if !args.quick {
        let path = document::replace_section("ffi", &section)?;
        eprintln!("bench: wrote section ffi to {}", project::short(&path));
    }
    Ok(ExitCode::SUCCESS)
}

impl Lab {
    fn laggard(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(["ffi"]).args(words).arg("--python").arg(&self.python);
        Ok(child::measure(&mut command)?.stdout)
    }

    /// Runs the suite; returns its JSON and duration in seconds.
    fn suite(&self, words: &[&str]) -> Result<(Value, f64)> {
        let began = Instant::now();
        let said = self.laggard(&[&["--quiet", "--json"], words].concat())?;
        Ok((serde_json::from_str(&said)?, began.elapsed().as_secs_f64()))
    }
}

fn plain_categories(run: &Value) -> usize {
    let all = run["categories"].as_array();
    all.map_or(0, |all| all.iter().filter(|of| of["size"].is_null()).count())
}

/// Ratios to the floor for all categories and bindings of the build profile `fast`.
fn ratios(run: &Value) -> BTreeMap<(String, String), f64> {
    let cells = run["cells"].as_array().map_or(&[][..], Vec::as_slice);
    let row = |cell: &Value| {
        let is_row = cell["build"] == "fast" && cell["size"].is_null() && cell["who"] != "null";
        let key = (cell["category"].as_str()?.to_owned(), cell["who"].as_str()?.to_owned());
        Some((key, cell["ratio"]["middle"].as_f64().filter(|_| is_row)?))
    };
    cells.iter().filter_map(row).collect()
}

/// Compares two full runs.
fn agreement(lab: &Lab) -> Result<String> {
    let runs = [lab.suite(&[])?, lab.suite(&[])?];
    let [a, b] = [&runs[0].0, &runs[1].0].map(ratios);
    ensure!(!a.is_empty(), "the suite reported no ratios");
    let mut apart: Vec<(f64, &(String, String))> =
        a.iter().filter_map(|(row, a)| Some(((b.get(row)? / a - 1.0).abs(), row))).collect();
    apart.sort_by(|x, y| y.0.total_cmp(&x.0));
    let within = |share: f64| apart.iter().filter(|(apart, _)| *apart <= share).count();
    let median = Summary::of(&apart.iter().map(|(apart, _)| *apart).collect::<Vec<_>>()).median;
    let mut text = format!(
        "Two full runs took {:.0} and {:.0} s. Of {} ratios to the floor, {} agree within 3 % and {} within 1 %; the median difference is {:.2} %. Largest differences: {}.\n\n",
        runs[0].1,
        runs[1].1,
        apart.len(),
        within(0.03),
        within(0.01),
        median * 100.0,
        apart
            .iter()
            .take(3)
            .map(|(apart, (category, who))| format!(
                "{category} through {who}, {:.1} %",
                apart * 100.0
            ))
            .collect::<Vec<_>>()
            .join("; "),
    );
    text += "| binding | × floor, first run | second run | difference |\n|---|---:|---:|---:|\n";
    let standing = |run: &Value, binding: &Value| {
        let of = run["standings"].as_array()?.iter();
        of.into_iter().find(|of| &of["binding"] == binding && of["build"] == "fast")?["ratio"]
            .as_f64()
    };
    for of in runs[0].0["standings"].as_array().map_or(&[][..], Vec::as_slice) {
        let (Some(a), Some(b)) = (of["ratio"].as_f64(), standing(&runs[1].0, &of["binding"]))
        else {
            continue;
        };
        if of["build"] == "fast" {
            let _ = writeln!(
                text,
                "| {} | {a:.3} | {b:.3} | {:+.1} % |",
                of["binding"].as_str().unwrap_or(""),
                (b / a - 1.0) * 100.0
            );
        }
    }
    for (number, (run, _)) in runs.iter().enumerate() {
        let differences = run["differences"].as_array().map_or(&[][..], Vec::as_slice);
        let nulls: Vec<f64> = differences
            .iter()
            .filter(|of| of["who"] == "null")
            .filter_map(|of| Some(100.0 * (of["ratio"]["middle"].as_f64()? - 1.0)))
            .collect();
        let near = nulls.iter().filter(|apart| apart.abs() <= 1.0).count();
        let costs = |cost: &str| {
            differences.iter().filter(|of| of["who"] != "null" && of["cost"] == cost).count()
        };
        let _ = write!(
            text,
            "\nRun {}: the null control differs between build profiles by {} %, and by at most 1 % in {near} of {} categories. Calls with frame pointers: {} without detectable cost, {} slower, {} faster.",
            number + 1,
            summary::range(&nulls, 2),
            nulls.len(),
            costs("none"),
            costs("slower"),
            costs("faster"),
        );
    }
    Ok(text + "\n")
}

/// Nanoseconds of a no-op by binding.
type Found = BTreeMap<&'static str, f64>;

/// Measures all bindings, given their build directories. Also returns the seconds it took.
type Tool = fn(&Lab, &BTreeMap<&str, PathBuf>) -> Result<(Found, f64)>;

/// Measures the same no-op with laggard, timeit and pyperf, interleaved.
fn peers(lab: &Lab, rounds: u32) -> Result<String> {
    let directories = directories(lab)?;
    let tools: [(&str, Tool); 3] = [
        ("`laggard ffi --quick`", ours),
        ("`python -m timeit`", timeit),
        ("`python -m pyperf timeit --fast`", pyperf),
    ];
    let mut found: Vec<Vec<(Found, f64)>> = vec![vec![]; tools.len()];
    for round in 0..rounds as usize {
        for turn in 0..tools.len() {
            // Each round starts with another tool.
            let at = (turn + round) % tools.len();
            found[at].push(tools[at].1(lab, &directories)?);
        }
    }
    let mut text = format!(
        "No-op through {} bindings, {rounds} interleaved runs of each tool. Times are nanoseconds per call (median over runs). Ratios to the floor are computed per run: median (min..max).\n\n| tool | seconds | {} |\n|---|---:|{}\n",
        BINDINGS.len(),
        BINDINGS.map(|binding| format!("{binding}, ns | × floor")).join(" | "),
        "---:|---:|".repeat(BINDINGS.len())
    );
    for ((name, _), runs) in tools.iter().zip(&found) {
        let seconds: Vec<f64> = runs.iter().map(|(_, seconds)| *seconds).collect();
        let mut row = format!("| {name} | {} |", summary::range(&seconds, 1));
        for binding in BINDINGS {
            let times: Vec<f64> =
                runs.iter().filter_map(|(found, _)| found.get(binding).copied()).collect();
            let ratios: Vec<f64> = runs
                .iter()
                .filter_map(|(found, _)| Some(found.get(binding)? / found.get(BINDINGS[0])?))
                .collect();
            let _ = write!(
                row,
                " {:.1} | {} |",
                Summary::of(&times).median,
                summary::range(&ratios, 2)
            );
        }
        text += &(row + "\n");
    }
    Ok(
        text + "\nlaggard subtracts the loop overhead and interleaves the bindings. timeit and pyperf include the loop overhead and measure one binding after the other.\n\n"
    )
}

/// Build directory of each binding.
fn directories(lab: &Lab) -> Result<BTreeMap<&'static str, PathBuf>> {
    let (run, _) = lab.suite(&[
        "--quick",
        "--profile",
        "fast",
        "--categories",
        "noop",
        "--bindings",
        &BINDINGS.join(","),
        "--iterations",
        "10",
        "--launches",
        "1",
    ])?;
    let builds = run["builds"].as_array().context("the suite reports no builds")?;
    let mut found = BTreeMap::new();
    for binding in BINDINGS {
        let build = builds.iter().find(|build| build["binding"] == binding);
        let directory = build.and_then(|build| build["directory"].as_str());
        found.insert(binding, directory.with_context(|| format!("{binding} is not built"))?.into());
    }
    Ok(found)
}

fn ours(lab: &Lab, _: &BTreeMap<&str, PathBuf>) -> Result<(Found, f64)> {
    let words =
        ["--quick", "--profile", "fast", "--categories", "noop", "--bindings", &BINDINGS.join(",")];
    let (run, seconds) = lab.suite(&words)?;
    let cells = run["cells"].as_array().context("the suite reports no cells")?;
    let net = |binding: &'static str| {
        let cell = cells.iter().find(|cell| cell["who"] == binding && cell["size"].is_null())?;
        Some((binding, cell["net_ns"]["middle"].as_f64()?))
    };
    Ok((BINDINGS.into_iter().filter_map(net).collect(), seconds))
}

/// Set-up code that binds `f` to the no-op of a binding.
fn setup(binding: &str, directory: &Path) -> String {
    format!(
        "import sys; sys.path.insert(0, {:?}); import bench_{binding} as m; f = m.noop",
        directory.to_string_lossy()
    )
}

fn each(
    directories: &BTreeMap<&str, PathBuf>,
    time: impl Fn(&str) -> Result<f64>,
) -> Result<(Found, f64)> {
    let began = Instant::now();
    let mut found = Found::new();
    for binding in BINDINGS {
        let directory = directories.get(binding).context("not built")?;
        found.insert(binding, time(&setup(binding, directory))?);
    }
    Ok((found, began.elapsed().as_secs_f64()))
}

fn timeit(lab: &Lab, directories: &BTreeMap<&str, PathBuf>) -> Result<(Found, f64)> {
    each(directories, |setup| {
        let mut command = Command::new(&lab.python);
        let said =
            child::measure(command.args(["-m", "timeit", "-u", "nsec", "-s", setup, "f()"]))?
                .stdout;
        // `5000000 loops, best of 5: 41.9 nsec per loop`
        let words = said.split("best of 5: ").nth(1).and_then(|rest| rest.split(' ').next());
        words
            .and_then(|word| word.parse().ok())
            .with_context(|| format!("unexpected output of timeit: {said}"))
    })
}

fn pyperf(lab: &Lab, directories: &BTreeMap<&str, PathBuf>) -> Result<(Found, f64)> {
    let room = tempfile::tempdir()?;
    each(directories, |setup| {
        let file = room.path().join("pyperf.json");
        let _ = std::fs::remove_file(&file);
        let mut command = Command::new(&lab.python);
        command
            .args(["-m", "pyperf", "timeit", "--fast", "--quiet", "-s", setup, "f()", "-o"])
            .arg(&file);
        child::measure(&mut command)?;
        let json: Value = serde_json::from_slice(&std::fs::read(&file)?)?;
        let runs = json["benchmarks"][0]["runs"].as_array().context("pyperf reported no runs")?;
        let values: Vec<f64> = runs
            .iter()
            .filter_map(|run| run["values"].as_array())
            .flatten()
            .filter_map(Value::as_f64)
            .collect();
        ensure!(!values.is_empty(), "pyperf reported no values");
        // pyperf itself reports the mean.
        Ok(values.iter().sum::<f64>() / values.len() as f64 * 1e9)
    })
}
