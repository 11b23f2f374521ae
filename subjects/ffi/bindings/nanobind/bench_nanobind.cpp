// benchlib through nanobind, with its types and casters except for buffers.
#include <exception>
#include <memory>
#include <new>
#include <type_traits>

#include <nanobind/nanobind.h>

#include "benchlib.h"

namespace nb = nanobind;

namespace {

template <typename T> constexpr char format_of = '\0';
template <> constexpr char format_of<double> = 'd';
template <> constexpr char format_of<int32_t> = 'i';

// The items of a contiguous buffer, held until the end of the call. nanobind has no type for plain buffers. Its
// nb::ndarray also accepts them, but takes 55 ns more per buffer (Python 3.11, nanobind 3.1) and crashes on ctypes
// arrays, which have no strides.
template <typename T> class Items {
public:
    explicit Items(nb::handle object) {
        int flags = PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (std::is_const_v<T> ? 0 : PyBUF_WRITABLE);
        if (PyObject_GetBuffer(object.ptr(), &view, flags) != 0) throw nb::python_error();
        constexpr char format = format_of<std::remove_const_t<T>>;
        if (!view.format || view.format[0] != format || view.format[1] != '\0') {
            PyBuffer_Release(&view);
            throw nb::type_error("the items have another format");
        }
    }
    Items(const Items &) = delete;
    ~Items() { PyBuffer_Release(&view); }

    T *data() const { return static_cast<T *>(view.buf); }
    size_t count() const { return static_cast<size_t>(view.len) / sizeof(T); }

private:
    Py_buffer view;
};

// Context of `call_back`. Exceptions must not propagate through C frames, so the first one is stored here.
struct Callback {
    const nb::callable &function;
    std::exception_ptr error;
};

extern "C" int64_t call_back(int64_t x, void *context) {
    auto &callback = *static_cast<Callback *>(context);
    if (callback.error) return 0;
    try {
        return nb::cast<int64_t>(callback.function(x));
    } catch (...) {
        callback.error = std::current_exception();
        return 0;
    }
}

int64_t call(const nb::callable &function, int64_t x) {
    Callback callback{function, nullptr};
    int64_t result = bl_call(call_back, &callback, x);
    if (callback.error) std::rethrow_exception(callback.error);
    return result;
}

int64_t call_many(const nb::callable &function, int64_t count) {
    Callback callback{function, nullptr};
    int64_t sum = bl_call_many(call_back, &callback, count);
    if (callback.error) std::rethrow_exception(callback.error);
    return sum;
}

nb::str concat(const char *a, const char *b) {
    std::unique_ptr<char, decltype(&bl_free)> both(bl_concat(a, b), bl_free);
    if (!both) throw std::bad_alloc();
    return nb::str(both.get());
}

size_t bytes_length(const nb::bytes &bytes) { return bl_bytes_length(bytes.c_str()); }

size_t bytes_count(const nb::bytes &bytes, uint8_t byte) {
    return bl_bytes_count(bytes.c_str(), bytes.size(), byte);
}

double sum_double(nb::handle buffer) {
    Items<const double> values(buffer);
    return bl_sum_double(values.data(), values.count());
}

void scale(nb::handle buffer, double factor) {
    Items<double> values(buffer);
    bl_scale(values.data(), values.count(), factor);
}

double sum_strided(nb::handle buffer, size_t stride) {
    if (stride == 0) throw nb::value_error("the stride must not be 0");
    Items<const double> values(buffer);
    return bl_sum_strided(values.data(), values.count(), stride);
}

int64_t sum_int32(nb::handle buffer) {
    Items<const int32_t> values(buffer);
    return bl_sum_int32(values.data(), values.count());
}

double dot(nb::handle a, nb::handle b) {
    Items<const double> left(a), right(b);
    if (left.count() != right.count()) throw nb::value_error("the buffers must have the same length");
    return bl_dot(left.data(), right.data(), left.count());
}

// 32-bit sides, so that the square fits into size_t.
void matmul(nb::handle a, nb::handle b, nb::handle out, uint32_t side) {
    Items<const double> left(a), right(b);
    Items<double> product(out);
    size_t count = size_t{side} * side;
    if (left.count() != count || right.count() != count || product.count() != count) {
        throw nb::value_error("the buffers must have side * side items");
    }
    bl_matmul(left.data(), right.data(), product.data(), side);
}

nb::list large_values(const bl_large &large) {
    nb::list values;
    for (double value : large.values) values.append(value);
    return values;
}

// Created uninitialized: bytes may be filled in place before they are shared.
nb::bytes large_bytes(size_t length) {
    nb::bytes bytes(nullptr, length);
    bl_fill(reinterpret_cast<uint8_t *>(PyBytes_AS_STRING(bytes.ptr())), length);
    return bytes;
}

void check(int32_t x) {
    if (bl_check(x) != 0) throw nb::value_error("negative");
}

} // namespace

NB_MODULE(bench_nanobind, m) {
    // The caller may hold functions and objects until the process exits, which nanobind would report as leaks.
    nb::set_leak_warnings(false);

    m.def("noop", &bl_noop);
    m.def("noop_nogil", &bl_noop, nb::call_guard<nb::gil_scoped_release>());
    m.def("return_int", &bl_return_int);
    m.def("return_int64", &bl_return_int64);
    m.def("return_bool", &bl_return_bool);
    m.def("return_double", &bl_return_double);
    m.def("add_int32", &bl_add_int32);
    m.def("add_int64", &bl_add_int64);
    m.def("and_bool", &bl_and_bool);
    m.def("add_double", &bl_add_double);

    m.def("bytes_length", &bytes_length);
    m.def("bytes_count", &bytes_count);
    // nanobind passes the UTF-8 that CPython caches in a str, without a copy.
    m.def("str_length", &bl_str_length);
    m.def("concat", &concat);

    m.def("sum_double", &sum_double);
    m.def("scale", &scale);
    m.def("sum_strided", &sum_strided);
    m.def("sum_int32", &sum_int32);
    m.def("dot", &dot);
    m.def("matmul", &matmul);

    nb::class_<bl_point>(m, "Point").def_ro("x", &bl_point::x).def_ro("y", &bl_point::y);
    m.def("point_make", &bl_point_make);
    m.def("point_norm", &bl_point_norm);
    m.def("point_move", &bl_point_move);

    nb::class_<bl_large>(m, "Large");
    m.def("large_make", &bl_large_make);
    m.def("large_values", &large_values);
    m.def("large_bytes", &large_bytes);

    m.def("call", &call);
    m.def("call_many", &call_many);
    m.def("alloc", &bl_alloc);
    m.def("args5", &bl_args5);
    m.def("args8", &bl_args8);
    m.def("args_mixed", &bl_args_mixed);
    m.def("check", &check);

    nb::list functions;
#define BIND(n) \
    m.def("f" #n, &bl_f##n); \
    functions.append(m.attr("f" #n));
    BL_HUNDRED(BIND)
#undef BIND
    m.attr("functions") = functions;
}
