//! Classification of CPython's own functions, and native accelerators of Python modules.

use super::seen::{Pair, Work};
use super::{Finding, Kind, Unit};
use crate::divergence::Stacks;
use crate::model::profile::FrameKind;
use crate::profile::short_path;
use rustc_hash::FxHashMap;

/// What time in the interpreter is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PythonPart {
    /// Evaluation of bytecode.
    Evaluation,
    /// Calls and their frames.
    Calls,
    /// Lookup of attributes and names.
    Lookup,
    /// Allocation of objects and garbage collection.
    Objects,
    /// Operations of built-in types and modules.
    Builtin,
}

impl PythonPart {
    /// The part in reports.
    pub(super) fn label(self) -> &'static str {
        match self {
            PythonPart::Evaluation => "Python bytecode",
            PythonPart::Calls => "Python calls and frames",
            PythonPart::Lookup => "Python attribute and name lookup",
            PythonPart::Objects => "Python object allocation",
            PythonPart::Builtin => "Python's built-in types and modules",
        }
    }
}

/// The part of a function of the interpreter: by its source file (`listobject.c:120`) if it is
/// known, else by its name.
pub(super) fn python_part(name: &str, place: &str) -> PythonPart {
    use PythonPart::{Builtin, Calls, Evaluation, Lookup, Objects};
    let name = name.trim_start_matches('_');
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    // Functions whose purpose differs from that of their file.
    if name.ends_with("dealloc") || starts(OBJECTS) {
        return Objects;
    }
    if starts(LOOKUP) {
        return Lookup;
    }
    match place.split(':').next().unwrap_or_default() {
        "obmalloc.c" | "gcmodule.c" | "gc.c" => return Objects,
        "ceval.c" | "generated_cases.c.h" | "bytecodes.c" => return Evaluation,
        "call.c" | "frame.c" | "frameobject.c" | "methodobject.c" | "funcobject.c"
        | "genobject.c" | "descrobject.c" | "classobject.c" => return Calls,
        "" => {}
        file if file.ends_with("object.c") && !matches!(file, "object.c" | "typeobject.c") => {
            return Builtin;
        }
        _ => {}
    }
    match () {
        () if starts(EVALUATION) => Evaluation,
        () if starts(CALLS) => Calls,
        () if starts(BUILTIN) => Builtin,
        () => Evaluation,
    }
}

const OBJECTS: &[&str] = &[
    "PyObject_Malloc",
    "PyObject_Free",
    "PyObject_Realloc",
    "PyObject_Calloc",
    "PyObject_GC_",
    "PyObject_New",
    "PyMem_",
    "pymalloc_",
    "arena_",
    "gc_",
    "collect",
    "visit_",
    "subtract_refs",
    "update_refs",
    "Py_Dealloc",
    "Py_NewReference",
    "PyType_GenericAlloc",
    "PyType_AllocNoTrack",
    "free_list",
];

const LOOKUP: &[&str] = &[
    "PyObject_GetAttr",
    "PyObject_SetAttr",
    "PyObject_GetMethod",
    "PyObject_LookupAttr",
    "PyObject_Generic",
    "PyObject_GetOptionalAttr",
    "PyType_Lookup",
    "PyDict_GetItem",
    "PyDict_LoadGlobal",
    "PyDict_Lookup",
    "Py_dict_lookup",
    "lookdict",
    "dictkeys_",
    "unicodekeys_",
    "module_getattro",
    "type_getattro",
    "slot_tp_getattr",
    "property_descr_",
    "member_get",
    "getset_get",
    "super_getattro",
    "find_name_in_mro",
    "lookup_maybe_method",
];

const EVALUATION: &[&str] = &["PyEval_", "unpack_", "PySlice_", "Py_Specialize", "specialize_"];

const CALLS: &[&str] = &[
    "PyFunction_",
    "PyFrame_",
    "PyObject_Call",
    "PyObject_Vectorcall",
    "PyObject_MakeTpCall",
    "PyVectorcall",
    "PyArg_",
    "PyCFunction_",
    "PyMethod_",
    "PyGen_",
    "cfunction_",
    "method_",
    "vectorcall_",
    "type_call",
    "slot_tp_",
    "gen_",
    "getargs_",
    "vgetargs",
    "initialize_locals",
    "frame_",
];

