//! Names and formatting of amounts.

use super::CompareProfile;
use crate::number::{self, Quantity, mean_count, with_sign};
use crate::profile::quantity;
use laggard_core::compare::profile::Scale;
use laggard_core::model::profile::Unit;

/// Formatting of amounts.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    scale: Scale,
    event: &'a str,
    unit: Unit,
}

/// The unit of a column.
#[derive(Clone, Copy)]
pub(super) enum ColumnUnit {
    Of(number::Unit),
    Percent,
    Samples,
}

impl<'a> Words<'a> {
    pub(super) fn of(report: &CompareProfile<'a>) -> Words<'a> {
        Words { scale: report.comparison.scale, event: report.a.event, unit: report.a.unit }
    }

    /// The compared quantity: `CPU time`, `cycles`, `samples`.
    pub(super) fn what(&self) -> String {
        let event = match self.event {
            "task-clock" | "cpu-clock" => "CPU time",
            "wall-clock" => "wall time",
            event => event,
        };
        match self.scale {
            Scale::Time | Scale::Weight => event.to_owned(),
            Scale::Samples => format!("samples of {}", self.event),
            Scale::Share => "share".to_owned(),
            Scale::PerCall(_) => format!("{event} per call"),
        }
    }

    /// Generic name of the quantity after `self` and `total`: `time` or `cost`.
    pub(super) fn cost(&self) -> &'static str {
        match (self.unit, self.scale) {
            (Unit::Nanos, Scale::Time | Scale::Weight | Scale::PerCall(_)) => "time",
            _ => "cost",
        }
    }

    /// An amount with its unit.
    pub(super) fn show(&self, amount: f64) -> String {
        match self.scale {
            Scale::Share => format!("{:.1} %", 100.0 * amount),
            Scale::Samples => format!("{} samples", mean_count(amount)),
            _ => self.quantity().show(amount),
        }
    }

    /// An amount with its sign and unit.
    pub(super) fn signed(&self, amount: f64) -> String {
        with_sign(amount, self.show(amount))
    }

    /// Direction of a difference.
    pub(super) fn more(&self, gap: f64) -> &'static str {
        match (self.unit, gap > 0.0) {
            (Unit::Nanos, true) if self.scale != Scale::Samples => "slower",
            (Unit::Nanos, false) if self.scale != Scale::Samples => "faster",
            (_, true) => "more",
            (_, false) => "less",
        }
    }

    /// Unit for a column of these amounts.
    pub(super) fn unit(&self, amounts: impl IntoIterator<Item = f64>) -> ColumnUnit {
        match self.scale {
            Scale::Share => ColumnUnit::Percent,
            Scale::Samples => ColumnUnit::Samples,
            _ => ColumnUnit::Of(self.quantity().unit(amounts)),
        }
    }

    /// Suffix of CSV columns: the unit of raw numbers.
    pub(super) fn field(&self) -> &'static str {
        match self.scale {
            Scale::Share => "share",
            Scale::Samples => "samples",
            _ => self.unit.word(),
        }
    }

    fn quantity(&self) -> Quantity {
        quantity(self.unit)
    }
}

impl ColumnUnit {
    pub(super) fn name(self) -> &'static str {
        match self {
            ColumnUnit::Of(unit) => unit.name,
            ColumnUnit::Percent => "%",
            ColumnUnit::Samples => "n",
        }
    }

    pub(super) fn number(self, amount: f64) -> String {
        match self {
            ColumnUnit::Of(unit) => unit.number(amount),
            ColumnUnit::Percent => number::percent(amount),
            ColumnUnit::Samples => mean_count(amount),
        }
    }

    pub(super) fn signed(self, amount: f64) -> String {
        with_sign(amount, self.number(amount))
    }
}
