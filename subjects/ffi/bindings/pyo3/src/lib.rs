//! benchlib through PyO3, with its types and conversions.

#![allow(
    clippy::needless_pass_by_value,
    reason = "what Python passes is taken out of its objects by value"
)]

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{self, NonNull};

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use benchlib::*;

#[pymodule]
mod bench_pyo3 {
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("functions", hundred::functions(module)?)
    }

    #[pyfunction]
    fn noop() {
        bl_noop();
    }

    #[pyfunction]
    fn noop_nogil(py: Python<'_>) {
        py.detach(|| bl_noop());
    }

    #[pyfunction]
    fn return_int() -> i32 {
        bl_return_int()
    }

    #[pyfunction]
    fn return_int64() -> i64 {
        bl_return_int64()
    }

    #[pyfunction]
    fn return_bool() -> bool {
        bl_return_bool()
    }

    #[pyfunction]
    fn return_double() -> f64 {
        bl_return_double()
    }

    #[pyfunction]
    fn add_int32(a: i32, b: i32) -> i32 {
        bl_add_int32(a, b)
    }

    #[pyfunction]
    fn add_int64(a: i64, b: i64) -> i64 {
        bl_add_int64(a, b)
    }

    #[pyfunction]
    fn and_bool(a: bool, b: bool) -> bool {
        bl_and_bool(a, b)
    }

    #[pyfunction]
    fn add_double(a: f64, b: f64) -> f64 {
        bl_add_double(a, b)
    }

    #[pyfunction]
    fn bytes_length(bytes: &[u8]) -> usize {
        // SAFETY: the slice is the memory of a `bytes`, which CPython terminates with NUL.
        unsafe { bl_bytes_length(bytes.as_ptr().cast()) }
    }

    #[pyfunction]
    fn bytes_count(bytes: &[u8], byte: u8) -> usize {
        // SAFETY: pointer and length come from one slice.
        unsafe { bl_bytes_count(bytes.as_ptr().cast(), bytes.len(), byte) }
    }

    #[pyfunction]
    fn str_length(text: &str) -> usize {
        // SAFETY: the slice is the UTF-8 that CPython caches in the `str`, terminated with NUL.
        unsafe { bl_str_length(text.as_ptr().cast()) }
    }

    #[pyfunction]
    fn concat<'py>(py: Python<'py>, a: &str, b: &str) -> PyResult<Bound<'py, PyString>> {
        // SAFETY: both slices are the UTF-8 that CPython caches in a `str`, terminated with NUL.
        let both = unsafe { bl_concat(a.as_ptr().cast(), b.as_ptr().cast()) };
        if both.is_null() {
            return Err(PyMemoryError::new_err(()));
        }
        // SAFETY: bl_concat returned a NUL-terminated string.
        let text = PyString::from_bytes(py, unsafe { CStr::from_ptr(both) }.to_bytes());
        // SAFETY: bl_concat allocated the memory, and the new `str` has a copy.
        unsafe { bl_free(both.cast()) };
        text
    }

    #[pyfunction]
    fn sum_double(buffer: PyBuffer<f64>) -> PyResult<f64> {
        let values = items(&buffer)?;
        // SAFETY: `buffer` holds that many values at that address until the end of this function.
        Ok(unsafe { bl_sum_double(values.cast().as_ptr(), values.len()) })
    }

    #[pyfunction]
    fn scale(buffer: PyBuffer<f64>, factor: f64) -> PyResult<()> {
        let values = writable_items(&buffer)?;
        // SAFETY: `buffer` holds that many values at that address until the end of this function.
        unsafe { bl_scale(values.cast().as_ptr(), values.len(), factor) };
        Ok(())
    }

    #[pyfunction]
    fn sum_strided(buffer: PyBuffer<f64>, stride: usize) -> PyResult<f64> {
        if stride == 0 {
            return Err(PyValueError::new_err("the stride must not be 0"));
        }
        let values = items(&buffer)?;
        // SAFETY: `buffer` holds that many values at that address until the end of this function.
        Ok(unsafe { bl_sum_strided(values.cast().as_ptr(), values.len(), stride) })
    }

    #[pyfunction]
    fn sum_int32(buffer: PyBuffer<i32>) -> PyResult<i64> {
        let values = items(&buffer)?;
        // SAFETY: `buffer` holds that many values at that address until the end of this function.
        Ok(unsafe { bl_sum_int32(values.cast().as_ptr(), values.len()) })
    }

    #[pyfunction]
    fn dot(a: PyBuffer<f64>, b: PyBuffer<f64>) -> PyResult<f64> {
        let (left, right) = (items(&a)?, items(&b)?);
        if left.len() != right.len() {
            return Err(PyValueError::new_err("the buffers must have the same length"));
        }
        // SAFETY: both buffers hold that many values until the end of this function.
        Ok(unsafe { bl_dot(left.cast().as_ptr(), right.cast().as_ptr(), left.len()) })
    }

    #[pyfunction]
    fn matmul(a: PyBuffer<f64>, b: PyBuffer<f64>, out: PyBuffer<f64>, side: usize) -> PyResult<()> {
        let (left, right, product) = (items(&a)?, items(&b)?, writable_items(&out)?);
        let count = side.checked_mul(side);
        if [left, right, product].iter().any(|matrix| Some(matrix.len()) != count) {
            return Err(PyValueError::new_err("the buffers must have side * side items"));
        }
        // SAFETY: all three buffers hold side * side values until the end of this function.
        unsafe {
            bl_matmul(left.cast().as_ptr(), right.cast().as_ptr(), product.cast().as_ptr(), side);
        }
        Ok(())
    }

    #[pyclass]
    struct Point(bl_point);

    #[pymethods]
    impl Point {
        #[getter]
        fn x(&self) -> f64 {
            self.0.x
        }

        #[getter]
        fn y(&self) -> f64 {
            self.0.y
        }
    }

    #[pyfunction]
    fn point_make(x: f64, y: f64) -> Point {
        Point(bl_point_make(x, y))
    }

    #[pyfunction]
    fn point_norm(point: &Point) -> f64 {
        bl_point_norm(point.0)
    }

    #[pyfunction]
    fn point_move(point: &mut Point, dx: f64, dy: f64) {
        bl_point_move(&mut point.0, dx, dy);
    }

    #[pyclass(frozen)]
    struct Large(bl_large);

    #[pyfunction]
    fn large_make(start: f64) -> Large {
        Large(bl_large_make(start))
    }

    #[pyfunction]
    fn large_values(large: &Large) -> [f64; 16] {
        large.0.values
    }

    #[pyfunction]
    fn large_bytes(py: Python<'_>, length: usize) -> PyResult<Bound<'_, PyBytes>> {
        PyBytes::new_with(py, length, |out| {
            // SAFETY: pointer and length come from one slice.
            unsafe { bl_fill(out.as_mut_ptr(), out.len()) };
            Ok(())
        })
    }

    #[pyfunction]
    fn call(function: &Bound<'_, PyAny>, x: i64) -> PyResult<i64> {
        // SAFETY: `call_back` receives the context that is passed with it.
        with_callback(function, |context| unsafe { bl_call(call_back, context, x) })
    }

    #[pyfunction]
    fn call_many(function: &Bound<'_, PyAny>, count: i64) -> PyResult<i64> {
        // SAFETY: `call_back` receives the context that is passed with it.
        with_callback(function, |context| unsafe { bl_call_many(call_back, context, count) })
    }

    #[pyfunction]
    fn alloc(bytes: usize) -> usize {
        bl_alloc(bytes)
    }

    #[pyfunction]
    fn args5(a: i32, b: i32, c: i32, d: i32, e: i32) -> i32 {
        bl_args5(a, b, c, d, e)
    }

    #[pyfunction]
    #[expect(clippy::too_many_arguments, reason = "their number is what is measured")]
    fn args8(a: f64, b: f64, c: f64, d: f64, e: f64, f: f64, g: f64, h: f64) -> f64 {
        bl_args8(a, b, c, d, e, f, g, h)
    }

    #[pyfunction]
    fn args_mixed(a: i32, b: f64, c: i64, d: bool, e: f64, f: i32) -> f64 {
        bl_args_mixed(a, b, c, d, e, f)
    }

    #[pyfunction]
    fn check(x: i32) -> PyResult<()> {
        if bl_check(x) == 0 { Ok(()) } else { Err(PyValueError::new_err("negative")) }
    }
}

