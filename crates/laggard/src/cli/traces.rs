//! Options for PyTorch traces, shared by several verbs.

use super::phase_pattern;
use clap::Args;
use std::path::PathBuf;

/// Phase filter and options for reading traces.
#[derive(Args, Debug, Default)]
pub struct TraceArgs {
    /// Keep only device operations of a phase: prefill, decode, mixed, forward, backward,
    /// optimizer, or a phase defined with --phase-pattern
    #[arg(long, value_name = "PHASE")]
    pub phase: Option<String>,
    /// Define a phase by the annotations that match PATTERN, with `*` as wildcard; repeatable
    #[arg(long, value_name = "NAME=PATTERN", value_parser = phase_pattern)]
    pub phase_pattern: Vec<(String, String)>,
    /// TOML file with rules for kernel classes, applied before the built-in rules
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Do not read or write indexes
    #[arg(long)]
    pub no_index: bool,
    /// Number of threads [default: all CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
}
