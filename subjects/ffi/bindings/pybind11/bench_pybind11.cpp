// benchlib through pybind11, with its types and casters.
#include <exception>
#include <memory>
#include <new>
#include <string_view>

#include <pybind11/pybind11.h>

#include "benchlib.h"

namespace py = pybind11;

namespace {

// The items of a contiguous buffer, held until the end of the call. PyObject_GetBuffer takes 40 ns less (Python 3.11,
// pybind11 3.1), but py::buffer is the type that pybind11 provides.
template <typename T> class Items {
public:
    explicit Items(const py::buffer &buffer, bool writable = false) : info(buffer.request(writable)) {
        if (!info.item_type_is_equivalent_to<T>()) {
            throw py::type_error("expected items of format " + py::format_descriptor<T>::format() +
                                 ", not " + info.format);
        }
        if (!PyBuffer_IsContiguous(info.view(), 'C')) throw py::value_error("the buffer must be contiguous");
    }

    T *data() const { return static_cast<T *>(info.ptr); }
    size_t count() const { return static_cast<size_t>(info.size); }

private:
    py::buffer_info info;
};

// Context of `call_back`. Exceptions must not propagate through C frames, so the first one is stored here.
struct Callback {
    const py::function &function;
    std::exception_ptr error;
};

extern "C" int64_t call_back(int64_t x, void *context) {
    auto &callback = *static_cast<Callback *>(context);
    if (callback.error) return 0;
    try {
        return callback.function(x).cast<int64_t>();
    } catch (...) {
        callback.error = std::current_exception();
        return 0;
    }
}

int64_t call(const py::function &function, int64_t x) {
    Callback callback{function, nullptr};
    int64_t result = bl_call(call_back, &callback, x);
    if (callback.error) std::rethrow_exception(callback.error);
    return result;
}

int64_t call_many(const py::function &function, int64_t count) {
    Callback callback{function, nullptr};
    int64_t sum = bl_call_many(call_back, &callback, count);
    if (callback.error) std::rethrow_exception(callback.error);
    return sum;
}

// Views of a str refer to the UTF-8 that CPython caches, which is NUL-terminated.
size_t str_length(std::string_view text) { return bl_str_length(text.data()); }

py::str concat(std::string_view a, std::string_view b) {
    std::unique_ptr<char, decltype(&bl_free)> both(bl_concat(a.data(), b.data()), bl_free);
    if (!both) throw std::bad_alloc();
    return py::str(both.get());
}

size_t bytes_length(const py::bytes &bytes) { return bl_bytes_length(std::string_view(bytes).data()); }

size_t bytes_count(const py::bytes &bytes, uint8_t byte) {
    std::string_view view = bytes;
    return bl_bytes_count(view.data(), view.size(), byte);
}

double sum_double(const py::buffer &buffer) {
    Items<double> values(buffer);
    return bl_sum_double(values.data(), values.count());
}

void scale(const py::buffer &buffer, double factor) {
    Items<double> values(buffer, true);
    bl_scale(values.data(), values.count(), factor);
}

double sum_strided(const py::buffer &buffer, size_t stride) {
    if (stride == 0) throw py::value_error("the stride must not be 0");
    Items<double> values(buffer);
    return bl_sum_strided(values.data(), values.count(), stride);
}

int64_t sum_int32(const py::buffer &buffer) {
    Items<int32_t> values(buffer);
    return bl_sum_int32(values.data(), values.count());
}

double dot(const py::buffer &a, const py::buffer &b) {
    Items<double> left(a), right(b);
    if (left.count() != right.count()) throw py::value_error("the buffers must have the same length");
    return bl_dot(left.data(), right.data(), left.count());
}

// 32-bit sides, so that the square fits into size_t.
void matmul(const py::buffer &a, const py::buffer &b, const py::buffer &out, uint32_t side) {
    Items<double> left(a), right(b), product(out, true);
    size_t count = size_t{side} * side;
    if (left.count() != count || right.count() != count || product.count() != count) {
        throw py::value_error("the buffers must have side * side items");
    }
    bl_matmul(left.data(), right.data(), product.data(), side);
}

// By reference, because a pointer would accept None.
void point_move(bl_point &point, double dx, double dy) { bl_point_move(&point, dx, dy); }

py::list large_values(const bl_large &large) {
    py::list values;
    for (double value : large.values) values.append(value);
    return values;
}

// Created uninitialized: bytes may be filled in place before they are shared.
py::bytes large_bytes(size_t length) {
    auto bytes = py::reinterpret_steal<py::bytes>(PyBytes_FromStringAndSize(nullptr, py::ssize_t_cast(length)));
    if (!bytes) throw py::error_already_set();
    bl_fill(reinterpret_cast<uint8_t *>(PyBytes_AS_STRING(bytes.ptr())), length);
    return bytes;
}

void check(int32_t x) {
    if (bl_check(x) != 0) throw py::value_error("negative");
}

} // namespace

PYBIND11_MODULE(bench_pybind11, m) {
    m.def("noop", &bl_noop);
    m.def("noop_nogil", &bl_noop, py::call_guard<py::gil_scoped_release>());
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
    m.def("str_length", &str_length);
    m.def("concat", &concat);

    m.def("sum_double", &sum_double);
    m.def("scale", &scale);
    m.def("sum_strided", &sum_strided);
    m.def("sum_int32", &sum_int32);
    m.def("dot", &dot);
    m.def("matmul", &matmul);

    // Local to the module, because the build of the other profile binds the same types in the same process.
    py::class_<bl_point>(m, "Point", py::module_local())
        .def_readonly("x", &bl_point::x)
        .def_readonly("y", &bl_point::y);
    m.def("point_make", &bl_point_make);
    m.def("point_norm", &bl_point_norm);
    m.def("point_move", &point_move);

    py::class_<bl_large>(m, "Large", py::module_local());
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

    py::list functions;
#define BIND(n) \
    m.def("f" #n, &bl_f##n); \
    functions.append(m.attr("f" #n));
    BL_HUNDRED(BIND)
#undef BIND
    m.attr("functions") = functions;
}
