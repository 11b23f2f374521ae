//! Evidence as Arrow tables.
//!
//! You give evidence, you get [`Table`]s: named, documented columns. Each column is an Arrow array
//! that is built on first access. Numeric columns of a trace share the buffers of its timeline, and
//! names are dictionaries over its string table; neither is copied. All files of a kind have the
//! same tables and columns.

mod array;
mod calls;
mod counters;
mod profile;
mod timings;
mod trace;

pub use trace::Trace;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use laggard_core::model::calls::Calls;
use laggard_core::model::counters::Counters;
use laggard_core::model::profile::Profile;
use laggard_core::model::timings::Timings;
use std::sync::{Arc, OnceLock};

/// A table of evidence.
#[derive(Clone)]
pub struct Table {
    /// Name, such as `kernels`.
    pub name: &'static str,
    /// Description of a row.
    pub about: &'static str,
    rows: Arc<dyn Fn() -> usize + Send + Sync>,
    columns: Arc<[Column]>,
}

/// A column of a table.
pub struct Column {
    /// Name with its unit, such as `dur_ns`.
    pub name: &'static str,
    /// Description of a value.
    pub about: &'static str,
    /// Arrow type, independent of the file.
    pub data_type: DataType,
    make: Box<dyn Fn() -> ArrayRef + Send + Sync>,
    made: OnceLock<ArrayRef>,
}

impl Column {
    /// Returns the values, built on the first call.
    pub fn array(&self) -> ArrayRef {
        self.made.get_or_init(|| (self.make)()).clone()
    }

    /// Whether the values have been built.
    pub fn is_made(&self) -> bool {
        self.made.get().is_some()
    }

    fn field(&self) -> Field {
        Field::new(self.name, self.data_type.clone(), true)
    }
}

impl Table {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        (self.rows)()
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Arrow schema of the columns at these positions.
    pub fn schema(&self, places: &[usize]) -> SchemaRef {
        let fields: Vec<Field> = places.iter().map(|&place| self.columns[place].field()).collect();
        Arc::new(Schema::new(fields))
    }

    /// One batch of the columns at these positions. No other columns are built.
    pub fn batch(&self, places: &[usize]) -> Result<RecordBatch, ArrowError> {
        let arrays = places.iter().map(|&place| self.columns[place].array()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows()));
        RecordBatch::try_new_with_options(self.schema(places), arrays, &options)
    }
}

/// Tables of a trace.
pub fn of_trace(trace: &Arc<Trace>) -> Vec<Table> {
    trace::tables(trace)
}

/// Tables of a profile.
pub fn of_profile(profile: &Arc<Profile>) -> Vec<Table> {
    profile::tables(profile)
}

/// Tables of a call trace.
pub fn of_calls(calls: &Arc<Calls>) -> Vec<Table> {
    calls::tables(calls)
}

/// Tables of a benchmark.
pub fn of_timings(timings: &Arc<Timings>) -> Vec<Table> {
    timings::tables(timings)
}

/// Tables of counters.
pub fn of_counters(counters: &Arc<Counters>) -> Vec<Table> {
    counters::tables(counters)
}

/// The tables of each kind of file, without rows. Used to print schemas.
pub fn empty() -> Vec<(&'static str, Vec<Table>)> {
    vec![
        ("trace", of_trace(&Arc::default())),
        ("profile", of_profile(&Arc::default())),
        ("calls", of_calls(&Arc::default())),
        ("bench", of_timings(&Arc::default())),
        ("counters", of_counters(&Arc::default())),
    ]
}

/// Builds a table column by column.
struct Maker<E> {
    of: Arc<E>,
    name: &'static str,
    about: &'static str,
    rows: Arc<dyn Fn() -> usize + Send + Sync>,
    columns: Vec<Column>,
}

impl<E: Send + Sync + 'static> Maker<E> {
    fn new(
        of: &Arc<E>,
        name: &'static str,
        about: &'static str,
        rows: impl Fn(&E) -> usize + Send + Sync + 'static,
    ) -> Maker<E> {
        let this = of.clone();
        let rows = Arc::new(move || rows(&this));
        Maker { of: of.clone(), name, about, rows, columns: vec![] }
    }

    /// Adds a column.
    fn column(
        mut self,
        name: &'static str,
        data_type: DataType,
        about: &'static str,
        make: impl Fn(&E) -> ArrayRef + Send + Sync + 'static,
    ) -> Maker<E> {
        let of = self.of.clone();
        let make = Box::new(move || make(&of));
        self.columns.push(Column { name, about, data_type, make, made: OnceLock::new() });
        self
    }

    fn table(self) -> Table {
        let Maker { name, about, rows, columns, .. } = self;
        Table { name, about, rows, columns: columns.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn columns_match_their_schema_and_are_documented() {
        for (kind, tables) in empty() {
            let names: BTreeSet<_> = tables.iter().map(|table| table.name).collect();
            assert_eq!(names.len(), tables.len(), "{kind} has two tables of one name");
            for table in tables {
                let mut names = BTreeSet::new();
                assert!(!table.about.is_empty(), "{}", table.name);
                for column in table.columns() {
                    let place = format!("{kind} {}.{}", table.name, column.name);
                    assert!(names.insert(column.name), "{place} is there twice");
                    assert!(!column.about.is_empty(), "{place} is not documented");
                    assert!(!column.is_made(), "{place} was made before it was asked for");
                    let array = column.array();
                    assert_eq!(*array.data_type(), column.data_type, "{place}");
                    assert_eq!(array.len(), table.rows(), "{place}");
                }
            }
        }
    }
}
