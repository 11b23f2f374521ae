//! Evidence as a Python object.

use crate::arrow::Table;
use crate::error::raised;
use crate::wait::wait;
use laggard::library::{self, Form, Loading};
use laggard_formats::tables;
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Loaded evidence.
#[pyclass(frozen, module = "laggard._laggard")]
pub(crate) struct Loaded {
    pub(crate) of: Arc<library::Loaded>,
    tables: OnceLock<Vec<tables::Table>>,
}

impl Loaded {
    /// Wraps loaded evidence, or converts the error to an exception.
    pub(crate) fn of(py: Python<'_>, found: anyhow::Result<library::Loaded>) -> PyResult<Loaded> {
        let of = Arc::new(found.map_err(|error| raised(py, &error))?);
        Ok(Loaded { of, tables: OnceLock::new() })
    }

    fn tables(&self) -> &[tables::Table] {
        self.tables.get_or_init(|| self.of.tables())
    }
}

/// Loads a file of any kind.
#[pyfunction]
#[pyo3(signature = (path, index = true, threads = None, rules = None))]
pub(crate) fn load(
    py: Python<'_>,
    path: PathBuf,
    index: bool,
    threads: Option<u16>,
    rules: Option<PathBuf>,
) -> PyResult<Loaded> {
    let loading = Loading { index, threads, rules };
    let found = wait(py, move || library::load(&path, &loading))?;
    Loaded::of(py, found)
}

/// Empty tables of all kinds of evidence, for their schemas.
#[pyfunction]
pub(crate) fn schemas(py: Python<'_>) -> PyResult<Vec<(&'static str, Py<Table>)>> {
    let mut all = vec![];
    for (kind, tables) in tables::empty() {
        for table in tables {
            all.push((kind, Py::new(py, Table::new(table))?));
        }
    }
    Ok(all)
}

fn form(name: &str) -> PyResult<Form> {
    Form::named(name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "unknown report format {name:?}: use text, json, csv, markdown or html"
        ))
    })
}

#[pymethods]
impl Loaded {
    #[getter]
    fn kind(&self) -> &str {
        self.of.kind()
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.of.path.clone()
    }

    #[getter]
    fn losses(&self) -> Vec<String> {
        self.of.losses()
    }

    #[getter]
    fn table_names(&self) -> Vec<&str> {
        self.tables().iter().map(|table| table.name).collect()
    }

    fn table(&self, name: &str) -> PyResult<Table> {
        let found = self.tables().iter().find(|table| table.name == name);
        let table = found.ok_or_else(|| {
            let there = self.table_names().join(", ");
            PyAttributeError::new_err(format!(
                "{} has no table {name:?}; tables: {there}",
                self.of.path.display()
            ))
        })?;
        Ok(Table::new(table.clone()))
    }

    fn report(&self, py: Python<'_>, format: &str, flags: Vec<String>) -> PyResult<String> {
        let (of, form) = (self.of.clone(), form(format)?);
        let text = wait(py, move || of.report(form, &flags))?;
        text.map_err(|error| raised(py, &error))
    }

    fn compare(
        &self,
        py: Python<'_>,
        other: &Loaded,
        format: &str,
        flags: Vec<String>,
    ) -> PyResult<(String, bool)> {
        let (a, b, form) = (self.of.clone(), other.of.clone(), form(format)?);
        let compared = wait(py, move || a.compare(&b, form, &flags))?;
        compared.map_err(|error| raised(py, &error))
    }

    fn page(&self, py: Python<'_>) -> PyResult<String> {
        let of = self.of.clone();
        wait(py, move || of.page())?.map_err(|error| raised(py, &error))
    }

    fn page_against(&self, py: Python<'_>, other: &Loaded) -> PyResult<String> {
        let (a, b) = (self.of.clone(), other.of.clone());
        wait(py, move || a.page_against(&b))?.map_err(|error| raised(py, &error))
    }
}
