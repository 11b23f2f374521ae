//! Flags of verbs that the Python package has and a bare program has not: `query` and `fleet`. The
//! package gets them as JSON, by the names of these fields.

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `query`.
#[derive(Args, Debug, Serialize)]
#[command(after_help = "Examples:
  laggard query \"select class, sum(dur_ns) from kernels group by class\" trace.json.gz
  laggard query \"select file, rank, max(dur_ns) from collectives group by all\" ranks/*.json.gz
  laggard query \"select library, sum(weight) from samples group by 1 order by 2 desc\" run.lag
  laggard query \"select busy_ns(start_ns, dur_ns) from kernels\" trace.json.gz
  laggard query \"from kernels\" -o kernels.parquet trace.json.gz
  laggard query --schema                    (tables and columns of every kind of file)
  laggard query trace.json.gz               (a prompt)

The SQL is DuckDB's. Several files are one table, with columns `file` and `rank`. Only columns that
the query names are read.")]
pub struct QueryArgs {
    /// The query; without one, a prompt
    #[arg(value_name = "SQL")]
    pub sql: Option<String>,
    /// Files of any kind that report takes; directories stand for the traces in them
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Read the query from a file; `-` is standard input
    #[arg(short = 'f', long, value_name = "FILE")]
    pub sql_file: Option<PathBuf>,
    /// Show what tables and columns there are, of these files or of every kind
    #[arg(long)]
    pub schema: bool,
    /// Form of standard output, or of a file whose suffix says nothing
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<QueryFormat>,
    /// Write to a file whose suffix says its form (.csv, .json, .parquet, .arrow, .txt); `-` is standard
    /// output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
    /// Rows of a table on the terminal [default: 40]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// All rows of a table on the terminal
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Neither read nor write indexes of traces
    #[arg(long)]
    pub no_index: bool,
    /// Rules that classify kernels, tried before the built-in ones (TOML)
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Threads to read and query with; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
}

/// Form of what a query gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum QueryFormat {
    /// For reading in a terminal
    Table,
    /// Comma-separated values, with a line of names
    Csv,
    /// An array of objects
    Json,
    /// Apache Parquet
    Parquet,
    /// A stream of Apache Arrow's IPC
    Arrow,
}

/// Arguments of `fleet`.
#[derive(Args, Debug, Serialize)]
#[command(after_help = "Examples:
  laggard fleet ingest traces/ --to fleet/                   (each rank's trace, into Parquet, once)
  laggard fleet report fleet/                                (stragglers, skew, gaps, hosts, GPUs)
  laggard fleet compare fleet/ --a before --b after          (two jobs, rank by rank)
  laggard fleet --engine spark --master spark://host:7077 ingest traces/ --to fleet/")]
pub struct FleetArgs {
    /// What to do with them.
    #[command(subcommand)]
    pub verb: FleetVerb,
    /// What does the work: DuckDB on this machine, or a Spark cluster
    #[arg(long, global = true, value_enum, default_value_t = Engine::Duckdb)]
    pub engine: Engine,
    /// The cluster, as spark://HOST:PORT; `local[2]` is this machine
    #[arg(long, global = true, value_name = "URL")]
    pub master: Option<String>,
    /// The interpreter that Spark's workers run, with laggard installed [default: this one]
    #[arg(long, global = true, value_name = "PYTHON")]
    pub worker_python: Option<PathBuf>,
}

/// What does the work of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// On this machine
    Duckdb,
    /// On a cluster, of which `--master` is the address
    Spark,
}

/// What to do with the traces of many ranks.
#[derive(Subcommand, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetVerb {
    /// Turn each rank's trace into Parquet, partitioned by job and rank; what is there already is left
    Ingest(FleetIngestArgs),
    /// Say who keeps the others waiting: stragglers, skew of collectives, gaps, hosts and GPUs that lag
    Report(FleetReportArgs),
    /// Say what differs between two jobs
    Compare(FleetCompareArgs),
}

/// Arguments of `fleet ingest`.
#[derive(Args, Debug, Serialize)]
pub struct FleetIngestArgs {
    /// Traces, and directories of them; each directory is a job
    #[arg(required = true, value_name = "DIR")]
    pub from: Vec<PathBuf>,
    /// Directory of Parquet files
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
    /// What to call the job [default: the name of the directory]
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
    /// Tables to keep beside those that reports need: launches, ops, python, annotations, memory
    #[arg(long, value_name = "TABLE,…", value_delimiter = ',')]
    pub tables: Vec<String>,
    /// Rules that classify kernels, tried before the built-in ones (TOML)
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Ranks at a time [default: one for each processor, as memory allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub jobs: Option<u16>,
    /// Ingest again what is there already
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `fleet report`.
#[derive(Args, Debug, Serialize)]
pub struct FleetReportArgs {
    /// The directory that ingest wrote
    #[arg(value_name = "DIR")]
    pub fleet: PathBuf,
    /// Which job [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
    /// How to show it.
    #[command(flatten)]
    #[serde(flatten)]
    pub output: FleetOutput,
}

/// Arguments of `fleet compare`.
#[derive(Args, Debug, Serialize)]
pub struct FleetCompareArgs {
    /// The directory that ingest wrote; of two, that of A and that of B
    #[arg(required = true, num_args = 1..=2, value_name = "DIR")]
    pub fleet: Vec<PathBuf>,
    /// The job that is the reference [default: the only one of its directory]
    #[arg(long, value_name = "NAME")]
    pub a: Option<String>,
    /// The job that is asked about [default: the only one of its directory]
    #[arg(long, value_name = "NAME")]
    pub b: Option<String>,
    /// How to show it.
    #[command(flatten)]
    #[serde(flatten)]
    pub output: FleetOutput,
}

/// How answers over a fleet are shown.
#[derive(Args, Debug, Serialize)]
pub struct FleetOutput {
    /// Rows of each table [default: 10]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// All rows of each table
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Form of standard output, or of a file whose suffix says nothing
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<FleetFormat>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Write to a file whose suffix says its form (.txt, .json, .md); `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite a file of another kind
    #[arg(long)]
    pub force: bool,
}

/// Form of an answer over a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetFormat {
    /// For reading in a terminal
    Text,
    /// For programs, with a versioned schema
    Json,
    /// For a web page or an issue
    #[value(alias = "markdown")]
    Md,
}
