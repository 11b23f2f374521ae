//! The short report of a benchmark: the verdict, one line per side and the problems.

use super::tables::{self, Median, of_case};
use super::{BenchReport, lead, noticed_in, scan, unmeasured, words};
use crate::document::Document;
use crate::number::{Quantity, plural};
use crate::rows::kept;
use crate::table::{Column, Style, Table};
use laggard_core::compare::notice::Notice;
use laggard_core::model::timings::{Case, Timings};

/// Maximum number of notices, and of warnings.
const MOST_PROBLEMS: usize = 3;

/// The short report as terminal text. All other formats contain the complete report.
pub fn brief(report: &BenchReport, style: &Style) -> String {
    let mut document = Document::default();
    let timings = report.timings;
    // First, because the sides may compute different things.
    let differences = timings.differences().map(|difference| format!("warning: {difference}"));
    for difference in kept(&differences.collect::<Vec<_>>(), Some(MOST_PROBLEMS)) {
        document.lead(difference);
    }
    document.lead(lead(report));
    match &timings.cases[..] {
        [] => {}
        [case] if !report.comparisons.is_empty() => sides_of_case(report, case, &mut document),
        cases => {
            sides(timings, &mut document);
            if !report.comparisons.is_empty() {
                tables::cases(report, &mut document);
            } else if cases.len() > 1 {
                times(report, cases, &mut document);
            }
            scan::growth(timings, &mut document);
        }
    }
    unmeasured(report, &mut document);
    problems(timings, &mut document);
    if !timings.cases.is_empty() {
        document.minor("use -v for CPU time, memory, allocations, anomalies, sides and machine");
    }
    document.text(style)
}

/// One row per side of the only case. With more than two sides, the verdict has no room for the
/// ratios, so the rows contain them.
fn sides_of_case(report: &BenchReport, case: &Case, document: &mut Document) {
    let timings = report.timings;
    let medians: Vec<Median> = case.series.iter().map(Median::of).collect();
    let unit = Quantity::Time.unit(medians.iter().map(|median| median.all.median));
    let mut columns = vec![
        Column::text("side"),
        Column::number("median", unit.name),
        Column::range("95 % CI", unit.name),
    ];
    let has_ratios = report.comparisons.len() > 1;
    if has_ratios {
        columns.extend([Column::number("ratio", ""), Column::range("95 % CI", "")]);
    }
    columns.push(Column::text("runs"));
    let mut table = Table::new(columns);
    for (number, (side, (series, median))) in
        timings.sides.iter().zip(case.series.iter().zip(&medians)).enumerate()
    {
        let between = |(low, high): (f64, f64)| unit.range(low, " to ", high);
        let mut row = vec![
            side.name.clone(),
            unit.number(median.all.median),
            median.range.map_or_else(String::new, between),
        ];
        if has_ratios {
            let found = of_case(report, 0).find(|found| found.side == number);
            let ratio = found.and_then(|found| found.wall);
            row.push(ratio.map_or_else(String::new, |ratio| words::ratio(ratio.middle)));
            row.push(ratio.map_or_else(String::new, words::range));
        }
        let own = Some(&series.runs).filter(|runs| !runs.is_empty());
        row.push(own.unwrap_or(&side.runs).clone());
        table.push(row);
    }
    document.table(table);
}

/// One row per case of a single side.
fn times(report: &BenchReport, cases: &[Case], document: &mut Document) {
    let labels = words::Labels::of(cases);
    let shown: Vec<(&Case, Median)> = kept(cases, report.top)
        .iter()
        .filter_map(|case| Some((case, Median::of(case.series.first()?))))
        .collect();
    let unit = Quantity::Time.unit(shown.iter().map(|(_, median)| median.all.median));
    let mut table = Table::new([
        Column::text("case"),
        Column::number("median", unit.name),
        Column::range("95 % CI", unit.name),
    ]);
    for (case, median) in &shown {
        let range = median.range.map(|(low, high)| unit.range(low, " to ", high));
        let time = unit.number(median.all.median);
        table.push([labels.of_case(case), time, range.unwrap_or_default()]);
    }
    document.table(table);
    crate::rows::more(cases, report.top, document);
    if !labels.shared().is_empty() {
        document.minor(format!("all cases: {}", labels.shared()));
    }
}

/// What each side runs, one line each. Sides with other code in every case have no line.
fn sides(timings: &Timings, document: &mut Document) {
    for (number, side) in timings.sides.iter().enumerate() {
        let own = match &timings.cases[..] {
            [case] => case.series.get(number).map_or("", |series| &series.runs),
            _ => "",
        };
        let runs = if side.runs.is_empty() { own } else { &side.runs };
        if !runs.is_empty() {
            document.stack(format!("{}  {runs}", side.name), &[]);
        }
    }
}

/// Warnings, and anomalies that affect the result. Outliers do not change medians.
fn problems(timings: &Timings, document: &mut Document) {
    let warnings: Vec<String> =
        timings.notices().map(|warning| format!("warning: {warning}")).collect();
    let is_problem = |notice: &Notice| !matches!(notice, Notice::Outliers { .. });
    let notices = noticed_in(timings, is_problem);
    for (what, all) in [("notice", notices), ("warning", warnings)] {
        for problem in kept(&all, Some(MOST_PROBLEMS)) {
            document.line(problem);
        }
        if all.len() > MOST_PROBLEMS {
            let more = (all.len() - MOST_PROBLEMS) as u64;
            document.minor(format!("({}; use -v)", plural(more, &format!("more {what}"))));
        }
    }
}
