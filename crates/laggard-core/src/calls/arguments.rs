//! Argument values of traced calls.

use super::View;
use rustc_hash::FxHashSet;

/// Calls to a function with the same leading integer arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// The function.
    pub function: String,
    /// Its library.
    pub library: String,
    /// Argument values from registers.
    pub values: Vec<i64>,
    /// Number of calls.
    pub count: u64,
    /// Total time of these calls.
    pub total_ns: u64,
}

/// Argument values of the functions in a view, by decreasing time. They are recorded by function, not by
/// thread or caller.
pub fn arguments(view: &View) -> Vec<Arguments> {
    let kept: FxHashSet<u32> = view.rows.iter().map(|row| row.function).collect();
    let mut rows: Vec<Arguments> = view
        .calls
        .arguments
        .iter()
        .filter(|row| kept.contains(&row.function))
        .map(|row| {
            let (function, library) = view.name(row.function);
            Arguments {
                function: function.to_owned(),
                library: library.to_owned(),
                values: row.values.clone(),
                count: row.count,
                total_ns: row.total_ns,
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        (b.total_ns, b.count)
            .cmp(&(a.total_ns, a.count))
            .then_with(|| (&a.function, &a.values).cmp(&(&b.function, &b.values)))
    });
    rows
}
