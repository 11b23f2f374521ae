//! The built-in suites: operations on arrays, in one library against another.
//!
//! A side is the import name of a library. It is given numbers that NumPy makes, the same on every
//! side, and called as NumPy is, or as raptors is if it is that. What a library cannot do is found
//! out by its set-up, which tries it: such a case is skipped with the reason.

use super::picked;
use crate::cli::{LayoutArg, SimdArg, SuiteArgs};
use crate::failure;
use anyhow::ensure;
use clap::ValueEnum;
use laggard_probe::bench::{CasePlan, Own, Runs, SidePlan};

/// What they are called.
pub(crate) const SUITES: [&str; 2] = ["2d", "mixed"];

/// Types of elements.
pub(crate) const DTYPES: [&str; 13] = [
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "complex64",
    "complex128",
];

/// What is done with an array.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    /// As few dimensions as it makes sense for.
    dimensions: usize,
    /// What it takes beside the array `a`.
    operand: Operand,
    /// In NumPy and libraries like it.
    text: &'static str,
    /// In raptors, where that differs.
    raptors: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq)]
enum Operand {
    Nothing,
    /// `row`, as long as a row.
    Row,
    /// `b`, of the same shape and layout.
    Same,
    /// `b`, of the shape that a product needs.
    Turned,
}

/// All of them. The first are those of the suites.
pub(crate) const OPERATIONS: [Operation; 12] = {
    const fn of(
        name: &'static str,
        meaning: &'static str,
        text: &'static str,
        raptors: Option<&'static str>,
    ) -> Operation {
        Operation { name, meaning, dimensions: 1, operand: Operand::Nothing, text, raptors }
    }
    const fn matrix(operand: Operand, operation: Operation) -> Operation {
        Operation { dimensions: 2, operand, ..operation }
    }
    use Operand::{Nothing, Row, Same, Turned};
    [
        of("sum", "the sum of all elements", "a.sum()", None),
        of("mean", "their mean", "a.mean()", None),
        matrix(
            Nothing,
            of("mean_axis0", "the mean of every column", "a.mean(axis=0)", Some("a.mean_axis0()")),
        ),
        matrix(
            Nothing,
            of("mean_axis1", "the mean of every row", "a.mean(axis=1)", Some("a.mean_axis1()")),
        ),
        matrix(
            Row,
            of(
                "broadcast_add",
                "a row added to every row",
                "a + row",
                Some("a.broadcast_add(row)"),
            ),
        ),
        of("scale", "all elements by a factor", "a * {factor}", Some("a.scale({factor})")),
        matrix(Nothing, of("sum_axis0", "the sum of every column", "a.sum(axis=0)", None)),
        matrix(Nothing, of("sum_axis1", "the sum of every row", "a.sum(axis=1)", None)),
        Operation {
            operand: Same,
            ..of("add", "two arrays of a shape added", "a + b", Some("a.broadcast_add(b)"))
        },
        of("max", "the largest element", "a.max()", None),
        of("sqrt", "the root of every element", "lib.sqrt(a)", None),
        matrix(Turned, of("matmul", "the product of two matrices", "a @ b", None)),
    ]
};
/// How many of them the suites have.
const USUAL_OPERATIONS: usize = 6;
/// The sides when none are given.
const LIBRARIES: [&str; 2] = ["numpy", "raptors"];

/// One case, as `broadcast_add:512x512:float32`.
#[derive(Clone)]
struct ArrayCase {
    operation: &'static Operation,
    shape: Vec<usize>,
    dtype: &'static str,
    layout: LayoutArg,
}

/// The cases of a suite, or of whatever is asked for; with these libraries as sides.
pub(super) fn cases(
    suite: Option<&str>,
    args: &SuiteArgs,
    libraries: &[String],
) -> anyhow::Result<Vec<CasePlan>> {
    let usual = LIBRARIES.map(String::from);
    let libraries = if libraries.is_empty() { &usual[..] } else { libraries };
    for library in libraries {
        ensure!(
            is_import_name(library),
            "the sides of a suite are libraries by their import names, as numpy; not {library:?}"
        );
    }
    if let Some(mode) = args.simd_mode {
        ensure!(
            libraries.iter().any(|library| library == "raptors"),
            "--simd-mode {} is for raptors, which is no side here",
            word(&mode)
        );
    }
    let names = names(libraries);
    let plan = |case: &ArrayCase| CasePlan {
        name: case.name(),
        parameters: vec![],
        own: Some(Own {
            sides: libraries
                .iter()
                .zip(&names)
                .map(|(library, name)| case.side(library, name, args.simd_mode))
                .collect(),
            check: true,
            tolerance: None,
        }),
    };
    let exact: Vec<&String> = args.case.iter().filter(|case| !is_pattern(case)).collect();
    let patterns: Vec<String> = args.case.iter().filter(|case| is_pattern(case)).cloned().collect();
    let mut cases = vec![];
    for text in exact {
        cases.push(plan(&ArrayCase::parse(text)?));
    }
    if args.case.is_empty() || !patterns.is_empty() {
        let all = listed(suite.unwrap_or(SUITES[0]), args)?;
        cases.extend(picked(all.iter().map(plan).collect(), &patterns)?);
    }
    Ok(cases)
}

