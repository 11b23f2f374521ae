//! With which values functions were called.

use super::View;
use rustc_hash::FxHashSet;

/// Calls of a function with the same first integer arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// The function.
    pub function: String,
    /// Its library.
    pub library: String,
    /// The values, as they were in the registers.
    pub values: Vec<i64>,
    /// Calls.
    pub count: u64,
    /// Time in them.
    pub total_ns: u64,
}

/// The values that the functions of a view were called with, most time first. They are known by
/// function, not by thread or caller.
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
