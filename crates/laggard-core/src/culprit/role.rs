//! Classification of functions by their name, library and context.

use crate::model::code::Role as LibraryRole;
use serde::{Deserialize, Serialize};

/// What time is spent on. Times of the same role are compared between the sides.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The computation itself.
    #[default]
    Compute,
    /// Computation in a BLAS library.
    Blas,
    /// Mathematical functions.
    Math,
    /// Copying bytes.
    Copy,
    /// Changing the memory order of values.
    Rearrangement,
    /// Converting values to another type.
    Conversion,
    /// Allocating, freeing and clearing memory.
    Allocation,
    /// Locks, barriers and idle loops.
    Sync,
    /// Python's evaluation loop and object handling.
    Interpreter,
    /// Binding code between Python and native code.
    Binding,
    /// Importing modules and loading libraries.
    StartUp,
}

impl Role {
    /// The role in reports.
    pub fn label(self) -> &'static str {
        match self {
            Role::Compute => "computation",
            Role::Blas => "BLAS",
            Role::Math => "math functions",
            Role::Copy => "copying",
            Role::Rearrangement => "rearranging data",
            Role::Conversion => "type conversion",
            Role::Allocation => "memory allocation",
            Role::Sync => "locks",
            Role::Interpreter => "Python interpreter",
            Role::Binding => "binding code",
            Role::StartUp => "imports and loading",
        }
    }
}

/// Properties of a function that determine its role.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Its name.
    pub function: &'a str,
    /// The file name of its library.
    pub library: &'a str,
    /// Known role of the library.
    pub library_role: Option<LibraryRole>,
    /// Whether the sample was taken during an import or while loading a library.
    pub is_loading: bool,
}

/// The role of a function.
pub fn role(place: Place<'_>) -> Role {
    let name = place.function.trim_start_matches('_');
    if place.is_loading {
        return Role::StartUp;
    }
    if starts(name, &["memcpy", "memmove", "mempcpy"]) {
        return Role::Copy;
    }
    if starts(name, SYNC) || contains(name, &["spin_lock"]) || is_idle_loop(name) {
        return Role::Sync;
    }
    let library = place.library;
    let is_interpreter = starts(library, &["python", "libpython"]) || library == "[Python]";
    // Python's own allocator is part of its object handling.
    let is_allocation = starts(name, ALLOCATION)
        || is_inside_allocator(name)
        || contains(name, &["alloc_cache", "_Arena"]);
    if !is_interpreter && is_allocation {
        return Role::Allocation;
    }
    if contains(library, BINDINGS) || contains(name, &["pyo3::", "pybind11::", "Pyx_", "nanobind"])
    {
        return Role::Binding;
    }
    if is_interpreter {
        return Role::Interpreter;
    }
    match place.library_role {
        Some(LibraryRole::Blas | LibraryRole::Lapack) => return Role::Blas,
        Some(LibraryRole::Math) => return Role::Math,
        Some(LibraryRole::Allocator) => return Role::Allocation,
        _ => {}
    }
    if library.starts_with("_multiarray_umath")
        && (contains(name, NUMPY_OBJECTS) || is_scalar_arithmetic(name))
    {
        return Role::Interpreter;
    }
    let lower = name.to_ascii_lowercase();
    match () {
        // Match whole words only: "broadcast" contains "cast".
        () if words(&lower).any(|word| CONVERSION.contains(&word)) => Role::Conversion,
        () if contains(&lower, REARRANGEMENT) => Role::Rearrangement,
        () => Role::Compute,
    }
}

/// Whether threads of a library wait in this function for work or for each other without sleeping.
pub fn is_idle_loop(name: &str) -> bool {
    const LOOPS: [&str; 10] = [
        "blas_thread_server",
        "exec_blas_async_wait",
        "gomp_team_barrier_wait",
        "gomp_barrier_wait",
        "gomp_thread_start",
        "do_spin",
        "kmp_flag_",
        "kmp_hyper_barrier",
        "wait_until_cold",
        "sched_yield",
    ];
    contains(name, &LOOPS)
}

/// Functions of NumPy's scalar objects, which are handled like Python objects.
const NUMPY_OBJECTS: &[&str] = &[
    "arrtype",
    "gentype_",
    "PyArray_Scalar",
    "array_item",
    "arrayiter_next",
    "_getitem",
    "_setitem",
    "convert_to_double",
    "convert_to_float",
    "convert_to_long",
    "convert_to_int",
    "PyArray_Return",
    "floatstatus",
];

/// Whether a function does arithmetic on NumPy scalars, such as `double_add`. Loops over arrays have
/// names in capitals.
fn is_scalar_arithmetic(name: &str) -> bool {
    const TYPES: [&str; 10] = [
        "bool",
        "byte",
        "short",
        "int",
        "long",
        "longlong",
        "half",
        "float",
        "double",
        "longdouble",
    ];
    const OPERATIONS: [&str; 14] = [
        "add",
        "subtract",
        "multiply",
        "divide",
        "true_divide",
        "floor_divide",
        "remainder",
        "power",
        "absolute",
        "negative",
        "positive",
        "nonzero",
        "richcompare",
        "divmod",
    ];
    name.split_once('_').is_some_and(|(kind, operation)| {
        TYPES.contains(&kind.strip_prefix('u').unwrap_or(kind)) && OPERATIONS.contains(&operation)
    })
}

const CONVERSION: &[&str] = &["cast", "casts", "casting", "convert", "conversion", "astype"];

/// Functions that copy between strided and contiguous memory.
const REARRANGEMENT: &[&str] =
    &["strided_to_contig", "contig_to_strided", "strided_to_strided", "transpose", "to_contiguous"];

/// Whether a function belongs to the inside of libc's allocator.
pub(super) fn is_inside_allocator(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "int_malloc",
        "int_free",
        "int_realloc",
        "sysmalloc",
        "systrim",
        "unlink_chunk",
        "tcache_",
    ];
    starts(name.trim_start_matches('_'), NAMES)
}

const ALLOCATION: &[&str] = &[
    "malloc",
    "free",
    "cfree",
    "calloc",
    "realloc",
    "aligned_alloc",
    "posix_memalign",
    "libc_malloc",
    "libc_free",
    "libc_calloc",
    "mmap",
    "munmap",
    "madvise",
    "brk",
    "sbrk",
    "memset",
    "operator new",
    "operator delete",
    "rust_alloc",
    "rust_dealloc",
    "rdl_alloc",
    "rdl_dealloc",
];

const SYNC: &[&str] = &[
    "pthread_mutex_",
    "pthread_barrier_",
    "pthread_cond_",
    "pthread_rwlock_",
    "pthread_spin_",
    "lll_lock",
    "futex",
    "sem_",
    "new_sem_",
    "sched_yield",
    "take_gil",
    "drop_gil",
    "PyThread_acquire_lock",
    "gomp_",
    "kmp_",
    "GI___lll_lock",
];

const BINDINGS: &[&str] = &["_ctypes", "libffi", "_cffi_backend", "pybind11", "nanobind"];

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_ascii_alphanumeric())
}

fn starts(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.starts_with(word))
}

fn contains(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}
