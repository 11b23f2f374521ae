//! The measured bindings and their embedded sources.

use crate::failure;

/// A binding. The first is the floor: all others are built on the C API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Binding {
    Capi,
    Cython,
    Nanobind,
    Pyo3,
    Pybind11,
    CffiApi,
    CffiAbi,
    CtypesPydll,
    Ctypes,
}

/// A source file: its path in the build directory, and its content.
pub(crate) type File = (&'static str, &'static str);

macro_rules! source {
    ($path:literal) => {
        include_str!(concat!("../../../../subjects/ffi/", $path))
    };
}

/// The C library called through all bindings.
pub(crate) const LIBRARY: [File; 2] = [
    ("benchlib.h", source!("benchlib/benchlib.h")),
    ("benchlib.c", source!("benchlib/benchlib.c")),
];

impl Binding {
    pub(crate) const ALL: [Binding; 9] = [
        Binding::Capi,
        Binding::Cython,
        Binding::Nanobind,
        Binding::Pyo3,
        Binding::Pybind11,
        Binding::CffiApi,
        Binding::CffiAbi,
        Binding::CtypesPydll,
        Binding::Ctypes,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Binding::Capi => "capi",
            Binding::Cython => "cython",
            Binding::Nanobind => "nanobind",
            Binding::Pyo3 => "pyo3",
            Binding::Pybind11 => "pybind11",
            Binding::CffiApi => "cffi-api",
            Binding::CffiAbi => "cffi-abi",
            Binding::CtypesPydll => "ctypes-pydll",
            Binding::Ctypes => "ctypes",
        }
    }

    /// The family of bindings with similar statements.
    pub(crate) fn family(self) -> &'static str {
        self.name().split('-').next().unwrap_or_default()
    }

    pub(crate) fn about(self) -> &'static str {
        match self {
            Binding::Capi => "C API with METH_FASTCALL: the floor",
            Binding::Cython => "Cython, binding=False",
            Binding::Nanobind => "C++ with nanobind",
            Binding::Pyo3 => "Rust with PyO3, not abi3",
            Binding::Pybind11 => "C++ with pybind11",
            Binding::CffiApi => "cffi with a compiled module; releases the GIL on every call",
            Binding::CffiAbi => "cffi with dlopen, no compiler; releases the GIL on every call",
            Binding::CtypesPydll => "ctypes.PyDLL; keeps the GIL",
            Binding::Ctypes => "ctypes.CDLL; releases the GIL on every call",
        }
    }

    /// The binding of this name.
    pub(crate) fn named(name: &str) -> anyhow::Result<Binding> {
        let found = Binding::ALL.into_iter().find(|binding| binding.name() == name);
        found.ok_or_else(|| {
            let names = Binding::ALL.map(Binding::name);
            failure::with_hint(
                format!("unknown binding {name}"),
                format!("bindings: {}", names.join(", ")),
            )
        })
    }

    /// The bindings with these names, in the order of the suite. The name of a family selects all of
    /// its bindings; no names select all.
    pub(crate) fn chosen(names: &[String]) -> anyhow::Result<Vec<Binding>> {
        if names.is_empty() {
            return Ok(Binding::ALL.to_vec());
        }
        let fits =
            |binding: Binding, name: &str| binding.name() == name || binding.family() == name;
        for name in names {
            if !Binding::ALL.into_iter().any(|binding| fits(binding, name)) {
                Binding::named(name)?;
            }
        }
        let is_chosen = |binding: &Binding| names.iter().any(|name| fits(*binding, name));
        Ok(Binding::ALL.into_iter().filter(is_chosen).collect())
    }

    /// The Python package that the binding needs.
    pub(crate) fn package(self) -> Option<&'static str> {
        match self {
            Binding::Cython => Some("cython"),
            Binding::Nanobind => Some("nanobind"),
            Binding::Pybind11 => Some("pybind11"),
            Binding::CffiApi | Binding::CffiAbi => Some("cffi"),
            Binding::Capi | Binding::Pyo3 | Binding::CtypesPydll | Binding::Ctypes => None,
        }
    }

    /// The name of the Python module.
    pub(crate) fn module(self) -> &'static str {
        match self {
            Binding::Capi => "bench_capi",
            Binding::Cython => "bench_cython",
            Binding::Nanobind => "bench_nanobind",
            Binding::Pyo3 => "bench_pyo3",
            Binding::Pybind11 => "bench_pybind11",
            Binding::CffiApi => "bench_cffi_api",
            Binding::CffiAbi => "bench_cffi_abi",
            Binding::CtypesPydll => "bench_ctypes_pydll",
            Binding::Ctypes => "bench_ctypes",
        }
    }

    /// Whether the module is written in Python.
    pub(crate) fn is_python(self) -> bool {
        matches!(self.family(), "ctypes" | "cffi")
    }

    /// The version of a crate in the lock file.
    pub(crate) fn locked_version(self, name: &str) -> String {
        let lock = self.sources().iter().find(|(file, _)| *file == "Cargo.lock");
        let wanted = format!("name = \"{name}\"\nversion = \"");
        let after = lock.and_then(|(_, text)| text.split(&wanted).nth(1));
        after.and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned()
    }

    pub(crate) fn sources(self) -> &'static [File] {
        match self {
            Binding::Capi => &[("bench_capi.c", source!("bindings/capi/bench_capi.c"))],
            Binding::Cython => &[
                ("bench_cython.pyx", source!("bindings/cython/bench_cython.pyx")),
                ("functions.pxi", source!("bindings/cython/functions.pxi")),
            ],
            Binding::Nanobind => {
                &[("bench_nanobind.cpp", source!("bindings/nanobind/bench_nanobind.cpp"))]
            }
            Binding::Pyo3 => &[
                ("Cargo.toml", source!("bindings/pyo3/Cargo.toml")),
                ("Cargo.lock", source!("bindings/pyo3/Cargo.lock")),
                ("build.rs", source!("bindings/pyo3/build.rs")),
                ("src/lib.rs", source!("bindings/pyo3/src/lib.rs")),
            ],
            Binding::Pybind11 => {
                &[("bench_pybind11.cpp", source!("bindings/pybind11/bench_pybind11.cpp"))]
            }
            // Both modes have the same source, which detects its mode from the file name.
            Binding::CffiApi => &[
                ("bench_cffi_api.py", source!("bindings/cffi/bench_cffi.py")),
                ("cdef.h", source!("bindings/cffi/cdef.h")),
                ("emit.py", source!("bindings/cffi/emit.py")),
            ],
            Binding::CffiAbi => &[
                ("bench_cffi_abi.py", source!("bindings/cffi/bench_cffi.py")),
                ("cdef.h", source!("bindings/cffi/cdef.h")),
            ],
            Binding::CtypesPydll => {
                &[("bench_ctypes_pydll.py", source!("bindings/ctypes/bench_ctypes.py"))]
            }
            Binding::Ctypes => &[("bench_ctypes.py", source!("bindings/ctypes/bench_ctypes.py"))],
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn families_expand_in_suite_order() {
        let names = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            Binding::chosen(&names)
                .map(|all| all.into_iter().map(Binding::name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["cffi", "capi"]).unwrap(), ["capi", "cffi-api", "cffi-abi"]);
        assert_eq!(names(&["ctypes"]).unwrap(), ["ctypes-pydll", "ctypes"]);
        assert_eq!(names(&[]).unwrap().len(), 9);
        assert!(names(&["swig"]).is_err());
        assert!(Binding::Pyo3.locked_version("pyo3").starts_with("0."));
        assert_eq!(Binding::Capi.locked_version("pyo3"), "");
    }
}