/// Whether this is the name of a case.
pub(super) fn is_case(text: &str) -> bool {
    ArrayCase::parse(text).is_ok()
}

fn is_pattern(case: &str) -> bool {
    // In a shape, a star is as good as an x.
    case.contains('?') || case.split(':').any(|part| part.starts_with('*') || part.ends_with('*'))
}

/// What the suite has, with its lists replaced by those given.
fn listed(suite: &str, args: &SuiteArgs) -> anyhow::Result<Vec<ArrayCase>> {
    let own: &[(&str, &str)] = match suite {
        "mixed" => &[("4096", "float64"), ("2048", "float32"), ("512x512", "int32")],
        _ => &[
            ("512x512", "float64"),
            ("512x512", "float32"),
            ("1024x1024", "float64"),
            ("1024x1024", "float32"),
            ("2048x2048", "float64"),
            ("2048x2048", "float32"),
        ],
    };
    let arrays: Vec<(&str, &str)> = if args.shape.is_empty() && args.dtype.is_empty() {
        own.to_vec()
    } else {
        let shapes = given_or(&args.shape, own.iter().map(|array| array.0));
        let dtypes = given_or(&args.dtype, own.iter().map(|array| array.1));
        shapes.iter().flat_map(|&shape| dtypes.iter().map(move |&dtype| (shape, dtype))).collect()
    };
    let operations =
        given_or(&args.operations, OPERATIONS[..USUAL_OPERATIONS].iter().map(|of| of.name));
    let layouts =
        if args.layout.is_empty() { &[LayoutArg::Contiguous][..] } else { &args.layout[..] };
    let mut all = vec![];
    for (shape, dtype) in arrays {
        for operation in &operations {
            for &layout in layouts {
                let case = ArrayCase::parse(&format!("{operation}:{shape}:{dtype}"))?;
                let case = ArrayCase { layout, ..case };
                // A suite has no case that makes no sense; one that is asked for is skipped.
                if !args.operations.is_empty() || case.senseless().is_none() {
                    all.push(case);
                }
            }
        }
    }
    Ok(all)
}

/// What is given, or what there is, each once.
fn given_or<'a>(given: &'a [String], own: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<&str> = vec![];
    let given = given.iter().map(String::as_str);
    for word in if given.len() > 0 { given.collect::<Vec<_>>() } else { own.collect() } {
        if !all.contains(&word) {
            all.push(word);
        }
    }
    all
}

/// The lengths of `512x512`, or `512*512`.
pub(crate) fn shape(text: &str) -> Result<Vec<usize>, String> {
    const HOW: &str = "give a shape as 512x512 or 4096";
    const MOST: usize = 1 << 32;
    let lengths: Result<Vec<usize>, _> = text.split(['x', '*']).map(str::parse).collect();
    let lengths = lengths.map_err(|_| HOW)?;
    let elements = lengths.iter().try_fold(1_usize, |all, &length| all.checked_mul(length));
    match elements {
        Some(1..=MOST) => Ok(lengths),
        _ => Err(HOW.into()),
    }
}

