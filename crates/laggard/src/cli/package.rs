//! Options of `query` and `fleet`, which only the Python package implements. The package receives
//! them as JSON, with the field names as keys.

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `query`.
#[derive(Args, Debug, Serialize)]
#[command(after_help = "Examples:
  laggard query 'select class, sum(dur_ns) from kernels group by class' trace.json.gz
  laggard query 'select library, sum(weight) from samples group by 1 order by 2 desc' run.lag
  laggard query 'from kernels' -o kernels.parquet ranks/
  laggard query --schema   # list the tables and columns of every kind of file

The SQL dialect is that of DuckDB. Several files are queried as one table with the additional
columns `file` and `rank`. Only columns that the query uses are read.")]
pub struct QueryArgs {
    /// SQL query [default: start a prompt]
    #[arg(value_name = "SQL")]
    pub sql: Option<String>,
    /// Files that `report` reads, or directories of traces
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Read the query from FILE; `-` is standard input
    #[arg(short = 'f', long, value_name = "FILE")]
    pub sql_file: Option<PathBuf>,
    /// List the tables and columns of these files, or of every kind of file
    #[arg(long)]
    pub schema: bool,
    /// Format of standard output, or of FILE if its suffix selects none
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<QueryFormat>,
    /// Write to FILE; the suffix selects the format (.txt, .json, .csv, .parquet, .arrow); `-` is
    /// standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
    /// Maximum rows per table [default: 40]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show all rows of each table
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Do not read or write indexes
    #[arg(long)]
    pub no_index: bool,
    /// TOML file with rules for kernel classes, applied before the built-in rules
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Number of threads [default: all CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
}

/// Format of query results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum QueryFormat {
    /// Text table for terminals
    Table,
    /// Comma-separated values with a header line
    Csv,
    /// JSON array of objects
    Json,
    /// Apache Parquet
    Parquet,
    /// Apache Arrow IPC stream
    Arrow,
}

/// Arguments of `fleet`.
#[derive(Args, Debug, Serialize)]
#[command(after_help = "Examples:
  laggard fleet ingest before/ after/ --to fleet/
  laggard fleet report fleet/ --job after
  laggard fleet compare fleet/ --a before --b after
  laggard fleet report fleet/ --engine spark --master spark://host:7077   # needs a Spark cluster")]
pub struct FleetArgs {
    /// Task.
    #[command(subcommand)]
    pub verb: FleetVerb,
    /// Query engine
    #[arg(long, global = true, value_enum, default_value_t = Engine::Duckdb)]
    pub engine: Engine,
    /// URL of the Spark master, such as spark://HOST:7077, or local[2] for this machine
    #[arg(long, global = true, value_name = "URL")]
    pub master: Option<String>,
    /// Python interpreter of the Spark workers, with laggard installed [default: the current one]
    #[arg(long, global = true, value_name = "PYTHON")]
    pub worker_python: Option<PathBuf>,
}

/// Query engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// DuckDB on this machine
    Duckdb,
    /// Spark, on the cluster given with --master
    Spark,
}

/// Tasks of `fleet`.
#[derive(Subcommand, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetVerb {
    /// Convert the traces of all ranks to Parquet, except ranks that are already converted
    Ingest(FleetIngestArgs),
    /// Report stragglers, collective skew, idle gaps, and slow hosts and GPUs
    Report(FleetReportArgs),
    /// Compare two jobs rank by rank
    Compare(FleetCompareArgs),
}

/// Arguments of `fleet ingest`.
#[derive(Args, Debug, Serialize)]
#[command(after_help = "Examples:
  laggard fleet ingest before/ after/ --to fleet/   # two jobs
  laggard fleet ingest ranks/ --to fleet/ --job baseline")]
pub struct FleetIngestArgs {
    /// Traces or directories of traces; each directory is a job
    #[arg(required = true, value_name = "DIR")]
    pub from: Vec<PathBuf>,
    /// Output directory for the Parquet files
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
    /// Name of the job [default: the name of the directory]
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
    /// Additional tables to write: launches, ops, python, annotations, memory
    #[arg(long, value_name = "TABLE,…", value_delimiter = ',')]
    pub tables: Vec<String>,
    /// TOML file with rules for kernel classes, applied before the built-in rules
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Number of ranks to convert in parallel [default: one per CPU, limited by memory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub jobs: Option<u16>,
    /// Reconvert ranks that are already converted
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `fleet report`.
#[derive(Args, Debug, Serialize)]
#[command(after_help = "Examples:
  laggard fleet report fleet/ --job after
  laggard fleet report fleet/ --job after --top 3 -o report.md")]
pub struct FleetReportArgs {
    /// Directory written by `fleet ingest`
    #[arg(value_name = "DIR")]
    pub fleet: PathBuf,
    /// Job to report [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
    /// Output options.
    #[command(flatten)]
    #[serde(flatten)]
    pub output: FleetOutput,
}

/// Arguments of `fleet compare`.
#[derive(Args, Debug, Serialize)]
#[command(after_help = "Examples:
  laggard fleet compare fleet/ --a before --b after
  laggard fleet compare fleet/ --a before --b after --json")]
pub struct FleetCompareArgs {
    /// Directory written by `fleet ingest`; if two are given, the first is for A, the second for B
    #[arg(required = true, num_args = 1..=2, value_name = "DIR")]
    pub fleet: Vec<PathBuf>,
    /// Reference job [default: the only one in its directory]
    #[arg(long, value_name = "NAME")]
    pub a: Option<String>,
    /// Job to explain [default: the only one in its directory]
    #[arg(long, value_name = "NAME")]
    pub b: Option<String>,
    /// Output options.
    #[command(flatten)]
    #[serde(flatten)]
    pub output: FleetOutput,
}

/// Output options of `fleet report` and `fleet compare`.
#[derive(Args, Debug, Serialize)]
pub struct FleetOutput {
    /// Maximum rows per table [default: 10]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show all rows of each table
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Format of standard output, or of FILE if its suffix selects none
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<FleetFormat>,
    /// Same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Write to FILE; the suffix selects the format (.txt, .json, .md); `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
}

/// Format of `fleet report` and `fleet compare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetFormat {
    /// Text for terminals
    Text,
    /// JSON with a versioned schema
    Json,
    /// Markdown, for issues and web pages
    #[value(alias = "markdown")]
    Md,
}