/// The items of a contiguous buffer.
fn items<T: Element>(buffer: &PyBuffer<T>) -> PyResult<NonNull<[T]>> {
    // SAFETY: a C string has at least its NUL byte.
    if unsafe { *buffer.format().as_ptr() } == b'>' as c_char {
        // PyO3 0.30.1 treats this byte order as native.
        return Err(PyBufferError::new_err("the items have another byte order"));
    }
    buffer.as_slice_ptr().ok_or_else(|| PyBufferError::new_err("the buffer must be contiguous"))
}

fn writable_items<T: Element>(buffer: &PyBuffer<T>) -> PyResult<NonNull<[T]>> {
    if buffer.readonly() {
        return Err(PyBufferError::new_err("the buffer must be writable"));
    }
    items(buffer)
}

/// Context of `call_back`. C cannot propagate Python exceptions, so the first one is stored here.
struct Callback<'a, 'py> {
    function: &'a Bound<'py, PyAny>,
    error: Option<PyErr>,
}

/// Calls `run` with a context for `call_back`; returns its result or the first error of the function.
fn with_callback(
    function: &Bound<'_, PyAny>,
    run: impl FnOnce(*mut c_void) -> i64,
) -> PyResult<i64> {
    let mut callback = Callback { function, error: None };
    let result = run(ptr::from_mut(&mut callback).cast());
    callback.error.map_or(Ok(result), Err)
}

