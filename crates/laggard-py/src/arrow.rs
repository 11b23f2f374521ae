//! A table of evidence as a Python object, exported to Arrow libraries without copying.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type};
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use laggard_formats::write::parquet;
use laggard_formats::{atomic, tables};
use pyo3::exceptions::{PyKeyError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Rows per exported batch. Engines process several batches in parallel.
const BATCH: usize = 1 << 17;

/// A table of evidence. Its columns are built on first use.
#[pyclass(frozen, module = "laggard")]
pub(crate) struct Table {
    table: tables::Table,
    /// Indexes of the selected columns.
    places: Vec<usize>,
}

impl Table {
    pub(crate) fn new(table: tables::Table) -> Table {
        let places = (0..table.columns().len()).collect();
        Table { table, places }
    }

    fn columns(&self) -> impl Iterator<Item = &tables::Column> {
        self.places.iter().map(|&place| &self.table.columns()[place])
    }

    fn batch(&self) -> Result<RecordBatch, ArrowError> {
        self.table.batch(&self.places)
    }
}

fn failed(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    #[getter]
    fn name(&self) -> &str {
        self.table.name
    }

    /// Description of a row.
    #[getter]
    fn about(&self) -> &str {
        self.table.about
    }

    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.columns().map(|column| column.name).collect()
    }

    #[getter]
    fn num_rows(&self, py: Python<'_>) -> usize {
        py.detach(|| self.table.rows())
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.num_rows(py)
    }

    /// Name, type and description of each column.
    #[getter]
    fn schema(&self) -> Vec<(&str, &str, &str)> {
        self.columns()
            .map(|column| (column.name, type_of(&column.data_type), column.about))
            .collect()
    }

    /// Names of the columns that have been built.
    #[getter]
    fn made(&self) -> Vec<&str> {
        self.columns().filter(|column| column.is_made()).map(|column| column.name).collect()
    }

    /// The table restricted to these columns.
    fn select(&self, names: Vec<String>) -> PyResult<Table> {
        let place = |name: &String| {
            let found = self.places.iter().find(|&&at| self.table.columns()[at].name == *name);
            found.copied().ok_or_else(|| {
                PyKeyError::new_err(format!("table {} has no column {name}", self.table.name))
            })
        };
        let places = names.iter().map(place).collect::<PyResult<_>>()?;
        Ok(Table { table: self.table.clone(), places })
    }

    /// The first rows as dictionaries.
    #[pyo3(signature = (limit = 10))]
    fn head<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyList>> {
        let batch = py.detach(|| self.batch()).map_err(failed)?;
        let rows = PyList::empty(py);
        for row in 0..batch.num_rows().min(limit) {
            let values = PyDict::new(py);
            for (column, array) in self.columns().zip(batch.columns()) {
                values.set_item(column.name, value(py, array, row)?)?;
            }
            rows.append(values)?;
        }
        Ok(rows)
    }

    /// The rows as dictionaries. `pandas.DataFrame` reads tables this way.
    fn __iter__(&self, py: Python<'_>) -> PyResult<Rows> {
        let batch = py.detach(|| self.batch()).map_err(failed)?;
        let texts = batch.columns().iter().map(|_| BTreeMap::new()).collect();
        Ok(Rows {
            names: self.columns().map(|column| column.name).collect(),
            batch,
            texts,
            next: 0,
        })
    }

    /// Converts to a `pyarrow.Table` without copying.
    fn to_arrow<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        taken(this, "pyarrow", "table")
    }

    /// Converts to a `polars.DataFrame`.
    fn to_polars<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        taken(this, "polars", "DataFrame")
    }

    /// Converts to a `pandas.DataFrame` with strings as categoricals.
    fn to_pandas<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        taken(this, "pyarrow", "table")?.call_method0("to_pandas")
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (name, columns) = (self.table.name, self.column_names().join(", "));
        format!("<laggard.Table {name}: {} rows, columns {columns}>", self.num_rows(py))
    }

    fn _repr_html_(this: &Bound<'_, Self>) -> PyResult<String> {
        this.py().import("laggard._show")?.call_method1("table", (this,))?.extract()
    }

    /// Writes a Parquet file atomically and returns its size in bytes.
    #[pyo3(signature = (path, metadata = None))]
    fn write_parquet(
        &self,
        py: Python<'_>,
        path: PathBuf,
        metadata: Option<BTreeMap<String, String>>,
    ) -> PyResult<u64> {
        let metadata: Vec<(String, String)> = metadata.unwrap_or_default().into_iter().collect();
        let written = py.detach(|| {
            let batch = self.batch().map_err(io::Error::other)?;
            let mut size = 0;
            atomic::write(&path, |out| {
                size = parquet::write(out, &batch, &metadata)?;
                Ok(())
            })?;
            Ok(size)
        });
        written.map_err(|error: io::Error| {
            let words = format!("cannot write {}: {error}", path.display());
            match error.raw_os_error() {
                Some(number) => PyOSError::new_err((number, words, path)),
                None => failed(words),
            }
        })
    }

    /// The Arrow schema (PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = self.table.schema(&self.places);
        let schema = FFI_ArrowSchema::try_from(&*schema).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows as an Arrow stream (PyCapsule interface). Buffers are not copied. Columns are built
    /// when the first batch is requested.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows ignoring the requested schema; callers can cast.
        drop(requested_schema);
        let batches = Batches {
            table: self.table.clone(),
            places: self.places.clone(),
            whole: None,
            next: 0,
        };
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// Iterates over the rows of a table as dictionaries.
#[pyclass(module = "laggard")]
pub(crate) struct Rows {
    names: Vec<&'static str>,
    batch: RecordBatch,
    /// Texts of dictionary columns that were converted, by code: a text is converted only once.
    texts: Vec<BTreeMap<u32, Py<PyAny>>>,
    next: usize,
}

