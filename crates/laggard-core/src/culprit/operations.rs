//! Operations of Python's built-in types and modules, such as `list.insert` and `str +`: which one
//! a stack runs, and which one most of a difference belongs to.

use super::python::{PythonPart, is_object, is_python_library, python_part, runs_python_code};
use super::seen::{Pair, Seen};
use super::{Finding, Kind, Role, Unit};
use crate::divergence::{StackFrame, Stacks};
use crate::model::call_counts::CallCounts;
use crate::model::profile::FrameKind;
use crate::profile::is_dispatch;
use rustc_hash::FxHashMap;

/// An operation that takes most of a difference.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operation {
    /// Its name: `list.insert`, `str +`.
    pub(super) name: String,
    /// Calls by A and B, if counted.
    calls: Option<[f64; 2]>,
    /// Time of A and B in nanoseconds per call of the side.
    ns: [f64; 2],
    samples: u64,
}

impl Operation {
    /// The finding that names it.
    pub(super) fn finding(&self) -> Finding {
        let finding = Finding::new(Kind::Builtin, "", advice(&self.name)).fact(
            &format!("time in `{}`", self.name),
            self.ns,
            Unit::Nanos,
            self.samples,
        );
        match self.calls {
            Some(calls) => {
                finding.fact(&format!("calls of `{}`", self.name), calls, Unit::Count, 1)
            }
            None => finding,
        }
    }
}

/// The operation with most of the difference between the stacks of a region. `spent` lists the
/// entries of [`Stacks::spent`] that belong to it, by side.
pub(super) fn main_operation(
    pair: &Pair<'_>,
    operations: &[Vec<Option<String>>; 2],
    spent: &[Vec<usize>; 2],
) -> Option<Operation> {
    /// Minimum share of the region's difference.
    const MOST: f64 = 0.6;
    let sides = [pair.a, pair.b];
    let mut whole = [0.0; 2];
    let mut sums: FxHashMap<&str, [Time; 2]> = FxHashMap::default();
    for side in [0, 1] {
        for &at in &spent[side] {
            let entry = &sides[side].stacks.spent[at];
            // Freeing objects is a consequence of creating them.
            let is_object = sides[side].work.get(entry.work as usize).is_some_and(is_object);
            if !is_object || operations[side][at].is_some() {
                whole[side] += entry.ns;
            }
            let Some(name) = &operations[side][at] else { continue };
            let time = &mut sums.entry(name).or_default()[side];
            time.ns += entry.ns;
            time.samples = time.samples.saturating_add(entry.samples);
            if is_own_work(sides[side], entry.work) {
                time.own_ns += entry.ns;
            }
        }
    }
    let gap = |times: &[Time; 2]| times[1].ns - times[0].ns;
    let (name, times) = sums
        .into_iter()
        .max_by(|x, y| gap(&x.1).total_cmp(&gap(&y.1)).then_with(|| y.0.cmp(x.0)))?;
    let own_gap = times[1].own_ns - times[0].own_ns;
    let is_most = gap(&times) >= MOST * (whole[1] - whole[0]) && own_gap >= gap(&times) / 2.0;
    (is_most && gap(&times) > 0.0).then(|| Operation {
        name: name.to_owned(),
        calls: calls(sides, name),
        ns: times.each_ref().map(|time| time.ns),
        samples: times[1].samples,
    })
}

/// Time in an operation.
#[derive(Clone, Copy, Debug, Default)]
struct Time {
    ns: f64,
    /// The part in the code of the operation itself, not in copies, allocation or other libraries.
    own_ns: f64,
    samples: u64,
}

/// Whether time in a function is work of built-in types, not a more specific kind of work.
fn is_own_work(seen: &Seen, work: u32) -> bool {
    let Some(work) = seen.work.get(work as usize) else { return false };
    match work.role {
        Role::Interpreter => !is_object(work) && !runs_python_code(work),
        Role::Compute => is_python_library(&work.library),
        _ => false,
    }
}

/// Calls of an operation by both sides, if counted on both.
fn calls(sides: [&Seen; 2], name: &str) -> Option<[f64; 2]> {
    let of = |side: &Seen| {
        let counts = side.call_counts.as_ref()?;
        let is_this = |callee: u32| {
            let function = counts.functions.get(callee as usize);
            function.is_some_and(|function| !function.is_python() && function.full_name() == name)
        };
        let edges = counts.edges.iter().filter(|edge| is_this(edge.1));
        Some(edges.map(|edge| edge.2 as f64).sum::<f64>() / counts.calls.max(1) as f64)
    };
    let [a, b] = [of(sides[0])?, of(sides[1])?];
    (b > 0.0).then_some([a, b])
}