extern "C" fn call_back(x: i64, context: *mut c_void) -> i64 {
    // SAFETY: the context is that of `with_callback`, which is not used elsewhere while C runs.
    let callback = unsafe { &mut *context.cast::<Callback<'_, '_>>() };
    if callback.error.is_some() {
        return 0;
    }
    match callback.function.call1((x,)).and_then(|result| result.extract()) {
        Ok(result) => result,
        Err(error) => {
            callback.error = Some(error);
            0
        }
    }
}

/// Declarations of benchlib.h.
#[expect(non_camel_case_types, reason = "types have the names of C")]
mod benchlib {
    use std::ffi::{c_char, c_void};

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct bl_point {
        pub x: f64,
        pub y: f64,
    }

    #[repr(C)]
    pub struct bl_large {
        pub values: [f64; 16],
    }

    pub type bl_callback = extern "C" fn(x: i64, context: *mut c_void) -> i64;

    #[rustfmt::skip]
    unsafe extern "C" {
        pub safe fn bl_noop();
        pub safe fn bl_return_int() -> i32;
        pub safe fn bl_return_int64() -> i64;
        pub safe fn bl_return_bool() -> bool;
        pub safe fn bl_return_double() -> f64;

        pub safe fn bl_add_int32(a: i32, b: i32) -> i32;
        pub safe fn bl_add_int64(a: i64, b: i64) -> i64;
        pub safe fn bl_and_bool(a: bool, b: bool) -> bool;
        pub safe fn bl_add_double(a: f64, b: f64) -> f64;

        pub fn bl_bytes_length(text: *const c_char) -> usize;
        pub fn bl_bytes_count(bytes: *const c_char, length: usize, byte: u8) -> usize;
        pub fn bl_str_length(utf8: *const c_char) -> usize;
        pub fn bl_concat(a: *const c_char, b: *const c_char) -> *mut c_char;
        pub fn bl_free(memory: *mut c_void);

        pub fn bl_sum_double(values: *const f64, count: usize) -> f64;
        pub fn bl_scale(values: *mut f64, count: usize, factor: f64);
        pub fn bl_sum_strided(values: *const f64, count: usize, stride: usize) -> f64;
        pub fn bl_sum_int32(values: *const i32, count: usize) -> i64;

        pub safe fn bl_point_make(x: f64, y: f64) -> bl_point;
        pub safe fn bl_point_norm(point: bl_point) -> f64;
        pub safe fn bl_point_move(point: &mut bl_point, dx: f64, dy: f64);

        pub fn bl_call(callback: bl_callback, context: *mut c_void, x: i64) -> i64;
        pub fn bl_call_many(callback: bl_callback, context: *mut c_void, count: i64) -> i64;

        pub safe fn bl_alloc(bytes: usize) -> usize;

        pub fn bl_dot(a: *const f64, b: *const f64, count: usize) -> f64;
        pub fn bl_matmul(a: *const f64, b: *const f64, out: *mut f64, side: usize);

        pub safe fn bl_args5(a: i32, b: i32, c: i32, d: i32, e: i32) -> i32;
        pub safe fn bl_args8(a: f64, b: f64, c: f64, d: f64, e: f64, f: f64, g: f64, h: f64) -> f64;
        pub safe fn bl_args_mixed(a: i32, b: f64, c: i64, d: bool, e: f64, f: i32) -> f64;

        pub safe fn bl_large_make(start: f64) -> bl_large;
        pub fn bl_fill(out: *mut u8, length: usize);

        pub safe fn bl_check(x: i32) -> i32;
    }
}

