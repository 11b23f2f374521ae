//! Which functions are shown, and in what order.

use laggard_core::model::code::{Code, Function, Mix};
use std::cmp::Ordering;

/// Which functions are shown, and in what order.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Patterns of names, of which one must fit; all functions when there are none.
    pub patterns: Vec<String>,
    /// The order.
    pub sort: Sort,
    /// How many; None is all.
    pub top: Option<usize>,
}

/// An order of functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The largest first.
    #[default]
    Size,
    /// Those with the greatest share of vector instructions first; of equal ones the largest.
    Vector,
    /// Those with the most samples first, and no others.
    Samples,
    /// By name.
    Name,
    /// By address.
    Address,
}

/// A function to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Number of its file.
    pub file: usize,
    /// Its number there.
    pub function: usize,
    /// Samples in it, when there is a profile.
    pub samples: Option<u64>,
    /// What was executed of it, when there is a profile.
    pub executed: Option<Mix>,
}

/// All functions that fit, in order; linkage stubs only when a pattern asks for them.
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

/// Whether a name fits a pattern, in which `*` stands for anything and `?` for one character.
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
                // The last star takes one character more.
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
