//! Detection and plots of parameter scans.

use super::plot::{Curve, plot};
use super::words::{grows_as, labelled};
use crate::document::Document;
use crate::escape;
use laggard_core::model::timings::{Case, Timings};
use laggard_core::stats::growth::Growth;
use laggard_core::stats::summary::Summary;
use serde::Serialize;

/// Seed of the bootstrap: the same file gives the same intervals.
const SEED: u64 = 1;
/// Scans with fewer values are not plotted; the table is enough.
const FEWEST_VALUES: usize = 3;

/// Cases that differ only in one numeric parameter.
struct Scan<'a> {
    parameter: &'a str,
    /// Shared name and other parameters of the cases.
    rest: String,
    cases: Vec<(f64, &'a Case)>,
}

/// Adds a plot of every scan.
pub(super) fn plots(timings: &Timings, document: &mut Document) {
    for scan in scans(&timings.cases) {
        let marks = marks(timings);
        let curves: Vec<Curve> = marks
            .iter()
            .enumerate()
            .map(|(side, &mark)| Curve { mark, points: points(&scan, side) })
            .collect();
        let lines = plot(&curves, &escape::fit(scan.parameter, 20));
        if lines.is_empty() {
            continue;
        }
        let of = if scan.rest.is_empty() { String::new() } else { format!(" ({})", scan.rest) };
        document.heading(format!("Time per call by {}{of}", scan.parameter));
        document.verbatim(lines);
        growth_of(&scan, timings, document);
    }
}

/// Adds how each side grows in every scan, without plots.
pub(super) fn growth(timings: &Timings, document: &mut Document) {
    for scan in scans(&timings.cases) {
        growth_of(&scan, timings, document);
    }
}

fn growth_of(scan: &Scan, timings: &Timings, document: &mut Document) {
    for (side, growth) in growths(scan, timings.sides.len()) {
        document.line(grows_as(&timings.sides[side].name, &growth));
    }
}

/// How the time of a side grows with a parameter.
#[derive(Serialize)]
pub(super) struct GrowthShape<'a> {
    /// Name and other parameters of the cases; empty if there are no others.
    cases: String,
    side: &'a str,
    parameter: String,
    exponent: f64,
    low: f64,
    high: f64,
}

/// The growth of all sides in all scans.
pub(super) fn growth_shapes(timings: &Timings) -> Vec<GrowthShape<'_>> {
    let of_scan = |scan: Scan| {
        let grown = growths(&scan, timings.sides.len()).map(|(side, growth)| GrowthShape {
            cases: scan.rest.clone(),
            side: &timings.sides[side].name,
            exponent: growth.exponent,
            low: growth.interval[0],
            high: growth.interval[1],
            parameter: growth.parameter,
        });
        grown.collect::<Vec<_>>()
    };
    scans(&timings.cases).into_iter().flat_map(of_scan).collect()
}

/// Sides with the growth of their times.
fn growths(scan: &Scan, sides: usize) -> impl Iterator<Item = (usize, Growth)> {
    (0..sides)
        .filter_map(|side| Some((side, Growth::of_side(scan.parameter, &scan.cases, side, SEED)?)))
}

fn points(scan: &Scan, side: usize) -> Vec<(f64, f64)> {
    let point = |(at, case): &(f64, &Case)| {
        let median = Summary::of(&case.series.get(side)?.wall()).median;
        Some((*at, median))
    };
    scan.cases.iter().filter_map(point).collect()
}

/// One character per side: the first of its name if unique, otherwise a letter by position.
fn marks(timings: &Timings) -> Vec<char> {
    let first = |name: &str| name.chars().next().filter(char::is_ascii_alphanumeric);
    let named: Option<Vec<char>> = timings.sides.iter().map(|side| first(&side.name)).collect();
    let by_number =
        || (0..timings.sides.len()).map(|at| (b'A' + (at % 26) as u8) as char).collect();
    named
        .filter(|marks| marks.iter().enumerate().all(|(at, mark)| !marks[..at].contains(mark)))
        .unwrap_or_else(by_number)
}

fn scans(cases: &[Case]) -> Vec<Scan<'_>> {
    let mut scans: Vec<Scan> = vec![];
    for case in cases {
        for (at, (name, value)) in case.parameters.iter().enumerate() {
            let Some(value) = value.parse::<f64>().ok().filter(|value| value.is_finite()) else {
                continue;
            };
            let mut others = case.parameters.clone();
            others.remove(at);
            let rest = labelled(&case.name, &others);
            match scans.iter_mut().find(|scan| scan.parameter == name && scan.rest == rest) {
                Some(scan) => scan.cases.push((value, case)),
                None => scans.push(Scan { parameter: name, rest, cases: vec![(value, case)] }),
            }
        }
    }
    scans.retain(|scan| scan.cases.len() >= FEWEST_VALUES);
    scans
}
