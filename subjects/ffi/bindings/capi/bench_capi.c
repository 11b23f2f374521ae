/* benchlib through Python's C API: the floor that other bindings are compared with. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "benchlib.h"

/* Conversions return false with an exception set. PyArg_Parse would parse its format in every call. */

static inline bool takes(Py_ssize_t wanted, Py_ssize_t given) {
    if (given == wanted) return true;
    PyErr_Format(PyExc_TypeError, "takes %zd arguments, got %zd", wanted, given);
    return false;
}

/* Uses the documented API. Cython reads the digits of an int directly. */
static inline bool to_int64(PyObject *object, int64_t *out) {
    _Static_assert(sizeof(long) == sizeof(int64_t), "PyLong_AsLong is faster than PyLong_AsLongLong above 30 bits");
    *out = PyLong_AsLong(object);
    return *out != -1 || !PyErr_Occurred();
}

static inline bool to_int32(PyObject *object, int32_t *out) {
    long value = PyLong_AsLong(object);
    if (value == -1 && PyErr_Occurred()) return false;
    *out = (int32_t)value;
    if (*out == value) return true;
    PyErr_SetString(PyExc_OverflowError, "does not fit an int32");
    return false;
}

static inline bool to_byte(PyObject *object, uint8_t *out) {
    long value = PyLong_AsLong(object);
    if (value == -1 && PyErr_Occurred()) return false;
    *out = (uint8_t)value;
    if (*out == value) return true;
    PyErr_SetString(PyExc_OverflowError, "does not fit a byte");
    return false;
}

static inline bool to_size(PyObject *object, size_t *out) {
    *out = PyLong_AsSize_t(object);
    return *out != (size_t)-1 || !PyErr_Occurred();
}

static inline bool to_double(PyObject *object, double *out) {
    if (PyFloat_CheckExact(object)) {
        *out = PyFloat_AS_DOUBLE(object);
        return true;
    }
    *out = PyFloat_AsDouble(object);
    return *out != -1.0 || !PyErr_Occurred();
}

static inline bool to_bool(PyObject *object, bool *out) {
    int truth = object == Py_True ? 1 : object == Py_False ? 0 : PyObject_IsTrue(object);
    *out = truth > 0;
    return truth >= 0;
}

/* An embedded NUL ends the string, as in C. */
static inline bool to_bytes(PyObject *object, const char **out) {
    if (PyBytes_Check(object)) {
        *out = PyBytes_AS_STRING(object);
        return true;
    }
    PyErr_SetString(PyExc_TypeError, "needs bytes");
    return false;
}

/* The str caches its UTF-8, so only the first call encodes. */
static inline bool to_utf8(PyObject *object, const char **out) {
    *out = PyUnicode_AsUTF8AndSize(object, NULL);
    return *out != NULL;
}

/* Without PyBUF_STRIDES, exporters must reject buffers that are not C-contiguous. */
static inline bool get_buffer(PyObject *object, Py_buffer *view, char format, int flags) {
    if (PyObject_GetBuffer(object, view, PyBUF_ND | PyBUF_FORMAT | flags) < 0) return false;
    if (view->format && view->format[0] == format && view->format[1] == '\0') return true;
    PyErr_Format(PyExc_TypeError, "needs a buffer of format '%c'", format);
    PyBuffer_Release(view);
    return false;
}

static inline size_t doubles_in(const Py_buffer *view) { return (size_t)view->len / sizeof(double); }

/* No-op and returns. */

static PyObject *anything(PyObject *Py_UNUSED(module), PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count)) {
    Py_RETURN_NONE;
}

static PyObject *noop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args)) {
    bl_noop();
    Py_RETURN_NONE;
}

static PyObject *noop_nogil(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args)) {
    Py_BEGIN_ALLOW_THREADS
    bl_noop();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *return_int(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args)) {
    return PyLong_FromLong(bl_return_int());
}

static PyObject *return_int64(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args)) {
    return PyLong_FromLongLong(bl_return_int64());
}

static PyObject *return_bool(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args)) {
    return PyBool_FromLong(bl_return_bool());
}

static PyObject *return_double(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args)) {
    return PyFloat_FromDouble(bl_return_double());
}

/* Integers, bools, floats. */

static PyObject *add_int32(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    int32_t a, b;
    if (!takes(2, count) || !to_int32(args[0], &a) || !to_int32(args[1], &b)) return NULL;
    return PyLong_FromLong(bl_add_int32(a, b));
}