/// The operation of each entry of [`Stacks::spent`].
pub(super) fn of_stacks(stacks: &Stacks, counts: Option<&CallCounts>) -> Vec<Option<String>> {
    let counted = counted_names(counts);
    let mut known: FxHashMap<u32, Option<String>> = FxHashMap::default();
    let operation = |node: u32| {
        let path = stacks.path(node);
        let frames: Vec<&StackFrame> =
            path.iter().filter_map(|&at| stacks.frames.get(at as usize)).collect();
        operation(&frames, &counted)
    };
    let spent = stacks.spent.iter();
    spent
        .map(|spent| known.entry(spent.node).or_insert_with(|| operation(spent.node)).clone())
        .collect()
}

/// Names of counted C functions by library and symbol.
type CountedNames<'a> = FxHashMap<(&'a str, &'a str), String>;

fn counted_names(counts: Option<&CallCounts>) -> CountedNames<'_> {
    let functions = counts.into_iter().flat_map(|counts| &counts.functions);
    let with_symbol = functions.filter(|function| !function.symbol.1.is_empty());
    with_symbol
        .map(|function| {
            ((function.symbol.0.as_str(), function.symbol.1.as_str()), function.full_name())
        })
        .collect()
}

/// The operation of a stack, outermost frame first: the first native function below the innermost
/// Python function that does more than to dispatch a call.
fn operation(frames: &[&StackFrame], counted: &CountedNames<'_>) -> Option<String> {
    let python = frames.iter().rposition(|frame| frame.kind == FrameKind::Python);
    let native = &frames[python.map_or(0, |at| at + 1)..];
    let adds = native.iter().position(|frame| frame.name == "PyNumber_Add");
    let passes_on = |(at, frame): (usize, &StackFrame)| {
        is_dispatch(&frame.name)
            || passes_on(&frame.name)
            // `sum` adds values of other types than numbers by their own operation.
            || frame.name.starts_with("builtin_sum") && adds.is_some_and(|adds| adds > at)
    };
    let first = native
        .iter()
        .enumerate()
        .position(|(at, frame)| !is_python_library(&frame.file) || !passes_on((at, frame)))?;
    let frame = native[first];
    if let Some(name) = counted.get(&(frame.file.as_str(), frame.name.as_str())) {
        return is_python_library(&frame.file).then(|| name.clone());
    }
    if !is_python_library(&frame.file) || python_part(&frame.name, "") != PythonPart::Builtin {
        return None;
    }
    // Small integers and floats are part of any Python code.
    let is_large = || native[first..].iter().any(|frame| is_big_integer(&frame.name));
    let mut name = slot_name(&frame.name)?;
    if name == frame.name.trim_start_matches('_')
        && let Some(operator) = first.checked_sub(1).and_then(|at| operator(&native[at].name))
    {
        // `_decimal +` for `nm_mpd_qadd`.
        let module = frame.file.split('.').next().unwrap_or_default();
        name = format!("{module} {operator}");
    }
    (!is_arithmetic(&frame.name) || is_large()).then_some(name)
}

/// Whether an interpreter function only selects the function of a type.
fn passes_on(name: &str) -> bool {
    const PREFIXES: [&str; 21] = [
        "type_call",
        "PyObject_GetItem",
        "PyObject_SetItem",
        "PyObject_DelItem",
        "PyObject_RichCompare",
        "do_richcompare",
        "PyObject_Str",
        "PyObject_Repr",
        "PyObject_Format",
        "PyObject_Hash",
        "PyObject_GetIter",
        "PyObject_Size",
        "PyObject_IsTrue",
        "PyNumber_",
        "PySequence_",
        "PyMapping_",
        "PyIter_Next",
        "binary_op",
        "binary_iop",
        "ternary_op",
        "wrap_",
    ];
    PREFIXES.iter().any(|prefix| name.trim_start_matches('_').starts_with(prefix))
}

/// The operator that a function of the interpreter evaluates.
fn operator(name: &str) -> Option<&'static str> {
    const OPERATORS: [(&str, &str); 9] = [
        ("Add", "+"),
        ("Subtract", "-"),
        ("Multiply", "*"),
        ("TrueDivide", "/"),
        ("FloorDivide", "//"),
        ("Remainder", "%"),
        ("Power", "**"),
        ("InPlaceAdd", "+="),
        ("InPlaceMultiply", "*="),
    ];
    let name = name.strip_prefix("PyNumber_")?;
    OPERATORS.iter().find(|(function, _)| *function == name).map(|found| found.1)
}

