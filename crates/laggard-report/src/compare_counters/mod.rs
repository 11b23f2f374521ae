//! Report of a comparison of performance counters.

mod json;
#[cfg(test)]
mod tests;

pub use json::json;

use crate::bench::words::{range, ratio};
use crate::counters::{figure, figure_of, label, value};
use crate::document::Document;
use crate::number::plural;
use crate::rows::{kept, more};
use crate::table::{Column, Style, Table};
use laggard_core::compare::counters::{Compared, CountersComparison, RUNS_IF_NOT_SAID, Verdict};
use laggard_core::counters::Derived;
use laggard_core::model::counters::{Counter, Counters};

/// Input of the report.
#[derive(Clone, Copy, Debug)]
pub struct CompareCounters<'a> {
    /// The reference side.
    pub a: Given<'a>,
    /// The compared side.
    pub b: Given<'a>,
    /// Result of [`laggard_core::compare::counters::compare`].
    pub comparison: &'a CountersComparison,
    /// Maximum number of rows in a table; `None` for all.
    pub top: Option<usize>,
}

/// One side.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Path as given by the user.
    pub path: &'a str,
    /// The counters.
    pub counters: &'a Counters,
}

/// The comparison as terminal text.
pub fn text(report: &CompareCounters, style: &Style) -> String {
    document(report).text(style)
}

/// The comparison as Markdown.
pub fn markdown(report: &CompareCounters) -> String {
    document(report).markdown()
}

/// The comparison as HTML sections.
pub fn html(report: &CompareCounters) -> String {
    document(report).html()
}

fn document(report: &CompareCounters) -> Document {
    let mut document = Document::default();
    document.lead(lead(report));
    document.heading("Counters");
    counters(report, &mut document);
    document.heading("Derived metrics");
    figures(report, &mut document);
    document.heading("Files");
    let about = |given: &Given| {
        let of = given.counters;
        let runs = of.runs.map_or_else(String::new, |runs| plural(runs, "run"));
        let parts = [given.path, &of.command, &of.started, &runs];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    };
    document.facts([("A", about(&report.a)), ("B", about(&report.b))]);
    if is_guessed(report) {
        document.minor(format!(
            "the files do not contain the number of runs; confidence intervals assume \
             {RUNS_IF_NOT_SAID}"
        ));
    }
    for (name, given) in [("A", &report.a), ("B", &report.b)] {
        for warning in &given.counters.warnings {
            document.notice(format!("warning: {name}: {warning}"));
        }
    }
    document
}

/// Whether intervals use an assumed number of runs.
fn is_guessed(report: &CompareCounters) -> bool {
    let is_unknown = [report.a, report.b].iter().any(|given| given.counters.runs.is_none());
    is_unknown && report.comparison.counters.iter().any(|row| row.interval.is_some())
}

/// The main result in one line.
fn lead(report: &CompareCounters) -> String {
    let all = &report.comparison.counters;
    let count = |word: &str| all.iter().filter(|row| row.verdict.word() == word).count();
    let parts: Vec<String> = [
        ("more", "more in"),
        ("less", "less in"),
        ("same", "no detectable difference in"),
        ("single-sample", "no verdict without repeated runs in"),
    ]
    .into_iter()
    .map(|(word, words)| (count(word), words))
    .filter(|(n, _)| *n > 0)
    .map(|(n, words)| format!("{words} {n}"))
    .collect();
    if parts.is_empty() {
        return "no counter has a value in both files".to_owned();
    }
    let compared = all.iter().filter(|row| row.verdict != Verdict::NotComparable).count();
    format!("B compared with A ({}): {}", plural(compared as u64, "counter"), parts.join(", "))
}

fn counters(report: &CompareCounters, document: &mut Document) {
    let all = &report.comparison.counters;
    let mut table = Table::new([
        Column::text("event"),
        Column::number("A", ""),
        Column::number("B", ""),
        Column::number("B / A", ""),
        Column::range("95 % CI", ""),
        Column::range("difference", ""),
        Column::text("verdict"),
    ]);
    for row in kept(all, report.top) {
        let Some(either) = row.a.as_ref().or(row.b.as_ref()) else { continue };
        let of = |side: &Option<Counter>| side.as_ref().map_or_else(String::new, value);
        table.push([
            named(either),
            of(&row.a),
            of(&row.b),
            row.ratio.map_or_else(String::new, ratio),
            row.interval.map_or_else(String::new, range),
            row.gap.map_or_else(String::new, |gap| signed(gap, |gap| figure(gap, &either.unit))),
            verdict(row, |side| side.reading.word()),
        ]);
    }
    document.table(table);
    more(all, report.top, document);
    if all.iter().any(|row| row.verdict == Verdict::SingleSample) {
        document.minor(
            "single runs have no verdict: use `perf stat -r 10` to measure the variation between \
             runs",
        );
    }
}