static PyObject *add_int64(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    int64_t a, b;
    if (!takes(2, count) || !to_int64(args[0], &a) || !to_int64(args[1], &b)) return NULL;
    return PyLong_FromLongLong(bl_add_int64(a, b));
}

static PyObject *and_bool(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    bool a, b;
    if (!takes(2, count) || !to_bool(args[0], &a) || !to_bool(args[1], &b)) return NULL;
    return PyBool_FromLong(bl_and_bool(a, b));
}

static PyObject *add_double(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    double a, b;
    if (!takes(2, count) || !to_double(args[0], &a) || !to_double(args[1], &b)) return NULL;
    return PyFloat_FromDouble(bl_add_double(a, b));
}

/* Strings. */

static PyObject *bytes_length(PyObject *Py_UNUSED(module), PyObject *arg) {
    const char *text;
    if (!to_bytes(arg, &text)) return NULL;
    return PyLong_FromSize_t(bl_bytes_length(text));
}

static PyObject *bytes_count(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    const char *text;
    uint8_t byte;
    if (!takes(2, count) || !to_bytes(args[0], &text) || !to_byte(args[1], &byte)) return NULL;
    return PyLong_FromSize_t(bl_bytes_count(text, (size_t)PyBytes_GET_SIZE(args[0]), byte));
}

static PyObject *str_length(PyObject *Py_UNUSED(module), PyObject *arg) {
    const char *text;
    if (!to_utf8(arg, &text)) return NULL;
    return PyLong_FromSize_t(bl_str_length(text));
}

static PyObject *concat(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    const char *a, *b;
    if (!takes(2, count) || !to_utf8(args[0], &a) || !to_utf8(args[1], &b)) return NULL;
    char *both = bl_concat(a, b);
    if (!both) return PyErr_NoMemory();
    PyObject *text = PyUnicode_FromString(both);
    bl_free(both);
    return text;
}

/* Buffers. */

static PyObject *sum_double(PyObject *Py_UNUSED(module), PyObject *arg) {
    Py_buffer view;
    if (!get_buffer(arg, &view, 'd', 0)) return NULL;
    double sum = bl_sum_double(view.buf, doubles_in(&view));
    PyBuffer_Release(&view);
    return PyFloat_FromDouble(sum);
}

