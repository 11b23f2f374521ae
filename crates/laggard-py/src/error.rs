//! Converts errors to the exceptions defined in `laggard/errors.py`.

use laggard_formats::Error as Formats;
use laggard_probe::Error as Probe;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::io;

/// Creates the exception for an error.
pub(crate) fn raised(py: Python<'_>, error: &anyhow::Error) -> PyErr {
    if let Some((error, path)) = system(error)
        && let Some(number) = error.raw_os_error()
    {
        // Python selects the subclass of OSError by errno.
        let words = io::Error::from_raw_os_error(number).to_string();
        let words = words.split(" (os error").next().unwrap_or_default().to_owned();
        return PyOSError::new_err((number, words, path));
    }
    let causes: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
    let hint = laggard::library::hint(error);
    let made = py.import("laggard.errors").and_then(|errors| {
        errors.getattr("of")?.call1((kind(error), error.to_string(), causes, hint))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The key of the exception class in `laggard/errors.py`.
fn kind(error: &anyhow::Error) -> &'static str {
    if let Some(error) = laggard::library::of_probe(error) {
        return match error {
            Probe::RefusedHere(_) | Probe::Driver(_) | Probe::DriverFailed(_) => "record",
            Probe::Differ(_) => "differ",
            _ => "measure",
        };
    }
    let is_usage = error.chain().any(|cause| cause.is::<clap::Error>());
    let is_format = error.chain().any(|cause| cause.is::<Formats>());
    if is_usage {
        "usage"
    } else if is_format {
        "format"
    } else {
        ""
    }
}

/// The I/O error in the chain, with its path.
fn system(error: &anyhow::Error) -> Option<(&io::Error, String)> {
    error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(Formats::Io { path, source, .. }) => Some((source, path.display().to_string())),
        _ => None,
    })
}
