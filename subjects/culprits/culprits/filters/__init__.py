"""Image filters. Each filter is a file in this directory with a function `apply`."""

import importlib.util
import os

_loaded = {}


def load(name):
    """Load a filter."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def get(name):
    """Return a filter, which is loaded on first use."""
    if name not in _loaded:
        _loaded[name] = load(name)
    return _loaded[name]