/// Whether a function does arithmetic on numbers, which takes long only for large integers.
fn is_arithmetic(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    ["long_", "PyLong_", "float_", "PyFloat_", "complex_", "bool_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// Whether a function works on the digits of a large integer.
fn is_big_integer(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "k_mul",
        "k_lopsided_mul",
        "x_mul",
        "x_add",
        "x_sub",
        "x_divrem",
        "long_divrem",
        "long_pow",
        "inplace_divrem1",
        "divrem1",
        "v_iadd",
        "PyLong_FromString",
        "long_to_decimal_string_internal",
        "long_from_string_base",
    ];
    NAMES.iter().any(|known| name.trim_start_matches('_').starts_with(known))
}

/// The name of a type's operation: `in list` for `list_contains`, `int()` for `long_new`.
fn slot_name(symbol: &str) -> Option<String> {
    const TYPES: [(&str, &str); 22] = [
        ("PyUnicode_", "str"),
        ("unicode_", "str"),
        ("PyLong_", "int"),
        ("long_", "int"),
        ("PyFloat_", "float"),
        ("float_", "float"),
        ("complex_", "complex"),
        ("PyList_", "list"),
        ("list", "list"),
        ("PyDict_", "dict"),
        ("dict", "dict"),
        ("PySet_", "set"),
        ("set", "set"),
        ("frozenset", "frozenset"),
        ("tuple", "tuple"),
        ("PyBytes_", "bytes"),
        ("bytes_", "bytes"),
        ("bytearray_", "bytearray"),
        ("deque_", "deque"),
        ("range", "range"),
        ("bool_", "bool"),
        ("PyTuple_", "tuple"),
    ];
    /// Ends of symbols with the text before and after the type.
    const SLOTS: [(&str, &str, &str); 27] = [
        ("contains", "in ", ""),
        ("contains_entry", "in ", ""),
        ("inplace_concat", "", " +="),
        ("concat", "", " +"),
        ("append", "", " +="),
        ("repeat", "", " *"),
        ("richcompare", "comparison of ", ""),
        ("ass_subscript", "", "[…] ="),
        ("ass_sub", "", "[…] ="),
        ("ass_item", "", "[…] ="),
        ("subscript", "", "[…]"),
        ("item", "", "[…]"),
        ("slice", "", "[a:b]"),
        ("hash", "hash of ", ""),
        ("repr", "repr of ", ""),
        ("new", "", "()"),
        ("init", "", "()"),
        ("vectorcall", "", "()"),
        ("fromstring", "", "()"),
        ("fromunicodeobject", "", "()"),
        ("join", "", ".join"),
        ("joinarray", "f-string of ", ""),
        ("format", "", " %"),
        ("next", "iteration of ", ""),
        ("add", "", " +"),
        ("mul", "", " *"),
        ("pow", "", " **"),
    ];
    let symbol = symbol.trim_start_matches('_');
    let symbol = &symbol[..symbol.find('.').unwrap_or(symbol.len())];
    if let Some(name) = symbol.strip_prefix("builtin_") {
        return Some(name.trim_end_matches("_impl").to_owned());
    }
    let Some((prefix, kind)) = TYPES.iter().find(|(prefix, _)| symbol.starts_with(prefix)) else {
        return Some(symbol.to_owned());
    };
    let rest = symbol[prefix.len()..].trim_matches('_').to_ascii_lowercase();
    if rest == "append" && *kind != "str" {
        return Some(format!("{kind}.append"));
    }
    let slot = SLOTS.iter().find(|(end, ..)| rest == *end || rest == format!("iter_{end}"));
    match slot {
        Some((_, before, after)) => Some(format!("{before}{kind}{after}")),
        None => Some(symbol.to_owned()),
    }
}

/// How to avoid an operation. The most specific prefixes come first.
fn advice(name: &str) -> String {
    const ADVICE: [(&[&str], &str); 18] = [
        (
            &["list.insert"],
            "insert(0, …) moves all elements: use collections.deque, or append and reverse once",
        ),
        (&["list.pop"], "pop(0) moves all elements: use collections.deque and popleft"),
        (
            &["in list", "in tuple", "list.index", "list.count", "list.remove", "tuple.index"],
            "the search compares one element after the other: use a set or a dict",
        ),
        (
            &["str +", "str +="],
            "each concatenation copies the whole string: collect the parts and use ''.join(parts)",
        ),
        (
            &["bytes +", "bytes +="],
            "each concatenation copies all bytes: use a bytearray, or b''.join(parts)",
        ),
        (&["list +=", "list.append"], "build the list with one comprehension or one extend"),
        (
            &["sum", "list +", "tuple +"],
            "adding lists copies them each time: use list.extend or itertools.chain",
        ),
        (
            &["re.", "Pattern.", "sre_", "SRE_", "_sre"],
            "the pattern backtracks: avoid nested repetition and alternatives that match the same \
             text, or use str methods",
        ),
        (
            &["int()", "str()", "int.__str__", "long_to_decimal", "int **", "int *"],
            "operations on large integers take more than linear time: use hexadecimal text, \
             pow(a, b, m), or gmpy2",
        ),
        (
            &["sorted", "list.sort"],
            "sort once, use a key of plain values, or heapq.nsmallest for a few elements",
        ),
        (&["json.", "_json.", "scan"], "use a faster parser (orjson), or a more compact format"),
        (&["_pickle.", "pickle."], "use protocol 5 with out-of-band buffers, or pickle less data"),
        (
            &["_struct.", "Struct.", "struct."],
            "convert many values with one format, or use array or NumPy",
        ),
        (&["zlib.", "_bz2.", "_lzma."], "use a lower compression level or another compressor"),
        (
            &["_hashlib.", "_sha", "_md5", "_blake2"],
            "hash larger blocks, or use a faster algorithm",
        ),
        (&["set()", "frozenset()", "set.add", "set.update"], "build the set once and keep it"),
        (&["dict()", "dict[", "dict.update", "dict_"], "build the dict once and keep it"),
        (
            &["str.format", "str %", "f-string", "str.join", "format"],
            "format once for all values, or write the parts without joining them",
        ),
    ];
    let known = ADVICE.iter().find(|(names, _)| names.iter().any(|start| name.starts_with(start)));
    known.map_or_else(
        || format!("call {name} less often, or on less data"),
        |(_, advice)| (*advice).to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_named_after_what_python_code_writes() {
        let check = |symbol: &str, expected: &str| {
            assert_eq!(slot_name(symbol).as_deref(), Some(expected), "{symbol}");
        };
        check("list_contains", "in list");
        check("list_append", "list.append");
        check("PyUnicode_Concat", "str +");
        check("unicode_concatenate", "unicode_concatenate");
        check("long_new", "int()");
        check("_PyUnicode_JoinArray", "f-string of str");
        check("listiter_next", "iteration of list");
        check("dict_ass_sub", "dict[…] =");
        check("builtin_sum_impl", "sum");
        check("builtin_sorted", "sorted");
        check("tuplerichcompare", "comparison of tuple");
        check("set_contains_entry.isra.0", "in set");
    }

    #[test]
    fn the_operation_is_the_outermost_function_that_does_work() {
        let native = |name: &str, file: &str| StackFrame {
            kind: FrameKind::Native,
            name: name.into(),
            file: file.into(),
            line: 0,
        };
        let python = |name: &str| StackFrame {
            kind: FrameKind::Python,
            name: name.into(),
            file: "<statement>".into(),
            line: 1,
        };
        let lib = "libpython3.11.so.1.0";
        let check = |frames: &[StackFrame], expected: Option<&str>| {
            let frames: Vec<&StackFrame> = frames.iter().collect();
            let counted = CountedNames::from_iter([((lib, "list_insert"), "list.insert".into())]);
            assert_eq!(operation(&frames, &counted).as_deref(), expected, "{frames:?}");
        };
        let statement = || python("statement");
        check(&[statement(), native("list_insert", lib), native("ins1", lib)], Some("list.insert"));
        check(
            &[
                statement(),
                native("PyObject_RichCompare", lib),
                native("list_richcompare", lib),
                native("long_richcompare", lib),
            ],
            Some("comparison of list"),
        );
        check(&[statement(), native("_PyEval_EvalFrameDefault", lib)], None);
        check(&[statement(), native("PyNumber_Add", lib), native("long_add", lib)], None);
        check(&[statement(), native("long_mul", lib), native("k_mul", lib)], Some("int *"));
        check(&[statement(), native("PyObject_GetAttr", lib)], None);
        check(&[statement(), native("ufunc_generic_fastcall", "_multiarray_umath.so")], None);
        check(&[native("list_insert", lib), python("f")], None);
    }

    #[test]
    fn every_advice_is_reached() {
        assert!(advice("list.insert").contains("deque"));
        assert!(advice("in list").contains("set"));
        assert!(advice("str +").contains("join"));
        assert!(advice("math.fsum").contains("math.fsum"));
    }
}
