# benchlib through Cython.
# cython: binding=False, always_allow_keywords=False, cdivision=True
#
# binding=False creates plain built-in functions; always_allow_keywords=False lets functions with one argument use
# METH_O. No Python objects are indexed, so boundscheck and wraparound have no effect.

cimport cython
from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_ND, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_Occurred
from cpython.unicode cimport PyUnicode_AsUTF8, PyUnicode_FromString
from libc.stdint cimport UINT32_MAX, int32_t, int64_t, uint8_t

cdef extern from "benchlib.h" nogil:
    void bl_noop()
    int32_t bl_return_int()
    int64_t bl_return_int64()
    bint bl_return_bool()
    double bl_return_double()

    int32_t bl_add_int32(int32_t a, int32_t b)
    int64_t bl_add_int64(int64_t a, int64_t b)
    bint bl_and_bool(bint a, bint b)
    double bl_add_double(double a, double b)

    size_t bl_bytes_length(const char *text)
    size_t bl_bytes_count(const char *data, size_t length, uint8_t byte)
    size_t bl_str_length(const char *utf8)
    char *bl_concat(const char *a, const char *b)
    void bl_free(void *memory)

    double bl_sum_double(const double *values, size_t count)
    void bl_scale(double *values, size_t count, double factor)
    double bl_sum_strided(const double *values, size_t count, size_t stride)
    int64_t bl_sum_int32(const int32_t *values, size_t count)
    double bl_dot(const double *a, const double *b, size_t count)
    void bl_matmul(const double *a, const double *b, double *out, size_t side)

    ctypedef struct bl_point:
        double x, y
    bl_point bl_point_make(double x, double y)
    double bl_point_norm(bl_point point)
    void bl_point_move(bl_point *point, double dx, double dy)

    ctypedef struct bl_large:
        double values[16]
    bl_large bl_large_make(double start)
    void bl_fill(uint8_t *out, size_t length)

    size_t bl_alloc(size_t size)
    int32_t bl_args5(int32_t a, int32_t b, int32_t c, int32_t d, int32_t e)
    double bl_args8(double a, double b, double c, double d, double e, double f, double g, double h)
    double bl_args_mixed(int32_t a, double b, int64_t c, bint d, double e, int32_t f)
    int32_t bl_check(int32_t x)

# C does not propagate exceptions but leaves them set: `except *` checks for one after the call.
cdef extern from "benchlib.h":
    ctypedef int64_t (*bl_callback)(int64_t x, void *context) except? -1
    int64_t bl_call(bl_callback callback, void *context, int64_t x) except *
    int64_t bl_call_many(bl_callback callback, void *context, int64_t count) except *

include "functions.pxi"


def noop():
    bl_noop()


def noop_nogil():
    with nogil:
        bl_noop()


def return_int():
    return bl_return_int()


def return_int64():
    return bl_return_int64()


def return_bool():
    return bl_return_bool()


def return_double():
    return bl_return_double()


def add_int32(int32_t a, int32_t b):
    return bl_add_int32(a, b)


def add_int64(int64_t a, int64_t b):
    return bl_add_int64(a, b)


def and_bool(bint a, bint b):
    return bl_and_bool(a, b)


def add_double(double a, double b):
    return bl_add_double(a, b)


# An embedded NUL ends the string, as in C.
def bytes_length(bytes text not None):
    return bl_bytes_length(text)


def bytes_count(bytes text not None, uint8_t byte):
    return bl_bytes_count(text, len(text), byte)


def str_length(str text not None):
    return bl_str_length(PyUnicode_AsUTF8(text))


def concat(str a not None, str b not None):
    cdef char *both = bl_concat(PyUnicode_AsUTF8(a), PyUnicode_AsUTF8(b))
    if both is NULL:
        raise MemoryError
    try:
        return PyUnicode_FromString(both)
    finally:
        bl_free(both)


# Uses the buffer protocol directly: a call with 8 doubles takes 24 ns, or 87 ns with a typed memoryview (CPython 3.11).
cdef inline int get_buffer(object source, Py_buffer *view, char format, int flags) except -1:
    # Without PyBUF_STRIDES, exporters must reject buffers that are not C-contiguous.
    PyObject_GetBuffer(source, view, PyBUF_ND | PyBUF_FORMAT | flags)
    if view.format is NULL or view.format[0] != format or view.format[1] != 0:
        PyBuffer_Release(view)
        raise TypeError(f"needs a buffer of format '{chr(format)}'")
    return 0


cdef inline size_t doubles_in(Py_buffer *view) noexcept:
    return <size_t>view.len // sizeof(double)


