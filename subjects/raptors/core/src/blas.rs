//! Sums along an axis as a product of a matrix and a vector of ones, with a BLAS library loaded at run time.
//!
//! No other operation can use BLAS: it cannot add a row to each row or scale into another array.

use crate::Element;
use std::ffi::{CStr, CString, c_int, c_void};

/// A loaded library.
pub struct Blas {
    /// Its name or path.
    pub name: String,
    pub(crate) sgemv: Gemv<f32>,
    pub(crate) dgemv: Gemv<f64>,
}

/// `cblas_?gemv`, with integers of 32 or 64 bits.
#[derive(Clone, Copy)]
pub enum Gemv<T> {
    /// 32 bits, the common case.
    Lp64(GemvOf<T, c_int>),
    /// 64 bits, as in the library bundled with NumPy.
    Ilp64(GemvOf<T, i64>),
}

/// Order, transposition, rows, columns, alpha, matrix, its stride, x, its stride, beta, y, its stride.
type GemvOf<T, Int> =
    unsafe extern "C" fn(c_int, c_int, Int, Int, T, *const T, Int, *const T, Int, T, *mut T, Int);

const ROW_MAJOR: c_int = 101;
const AS_IS: c_int = 111;
const TRANSPOSED: c_int = 112;

const USUAL: [&str; 4] = ["libopenblas.so.0", "libmkl_rt.so.2", "libblis.so.4", "libblas.so.3"];

impl Blas {
    /// Loads a library by name or path; `auto` and `1` try common names.
    pub(crate) fn open(asked: &str) -> Result<Self, String> {
        if !matches!(asked, "auto" | "1") {
            return Self::load(asked);
        }
        USUAL
            .into_iter()
            .find_map(|name| Self::load(name).ok())
            .ok_or_else(|| format!("found none of {}", USUAL.join(", ")))
    }

    fn load(name: &str) -> Result<Self, String> {
        let path = CString::new(name).map_err(|error| error.to_string())?;
        // SAFETY: the name is NUL-terminated; the user chose the library and its initialization code.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(last_error());
        }
        let both = |a: &CStr, b: &CStr| Some((find(library, a)?, find(library, b)?));
        let usual = both(c"cblas_sgemv", c"cblas_dgemv")
            .or_else(|| both(c"scipy_cblas_sgemv", c"scipy_cblas_dgemv"));
        let wide = both(c"cblas_sgemv64_", c"cblas_dgemv64_")
            .or_else(|| both(c"scipy_cblas_sgemv64_", c"scipy_cblas_dgemv64_"));
        let name = name.to_owned();
        // SAFETY: functions with these names have these signatures in every CBLAS.
        unsafe {
            use std::mem::transmute as function;
            match (usual, wide) {
                (Some((s, d)), _) => Ok(Self {
                    name,
                    sgemv: Gemv::Lp64(function::<*mut c_void, GemvOf<f32, c_int>>(s)),
                    dgemv: Gemv::Lp64(function::<*mut c_void, GemvOf<f64, c_int>>(d)),
                }),
                (None, Some((s, d))) => Ok(Self {
                    name,
                    sgemv: Gemv::Ilp64(function::<*mut c_void, GemvOf<f32, i64>>(s)),
                    dgemv: Gemv::Ilp64(function::<*mut c_void, GemvOf<f64, i64>>(d)),
                }),
                (None, None) => Err("it has no cblas_sgemv and cblas_dgemv".into()),
            }
        }
    }
}

fn find(library: *mut c_void, symbol: &CStr) -> Option<*mut c_void> {
    // SAFETY: the library is loaded and never unloaded.
    let found = unsafe { libc::dlsym(library, symbol.as_ptr()) };
    (!found.is_null()).then_some(found)
}

fn last_error() -> String {
    // SAFETY: dlerror returns a NUL-terminated string, or null.
    let error = unsafe { libc::dlerror() };
    if error.is_null() {
        return "it cannot be loaded".into();
    }
    // SAFETY: as above, and the loader has not been called since.
    unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned()
}

/// Adds the sum of each column to `out`.
///
/// # Safety
/// The contract of [`crate::kernels::Kernels`], and `stride` is at least `cols` and at least 1.
#[inline(never)]
pub(crate) unsafe fn sum_axis0_blas<T: Element>(
    gemv: Gemv<T>,
    src: *const T,
    rows: usize,
    cols: usize,
    stride: isize,
    out: *mut T,
) {
    let ones = vec![T::ONE; rows];
    // SAFETY: guaranteed by the caller; x has `rows` elements and y has `cols`.
    unsafe { call(gemv, TRANSPOSED, (rows, cols, stride), src, &ones, T::ONE, out) }
}

/// Writes the sum of each row to `out`.
///
/// # Safety
/// As above.
#[inline(never)]
pub(crate) unsafe fn sum_axis1_blas<T: Element>(
    gemv: Gemv<T>,
    src: *const T,
    rows: usize,
    cols: usize,
    stride: isize,
    out: *mut T,
) {
    let ones = vec![T::ONE; cols];
    // SAFETY: guaranteed by the caller; x has `cols` elements and y has `rows`.
    unsafe { call(gemv, AS_IS, (rows, cols, stride), src, &ones, T::ZERO, out) }
}

/// `out = A x + beta out`, or with A transposed.
unsafe fn call<T: Element>(
    gemv: Gemv<T>,
    turn: c_int,
    (rows, cols, stride): (usize, usize, isize),
    src: *const T,
    x: &[T],
    beta: T,
    out: *mut T,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match gemv {
            Gemv::Lp64(function) => {
                let (m, n, lda) = (rows as c_int, cols as c_int, stride as c_int);
                function(ROW_MAJOR, turn, m, n, T::ONE, src, lda, x.as_ptr(), 1, beta, out, 1);
            }
            Gemv::Ilp64(function) => {
                let (m, n, lda) = (rows as i64, cols as i64, stride as i64);
                function(ROW_MAJOR, turn, m, n, T::ONE, src, lda, x.as_ptr(), 1, beta, out, 1);
            }
        }
    }
}
