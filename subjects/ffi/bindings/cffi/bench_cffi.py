"""benchlib through cffi. Installed as bench_cffi_abi (libffi calls) and as bench_cffi_api (compiled, see emit.py)."""

from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import module_from_spec
from pathlib import Path

HERE = Path(__file__).parent


def load_abi():
    from cffi import FFI

    ffi = FFI()
    ffi.cdef((HERE / "cdef.h").read_text())
    return ffi, ffi.dlopen(str(HERE / "libbenchlib.so"))


def load_api():
    # Named after this module, so that the builds of two profiles can be loaded in one process.
    finder = FileFinder(str(HERE), (ExtensionFileLoader, EXTENSION_SUFFIXES))
    spec = finder.find_spec(__name__ + "._bench_cffi_api")
    if spec is None:
        raise ImportError(f"no _bench_cffi_api in {HERE}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ffi, module.lib


ffi, library = load_api() if __name__.rpartition(".")[2] == "bench_cffi_api" else load_abi()

noop = noop_nogil = library.bl_noop
return_int = library.bl_return_int
return_int64 = library.bl_return_int64
return_bool = library.bl_return_bool
return_double = library.bl_return_double

add_int32 = library.bl_add_int32
add_int64 = library.bl_add_int64
and_bool = library.bl_and_bool
add_double = library.bl_add_double

bytes_length = library.bl_bytes_length
bytes_count = library.bl_bytes_count
str_length = library.bl_str_length
concat_bytes = library.bl_concat
free = library.bl_free


def concat(a, b):
    both = concat_bytes(a.encode(), b.encode())
    if not both:
        raise MemoryError
    text = ffi.string(both)
    free(both)
    return text.decode()


sum_double = library.bl_sum_double
scale = library.bl_scale
sum_strided = library.bl_sum_strided
sum_int32 = library.bl_sum_int32
dot = library.bl_dot
matmul = library.bl_matmul

point_make = library.bl_point_make
point_norm = library.bl_point_norm
point_move = library.bl_point_move


def point_new(x, y):
    """An owning pointer to a point, for point_move; point_make returns the point itself."""
    return ffi.new("bl_point *", (x, y))


def callback(function):
    """Wrap a Python function once, before the calls. Exceptions are printed, not propagated.

    Not extern "Python": it does not exist in ABI mode and allows only one Python function per declared C name. It is
    not faster: 17.7 us for 100 callbacks, compared with 17.9 us (CPython 3.11).
    """
    return ffi.callback("bl_plain_callback", function)


call = library.bl_call_plain
call_many = library.bl_call_many_plain

alloc = library.bl_alloc
args5 = library.bl_args5
args8 = library.bl_args8
args_mixed = library.bl_args_mixed

large_make = library.bl_large_make
fill = library.bl_fill


def large_values(large):
    return list(large.values)


# C fills the buffer, so it need not be zeroed.
new_buffer = ffi.new_allocator(should_clear_after_alloc=False)


def large_bytes(length):
    buffer = new_buffer("uint8_t[]", length)
    fill(buffer, length)
    return ffi.buffer(buffer)[:]


check_code = library.bl_check


def check(x):
    if check_code(x) < 0:
        raise ValueError("negative")


functions = [getattr(library, f"bl_f{number:02}") for number in range(100)]