impl ArrayCase {
    fn parse(text: &str) -> anyhow::Result<ArrayCase> {
        let wrong = |what: String, hint: String| Err(failure::with_hint(what, hint));
        let parts: Vec<&str> = text.split(':').collect();
        let (operation, lengths, dtype, layout) = match parts[..] {
            [operation, shape, dtype] => (operation, shape, dtype, "contiguous"),
            [operation, shape, dtype, layout] => (operation, shape, dtype, layout),
            _ => {
                return wrong(
                    format!("there is no case {text:?}"),
                    "give it as OPERATION:SHAPE:DTYPE, as broadcast_add:512x512:float32, or by its name in a file (TOML)".into(),
                );
            }
        };
        let Some(operation) = OPERATIONS.iter().find(|of| of.name == operation) else {
            let names: Vec<&str> = OPERATIONS.iter().map(|of| of.name).collect();
            return wrong(
                format!("there is no operation {operation:?}"),
                format!("operations are {}", names.join(", ")),
            );
        };
        let Some(dtype) = DTYPES.into_iter().find(|of| *of == dtype) else {
            return wrong(
                format!("there is no type of elements {dtype:?}"),
                format!("types are {}", DTYPES.join(", ")),
            );
        };
        let Ok(layout) = LayoutArg::from_str(layout, false) else {
            let names: Vec<String> = LayoutArg::value_variants().iter().map(word).collect();
            return wrong(
                format!("there is no layout {layout:?}"),
                format!("layouts are {}", names.join(", ")),
            );
        };
        match shape(lengths) {
            Ok(shape) => Ok(ArrayCase { operation, shape, dtype, layout }),
            Err(hint) => wrong(format!("{lengths:?} is no shape"), hint),
        }
    }

    fn name(&self) -> String {
        let lengths: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let name = format!("{}:{}:{}", self.operation.name, lengths.join("x"), self.dtype);
        match self.layout {
            LayoutArg::Contiguous => name,
            layout => format!("{name}:{}", word(&layout)),
        }
    }

    fn side(&self, library: &str, name: &str, simd: Option<SimdArg>) -> SidePlan {
        let text = match self.operation.raptors {
            Some(text) if library == "raptors" => text,
            _ => self.operation.text,
        };
        let is_float = !self.dtype.contains("int");
        let code = text.replace("{factor}", if is_float { "1.0009765625" } else { "2" });
        let setup = self.setup(library, &code);
        let mut side = SidePlan::new(name, Runs::Statement { code, setup });
        if let Some(mode) = simd.filter(|_| library == "raptors") {
            let value = match mode {
                SimdArg::Force => "1".into(),
                SimdArg::Disable => "0".into(),
                mode => word(&mode),
            };
            side.env.push(("RAPTORS_SIMD".into(), value.into()));
        }
        side
    }

    /// Why no library can do it.
    fn senseless(&self) -> Option<String> {
        let has = self.shape.len();
        if self.operation.dimensions > has {
            return Some(format!("{} needs two dimensions", self.operation.name));
        }
        (self.layout != LayoutArg::Contiguous && has < 2)
            .then(|| format!("the layout {} needs two dimensions", word(&self.layout)))
    }

    /// Makes the array `a` and what else the statement takes, and tries the statement.
    fn setup(&self, library: &str, code: &str) -> String {
        if let Some(why) = self.senseless() {
            return format!("raise NotImplementedError({why:?})");
        }
        let laid_out = |shape: &[usize]| match self.layout {
            LayoutArg::Contiguous => format!("make({})", self.values(shape)),
            LayoutArg::Transpose => {
                let turned: Vec<usize> = shape.iter().rev().copied().collect();
                format!("make({}).T", self.values(&turned))
            }
            LayoutArg::Fortran => format!("make(np.asfortranarray({}))", self.values(shape)),
        };
        let mut made = vec![format!("a = {}", laid_out(&self.shape))];
        let columns = &self.shape[self.shape.len() - 1..];
        match self.operation.operand {
            Operand::Nothing => {}
            Operand::Row => made.push(format!("row = make({})", self.values(columns))),
            Operand::Same => made.push(format!("b = {}", laid_out(&self.shape))),
            Operand::Turned => {
                let turned: Vec<usize> = self.shape.iter().rev().copied().collect();
                made.push(format!("b = {}", laid_out(&turned)));
            }
        }
        if self.layout != LayoutArg::Contiguous {
            let lengths: Vec<String> = self.shape.iter().map(usize::to_string).collect();
            let (shape, dtype) = (lengths.join(", "), self.dtype);
            made.push(format!("laid = np.empty(({shape}), '{dtype}', order='F').strides"));
            made.push(
                "if getattr(a, 'strides', laid) != laid: raise TypeError('it has another layout')"
                    .into(),
            );
        }
        format!(
            "import numpy as np
import {library} as lib
rng = np.random.default_rng(1)
make = getattr(lib, 'asarray', None) or getattr(lib, 'array', None)
if make is None:
    raise NotImplementedError('{library} has neither asarray nor array')
try:
    {}
    {code}
except (AttributeError, BufferError, NotImplementedError, TypeError, ValueError) as error:
    raise NotImplementedError('{library} cannot do this: %s' % error) from error",
            made.join("\n    ")
        )
    }