static PyObject *scale(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    Py_buffer view;
    double factor;
    if (!takes(2, count) || !to_double(args[1], &factor)) return NULL;
    if (!get_buffer(args[0], &view, 'd', PyBUF_WRITABLE)) return NULL;
    bl_scale(view.buf, doubles_in(&view), factor);
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

static PyObject *sum_strided(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    Py_buffer view;
    size_t stride;
    if (!takes(2, count) || !to_size(args[1], &stride)) return NULL;
    if (stride == 0) {
        PyErr_SetString(PyExc_ValueError, "the stride must not be 0");
        return NULL;
    }
    if (!get_buffer(args[0], &view, 'd', 0)) return NULL;
    double sum = bl_sum_strided(view.buf, doubles_in(&view), stride);
    PyBuffer_Release(&view);
    return PyFloat_FromDouble(sum);
}

static PyObject *sum_int32(PyObject *Py_UNUSED(module), PyObject *arg) {
    Py_buffer view;
    if (!get_buffer(arg, &view, 'i', 0)) return NULL;
    int64_t sum = bl_sum_int32(view.buf, (size_t)view.len / sizeof(int32_t));
    PyBuffer_Release(&view);
    return PyLong_FromLongLong(sum);
}

static PyObject *dot(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    Py_buffer a, b;
    PyObject *result = NULL;
    if (!takes(2, count) || !get_buffer(args[0], &a, 'd', 0)) return NULL;
    if (!get_buffer(args[1], &b, 'd', 0)) goto release_a;
    if (a.len == b.len) {
        result = PyFloat_FromDouble(bl_dot(a.buf, b.buf, doubles_in(&a)));
    } else {
        PyErr_SetString(PyExc_ValueError, "the buffers must be of one length");
    }
    PyBuffer_Release(&b);
release_a:
    PyBuffer_Release(&a);
    return result;
}

static PyObject *matmul(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    Py_buffer a, b, out;
    size_t side;
    PyObject *result = NULL;
    if (!takes(4, count) || !to_size(args[3], &side) || !get_buffer(args[0], &a, 'd', 0)) return NULL;
    if (!get_buffer(args[1], &b, 'd', 0)) goto release_a;
    if (!get_buffer(args[2], &out, 'd', PyBUF_WRITABLE)) goto release_b;
    size_t items = side * side;
    /* The square of a larger side would overflow. */
    if (side <= UINT32_MAX && doubles_in(&a) == items && doubles_in(&b) == items && doubles_in(&out) == items) {
        bl_matmul(a.buf, b.buf, out.buf, side);
        Py_INCREF(Py_None);
        result = Py_None;
    } else {
        PyErr_SetString(PyExc_ValueError, "the buffers must have side * side items");
    }
    PyBuffer_Release(&out);
release_b:
    PyBuffer_Release(&b);
release_a:
    PyBuffer_Release(&a);
    return result;
}

/* Structs. Static types, because their objects do not count references to the type. */

typedef struct {
    PyObject_HEAD
    bl_point value;
} Point;

static PyMemberDef point_members[] = {
    {"x", T_DOUBLE, offsetof(Point, value.x), READONLY, NULL},
    {"y", T_DOUBLE, offsetof(Point, value.y), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject PointType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "bench_capi.Point",
    .tp_basicsize = sizeof(Point),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_members = point_members,
};

typedef struct {
    PyObject_HEAD
    bl_large value;
} Large;

static PyTypeObject LargeType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "bench_capi.Large",
    .tp_basicsize = sizeof(Large),
    .tp_flags = Py_TPFLAGS_DEFAULT,
};

static inline bool is_a(PyTypeObject *type, PyObject *object) {
    if (Py_IS_TYPE(object, type)) return true;
    PyErr_Format(PyExc_TypeError, "needs a %s", type->tp_name);
    return false;
}

static PyObject *point_make(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    double x, y;
    if (!takes(2, count) || !to_double(args[0], &x) || !to_double(args[1], &y)) return NULL;
    Point *point = PyObject_New(Point, &PointType);
    if (point) point->value = bl_point_make(x, y);
    return (PyObject *)point;
}

static PyObject *point_norm(PyObject *Py_UNUSED(module), PyObject *arg) {
    if (!is_a(&PointType, arg)) return NULL;
    return PyFloat_FromDouble(bl_point_norm(((Point *)arg)->value));
}

static PyObject *point_move(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    double dx, dy;
    if (!takes(3, count) || !is_a(&PointType, args[0])) return NULL;
    if (!to_double(args[1], &dx) || !to_double(args[2], &dy)) return NULL;
    bl_point_move(&((Point *)args[0])->value, dx, dy);
    Py_RETURN_NONE;
}

static PyObject *large_make(PyObject *Py_UNUSED(module), PyObject *arg) {
    double start;
    if (!to_double(arg, &start)) return NULL;
    Large *large = PyObject_New(Large, &LargeType);
    if (large) large->value = bl_large_make(start);
    return (PyObject *)large;
}

static PyObject *large_values(PyObject *Py_UNUSED(module), PyObject *arg) {
    if (!is_a(&LargeType, arg)) return NULL;
    PyObject *values = PyList_New(16);
    for (Py_ssize_t i = 0; values && i < 16; i++) {
        PyObject *value = PyFloat_FromDouble(((Large *)arg)->value.values[i]);
        if (!value) Py_CLEAR(values);
        else PyList_SET_ITEM(values, i, value);
    }
    return values;
}

static PyObject *large_bytes(PyObject *Py_UNUSED(module), PyObject *arg) {
    Py_ssize_t length = PyLong_AsSsize_t(arg);
    if (length < 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the length must not be negative");
        return NULL;
    }
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, length);
    if (bytes) bl_fill((uint8_t *)PyBytes_AS_STRING(bytes), (size_t)length);
    return bytes;
}

/* Callbacks. C keeps calling after an exception; further calls must not run Python code. */

typedef struct {
    PyObject *function;
    bool failed;
} Callback;

static int64_t call_back(int64_t x, void *context) {
    Callback *callback = context;
    int64_t value = 0;
    if (callback->failed) return 0;
    PyObject *arg = PyLong_FromLongLong(x);
    PyObject *result = arg ? PyObject_CallOneArg(callback->function, arg) : NULL;
    callback->failed = !result || !to_int64(result, &value);
    Py_XDECREF(result);
    Py_XDECREF(arg);
    return value;
}

static PyObject *call(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    int64_t x;
    if (!takes(2, count) || !to_int64(args[1], &x)) return NULL;
    Callback callback = {args[0], false};
    int64_t value = bl_call(call_back, &callback, x);
    return callback.failed ? NULL : PyLong_FromLongLong(value);
}

static PyObject *call_many(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    int64_t times;
    if (!takes(2, count) || !to_int64(args[1], &times)) return NULL;
    Callback callback = {args[0], false};
    int64_t sum = bl_call_many(call_back, &callback, times);
    return callback.failed ? NULL : PyLong_FromLongLong(sum);
}