/// 100 functions that return their number, each declared and bound separately.
mod hundred {
    use pyo3::prelude::*;
    use pyo3::types::PyCFunction;

    macro_rules! bind {
        ($($name:ident)*) => {
            mod benchlib {
                unsafe extern "C" {
                    $(pub safe fn $name() -> i32;)*
                }
            }

            $(
                #[pyfunction]
                fn $name() -> i32 {
                    benchlib::$name()
                }
            )*

            pub fn functions<'py>(
                module: &Bound<'py, PyModule>,
            ) -> PyResult<Vec<Bound<'py, PyCFunction>>> {
                Ok(vec![$(wrap_pyfunction!($name, module)?),*])
            }
        };
    }

    bind! {
        bl_f00 bl_f01 bl_f02 bl_f03 bl_f04 bl_f05 bl_f06 bl_f07 bl_f08 bl_f09
        bl_f10 bl_f11 bl_f12 bl_f13 bl_f14 bl_f15 bl_f16 bl_f17 bl_f18 bl_f19
        bl_f20 bl_f21 bl_f22 bl_f23 bl_f24 bl_f25 bl_f26 bl_f27 bl_f28 bl_f29
        bl_f30 bl_f31 bl_f32 bl_f33 bl_f34 bl_f35 bl_f36 bl_f37 bl_f38 bl_f39
        bl_f40 bl_f41 bl_f42 bl_f43 bl_f44 bl_f45 bl_f46 bl_f47 bl_f48 bl_f49
        bl_f50 bl_f51 bl_f52 bl_f53 bl_f54 bl_f55 bl_f56 bl_f57 bl_f58 bl_f59
        bl_f60 bl_f61 bl_f62 bl_f63 bl_f64 bl_f65 bl_f66 bl_f67 bl_f68 bl_f69
        bl_f70 bl_f71 bl_f72 bl_f73 bl_f74 bl_f75 bl_f76 bl_f77 bl_f78 bl_f79
        bl_f80 bl_f81 bl_f82 bl_f83 bl_f84 bl_f85 bl_f86 bl_f87 bl_f88 bl_f89
        bl_f90 bl_f91 bl_f92 bl_f93 bl_f94 bl_f95 bl_f96 bl_f97 bl_f98 bl_f99
    }
}
