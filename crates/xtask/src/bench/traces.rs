//! `cargo xtask bench traces`: loading traces, compared with reading their bytes and with Python.
//!
//! Every round runs all peers in random order, so that noise on the machine affects all of them.

use super::document;
use super::inputs::{Flavour, Input, Kitchen, parse_size};
use super::machine;
use super::peers::{Found, Measurement, Peer, Programs, peers_for};
use super::summary::{self, Row, Series};
use crate::{project, python};
use anyhow::Result;
use laggard_samples::{Rng, Style};
use std::path::Path;
use std::process::ExitCode;

/// Benchmark loading of traces
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Trace sizes in gigabytes; suffix k for mostly kernels
    #[arg(long, value_delimiter = ',', default_value = "0.9,1.1k,2.0", value_name = "GB,…")]
    sizes: Vec<String>,
    /// Runs of each peer; Python runs twice
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Small traces, few rounds, no update of docs/benchmarks.md
    #[arg(long)]
    quick: bool,
}

/// Python is slow and varies little.
const PYTHON_ROUNDS: u32 = 2;
/// Memory that Python needs, as a multiple of the file size.
const PYTHON_MEMORY: f64 = 8.5;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let rounds = if args.quick { args.rounds.min(3) } else { args.rounds };
    let inputs = inputs(args)?;
    let python = python::ready()?;
    let programs = Programs::build(python.clone())?;
    let kitchen = Kitchen::new(python)?;
    machine::warn_of_load();
    let mut text = format!(
        "## Loading traces\n\n{}\n\nTraces: {}. Each of {rounds} rounds ran all programs of a table in random order \
         (Python: {} rounds). CPU is user and system time of all threads. Ratios are computed per round. GB/s and \
         events/s use the median wall time. Peak memory includes the mapped file; anonymous memory does not.\n",
        machine::describe(),
        kitchen.source(),
        PYTHON_ROUNDS.min(rounds),
    );
    for input in &inputs {
        let (file, text_bytes) = kitchen.serve(input)?;
        let rows = summary::rows(&take_turns(&programs, input, &file, rounds));
        let section = section(input, &rows, text_bytes);
        println!("{section}");
        text += &format!("\n{section}");
    }
    if args.quick {
        eprintln!("bench: docs/benchmarks.md not updated (--quick)");
    } else {
        let path = document::replace_section("traces", &text)?;
        eprintln!("bench: wrote {}", project::short(&path));
    }
    Ok(ExitCode::SUCCESS)
}

fn inputs(args: &Args) -> Result<Vec<Input>> {
    let small = if args.quick { 0.05 } else { 0.3 };
    let mut inputs = Vec::new();
    for size in &args.sizes {
        let (gigabytes, flavour) = parse_size(size)?;
        let gigabytes = if args.quick { gigabytes.min(0.1) } else { gigabytes };
        let input = Input { flavour, style: Style::Native, gigabytes, compressed: false };
        if !inputs.iter().any(|other: &Input| other.title() == input.title()) {
            inputs.push(input);
        }
    }
    for style in [Style::Compact, Style::Spaced, Style::Indent2] {
        inputs.push(Input { flavour: Flavour::Host, style, gigabytes: small, compressed: false });
    }
    inputs.push(Input {
        flavour: Flavour::Host,
        style: Style::Native,
        gigabytes: small,
        compressed: true,
    });
    Ok(inputs)
}

/// Runs every peer in every round. A peer that fails is skipped from then on with a warning.
fn take_turns(programs: &Programs, input: &Input, file: &Path, rounds: u32) -> Vec<Series> {
    let mut peers: Vec<Peer> =
        peers_for(input).into_iter().filter(|peer| programs.can_run(*peer)).collect();
    if !machine::has_memory(input.gigabytes * 1e9 * PYTHON_MEMORY) {
        eprintln!("warning: {}: Python skipped, not enough memory", input.title());
        peers.retain(|peer| !peer.is_python());
    }
    let mut series: Vec<Series> =
        peers.iter().map(|peer| Series { peer: *peer, rounds: Vec::new() }).collect();
    warm_up(programs, &peers, file);
    let mut rng = Rng::new(u64::from(rounds));
    let mut failed: Vec<Peer> = Vec::new();
    for round in 0..rounds {
        eprintln!("bench: {}: round {} of {rounds}", input.title(), round + 1);
        rng.shuffle(&mut peers);
        for peer in &peers {
            if failed.contains(peer) || (peer.is_python() && round >= PYTHON_ROUNDS) {
                record(&mut series, *peer, None);
                continue;
            }
            match programs.measure(*peer, file) {
                Ok(measurement) => record(&mut series, *peer, Some(measurement)),
                Err(error) => {
                    eprintln!("warning: {} cannot be measured: {error:#}", peer.label());
                    failed.push(*peer);
                    record(&mut series, *peer, None);
                }
            }
        }
    }
    series
}

fn record(series: &mut [Series], peer: Peer, measurement: Option<Measurement>) {
    if let Some(one) = series.iter_mut().find(|one| one.peer == peer) {
        one.rounds.push(measurement);
    }
}

/// Loads the file into the page cache and writes the index.
fn warm_up(programs: &Programs, peers: &[Peer], file: &Path) {
    let warmers = [Peer::Sum, Peer::SecondReport].into_iter().filter(|peer| peers.contains(peer));
    for peer in warmers {
        // A failure is reported in the first round.
        _ = programs.measure(peer, file);
    }
}

fn section(input: &Input, rows: &[Row], text_bytes: u64) -> String {
    let mut text = format!("### {}\n\n", input.title());
    let counts: Vec<(Peer, Found)> =
        rows.iter().filter_map(|row| Some((row.peer, row.found?))).collect();
    let Some((_, found)) = counts.first() else {
        return text + &summary::table(rows, text_bytes, 0);
    };
    text += &format!(
        "{} events, {} kernels with {} ns in total",
        found.events, found.kernels, found.kernel_ns
    );
    let strangers: Vec<&str> = counts
        .iter()
        .filter(|(_, other)| !other.agrees_with(found))
        .map(|(peer, _)| peer.label())
        .collect();
    if strangers.is_empty() {
        text += &format!("; all {} programs that count them agree.\n\n", counts.len());
    } else {
        eprintln!("warning: {}: different counts: {}", input.title(), strangers.join(", "));
        text += &format!("; **different counts: {}**.\n\n", strangers.join(", "));
    }
    text + &summary::table(rows, text_bytes, found.events)
}