    /// Numbers that are the same on every side.
    fn values(&self, shape: &[usize]) -> String {
        let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
        let shape = format!("({},)", lengths.join(", "));
        let numbers = match self.dtype {
            dtype if dtype.contains("int") => format!("rng.integers(0, 100, {shape})"),
            dtype if dtype.starts_with("complex") => {
                format!("(rng.random({shape}) + 1j * rng.random({shape}))")
            }
            _ => format!("rng.random({shape})"),
        };
        format!("{numbers}.astype('{}')", self.dtype)
    }
}

/// What sides are called: the libraries, with a number where one is there twice.
fn names(libraries: &[String]) -> Vec<String> {
    let name = |(at, library): (usize, &String)| {
        let before = libraries[..at].iter().filter(|other| *other == library).count();
        if before == 0 { library.clone() } else { format!("{library} {}", before + 1) }
    };
    libraries.iter().enumerate().map(name).collect()
}

fn is_import_name(text: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    text.split('.').all(is_name)
}

/// The word for a value of a flag.
fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    fn names_of(suite: &str, args: &SuiteArgs) -> Vec<String> {
        let cases = cases(Some(suite), args, &[]).unwrap();
        cases.into_iter().map(|case| case.name).collect()
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn a_suite_has_its_cases_and_lists_that_are_given_replace_its_own() {
        let all = SuiteArgs::default();
        assert_eq!(names_of("2d", &all).len(), 36);
        // Two arrays of one dimension, which have no axes, and a matrix.
        assert_eq!(names_of("mixed", &all).len(), 3 + 3 + 6);
        let some = SuiteArgs {
            shape: words(&["100x3000", "7"]),
            operations: words(&["sum", "mean_axis1"]),
            layout: vec![LayoutArg::Fortran],
            dtype: words(&["int32"]),
            ..SuiteArgs::default()
        };
        let names = [
            "sum:100x3000:int32:fortran",
            "mean_axis1:100x3000:int32:fortran",
            "sum:7:int32:fortran",
            "mean_axis1:7:int32:fortran",
        ];
        assert_eq!(names_of("2d", &some), names);
        let one = SuiteArgs { case: words(&["scale:9*9:int32:transpose"]), ..SuiteArgs::default() };
        assert_eq!(names_of("2d", &one), ["scale:9x9:int32:transpose"]);
        let pattern = SuiteArgs { case: words(&["scale:*", "*:int32"]), ..SuiteArgs::default() };
        assert_eq!(names_of("mixed", &pattern).len(), 8);
    }

    #[test]
    fn sides_are_libraries_with_texts_of_their_own() {
        let args = SuiteArgs {
            case: words(&["broadcast_add:4x5:float32"]),
            simd_mode: Some(SimdArg::Disable),
            ..SuiteArgs::default()
        };
        let cases = cases(None, &args, &words(&["numpy", "raptors", "numpy"])).unwrap();
        let sides = &cases[0].own.as_ref().unwrap().sides;
        let shown: Vec<(&str, String)> =
            sides.iter().map(|side| (side.name.as_str(), side.runs.text())).collect();
        let [numpy, raptors] = ["a + row".to_owned(), "a.broadcast_add(row)".to_owned()];
        assert_eq!(shown, [("numpy", numpy.clone()), ("raptors", raptors), ("numpy 2", numpy)]);
        assert_eq!(sides[1].env, [("RAPTORS_SIMD".into(), "0".into())]);
        assert!(sides[0].env.is_empty());
        let Runs::Statement { setup, .. } = &sides[0].runs else { panic!() };
        assert!(setup.contains("row = make(rng.random((5,)).astype('float32'))"), "{setup}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for case in [
            "sum",
            "sum:4x4",
            "subtract:4x4:float32",
            "sum:4x:float32",
            "sum:0:float32",
            "sum:99999999999x99999999999:float32",
            "sum:4x4:float31",
            "sum:4x4:float32:diagonal",
            "sum:4x4:float32:fortran:more",
        ] {
            assert!(!is_case(case), "{case}");
        }
        let args = SuiteArgs { case: words(&["sum:4:int32"]), ..SuiteArgs::default() };
        assert!(cases(None, &args, &words(&["a b"])).is_err());
        let args = SuiteArgs { simd_mode: Some(SimdArg::Avx2), ..args };
        assert!(cases(None, &args, &words(&["numpy", "torch"])).is_err());
    }
}
