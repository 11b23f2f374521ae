//! Flags for PyTorch traces, which several verbs have.

use super::phase_pattern;
use clap::Args;
use std::path::PathBuf;

/// Which device work to keep, and how traces are read.
#[derive(Args, Debug, Default)]
pub struct TraceArgs {
    /// Keep only device work of this phase (prefill, decode, mixed, forward, backward, optimizer, or your own)
    #[arg(long, value_name = "PHASE")]
    pub phase: Option<String>,
    /// Name a phase by a pattern of annotations, with `*` for anything; may be given again
    #[arg(long, value_name = "NAME=PATTERN", value_parser = phase_pattern)]
    pub phase_pattern: Vec<(String, String)>,
    /// Rules that classify kernels, tried before the built-in ones (TOML)
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Neither read nor write an index
    #[arg(long)]
    pub no_index: bool,
    /// Threads to read with; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
}
