//! Rows of a table: which are shown, and in what unit.

use crate::document::Document;
use crate::number::{self, Quantity, Unit};

/// The rows that a table shows.
pub(crate) fn kept<T>(rows: &[T], top: Option<usize>) -> &[T] {
    &rows[..rows.len().min(top.unwrap_or(usize::MAX))]
}

/// Says how many rows a table leaves out, where nothing more is known about them.
pub(crate) fn more<T>(rows: &[T], top: Option<usize>, document: &mut Document) {
    hidden((rows.len() - kept(rows, top).len()) as u64, document);
}

/// Says that so many rows are left out.
pub(crate) fn hidden(rows: u64, document: &mut Document) {
    if rows > 0 {
        document.minor(format!("({})", number::plural(rows, "more row")));
    }
}

/// The unit of time for columns that show these values of the rows.
pub(crate) fn time_unit<T>(rows: &[T], values: &[fn(&T) -> i64]) -> Unit {
    let values = values.iter().flat_map(|of| rows.iter().map(move |row| of(row) as f64));
    Quantity::Time.unit(values)
}
