//! `cargo xtask bench profiles`: reading profiles of other tools, compared with those tools.
//!
//! Every round runs all peers in random order, so that noise on the machine affects all of them.

use super::summary::range;
use super::{child, document, machine};
use crate::{project, python, system};
use anyhow::{Context, Result, bail};
use laggard_samples::Rng;
use laggard_samples::stacks::{Order, collapsed as collapsed_stacks};
use std::collections::HashSet;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Benchmark reading, drawing and opening of profiles
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs of each peer
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Run only this part
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// Small inputs, few rounds, no update of docs/benchmarks.md
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// perf recordings
    Perf,
    /// Collapsed stacks
    Collapsed,
    /// The HTML page in a browser
    Page,
}

/// Minimum size of the perf recording.
const RECORDING: u64 = 200 << 20;
/// Size of the collapsed stacks.
const COLLAPSED: u64 = 1_000_000_000;
/// Size of collapsed stacks with about a million distinct stacks.
const MILLION: u64 = 1_600_000_000;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let rounds = if args.quick { args.rounds.min(2) } else { args.rounds };
    let lab = Lab { program: project::laggard()?, place: place()?, rounds, quick: args.quick };
    machine::warn_of_load();
    let mut text = format!(
        "## Reading profiles of other tools\n\n{} Each of {rounds} rounds ran all programs in random order. Values are \
         median (min..max); ratios are computed per round. Peak memory includes mapped files.\n",
        machine::describe()
    );
    let mut is_whole = true;
    let wants = |part: Part| args.part.is_none_or(|only| only == part);
    for part in [Part::Perf, Part::Collapsed, Part::Page] {
        if !wants(part) {
            continue;
        }
        let measured = match part {
            Part::Perf => recordings(&lab),
            Part::Collapsed => collapsed(&lab),
            Part::Page => page(&lab),
        };
        match measured {
            Ok(section) => {
                println!("{section}");
                text += &format!("\n{section}");
            }
            Err(error) => {
                eprintln!("skipped: {error:#}");
                is_whole = false;
            }
        }
    }
    if args.quick || args.part.is_some() || !is_whole {
        eprintln!("bench: docs/benchmarks.md not updated (incomplete run)");
    } else {
        let path = document::replace_section("profiles", &text)?;
        eprintln!("bench: wrote {}", project::short(&path));
    }
    Ok(ExitCode::SUCCESS)
}

struct Lab {
    program: PathBuf,
    place: PathBuf,
    rounds: u32,
    quick: bool,
}

fn place() -> Result<PathBuf> {
    let place = project::target()?.join("bench").join("profiles");
    std::fs::create_dir_all(&place)
        .with_context(|| format!("cannot create {}", place.display()))?;
    Ok(place)
}

/// A program and how to run it.
struct Peer {
    label: &'static str,
    command: Box<dyn Fn() -> Result<Command>>,
}

impl Peer {
    fn new(label: &'static str, command: impl Fn() -> Result<Command> + 'static) -> Peer {
        Peer { label, command: Box::new(command) }
    }
}

/// Runs all peers in all rounds and returns a table. The first peer is the reference.
fn take_turns(peers: &[Peer], rounds: u32) -> Result<String> {
    let mut order: Vec<usize> = (0..peers.len()).collect();
    let mut rng = Rng::new(u64::from(rounds));
    let mut runs: Vec<Vec<child::Run>> = peers.iter().map(|_| vec![]).collect();
    for round in 0..rounds {
        rng.shuffle(&mut order);
        for &number in &order {
            eprintln!("bench: round {} of {rounds}: {}", round + 1, peers[number].label);
            let run = child::measure(&mut (peers[number].command)()?);
            runs[number].push(run.with_context(|| format!("{} failed", peers[number].label))?);
        }
    }
    let mut text =
        "| | wall, s | CPU, s | peak memory, MB | wall, × laggard |\n|---|--:|--:|--:|--:|\n"
            .to_owned();
    for (number, peer) in peers.iter().enumerate() {
        let values = |of: fn(&child::Run) -> f64| runs[number].iter().map(of).collect::<Vec<f64>>();
        let ratios: Vec<f64> =
            runs[number].iter().zip(&runs[0]).map(|(run, ours)| run.wall_s / ours.wall_s).collect();
        text += &format!(
            "| {} | {} | {} | {} | {} |\n",
            peer.label,
            range(&values(|run| run.wall_s), 3),
            range(&values(|run| run.cpu_s), 3),
            range(&values(|run| run.peak_bytes as f64 / 1e6), 0),
            if number == 0 { "1".to_owned() } else { range(&ratios, 2) },
        );
    }
    Ok(text)
}

