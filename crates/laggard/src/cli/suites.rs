//! Flags that take sides from a suite.

use crate::suite::arrays;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Cases of a suite, for `bench`.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Options for suites")]
pub struct SuiteArgs {
    /// Time the cases of a suite: 2d, mixed, or those of a file (TOML) [default: laggard-bench.toml,
    /// if no side is given]
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Time this case, as OPERATION:SHAPE:DTYPE[:LAYOUT] or by its name in the suite, with `*` for
    /// anything; may be given again
    #[arg(long, value_name = "CASE")]
    pub case: Vec<String>,
    /// Shapes of arrays in place of the suite's (512x512,4096)
    #[arg(long, value_name = "SHAPE,…", value_delimiter = ',', value_parser = shape)]
    pub shape: Vec<String>,
    /// Types of elements in place of the suite's
    #[arg(long, value_name = "DTYPE,…", value_delimiter = ',', value_parser = PossibleValuesParser::new(arrays::DTYPES), hide_possible_values = true)]
    pub dtype: Vec<String>,
    /// Operations in place of the suite's
    #[arg(long, value_name = "OPERATION,…", value_delimiter = ',', value_parser = operations())]
    pub operations: Vec<String>,
    /// How arrays lie in memory [default: contiguous]
    #[arg(long, value_name = "LAYOUT,…", value_delimiter = ',', value_enum)]
    pub layout: Vec<LayoutArg>,
    /// Instructions that raptors may use
    #[arg(long, value_enum, value_name = "MODE")]
    pub simd_mode: Option<SimdArg>,
    /// List the cases and measure nothing
    #[arg(long)]
    pub list: bool,
}

impl SuiteArgs {
    /// Whether cases of a suite are asked for.
    pub(crate) fn is_given(&self) -> bool {
        self.suite.is_some() || !self.case.is_empty() || self.list || self.for_arrays().count() > 0
    }

    /// The flags that were given which built-in suites alone know.
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

/// One case of a suite.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Options for suites")]
pub struct CaseArgs {
    /// Take the sides from a case of a suite, as OPERATION:SHAPE:DTYPE[:LAYOUT] or by its name
    #[arg(long, value_name = "CASE")]
    pub case: Option<String>,
    /// The suite that has the case: 2d, mixed or a file (TOML) [default: laggard-bench.toml]
    #[arg(long, value_name = "NAME", requires = "case")]
    pub suite: Option<String>,
    /// Instructions that raptors may use
    #[arg(long, value_enum, value_name = "MODE", requires = "case")]
    pub simd_mode: Option<SimdArg>,
}

impl CaseArgs {
    /// The same for a suite of one case.
    pub(crate) fn suite(&self) -> SuiteArgs {
        SuiteArgs {
            case: self.case.iter().cloned().collect(),
            suite: self.suite.clone(),
            simd_mode: self.simd_mode,
            ..SuiteArgs::default()
        }
    }
}

/// One side of a case, in place of a command.
#[derive(Args, Debug, Default)]
pub struct CaseSideArgs {
    /// Which case.
    #[command(flatten)]
    pub of: CaseArgs,
    /// The side of the case: its letter, or its name (numpy) [default: a]
    #[arg(long, value_name = "SIDE", requires = "case")]
    pub side: Option<String>,
    /// The interpreter of the side [default: python3]
    #[arg(long, value_name = "PYTHON", requires = "case")]
    pub python: Option<PathBuf>,
}

/// How arrays lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LayoutArg {
    /// Row after row
    Contiguous,
    /// A view with rows and columns swapped
    Transpose,
    /// Column after column
    Fortran,
}

/// Instructions that raptors may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SimdArg {
    /// The widest that the processor has
    Auto,
    /// The same as auto
    Force,
    /// One element at a time
    Disable,
    /// The same as disable
    Scalar,
    /// Vectors of 16 bytes
    Sse2,
    /// Vectors of 32 bytes
    Avx2,
    /// Vectors of 64 bytes
    Avx512,
}

fn shape(text: &str) -> Result<String, String> {
    arrays::shape(text).map(|_| text.to_owned())
}

fn operations() -> impl TypedValueParser<Value = String> {
    let value = |of: &arrays::Operation| PossibleValue::new(of.name).help(of.meaning);
    PossibleValuesParser::new(arrays::OPERATIONS.iter().map(value).collect::<Vec<_>>())
}
