//! Element types as seen from Python.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use raptors_core::Element;
use std::ffi::CStr;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Float32,
    Float64,
    Int32,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Float32, Self::Float64, Self::Int32];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Int32 => "int32",
        }
    }

    /// In bytes.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Float64 => 8,
            Self::Float32 | Self::Int32 => 4,
        }
    }

    /// The format in Python's module `struct`.
    pub(crate) fn format(self) -> &'static CStr {
        match self {
            Self::Float32 => c"f",
            Self::Float64 => c"d",
            Self::Int32 => c"i",
        }
    }

    /// The type for a buffer format with items of `size` bytes; `None` if not supported.
    pub(crate) fn of_format(format: &CStr, size: usize) -> Option<Self> {
        let order = if cfg!(target_endian = "little") { b'<' } else { b'>' };
        let code = match *format.to_bytes() {
            [code] | [b'@' | b'=', code] => code,
            [given, code] if given == order => code,
            _ => return None,
        };
        match (code, size) {
            (b'f', 4) => Some(Self::Float32),
            (b'd', 8) => Some(Self::Float64),
            (b'i' | b'l', 4) => Some(Self::Int32),
            _ => None,
        }
    }

    /// The type for a name or a NumPy dtype, whose `str` is its name.
    pub(crate) fn asked(dtype: &Bound<'_, PyAny>) -> PyResult<Self> {
        let text = match dtype.getattr("__name__") {
            Ok(name) => name.str()?,
            Err(_) => dtype.str()?,
        };
        let text = text.to_cow()?;
        Self::ALL
            .into_iter()
            .find(|kind| kind.word() == text)
            .ok_or_else(|| PyTypeError::new_err(format!("dtype {text}: {EXPECTED}")))
    }
}

pub(crate) const EXPECTED: &str = "expected float32, float64 or int32";

/// An element type with its conversions to and from Python.
pub(crate) trait Numeric: Element {
    const KIND: Kind;
    /// Type of means along an axis.
    const MEAN_KIND: Kind;
    /// Type of sums along an axis, if arrays support it.
    const SUM_KIND: Option<Kind>;

    fn of_f64(number: f64) -> Self;
    fn to_f64(self) -> f64;
    /// A factor for elements of this type.
    fn factor(factor: &Bound<'_, PyAny>) -> PyResult<Self>;
    fn number(py: Python<'_>, element: Self) -> PyResult<Bound<'_, PyAny>>;
    fn total(py: Python<'_>, total: Self::Total) -> Bound<'_, PyAny>;
}

macro_rules! floats {
    ($($float:ident $kind:ident)*) => {$(
        impl Numeric for $float {
            const KIND: Kind = Kind::$kind;
            const MEAN_KIND: Kind = Kind::$kind;
            const SUM_KIND: Option<Kind> = Some(Kind::$kind);

            fn of_f64(number: f64) -> Self {
                number as Self
            }
            fn to_f64(self) -> f64 {
                self.into()
            }
            fn factor(factor: &Bound<'_, PyAny>) -> PyResult<Self> {
                factor.extract()
            }
            fn number(py: Python<'_>, element: Self) -> PyResult<Bound<'_, PyAny>> {
                Ok(PyFloat::new(py, element.into()).into_any())
            }
            fn total(py: Python<'_>, total: f64) -> Bound<'_, PyAny> {
                PyFloat::new(py, total).into_any()
            }
        }
    )*};
}

floats!(f32 Float32 f64 Float64);

impl Numeric for i32 {
    const KIND: Kind = Kind::Int32;
    const MEAN_KIND: Kind = Kind::Float64;
    const SUM_KIND: Option<Kind> = None;

    fn of_f64(number: f64) -> Self {
        number as Self
    }
    fn to_f64(self) -> f64 {
        self.into()
    }
    fn factor(factor: &Bound<'_, PyAny>) -> PyResult<Self> {
        factor.extract()
    }
    fn number(py: Python<'_>, element: Self) -> PyResult<Bound<'_, PyAny>> {
        Ok(PyInt::new(py, element).into_any())
    }
    fn total(py: Python<'_>, total: i64) -> Bound<'_, PyAny> {
        PyInt::new(py, total).into_any()
    }
}

/// Evaluates an expression with `$element` bound to the element type.
macro_rules! by_kind {
    ($kind:expr, $element:ident => $body:expr) => {
        match $kind {
            $crate::kind::Kind::Float32 => {
                type $element = f32;
                $body
            }
            $crate::kind::Kind::Float64 => {
                type $element = f64;
                $body
            }
            $crate::kind::Kind::Int32 => {
                type $element = i32;
                $body
            }
        }
    };
}
pub(crate) use by_kind;