/// A perf recording with stack copies, of a C++ program with debug info.
fn recordings(lab: &Lab) -> Result<String> {
    system::ensure_debian("linux-perf", "perf")?;
    let data = record(lab)?;
    let size = data.metadata()?.len();
    let perf = project::which("perf").context("perf is not in PATH")?;
    let mut peers = vec![];
    let (program, file) = (lab.program.clone(), data.clone());
    peers.push(Peer::new("`laggard report`, with inlined frames and lines", move || {
        let mut report = Command::new(&program);
        report.args(["report", "--no-progress"]).arg(&file);
        Ok(report)
    }));
    for (label, flag) in
        [("`perf script`", None), ("`perf script --no-inline`", Some("--no-inline"))]
    {
        let (perf, file) = (perf.clone(), data.clone());
        peers.push(Peer::new(label, move || {
            let mut script = Command::new("sh");
            // Output is discarded, so that capturing it is not measured.
            script.args(["-c", "exec \"$0\" script $2 -i \"$1\" > /dev/null 2>&1"]);
            script.arg(&perf).arg(&file).args(flag);
            Ok(script)
        }));
    }
    match installed("samply", "samply") {
        Ok(samply) => {
            let (file, out) = (data, lab.place.join("samply.json.gz"));
            peers.push(Peer::new("`samply import`, without symbolization", move || {
                let mut import = Command::new(&samply);
                import.args(["import", "--save-only", "-o"]).arg(&out).arg(&file);
                Ok(import)
            }));
        }
        Err(error) => eprintln!("skipped: samply: {error:#}"),
    }
    let table = take_turns(&peers, lab.rounds)?;
    Ok(format!("### perf recording, {:.0} MB with stack copies\n\n{table}", size as f64 / 1e6))
}

/// Records the program for longer until the recording is large enough.
fn record(lab: &Lab) -> Result<PathBuf> {
    let source = project::root().join("crates/xtask/src/bench/profiles/words.cpp");
    let program = lab.place.join("words");
    let mut compile = Command::new("c++");
    compile.args(["-O2", "-g", "-o"]).arg(&program).arg(&source);
    project::must(&mut compile).context("cannot build the program to record")?;
    let data = lab.place.join("words.data");
    let wanted = if lab.quick { RECORDING / 8 } else { RECORDING };
    for seconds in [1, 2, 4, 8, 16] {
        let mut record = Command::new("perf");
        record.args([
            "record",
            "-q",
            "-F",
            "1999",
            "-e",
            "cpu-clock",
            "--call-graph",
            "dwarf,32768",
            "-o",
        ]);
        record.arg(&data).arg("--").arg(&program).arg(seconds.to_string()).stdout(Stdio::null());
        project::must(&mut record).context("perf cannot record on this machine")?;
        if data.metadata()?.len() >= wanted {
            return Ok(data);
        }
    }
    bail!("cannot make a recording of {} MB", wanted >> 20)
}