def sum_double(source):
    cdef Py_buffer view
    get_buffer(source, &view, b"d", PyBUF_SIMPLE)
    cdef double total = bl_sum_double(<const double *>view.buf, doubles_in(&view))
    PyBuffer_Release(&view)
    return total


def scale(source, double factor):
    cdef Py_buffer view
    get_buffer(source, &view, b"d", PyBUF_WRITABLE)
    bl_scale(<double *>view.buf, doubles_in(&view), factor)
    PyBuffer_Release(&view)


def sum_strided(source, size_t stride):
    if stride == 0:
        raise ValueError("the stride must not be 0")
    cdef Py_buffer view
    get_buffer(source, &view, b"d", PyBUF_SIMPLE)
    cdef double total = bl_sum_strided(<const double *>view.buf, doubles_in(&view), stride)
    PyBuffer_Release(&view)
    return total


def sum_int32(source):
    cdef Py_buffer view
    get_buffer(source, &view, b"i", PyBUF_SIMPLE)
    cdef int64_t total = bl_sum_int32(<const int32_t *>view.buf, <size_t>view.len // sizeof(int32_t))
    PyBuffer_Release(&view)
    return total


def dot(a, b):
    cdef Py_buffer of_a, of_b
    get_buffer(a, &of_a, b"d", PyBUF_SIMPLE)
    try:
        get_buffer(b, &of_b, b"d", PyBUF_SIMPLE)
        try:
            if of_a.len != of_b.len:
                raise ValueError("the buffers must be of one length")
            return bl_dot(<const double *>of_a.buf, <const double *>of_b.buf, doubles_in(&of_a))
        finally:
            PyBuffer_Release(&of_b)
    finally:
        PyBuffer_Release(&of_a)


def matmul(a, b, out, size_t side):
    # The square of a larger side would overflow.
    if side > UINT32_MAX:
        raise ValueError("the buffers must have side * side items")
    cdef size_t items = side * side
    cdef Py_buffer of_a, of_b, of_out
    get_buffer(a, &of_a, b"d", PyBUF_SIMPLE)
    try:
        get_buffer(b, &of_b, b"d", PyBUF_SIMPLE)
        try:
            get_buffer(out, &of_out, b"d", PyBUF_WRITABLE)
            try:
                if doubles_in(&of_a) != items or doubles_in(&of_b) != items or doubles_in(&of_out) != items:
                    raise ValueError("the buffers must have side * side items")
                bl_matmul(<const double *>of_a.buf, <const double *>of_b.buf, <double *>of_out.buf, side)
            finally:
                PyBuffer_Release(&of_out)
        finally:
            PyBuffer_Release(&of_b)
    finally:
        PyBuffer_Release(&of_a)


@cython.final
cdef class Point:
    cdef bl_point value

    @property
    def x(self):
        return self.value.x

    @property
    def y(self):
        return self.value.y


def point_make(double x, double y):
    cdef Point point = Point.__new__(Point)
    point.value = bl_point_make(x, y)
    return point


def point_norm(Point point not None):
    return bl_point_norm(point.value)


def point_move(Point point not None, double dx, double dy):
    bl_point_move(&point.value, dx, dy)


@cython.final
cdef class Large:
    cdef bl_large value


def large_make(double start):
    cdef Large large = Large.__new__(Large)
    large.value = bl_large_make(start)
    return large


def large_values(Large large not None):
    return list(large.value.values)


def large_bytes(Py_ssize_t length):
    if length < 0:
        raise ValueError("the length must not be negative")
    data = PyBytes_FromStringAndSize(NULL, length)
    bl_fill(<uint8_t *>PyBytes_AS_STRING(data), length)
    return data


# C keeps calling after an exception; further calls must not run Python code.
cdef int64_t call_back(int64_t x, void *context) except? -1:
    if PyErr_Occurred() is not NULL:
        return 0
    return (<object>context)(x)


def call(function, int64_t x):
    return bl_call(call_back, <void *>function, x)


def call_many(function, int64_t count):
    return bl_call_many(call_back, <void *>function, count)


def alloc(size_t size):
    return bl_alloc(size)


def args5(int32_t a, int32_t b, int32_t c, int32_t d, int32_t e):
    return bl_args5(a, b, c, d, e)


def args8(double a, double b, double c, double d, double e, double f, double g, double h):
    return bl_args8(a, b, c, d, e, f, g, h)


def args_mixed(int32_t a, double b, int64_t c, bint d, double e, int32_t f):
    return bl_args_mixed(a, b, c, d, e, f)


def check(int32_t x):
    if bl_check(x) < 0:
        raise ValueError("negative")
