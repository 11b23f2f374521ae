//! Evidence as tables that any Arrow program takes.
//!
//! You give evidence, you get [`Table`]s: named columns with a documented meaning, each an Arrow
//! array that is made when it is asked for and at no other time. Numbers of a trace are the very
//! buffers of its timeline, and names are dictionaries over its strings: nothing of these is copied.
//! What tables there are, and what is in them, is the same for every file of a kind.

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
    /// What it is called: `kernels`.
    pub name: &'static str,
    /// What a row is.
    pub about: &'static str,
    rows: Arc<dyn Fn() -> usize + Send + Sync>,
    columns: Arc<[Column]>,
}

/// A column of a table.
pub struct Column {
    /// What it is called, with its unit: `dur_ns`.
    pub name: &'static str,
    /// What a value is.
    pub about: &'static str,
    /// Its Arrow type, which does not depend on the file.
    pub data_type: DataType,
    make: Box<dyn Fn() -> ArrayRef + Send + Sync>,
    made: OnceLock<ArrayRef>,
}

impl Column {
    /// The values.
    pub fn array(&self) -> ArrayRef {
        self.made.get_or_init(|| (self.make)()).clone()
    }

    /// Whether somebody has asked for the values.
    pub fn is_made(&self) -> bool {
        self.made.get().is_some()
    }

    fn field(&self) -> Field {
        Field::new(self.name, self.data_type.clone(), true)
    }
}

impl Table {
    /// How many rows it has.
    pub fn rows(&self) -> usize {
        (self.rows)()
    }

    /// Its columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The Arrow schema of some of its columns, by their places.
    pub fn schema(&self, places: &[usize]) -> SchemaRef {
        let fields: Vec<Field> = places.iter().map(|&place| self.columns[place].field()).collect();
        Arc::new(Schema::new(fields))
    }

    /// Some of its columns as one batch, by their places; no others are made.
    pub fn batch(&self, places: &[usize]) -> Result<RecordBatch, ArrowError> {
        let arrays = places.iter().map(|&place| self.columns[place].array()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows()));
        RecordBatch::try_new_with_options(self.schema(places), arrays, &options)
    }
}

/// The tables of a trace.
pub fn of_trace(trace: &Arc<Trace>) -> Vec<Table> {
    trace::tables(trace)
}

/// The tables of a profile.
pub fn of_profile(profile: &Arc<Profile>) -> Vec<Table> {
    profile::tables(profile)
}

/// The tables of traced calls.
pub fn of_calls(calls: &Arc<Calls>) -> Vec<Table> {
    calls::tables(calls)
}

/// The tables of a bench.
pub fn of_timings(timings: &Arc<Timings>) -> Vec<Table> {
    timings::tables(timings)
}

/// The tables of counters.
pub fn of_counters(counters: &Arc<Counters>) -> Vec<Table> {
    counters::tables(counters)
}

/// The tables that files of each kind have, without rows: what a schema is printed from.
pub fn empty() -> Vec<(&'static str, Vec<Table>)> {
    vec![
        ("trace", of_trace(&Arc::default())),
        ("profile", of_profile(&Arc::default())),
        ("calls", of_calls(&Arc::default())),
        ("bench", of_timings(&Arc::default())),
        ("counters", of_counters(&Arc::default())),
    ]
}

/// Makes a table of evidence, column by column.
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
    fn columns_are_what_their_schema_says_and_are_documented() {
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
