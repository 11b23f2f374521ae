"""Prints a description of the interpreter, and of its packages for building bindings, as JSON."""

import json
import os
import sys
import sysconfig


def package(name):
    """Version and directories of a package; None if it cannot be imported."""
    try:
        module = __import__({"cython": "Cython"}.get(name, name))
        found = {"name": name, "version": str(module.__version__)}
        if name == "pybind11":
            found["include"] = module.get_include()
        elif name == "nanobind":
            found["include"] = module.include_dir()
            found["source"] = module.source_dir()
        return found
    except Exception:
        return None


paths = sysconfig.get_paths()
include = list(dict.fromkeys([paths["include"], paths["platinclude"]]))
json.dump(
    {
        "executable": sys.executable or "",
        "version": sys.version.split()[0],
        "implementation": sys.implementation.name,
        "tag": sys.implementation.cache_tag or "",
        "suffix": sysconfig.get_config_var("EXT_SUFFIX") or ".so",
        "include": include,
        "has_headers": os.path.exists(os.path.join(paths["include"], "Python.h")),
        "packages": [
            found for found in map(package, ["cffi", "pybind11", "nanobind", "cython"]) if found
        ],
    },
    sys.stdout,
)