const BUILTIN: &[&str] = &[
    "list",
    "PyList_",
    "ins1",
    "dict",
    "PyDict_",
    "insertdict",
    "insert_to_emptydict",
    "set",
    "PySet_",
    "frozenset",
    "tuple",
    "PyTuple_",
    "unicode_",
    "unicodeiter_",
    "PyUnicode_",
    "bytes",
    "PyBytes_",
    "bytearray",
    "long_",
    "PyLong_",
    "k_mul",
    "k_lopsided_mul",
    "x_mul",
    "x_divrem",
    "float_",
    "PyFloat_",
    "complex_",
    "bool_",
    "builtin_",
    "range",
    "sre_",
    "SRE_",
    "pattern_",
    "match_",
    "binarysort",
    "merge_",
    "count_run",
    "unsafe_",
    "deque_",
    "defdict_",
    "count_elements",
    "partial_",
    "lru_cache",
    "bounded_lru_cache",
    "islice_",
    "chain_",
    "product_",
    "permutations_",
    "combinations_",
    "groupby_",
    "accumulate_",
    "map_",
    "filter_",
    "zip_",
    "enum_",
    "reversed_",
    "memory_",
    "slice_",
    "buffered_",
    "bytesio_",
    "stringio_",
    "textiowrapper_",
    "fileio_",
    "io_",
    "os_",
    "time_",
    "math_",
    "struct_",
    "scan",
    "encoder_",
    "save",
    "load",
    "dump",
    "zlib_",
    "datetime_",
    "time_strptime",
    "dec_",
    "mpd_",
    "mpdpy",
    "PyDec",
    "random_",
    "csv",
    "Reader_",
    "compare_digest",
];

/// Whether a library is the interpreter or one of the extension modules that come with it.
pub(super) fn is_python_library(library: &str) -> bool {
    const MODULES: [&str; 46] = [
        "_json",
        "_pickle",
        "_struct",
        "zlib",
        "_bz2",
        "_lzma",
        "_hashlib",
        "_md5",
        "_sha1",
        "_sha2",
        "_sha256",
        "_sha512",
        "_sha3",
        "_blake2",
        "_bisect",
        "_heapq",
        "_csv",
        "_datetime",
        "_decimal",
        "_random",
        "math",
        "cmath",
        "_statistics",
        "_elementtree",
        "pyexpat",
        "_sqlite3",
        "_ssl",
        "_socket",
        "select",
        "array",
        "binascii",
        "unicodedata",
        "_multibytecodec",
        "_opcode",
        "_queue",
        "_asyncio",
        "_contextvars",
        "_zoneinfo",
        "_collections",
        "_functools",
        "itertools",
        "_operator",
        "fcntl",
        "mmap",
        "_uuid",
        "_posixsubprocess",
    ];
    let stem = library.split('.').next().unwrap_or_default();
    let is_module = MODULES.contains(&stem)
        && (library.contains(".cpython-") || library.contains(".abi3") || library.ends_with(".so"));
    library.starts_with("python") || library.starts_with("libpython") || is_module
}

/// Time of functions that allocate Python objects or collect garbage.
pub(super) fn objects_ns(works: &[&Work]) -> f64 {
    works.iter().filter(|work| is_object(work)).map(|work| work.ns).sum()
}

/// Whether a function allocates Python objects or collects garbage.
pub(super) fn is_object(work: &Work) -> bool {
    python_part(&work.name, &work.place) == PythonPart::Objects
}

/// Whether a function of the interpreter calls Python functions or evaluates their bytecode.
pub(super) fn runs_python_code(work: &Work) -> bool {
    let name = work.name.trim_start_matches('_');
    match python_part(&work.name, &work.place) {
        PythonPart::Calls => true,
        PythonPart::Evaluation => {
            let is_evaluation = EVALUATION.iter().any(|prefix| name.starts_with(prefix));
            is_evaluation
                || ["ceval", "generated_cases"].iter().any(|file| work.place.starts_with(file))
        }
        _ => false,
    }
}

/// The finding if A runs an extension module where B runs a Python implementation of the same
/// interface, such as `_decimal` and `_pydecimal.py`. `spent` lists the entries of
/// [`Stacks::spent`] to compare, by side.
pub(super) fn accelerator(pair: &Pair<'_>, spent: &[Vec<usize>; 2]) -> Option<Finding> {
    /// Minimum share of A's time in the module, and of B's time in the Python code.
    const SHARE_THAT_MATTERS: f64 = 0.25;
    let a = Times::of(&pair.a.stacks, &spent[0]);
    let b = Times::of(&pair.b.stacks, &spent[1]);
    let is_replaced = |(library, ns): &(&&str, &f64)| {
        let of_b = b.modules.get(**library).copied().unwrap_or(0.0);
        **ns >= SHARE_THAT_MATTERS * a.whole && of_b <= **ns / 10.0
    };
    let (library, &ns) = a
        .modules
        .iter()
        .filter(is_replaced)
        .max_by(|x, y| x.1.total_cmp(y.1).then_with(|| y.0.cmp(x.0)))?;
    let ns_of_b = b.modules.get(library).copied().unwrap_or(0.0);
    let related = b.files.iter().filter(|(file, _)| is_same_module(library, file));
    let in_python: f64 = related.clone().map(|(_, ns)| ns).sum();
    let (file, _) = related.max_by(|x, y| x.1.total_cmp(y.1).then_with(|| y.0.cmp(x.0)))?;
    if in_python < SHARE_THAT_MATTERS * b.whole {
        return None;
    }
    let advice = format!(
        "A runs the extension module {library}, B the Python code in {file}: check why B does not \
         use the module"
    );
    let samples = pair.b.samples();
    let finding = Finding::new(Kind::LibraryNotUsed, *file, advice);
    Some(finding.fact(&format!("time in {library}"), [ns, ns_of_b], Unit::Nanos, samples).fact(
        &format!("time in Python code such as {file}"),
        [0.0, in_python],
        Unit::Nanos,
        samples,
    ))
}