#[pymethods]
impl Rows {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let row = self.next;
        if row == self.batch.num_rows() {
            return Ok(None);
        }
        self.next += 1;
        let values = PyDict::new(py);
        for ((name, array), texts) in
            self.names.iter().zip(self.batch.columns()).zip(&mut self.texts)
        {
            let is_text = matches!(array.data_type(), DataType::Dictionary(..));
            let code = (is_text && !array.is_null(row))
                .then(|| array.as_dictionary::<UInt32Type>().keys().value(row));
            let found = match code.and_then(|code| texts.get(&code)) {
                Some(text) => text.clone_ref(py).into_bound(py),
                None => value(py, array, row)?,
            };
            if let Some(code) = code {
                texts.entry(code).or_insert_with(|| found.clone().unbind());
            }
            values.set_item(name, found)?;
        }
        Ok(Some(values))
    }
}

/// Passes the table to a function of an optional package.
fn taken<'py>(
    table: &Bound<'py, Table>,
    package: &str,
    function: &str,
) -> PyResult<Bound<'py, PyAny>> {
    table.py().import(package)?.call_method1(function, (table,))
}

/// Iterates over the rows of a table in batches.
struct Batches {
    table: tables::Table,
    places: Vec<usize>,
    whole: Option<RecordBatch>,
    next: usize,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.whole.is_none() {
            match self.table.batch(&self.places) {
                Ok(batch) => self.whole = Some(batch),
                Err(error) => return Some(Err(error)),
            }
        }
        let whole = self.whole.as_ref()?;
        let rows = (whole.num_rows() - self.next).min(BATCH);
        if rows == 0 {
            return None;
        }
        let batch = whole.slice(self.next, rows);
        self.next += rows;
        Some(Ok(batch))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.table.schema(&self.places)
    }
}

/// The SQL name of a type.
pub(crate) fn type_of(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int64 => "bigint",
        DataType::Float64 => "double",
        DataType::Boolean => "boolean",
        _ => "varchar",
    }
}

/// Converts one value to a Python object.
fn value<'py>(py: Python<'py>, array: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match array.data_type() {
        DataType::Int64 => {
            Ok(array.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any())
        }
        DataType::Float64 => {
            Ok(array.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any())
        }
        DataType::Boolean => {
            Ok(array.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any())
        }
        DataType::Utf8 => Ok(array.as_string::<i32>().value(row).into_pyobject(py)?.into_any()),
        DataType::LargeUtf8 => {
            Ok(array.as_string::<i64>().value(row).into_pyobject(py)?.into_any())
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_dictionary::<UInt32Type>();
            value(py, dictionary.values(), dictionary.keys().value(row) as usize)
        }
        other => Err(PyValueError::new_err(format!("unsupported column type {other}"))),
    }
}