/// Collapsed stacks to a flame graph.
fn collapsed(lab: &Lab) -> Result<String> {
    let file = stacks(lab, COLLAPSED)?;
    let inferno = installed("inferno", "inferno-flamegraph")?;
    let mut peers = vec![];
    let (program, stacks, out) = (lab.program.clone(), file.clone(), lab.place.join("ours.svg"));
    peers.push(Peer::new("`laggard flame`", move || {
        let mut flame = Command::new(&program);
        flame.args(["flame", "--no-progress"]).arg(&stacks).arg("-o").arg(&out);
        Ok(flame)
    }));
    let (stacks, out) = (file.clone(), lab.place.join("inferno.svg"));
    peers.push(Peer::new("`inferno-flamegraph`", move || {
        let mut flame = Command::new("sh");
        flame
            .args(["-c", "exec \"$0\" \"$1\" > \"$2\" 2> /dev/null"])
            .arg(&inferno)
            .arg(&stacks)
            .arg(&out);
        Ok(flame)
    }));
    let table = take_turns(&peers, lab.rounds.min(5))?;
    let size = file.metadata()?.len() as f64 / 1e6;
    Ok(format!("### Collapsed stacks to a flame graph, {size:.0} MB\n\n{table}"))
}

/// Time until the HTML page of a million stacks is ready.
fn page(lab: &Lab) -> Result<String> {
    system::ensure_debian("chromium", "chromium")?;
    let browser = project::which("chromium").context("chromium is not in PATH")?;
    let python = python::ready()?;
    python::install(&python, "playwright")?;
    let (file, page) = (stacks(lab, MILLION)?, lab.place.join("million.html"));
    let mut view = Command::new(&lab.program);
    view.args(["view", "--no-progress", "--force"]).arg(&file).arg("-o").arg(&page);
    let made = child::measure(&mut view)?;
    let script = project::root().join("crates/xtask/src/bench/profiles/ready.py");
    let mut open = Command::new(&python);
    open.arg(script).arg(&page).arg(lab.rounds.to_string()).arg(browser);
    let ready: Vec<f64> =
        child::measure(&mut open)?.stdout.lines().filter_map(|line| line.parse().ok()).collect();
    if ready.is_empty() {
        bail!("the page did not become ready");
    }
    Ok(format!(
        "### HTML page of {} distinct stacks\n\nWritten in {:.2} s from {:.0} MB of collapsed stacks; {:.1} MB in size; \
         ready in Chromium {} ms after opening (n = {}).\n",
        distinct(&file)?,
        made.wall_s,
        file.metadata()?.len() as f64 / 1e6,
        page.metadata()?.len() as f64 / 1e6,
        range(&ready, 0),
        ready.len()
    ))
}

/// Synthetic collapsed stacks of about this size, in the order of py-spy's output.
fn stacks(lab: &Lab, size: u64) -> Result<PathBuf> {
    let size = if lab.quick { size / 50 } else { size };
    let file = lab.place.join(format!("stacks-{}.folded", size / 1_000_000));
    if file.metadata().is_ok_and(|meta| meta.len() >= size) {
        eprintln!("bench: reusing stacks of an earlier run");
    } else {
        eprintln!("bench: generating {} MB of stacks", size / 1_000_000);
        collapsed_stacks(size, 1, Order::Mixed, &mut File::create(&file)?)?;
    }
    Ok(file)
}

/// Number of distinct stacks in a file.
fn distinct(file: &Path) -> Result<usize> {
    let mut known: HashSet<u64> = HashSet::new();
    let mut lines = BufReader::with_capacity(1 << 20, File::open(file)?);
    let mut line = vec![];
    while lines.read_until(b'\n', &mut line)? > 0 {
        let stack = line.iter().rposition(|byte| *byte == b' ').map_or(&line[..], |at| &line[..at]);
        let mut hasher = DefaultHasher::new();
        stack.hash(&mut hasher);
        known.insert(hasher.finish());
        line.clear();
    }
    Ok(known.len())
}

/// A peer from crates.io, built once.
fn installed(package: &str, program: &str) -> Result<PathBuf> {
    let place = project::target()?.join("peers");
    let path = place.join("bin").join(program);
    if !path.is_file() {
        eprintln!("bench: building {package} (takes minutes the first time)");
        let mut install = project::cargo();
        install.args(["install", "--locked", "--quiet", "--root"]).arg(&place).arg(package);
        project::must(&mut install)?;
    }
    Ok(path)
}
