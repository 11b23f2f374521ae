"""Libraries loaded with ctypes, with minimal call overhead."""

import ctypes
import os
import sys

_TYPES = {
    "p": ctypes.c_void_p,
    "n": ctypes.c_ssize_t,
    "i": ctypes.c_int,
    "u": ctypes.c_uint64,
    "w": ctypes.c_uint32,
    "f": ctypes.c_float,
    "d": ctypes.c_double,
    "b": ctypes.c_bool,
    "-": None,
}


class Library:
    """A library with the functions that exist on this architecture."""

    def __init__(self, name, **functions):
        place = os.environ.get("LAGGARD_CULPRITS") or os.path.dirname(os.path.abspath(__file__))
        path = os.path.join(place, "lib" + name + (".dylib" if sys.platform == "darwin" else ".so"))
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            raise ImportError("%s (LAGGARD_CULPRITS names the directory it was built in)" % error)
        for name, types in functions.items():
            function = getattr(library, name, None)
            if function is not None:
                result, arguments = types.split(":")
                function.restype = _TYPES[result]
                function.argtypes = [_TYPES[letter] for letter in arguments]
                setattr(self, name, function)


def pointer(array):
    """Address of an array's data. The caller must keep the array alive."""
    return array.ctypes.data
