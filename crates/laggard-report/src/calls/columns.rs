//! Columns of call tables: times, instructions, or number of calls only.

use super::time;
use crate::document::Document;
use crate::number::{Quantity, Unit, count, percent};
use crate::table::Column;
use laggard_core::calls::{By, Measure, Quantile, Row, ShareOf, Tally, Totals};

/// Numeric columns of a call table.
pub(super) struct Columns<'a> {
    totals: &'a Totals,
    /// Whether the rows are functions. Only then do durations of single calls and totals with callees
    /// make sense.
    single: bool,
    /// Whether traced calls are nested.
    nested: bool,
    unit: Unit,
}

impl<'a> Columns<'a> {
    /// Columns for these rows of a table.
    pub(super) fn new(totals: &'a Totals, shown: &[Row]) -> Columns<'a> {
        let single = matches!(totals.by, By::Function | By::Caller);
        let differs = |row: &Row| row.tally.self_ns != row.tally.total_ns;
        let amounts = shown.iter().map(|row| &row.tally);
        let unit = match totals.measure {
            Measure::Time => Quantity::Time.unit(amounts.map(|tally| tally.total_ns as f64)),
            _ => Quantity::Instructions.unit(
                amounts
                    .flat_map(|tally| [tally.own_instructions, tally.instructions])
                    .flatten()
                    .map(|n| n as f64),
            ),
        };
        Columns { totals, single, nested: single && totals.rows.iter().any(differs), unit }
    }

    pub(super) fn headers(&self) -> Vec<Column> {
        let mut all = vec![Column::number("share", "%")];
        match self.totals.measure {
            Measure::Time => all.extend([
                Column::number("self", self.unit.name),
                Column::number("total", if self.single { self.unit.name } else { "" }),
            ]),
            Measure::Instructions => all.extend([
                Column::number("self", self.unit.name),
                Column::number("inclusive", self.unit.name),
                Column::range("per call", ""),
            ]),
            Measure::Calls => {}
        }
        all.extend([Column::number("calls", "n"), Column::number("unfinished", "n")]);
        if self.totals.measure == Measure::Time {
            all.extend(["min", "median", "p99", "max"].map(|name| Column::range(name, "")));
        }
        all
    }

    pub(super) fn cells(&self, tally: &Tally) -> Vec<String> {
        let blank = String::new;
        let mut all = vec![percent(self.totals.share(tally))];
        let number = |n: Option<u64>| n.map_or_else(blank, |n| self.unit.number(n as f64));
        let single = |n: Option<u64>| n.filter(|_| self.single);
        match self.totals.measure {
            Measure::Time => all.extend([
                number((self.nested || !self.single).then_some(tally.self_ns)),
                number(single(Some(tally.total_ns))),
            ]),
            Measure::Instructions => {
                let each = tally.instructions_per_call().filter(|_| self.single);
                all.extend([
                    number(tally.own_instructions),
                    number(single(tally.instructions)),
                    each.map_or_else(blank, per_call),
                ]);
            }
            Measure::Calls => {}
        }
        all.push(count(tally.count));
        all.push(if tally.unfinished > 0 { count(tally.unfinished) } else { blank() });
        if self.totals.measure == Measure::Time {
            let of_calls = |ns: Option<u64>| single(ns).map_or_else(blank, time);
            let quantile = |found: Option<Quantile>| of_calls(found.map(|found| found.ns));
            // Omitted for call sites to limit the width of the table.
            let extreme = |ns| if self.totals.by == By::Caller { blank() } else { of_calls(ns) };
            all.extend([
                extreme(tally.min_ns),
                quantile(tally.median()),
                quantile(tally.quantile(0.99)),
                extreme(tally.max_ns),
            ]);
        }
        all
    }

    /// Adds explanations of the columns.
    pub(super) fn remarks(&self, document: &mut Document) {
        let whole = super::whole(&self.totals.whole, self.totals.measure);
        document.minor(match self.totals.share_of() {
            ShareOf::SelfTime => format!("share of self time, {whole}"),
            ShareOf::OwnInstructions => format!("share of self instructions, {whole}"),
            ShareOf::Instructions => "share of inclusive instructions".to_owned(),
            ShareOf::Calls => {
                format!("share of calls, {} in all", count(self.totals.whole.count))
            }
        });
        if self.totals.measure == Measure::Instructions && self.single {
            document.minor(if self.totals.by == By::Caller {
                "instructions; inclusive and per call: with callees"
            } else {
                "instructions; self: without callees; inclusive and per call: with callees"
            });
        }
        if self.nested {
            document.minor("self: without traced callees; total: with them");
        }
        if self.totals.rows.iter().any(|row| row.tally.unfinished > 0) {
            document.minor(match self.totals.measure {
                Measure::Time => "unfinished: calls that did not return and have no duration",
                _ => "unfinished: calls that did not return",
            });
        }
        if self.single && self.totals.measure == Measure::Time {
            document.minor(accuracy(&self.totals.rows));
        }
    }
}

/// Instructions per call: `12.3 k`, `123`.
pub(crate) fn per_call(instructions: f64) -> String {
    if instructions < 999.5 {
        return crate::number::significant(instructions);
    }
    Quantity::Instructions.show(instructions)
}

/// Accuracy of the quantiles.
fn accuracy(rows: &[Row]) -> String {
    let quantiles = rows.iter().flat_map(|row| [row.tally.median(), row.tally.quantile(0.99)]);
    let worst = quantiles
        .flatten()
        // The clock resolution dominates for shorter durations.
        .filter(|quantile| quantile.ns >= 100)
        .map(|quantile| quantile.error())
        .fold(0.0, f64::max);
    if worst == 0.0 {
        return "min, median, p99 and max per call".to_owned();
    }
    format!(
        "median and p99 per call: centres of histogram buckets, accurate to ±{} %",
        percent(worst)
    )
}
