//! Row limits and units of tables.

use crate::document::Document;
use crate::number::{self, Quantity, Unit};

/// The first `top` rows.
pub(crate) fn kept<T>(rows: &[T], top: Option<usize>) -> &[T] {
    &rows[..rows.len().min(top.unwrap_or(usize::MAX))]
}

/// Adds a line with the number of rows beyond `top`.
pub(crate) fn more<T>(rows: &[T], top: Option<usize>, document: &mut Document) {
    hidden((rows.len() - kept(rows, top).len()) as u64, document);
}

/// Adds a line with the number of hidden rows.
pub(crate) fn hidden(rows: u64, document: &mut Document) {
    if rows > 0 {
        document.minor(format!("({})", number::plural(rows, "more row")));
    }
}

/// Time unit for columns that show these values of the rows.
pub(crate) fn time_unit<T>(rows: &[T], values: &[fn(&T) -> i64]) -> Unit {
    let values = values.iter().flat_map(|of| rows.iter().map(move |row| of(row) as f64));
    Quantity::Time.unit(values)
}
