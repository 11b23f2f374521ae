//! The measured programs: parts of laggard's reader, laggard itself, and Python scripts.

use super::child::{self, Run};
use super::inputs::Input;
use crate::project;
use anyhow::{Context, Result};
use laggard_samples::Style;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program with its arguments, except for the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// Sums the bytes of the file: the lower bound for reading it.
    Sum,
    /// Decompresses the file and discards the content.
    Inflate,
    /// Scans the fields of all events.
    Scan,
    /// Builds all tables, all threads.
    Load,
    /// Builds all tables, one thread.
    LoadOneThread,
    /// Builds all tables, one thread, with the portable fallback for SIMD code.
    LoadPortable,
    /// `laggard report` without an index.
    Report,
    /// `laggard report` with an index.
    SecondReport,
    /// `laggard report` with an index, where its tables are needed.
    SecondBreakdown,
    /// The same analysis in Python.
    Python,
    /// The same without the garbage collector.
    PythonNoCollector,
    /// Only its JSON parser.
    Orjson,
}

impl Peer {
    pub(super) fn label(self) -> &'static str {
        match self {
            Peer::Sum => "byte sum (lower bound)",
            Peer::Inflate => "inflate only (lower bound)",
            Peer::Scan => "scan",
            Peer::Load => "load",
            Peer::LoadOneThread => "load, one thread",
            Peer::LoadPortable => "load, one thread, portable code",
            Peer::Report => "`laggard report --no-index`",
            Peer::SecondReport => "`laggard report`, with index",
            Peer::SecondBreakdown => "`laggard report --by op`, with index",
            Peer::Python => "Python, orjson",
            Peer::PythonNoCollector => "Python, orjson, GC off",
            Peer::Orjson => "`orjson.loads` only",
        }
    }

    /// Whether it is the lower bound that others are compared with.
    pub(super) fn is_limit(self) -> bool {
        matches!(self, Peer::Sum | Peer::Inflate)
    }

    pub(super) fn is_python(self) -> bool {
        matches!(self, Peer::Python | Peer::PythonNoCollector | Peer::Orjson)
    }

    /// Arguments of `loadbench` for parts of the reader, which exclude process start-up.
    fn mode(self) -> Option<&'static [&'static str]> {
        match self {
            Peer::Sum => Some(&["sum"]),
            Peer::Inflate => Some(&["inflate"]),
            Peer::Scan => Some(&["scan"]),
            Peer::Load => Some(&["load", "--threads", ALL]),
            Peer::LoadOneThread => Some(&["load", "--threads", "1"]),
            Peer::LoadPortable => Some(&["load", "--threads", "1", "--portable"]),
            _ => None,
        }
    }
}

/// Placeholder for the number of CPUs.
const ALL: &str = "all";

/// The peers to run on an input.
pub(super) fn peers_for(input: &Input) -> Vec<Peer> {
    if input.compressed {
        return vec![
            Peer::Inflate,
            Peer::Load,
            Peer::LoadOneThread,
            Peer::Report,
            Peer::SecondReport,
            Peer::Python,
            Peer::PythonNoCollector,
        ];
    }
    let mut peers = vec![
        Peer::Sum,
        Peer::Scan,
        Peer::Load,
        Peer::LoadOneThread,
        Peer::LoadPortable,
        Peer::Report,
    ];
    if input.style == Style::Native {
        peers.extend([
            Peer::SecondReport,
            Peer::SecondBreakdown,
            Peer::Python,
            Peer::PythonNoCollector,
            Peer::Orjson,
        ]);
    }
    peers
}

/// Resource usage and result of one run of a peer.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    pub(super) cpu_s: f64,
    pub(super) wall_s: f64,
    pub(super) peak_bytes: u64,
    /// Anonymous memory, if the peer reports it.
    pub(super) anon_bytes: Option<u64>,
    pub(super) found: Option<Found>,
}

/// Counts that a peer reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) events: u64,
    pub(super) kernels: u64,
    pub(super) kernel_ns: u64,
}

impl Found {
    /// Python sums microseconds in floating point, so times may differ in the last digits.
    pub(super) fn agrees_with(&self, other: &Found) -> bool {
        let tolerance = other.kernel_ns / 1_000_000_000 + 1_000;
        self.events == other.events
            && self.kernels == other.kernels
            && self.kernel_ns.abs_diff(other.kernel_ns) <= tolerance
    }
}