/* Allocation, many arguments, errors. */

static PyObject *alloc(PyObject *Py_UNUSED(module), PyObject *arg) {
    size_t bytes;
    if (!to_size(arg, &bytes)) return NULL;
    return PyLong_FromSize_t(bl_alloc(bytes));
}

static PyObject *args5(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    int32_t v[5];
    if (!takes(5, count)) return NULL;
    for (int i = 0; i < 5; i++) {
        if (!to_int32(args[i], &v[i])) return NULL;
    }
    return PyLong_FromLong(bl_args5(v[0], v[1], v[2], v[3], v[4]));
}

static PyObject *args8(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    double v[8];
    if (!takes(8, count)) return NULL;
    for (int i = 0; i < 8; i++) {
        if (!to_double(args[i], &v[i])) return NULL;
    }
    return PyFloat_FromDouble(bl_args8(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]));
}

static PyObject *args_mixed(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    int32_t a, f;
    double b, e;
    int64_t c;
    bool d;
    if (!takes(6, count) || !to_int32(args[0], &a) || !to_double(args[1], &b) || !to_int64(args[2], &c) ||
        !to_bool(args[3], &d) || !to_double(args[4], &e) || !to_int32(args[5], &f)) {
        return NULL;
    }
    return PyFloat_FromDouble(bl_args_mixed(a, b, c, d, e, f));
}

static PyObject *check(PyObject *Py_UNUSED(module), PyObject *arg) {
    int32_t x;
    if (!to_int32(arg, &x)) return NULL;
    if (bl_check(x) < 0) {
        PyErr_SetString(PyExc_ValueError, "negative");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Loops in C: the cost of a call without Python. */

static PyObject *loop_noop(PyObject *Py_UNUSED(module), PyObject *arg) {
    size_t times;
    if (!to_size(arg, &times)) return NULL;
    bl_loop_noop(times);
    Py_RETURN_NONE;
}

static PyObject *loop_sum(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    Py_buffer view;
    size_t times;
    if (!takes(2, count) || !to_size(args[1], &times) || !get_buffer(args[0], &view, 'd', 0)) return NULL;
    double sum = bl_loop_sum(view.buf, doubles_in(&view), times);
    PyBuffer_Release(&view);
    return PyFloat_FromDouble(sum);
}

/* 100 functions. */

#define DEFINE(n) \
    static PyObject *f##n(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args)) { return PyLong_FromLong(bl_f##n()); }
BL_HUNDRED(DEFINE)

#define METHOD(n) {"f" #n, f##n, METH_NOARGS, NULL},
static PyMethodDef hundred[] = {BL_HUNDRED(METHOD)};

static PyObject *list_hundred(void) {
    PyObject *functions = PyList_New(100);
    for (Py_ssize_t i = 0; functions && i < 100; i++) {
        PyObject *function = PyCFunction_New(&hundred[i], NULL);
        if (!function) Py_CLEAR(functions);
        else PyList_SET_ITEM(functions, i, function);
    }
    return functions;
}

#define FAST(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}
#define ONE(name) {#name, name, METH_O, NULL}
#define NONE(name) {#name, name, METH_NOARGS, NULL}

static PyMethodDef methods[] = {
    FAST(anything), NONE(noop), NONE(noop_nogil),
    NONE(return_int), NONE(return_int64), NONE(return_bool), NONE(return_double),
    FAST(add_int32), FAST(add_int64), FAST(and_bool), FAST(add_double),
    ONE(bytes_length), FAST(bytes_count), ONE(str_length), FAST(concat),
    ONE(sum_double), FAST(scale), FAST(sum_strided), ONE(sum_int32), FAST(dot), FAST(matmul),
    FAST(point_make), ONE(point_norm), FAST(point_move),
    ONE(large_make), ONE(large_values), ONE(large_bytes),
    FAST(call), FAST(call_many), ONE(alloc), FAST(args5), FAST(args8), FAST(args_mixed), ONE(check),
    ONE(loop_noop), FAST(loop_sum),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "bench_capi",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_bench_capi(void) {
    if (PyType_Ready(&PointType) < 0 || PyType_Ready(&LargeType) < 0) return NULL;
    PyObject *module = PyModule_Create(&module_def);
    if (!module) return NULL;
    PyObject *functions = list_hundred();
    if (!functions || PyModule_AddObject(module, "functions", functions) < 0) {
        Py_XDECREF(functions);
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
