//! Every verb and flag, defined once: parsing, help, man pages and completions come from here.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use laggard_core::trace::By;
use std::path::PathBuf;

/// Finds out why one implementation lags behind another.
#[derive(Parser, Debug)]
#[command(name = "laggard", version, disable_help_subcommand = true, infer_subcommands = false)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Say what ran: devices, operations, kernels, phases, Python lines, idle time
    Report(ReportArgs),
    /// List the indexes that make later loads of traces instant, or clear them
    Index(IndexArgs),
}

/// Flags that every verb has.
#[derive(Args, Debug, Clone, Copy)]
pub struct Talk {
    /// When to colour the output
    #[arg(long, global = true, display_order = 100, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
    /// Say nothing but results and errors
    #[arg(short, long, global = true, display_order = 100)]
    pub quiet: bool,
    /// Say more about what is done
    #[arg(short, long, global = true, display_order = 100, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Show no progress bar
    #[arg(long, global = true, display_order = 100)]
    pub no_progress: bool,
}

/// When to colour the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Where results go and in which form.
#[derive(Args, Debug, Clone)]
pub struct Output {
    /// Write to a file whose suffix says its form (.txt, .json, .csv, .md); `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Form of standard output, or of a file whose suffix says nothing
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<Format>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
}

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For reading in a terminal
    Text,
    /// For programs, with a versioned schema
    Json,
    /// One table for a spreadsheet
    Csv,
    /// For a web page or an issue
    #[value(alias = "markdown")]
    Md,
}

/// Arguments of `report`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard report trace.json.gz
  laggard report --by python --top 20 trace.json
  laggard report --phase decode trace.json.gz -o decode.json
  laggard report rank0.json.gz rank1.json.gz   (ranks of one job, side by side)
  zcat trace.json.gz | laggard report -")]
pub struct ReportArgs {
    /// PyTorch traces (JSON, plain or compressed), `-` for standard input, or a directory of ranks
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Show one table: device time by this
    #[arg(long, value_parser = by(), value_name = "WHAT")]
    pub by: Option<By>,
    /// Keep only device work of this phase (prefill, decode, mixed, forward, backward, optimizer, or your own)
    #[arg(long, value_name = "PHASE")]
    pub phase: Option<String>,
    /// Name a phase by a pattern of annotations, with `*` for anything; may be given again
    #[arg(long, value_name = "NAME=PATTERN", value_parser = phase_pattern)]
    pub phase_pattern: Vec<(String, String)>,
    /// Rows of each table [default: 10; all ranks]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// All rows of each table
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Show the Python stacks that launched the most device time
    #[arg(long)]
    pub stacks: bool,
    /// List the kernels that no rule caught, by time
    #[arg(long)]
    pub unclassified: bool,
    /// Rules that classify kernels, tried before the built-in ones (TOML)
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Neither read nor write an index
    #[arg(long)]
    pub no_index: bool,
    /// Threads to read with; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// Where to.
    #[command(flatten)]
    pub output: Output,
}

fn by() -> impl TypedValueParser<Value = By> {
    let value = |by: By| PossibleValue::new(by.word()).help(by.meaning());
    let find =
        |word: String| By::ALL.into_iter().find(|by| by.word() == word).ok_or("no such table");
    PossibleValuesParser::new(By::ALL.map(value)).try_map(find)
}

/// Arguments of `index`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  laggard index                    list the indexes here and in the cache directory
  laggard index traces/ --clear    remove those of a directory")]
pub struct IndexArgs {
    /// Traces, indexes or directories; with none, the current directory and the cache directory
    #[arg(value_name = "PLACE")]
    pub places: Vec<PathBuf>,
    /// Remove them
    #[arg(long)]
    pub clear: bool,
    /// Only those that are damaged, or whose trace has changed or is gone
    #[arg(long)]
    pub stale: bool,
    /// List as JSON
    #[arg(long)]
    pub json: bool,
}

fn phase_pattern(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, pattern)) if !name.is_empty() && !pattern.is_empty() => {
            Ok((name.to_owned(), pattern.to_owned()))
        }
        _ => Err("give it as NAME=PATTERN".into()),
    }
}

/// The command tree, for man pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}