/// Times of a side by extension module, and by file of the innermost Python function.
#[derive(Default)]
struct Times<'a> {
    whole: f64,
    modules: FxHashMap<&'a str, f64>,
    files: FxHashMap<&'a str, f64>,
}

impl<'a> Times<'a> {
    fn of(stacks: &'a Stacks, spent: &[usize]) -> Times<'a> {
        let mut times = Times::default();
        for entry in spent.iter().filter_map(|&at| stacks.spent.get(at)) {
            times.whole += entry.ns;
            let path = stacks.path(entry.node);
            let mut frames = path.iter().rev().filter_map(|&at| stacks.frames.get(at as usize));
            let mut module = None;
            for frame in frames.by_ref() {
                if frame.kind == FrameKind::Python {
                    *times.files.entry(short_path(&frame.file)).or_default() += entry.ns;
                    break;
                }
                if frame.file.contains(".cpython-") || frame.file.contains(".abi3.") {
                    module = Some(frame.file.as_str());
                }
            }
            if let Some(module) = module {
                *times.modules.entry(module).or_default() += entry.ns;
            }
        }
        times
    }
}

/// Whether an extension module and a Python file belong to the same module: `_decimal…so` and
/// `_pydecimal.py`, `_cmsgpack…so` and `msgpack/fallback.py`.
fn is_same_module(library: &str, file: &str) -> bool {
    let stem = library.split('.').next().unwrap_or_default().trim_matches('_').to_ascii_lowercase();
    let of_c = stem.strip_prefix('c').unwrap_or(&stem);
    let is_same = |part: &str| {
        let part = part.trim_end_matches(".py").trim_matches('_').to_ascii_lowercase();
        let plain = part.strip_prefix("py").unwrap_or(&part);
        let plain = plain.trim_end_matches("_py").trim_matches('_');
        [plain, part.as_str()].iter().any(|name| *name == stem || *name == of_c)
    };
    stem.len() > 2 && file.split('/').any(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_apart_by_file_and_by_name() {
        use PythonPart::{Builtin, Calls, Evaluation, Lookup, Objects};
        let check = |name: &str, place: &str, expected: PythonPart| {
            assert_eq!(python_part(name, place), expected, "{name} {place}");
        };
        check("_PyEval_EvalFrameDefault", "", Evaluation);
        check("_PyEval_EvalFrameDefault", "ceval.c:1784", Evaluation);
        check("list_insert", "", Builtin);
        check("something", "listobject.c:12", Builtin);
        check("list_dealloc", "listobject.c:12", Objects);
        check("_PyObject_Malloc", "obmalloc.c:1", Objects);
        check("_PyMem_DebugRawAlloc", "", Objects);
        check("_PyObject_GenericGetAttrWithDict", "object.c:1", Lookup);
        check("PyDict_GetItemWithError", "dictobject.c:1", Lookup);
        check("_PyFunction_Vectorcall", "call.c:1", Calls);
        check("sre_ucs1_match", "", Builtin);
    }

    #[test]
    fn accelerators_belong_to_the_python_code_that_they_replace() {
        let check = |library: &str, file: &str, expected: bool| {
            assert_eq!(is_same_module(library, file), expected, "{library} {file}");
        };
        check("_decimal.cpython-311-x86_64-linux-gnu.so", "_pydecimal.py", true);
        check("_yaml.cpython-311-x86_64-linux-gnu.so", "yaml/reader.py", true);
        check("_cmsgpack.cpython-311-x86_64-linux-gnu.so", "msgpack/fallback.py", true);
        check("_multidict.cpython-311-x86_64-linux-gnu.so", "multidict/_multidict_py.py", true);
        check("_json.cpython-311-x86_64-linux-gnu.so", "json/encoder.py", true);
        check(
            "_multiarray_umath.cpython-311-x86_64-linux-gnu.so",
            "numpy/core/fromnumeric.py",
            false,
        );
        check("lib.cpython-311-x86_64-linux-gnu.so", "pandas/core/lib.py", true);
        check("_c.so", "c.py", false);
    }

    #[test]
    fn modules_of_the_standard_library_belong_to_python() {
        assert!(is_python_library("libpython3.11.so.1.0"));
        assert!(is_python_library("_json.cpython-311-x86_64-linux-gnu.so"));
        assert!(!is_python_library("_multiarray_umath.cpython-311-x86_64-linux-gnu.so"));
        assert!(!is_python_library("libz.so.1.2.13"));
        assert!(!is_python_library("math"));
    }
}