/// The programs that peers run.
pub(super) struct Programs {
    laggard: PathBuf,
    loadbench: Option<PathBuf>,
    python: PathBuf,
    baseline: PathBuf,
}

impl Programs {
    /// Builds laggard and the example `loadbench`.
    pub(super) fn build(python: PathBuf) -> Result<Programs> {
        let laggard = project::laggard()?;
        project::must(project::cargo().args([
            "build",
            "--quiet",
            "--release",
            "--workspace",
            "--examples",
        ]))?;
        let loadbench = project::target()?.join("release/examples/loadbench");
        let loadbench = Some(loadbench).filter(|path| path.is_file());
        if loadbench.is_none() {
            eprintln!(
                "warning: the example loadbench was not built; parts of the reader are not measured"
            );
        }
        let baseline = project::root().join("crates/xtask/src/bench/baseline.py");
        Ok(Programs { laggard, loadbench, python, baseline })
    }

    pub(super) fn can_run(&self, peer: Peer) -> bool {
        peer.mode().is_none() || self.loadbench.is_some()
    }

    /// Runs a peer once.
    pub(super) fn measure(&self, peer: Peer, file: &Path) -> Result<Measurement> {
        let run = child::measure(&mut self.command(peer, file)?)?;
        Ok(match peer.mode() {
            Some(_) => of_loadbench(&run)?,
            None => of_process(peer, &run),
        })
    }

    fn command(&self, peer: Peer, file: &Path) -> Result<Command> {
        let program = match peer {
            _ if peer.mode().is_some() => {
                self.loadbench.as_ref().context("loadbench was not built")?
            }
            _ if peer.is_python() => &self.python,
            _ => &self.laggard,
        };
        let mut command = Command::new(program);
        match peer {
            Peer::Report => _ = command.args(["report", "--json", "--no-index"]).arg(file),
            Peer::SecondReport => _ = command.arg("report").arg(file),
            Peer::SecondBreakdown => _ = command.args(["report", "--by", "op"]).arg(file),
            Peer::Python => _ = command.arg(&self.baseline).arg(file),
            Peer::PythonNoCollector => _ = command.arg(&self.baseline).arg(file).arg("--gc-off"),
            Peer::Orjson => _ = command.args(["-c", PARSE]).arg(file),
            _ => {
                if let Some([mode, flags @ ..]) = peer.mode() {
                    let threads =
                        std::thread::available_parallelism().map_or(1, usize::from).to_string();
                    let flags =
                        flags.iter().map(|flag| if *flag == ALL { &threads } else { *flag });
                    command.arg(mode).arg(file).args(flags);
                }
            }
        }
        Ok(command)
    }
}

/// Parses a trace in Python.
const PARSE: &str = "import orjson, sys; orjson.loads(open(sys.argv[1], 'rb').read())";

fn of_loadbench(run: &Run) -> Result<Measurement> {
    let line: Value =
        serde_json::from_str(run.stdout.trim()).context("loadbench did not print one JSON line")?;
    let number = |key: &str| line[key].as_u64();
    Ok(Measurement {
        cpu_s: line["cpu_s"].as_f64().context("loadbench printed no cpu_s")?,
        wall_s: line["wall_s"].as_f64().context("loadbench printed no wall_s")?,
        peak_bytes: run.peak_bytes,
        anon_bytes: number("anon_bytes"),
        // Modes that only read bytes report 0 events.
        found: number("events").filter(|events| *events > 0).map(|events| Found {
            events,
            kernels: number("kernels").unwrap_or_default(),
            kernel_ns: number("kernel_ns").unwrap_or_default(),
        }),
    })
}

fn of_process(peer: Peer, run: &Run) -> Measurement {
    let found = serde_json::from_str(&run.stdout).ok().and_then(|printed: Value| match peer {
        Peer::Report => {
            let totals = &printed["totals"];
            Some(Found {
                events: totals["events"]["count"].as_u64()?,
                kernels: totals["kernels"]["count"].as_u64()?,
                kernel_ns: totals["kernels"]["time_ns"].as_u64()?,
            })
        }
        _ => Some(Found {
            events: printed["events"].as_u64()?,
            kernels: printed["kernels"].as_u64()?,
            kernel_ns: (printed["kernel_us"].as_f64()? * 1000.0).round() as u64,
        }),
    });
    Measurement {
        cpu_s: run.cpu_s,
        wall_s: run.wall_s,
        peak_bytes: run.peak_bytes,
        anon_bytes: None,
        found,
    }
}
