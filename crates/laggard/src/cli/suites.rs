//! Options that take cases and sides from a suite.

use crate::suite::arrays;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Suite options of `bench`.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Options for suites")]
pub struct SuiteArgs {
    /// Benchmark the cases of a suite: 2d, mixed or a TOML file [default: laggard-bench.toml if no
    /// side is given]
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Benchmark only matching cases: OPERATION:SHAPE:DTYPE[:LAYOUT], or a name in the suite with
    /// `*` as wildcard; repeatable
    #[arg(long, value_name = "CASE")]
    pub case: Vec<String>,
    /// Array shapes that replace those of the suite, such as 512x512,4096
    #[arg(long, value_name = "SHAPE,…", value_delimiter = ',', value_parser = shape)]
    pub shape: Vec<String>,
    /// Element types that replace those of the suite, such as float32,int64
    #[arg(long, value_name = "DTYPE,…", value_delimiter = ',', value_parser = PossibleValuesParser::new(arrays::DTYPES), hide_possible_values = true)]
    pub dtype: Vec<String>,
    /// Operations that replace those of the suite
    #[arg(long, value_name = "OPERATION,…", value_delimiter = ',', value_parser = operations())]
    pub operations: Vec<String>,
    /// Memory layouts of the arrays [default: contiguous]
    #[arg(long, value_name = "LAYOUT,…", value_delimiter = ',', value_enum)]
    pub layout: Vec<LayoutArg>,
    /// SIMD instructions that the demo library (raptors) may use
    #[arg(long, value_enum, value_name = "MODE")]
    pub simd_mode: Option<SimdArg>,
    /// List the cases without running them
    #[arg(long)]
    pub list: bool,
}

impl SuiteArgs {
    /// Whether an option selects a suite or its cases.
    pub(crate) fn is_given(&self) -> bool {
        self.suite.is_some() || !self.case.is_empty() || self.list || self.for_arrays().count() > 0
    }

    /// Given options that only built-in suites support.
    pub(crate) fn for_arrays(&self) -> impl Iterator<Item = &'static str> {
        [
            ("--shape", !self.shape.is_empty()),
            ("--dtype", !self.dtype.is_empty()),
            ("--operations", !self.operations.is_empty()),
            ("--layout", !self.layout.is_empty()),
            ("--simd-mode", self.simd_mode.is_some()),
        ]
        .into_iter()
        .filter_map(|(flag, given)| given.then_some(flag))
    }
}

/// Options that select one case of a suite.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Options for suites")]
pub struct CaseArgs {
    /// Run a case of a suite: OPERATION:SHAPE:DTYPE[:LAYOUT] or its name
    #[arg(long, value_name = "CASE")]
    pub case: Option<String>,
    /// Suite of the case: 2d, mixed or a TOML file [default: laggard-bench.toml]
    #[arg(long, value_name = "NAME", requires = "case")]
    pub suite: Option<String>,
    /// SIMD instructions that the demo library (raptors) may use
    #[arg(long, value_enum, value_name = "MODE", requires = "case")]
    pub simd_mode: Option<SimdArg>,
}

impl CaseArgs {
    /// Options for a suite of this one case.
    pub(crate) fn suite(&self) -> SuiteArgs {
        SuiteArgs {
            case: self.case.iter().cloned().collect(),
            suite: self.suite.clone(),
            simd_mode: self.simd_mode,
            ..SuiteArgs::default()
        }
    }
}

/// Options that run one side of a case instead of a command.
#[derive(Args, Debug, Default)]
pub struct CaseSideArgs {
    /// The case.
    #[command(flatten)]
    pub of: CaseArgs,
    /// Side of the case, by letter or name, such as numpy [default: a]
    #[arg(long, value_name = "SIDE", requires = "case")]
    pub side: Option<String>,
    /// Python interpreter of the side [default: python3]
    #[arg(long, value_name = "PYTHON", requires = "case")]
    pub python: Option<PathBuf>,
    /// Statement to run before every call of the side; repeatable
    #[arg(long, value_name = "STATEMENT", requires = "case")]
    pub prepare: Vec<String>,
}

/// Memory layout of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LayoutArg {
    /// Row-major order
    Contiguous,
    /// Transposed view
    Transpose,
    /// Column-major order
    Fortran,
}

/// SIMD instructions that the raptors library may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SimdArg {
    /// Widest that the CPU supports
    Auto,
    /// Same as auto
    Force,
    /// Scalar code only
    Disable,
    /// Same as disable
    Scalar,
    /// 128-bit vectors
    Sse2,
    /// 256-bit vectors
    Avx2,
    /// 512-bit vectors
    Avx512,
}

fn shape(text: &str) -> Result<String, String> {
    arrays::shape(text).map(|_| text.to_owned())
}

fn operations() -> impl TypedValueParser<Value = String> {
    let value = |of: &arrays::Operation| PossibleValue::new(of.name).help(of.meaning);
    PossibleValuesParser::new(arrays::OPERATIONS.iter().map(value).collect::<Vec<_>>())
}
