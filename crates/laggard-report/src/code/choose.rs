//! Selects and sorts the functions to list.

use laggard_core::model::code::{Code, Function, Mix};
use std::cmp::Ordering;

/// Which functions to list, and in what order.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Glob patterns; a function is listed if any matches its name. Empty lists all functions.
    pub patterns: Vec<String>,
    /// Sort order.
    pub sort: Sort,
    /// Maximum number of functions; `None` lists all.
    pub top: Option<usize>,
}

/// Sort order of functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Largest first.
    #[default]
    Size,
    /// Highest share of vector instructions first, then largest.
    Vector,
    /// Most samples first; functions without samples are omitted.
    Samples,
    /// By name.
    Name,
    /// By address.
    Address,
}

/// A function to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Index of its file.
    pub file: usize,
    /// Its index in that file.
    pub function: usize,
    /// Samples in it; `None` without a profile.
    pub samples: Option<u64>,
    /// Executed instructions by class; `None` without a profile or samples.
    pub executed: Option<Mix>,
}

/// All matching functions, sorted. Linkage stubs are included only if a pattern matches them.
pub fn choose(code: &Code, choice: &Choice) -> Vec<Row> {
    let fits = |function: &Function| match &*choice.patterns {
        [] => !function.is_stub,
        patterns => {
            let name = code.texts.get(function.name);
            patterns.iter().any(|pattern| glob(pattern, name))
        }
    };
    let mut rows = vec![];
    for (number, file) in code.files.iter().enumerate() {
        let mut hot = vec![None; file.functions.len()];
        for seen in file.executed.iter().flat_map(|executed| &executed.hot) {
            if let Some(cell) = hot.get_mut(seen.function as usize) {
                *cell = Some((seen.samples, seen.mix));
            }
        }
        for (function, seen) in hot.into_iter().enumerate() {
            if !fits(&file.functions[function]) {
                continue;
            }
            let samples = seen.map(|(samples, _)| samples);
            rows.push(Row {
                file: number,
                function,
                samples: samples.or(file.executed.as_ref().map(|_| 0)),
                executed: seen.map(|(_, mix)| mix),
            });
        }
    }
    if choice.sort == Sort::Samples {
        rows.retain(|row| row.samples.unwrap_or(0) > 0);
    }
    rows.sort_by(|a, b| order(code, choice.sort, a, b));
    rows
}

fn order(code: &Code, sort: Sort, a: &Row, b: &Row) -> Ordering {
    let function = |row: &Row| &code.files[row.file].functions[row.function];
    let vector = |row: &Row| function(row).mix.packed_share().unwrap_or(0.0);
    let name = |row: &Row| code.texts.get(function(row).name);
    let by_size = || function(b).size.cmp(&function(a).size);
    match sort {
        Sort::Size => by_size(),
        Sort::Vector => vector(b).total_cmp(&vector(a)).then_with(by_size),
        Sort::Samples => b.samples.cmp(&a.samples),
        Sort::Name => name(a).cmp(name(b)),
        Sort::Address => function(a).address.cmp(&function(b).address),
    }
}

/// Whether a glob pattern matches a name: `*` matches any text, `?` one character.
pub fn glob(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some('?') => (p, n) = (p + 1, n + 1),
            Some(c) if *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match retry {
                // Let the last star match one more character.
                Some((after, taken)) => {
                    retry = Some((after, taken + 1));
                    (p, n) = (after, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}
