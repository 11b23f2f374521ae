"""benchlib through ctypes. Installed as bench_ctypes (CDLL) and as bench_ctypes_pydll (PyDLL, which keeps the GIL)."""

from ctypes import (CDLL, CFUNCTYPE, POINTER, PYFUNCTYPE, PyDLL, Structure, c_bool, c_char, c_char_p, c_double, c_int32,
                    c_int64, c_size_t, c_uint8, c_void_p)
from pathlib import Path

KEEPS_GIL = __name__.rpartition(".")[2] == "bench_ctypes_pydll"

library = (PyDLL if KEEPS_GIL else CDLL)(str(Path(__file__).with_name("libbenchlib.so")))

# Wraps a Python function once, before the calls. ctypes prints exceptions and cannot propagate them.
callback = (PYFUNCTYPE if KEEPS_GIL else CFUNCTYPE)(c_int64, c_int64)


class Point(Structure):
    _fields_ = [("x", c_double), ("y", c_double)]


class Large(Structure):
    _fields_ = [("values", c_double * 16)]


def bind(name, result, *arguments):
    """The C function with argument types. Without them ctypes checks nothing and cannot pass a double."""
    function = getattr(library, "bl_" + name)
    function.restype = result
    function.argtypes = arguments
    return function


# Arrays and Structures are passed as these types by address.
doubles, ints, point = POINTER(c_double), POINTER(c_int32), POINTER(Point)

noop = bind("noop", None)
if not KEEPS_GIL:
    noop_nogil = noop
return_int = bind("return_int", c_int32)
return_int64 = bind("return_int64", c_int64)
return_bool = bind("return_bool", c_bool)
return_double = bind("return_double", c_double)

add_int32 = bind("add_int32", c_int32, c_int32, c_int32)
add_int64 = bind("add_int64", c_int64, c_int64, c_int64)
and_bool = bind("and_bool", c_bool, c_bool, c_bool)
add_double = bind("add_double", c_double, c_double, c_double)

bytes_length = bind("bytes_length", c_size_t, c_char_p)
bytes_count = bind("bytes_count", c_size_t, c_char_p, c_size_t, c_uint8)
str_length = bind("str_length", c_size_t, c_char_p)
# Not c_char_p, which ctypes converts to bytes, losing the address to free.
concat_bytes = bind("concat", c_void_p, c_char_p, c_char_p)
free = bind("free", None, c_void_p)


def concat(a, b):
    address = concat_bytes(a.encode(), b.encode())
    if not address:
        raise MemoryError
    text = c_char_p(address).value
    free(address)
    return text.decode()


sum_double = bind("sum_double", c_double, doubles, c_size_t)
scale = bind("scale", None, doubles, c_size_t, c_double)
sum_strided = bind("sum_strided", c_double, doubles, c_size_t, c_size_t)
sum_int32 = bind("sum_int32", c_int64, ints, c_size_t)
dot = bind("dot", c_double, doubles, doubles, c_size_t)
matmul = bind("matmul", None, doubles, doubles, doubles, c_size_t)

point_make = bind("point_make", Point, c_double, c_double)
point_norm = bind("point_norm", c_double, Point)
point_move = bind("point_move", None, point, c_double, c_double)

call = bind("call_plain", c_int64, callback, c_int64)
call_many = bind("call_many_plain", c_int64, callback, c_int64)

alloc = bind("alloc", c_size_t, c_size_t)
args5 = bind("args5", c_int32, *[c_int32] * 5)
args8 = bind("args8", c_double, *[c_double] * 8)
args_mixed = bind("args_mixed", c_double, c_int32, c_double, c_int64, c_bool, c_double, c_int32)

large_make = bind("large_make", Large, c_double)
fill = bind("fill", None, c_char_p, c_size_t)


def large_values(large):
    return list(large.values)


def large_bytes(length):
    buffer = (c_char * length)()
    fill(buffer, length)
    return buffer.raw


def raise_negative(result, _function, _arguments):
    if result < 0:
        raise ValueError("negative")


check = bind("check", c_int32, c_int32)
check.errcheck = raise_negative

functions = [bind(f"f{number:02}", c_int32) for number in range(100)]