fn figures(report: &CompareCounters, document: &mut Document) {
    let mut table = Table::new([
        Column::text("metric"),
        Column::range("A", ""),
        Column::range("B", ""),
        Column::number("B / A", ""),
        Column::range("95 % CI", ""),
        Column::range("difference", ""),
        Column::text("verdict"),
    ]);
    let mut missing: Vec<String> = vec![];
    for row in &report.comparison.derived {
        let Some(either) = row.a.as_ref().or(row.b.as_ref()) else { continue };
        let of = |side: &Option<Derived>| {
            side.as_ref().and_then(crate::counters::shown).unwrap_or_default()
        };
        if row.verdict == Verdict::NotComparable {
            let lacks = |side: &Option<Derived>| {
                side.as_ref().map(|of| of.missing.join(", ")).filter(|all| !all.is_empty())
            };
            missing.push(match (lacks(&row.a), lacks(&row.b)) {
                (Some(a), Some(b)) if a == b => {
                    format!("{}: not available, both sides lack {a}", label(either))
                }
                (a, b) => {
                    let sides = [("A", a), ("B", b)].into_iter();
                    let sides =
                        sides.filter_map(|(side, of)| Some(format!("{side} lacks {}", of?)));
                    format!(
                        "{}: not available, {}",
                        label(either),
                        sides.collect::<Vec<_>>().join("; ")
                    )
                }
            });
            continue;
        }
        table.push([
            label(either).to_owned(),
            of(&row.a),
            of(&row.b),
            row.ratio.map_or_else(String::new, ratio),
            row.interval.map_or_else(String::new, range),
            row.gap
                .map_or_else(String::new, |gap| signed(gap, |gap| figure_of(either.figure, gap))),
            verdict(row, |_| ""),
        ]);
    }
    if !table.is_empty() {
        document.table(table);
    }
    for line in missing {
        document.minor(line);
    }
}

/// Name and unit.
fn named(row: &Counter) -> String {
    match row.unit.as_str() {
        "" => row.label(),
        unit => format!("{}, {unit}", row.label()),
    }
}

/// A difference with its sign.
fn signed(gap: f64, show: impl Fn(f64) -> String) -> String {
    let sign = match gap {
        _ if gap > 0.0 => "+",
        _ if gap < 0.0 => "-",
        _ => "",
    };
    format!("{sign}{}", show(gap.abs()))
}

fn verdict<T>(row: &Compared<T>, why: impl Fn(&T) -> &'static str) -> String {
    match row.verdict {
        Verdict::More => "more".to_owned(),
        Verdict::Less => "less".to_owned(),
        // The confidence interval is in another column.
        Verdict::NoDetectableDifference { .. } => "no difference".to_owned(),
        Verdict::SingleSample => "single sample".to_owned(),
        Verdict::NotComparable => match (&row.a, &row.b) {
            (Some(_), None) => "only in A".to_owned(),
            (None, Some(_)) => "only in B".to_owned(),
            (Some(a), Some(b)) if why(a) == why(b) => why(a).to_owned(),
            (Some(a), Some(b)) => format!("A {}, B {}", why(a), why(b)),
            (None, None) => String::new(),
        },
    }
}

const COLUMNS: [&str; 13] = [
    "kind",
    "event",
    "modifiers",
    "unit",
    "a",
    "b",
    "a_spread",
    "b_spread",
    "ratio",
    "ratio_low",
    "ratio_high",
    "gap",
    "verdict",
];

/// All counters (`kind` is `counter`) and derived metrics (`derived`) as CSV.
pub fn csv(report: &CompareCounters) -> String {
    use crate::counters::number;
    fn numbers<T>(row: &Compared<T>, of: impl Fn(&T) -> [Option<f64>; 2]) -> Vec<String> {
        let [a, b] = [&row.a, &row.b].map(|side| side.as_ref().map_or([None; 2], &of));
        let (low, high) = (row.interval.map(|of| of.low), row.interval.map(|of| of.high));
        let all = [a[0], b[0], a[1], b[1], row.ratio, low, high, row.gap];
        let mut cells: Vec<String> = all.into_iter().map(number).collect();
        cells.push(row.verdict.word().to_owned());
        cells
    }
    let mut table = Table::new(COLUMNS.map(Column::text));
    for row in &report.comparison.counters {
        let Some(either) = row.a.as_ref().or(row.b.as_ref()) else { continue };
        let names = ["counter", &either.name, &either.modifiers, &either.unit];
        let mut cells: Vec<String> = names.map(str::to_owned).into();
        cells.extend(numbers(row, |of| [of.value(), of.spread]));
        table.push(cells);
    }
    for row in &report.comparison.derived {
        let Some(either) = row.a.as_ref().or(row.b.as_ref()) else { continue };
        let names = ["derived", either.name, "", crate::counters::word_of(either.figure)];
        let mut cells: Vec<String> = names.map(str::to_owned).into();
        cells.extend(numbers(row, |of| [of.value, of.spread]));
        table.push(cells);
    }
    table.csv()
}
