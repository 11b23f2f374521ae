"""Filters of pictures. Each is a file of this directory with a function `apply`, found by its name."""

import importlib.util
import os

_loaded = {}


def load(name):
    """Loads a filter."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def get(name):
    """A filter, loaded when it is asked for first."""
    if name not in _loaded:
        _loaded[name] = load(name)
    return _loaded[name]
