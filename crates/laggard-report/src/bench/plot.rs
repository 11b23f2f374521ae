//! A plot in plain characters: time a call over a parameter.

use crate::number::{Quantity, count, significant};

const ROWS: usize = 12;
const COLUMNS: usize = 60;
/// An axis whose values span this factor is logarithmic.
const SPAN_FOR_LOG: f64 = 10.0;
/// Stands where points of several sides fall together.
const TOGETHER: char = '*';

/// One side: its mark, and its points by the parameter, in nanoseconds.
pub(super) struct Curve {
    pub(super) mark: char,
    pub(super) points: Vec<(f64, f64)>,
}

/// The lines of a plot; none where there are not two points beside each other.
pub(super) fn plot(curves: &[Curve], parameter: &str) -> Vec<String> {
    let all = || curves.iter().flat_map(|curve| curve.points.iter().copied());
    let (Some(x), Some(y)) =
        (Axis::over(all().map(|point| point.0)), Axis::over(all().map(|point| point.1)))
    else {
        return vec![];
    };
    if x.low == x.high {
        return vec![];
    }
    let mut cells = vec![[' '; COLUMNS]; ROWS];
    for curve in curves {
        for &(at, ns) in &curve.points {
            let row = ROWS - 1 - y.place(ns, ROWS);
            let cell = &mut cells[row][x.place(at, COLUMNS)];
            *cell = if *cell == ' ' || *cell == curve.mark { curve.mark } else { TOGETHER };
        }
    }
    let labels: Vec<String> = (0..ROWS)
        .map(|row| match row {
            0 => Quantity::Time.show(y.high),
            _ if row == ROWS - 1 => Quantity::Time.show(y.low),
            _ if row == ROWS / 2 => Quantity::Time.show(y.value(ROWS - 1 - row, ROWS)),
            _ => String::new(),
        })
        .collect();
    let widest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let mut lines: Vec<String> = labels
        .iter()
        .zip(&cells)
        .map(|(label, cells)| {
            let cells: String = cells.iter().collect();
            format!("{label:>widest$} |{}", cells.trim_end())
        })
        .collect();
    lines.push(format!("{:widest$} +{}", "", "-".repeat(COLUMNS)));
    let (low, high) = (tick(x.low), tick(x.high));
    let space = COLUMNS.saturating_sub(low.chars().count() + high.chars().count());
    lines.push(format!("{:widest$}  {low}{parameter:^space$}{high}", ""));
    let scales = match (x.is_log, y.is_log) {
        (true, true) => "both axes are logarithmic",
        (true, false) => "the axis of the parameter is logarithmic",
        (false, true) => "the axis of time is logarithmic",
        (false, false) => "",
    };
    let marks: Vec<String> = curves.iter().map(|curve| curve.mark.to_string()).collect();
    let mut legend = vec!["time a call".to_owned()];
    if curves.len() > 1 {
        legend.push(format!("{TOGETHER} is {} together", marks.join(" and ")));
    }
    if !scales.is_empty() {
        legend.push(scales.to_owned());
    }
    lines.push(format!("{:widest$}  {}", "", legend.join("; ")));
    lines
}

/// A value of the parameter: whole numbers are whole.
fn tick(value: f64) -> String {
    match value {
        _ if value.fract() == 0.0 && (0.0..1e15).contains(&value) => count(value as u64),
        _ => significant(value),
    }
}

/// The range of an axis.
struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64> + Clone) -> Option<Axis> {
        let values = values.filter(|value| value.is_finite());
        let low = values.clone().reduce(f64::min)?;
        let high = values.reduce(f64::max)?;
        Some(Axis { low, high, is_log: low > 0.0 && high / low >= SPAN_FOR_LOG })
    }

    fn scale(&self, value: f64) -> f64 {
        if self.is_log { value.ln() } else { value }
    }

    /// The cell of a value, of `cells`.
    fn place(&self, value: f64, cells: usize) -> usize {
        let (low, high) = (self.scale(self.low), self.scale(self.high));
        let share = if high > low { (self.scale(value) - low) / (high - low) } else { 0.5 };
        // What is no number lands at 0.
        ((share * (cells - 1) as f64).round() as usize).min(cells - 1)
    }

    /// The value in the middle of a cell.
    fn value(&self, cell: usize, cells: usize) -> f64 {
        let share = cell as f64 / (cells - 1) as f64;
        let (low, high) = (self.scale(self.low), self.scale(self.high));
        let value = low + (high - low) * share;
        if self.is_log { value.exp() } else { value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_plotted_is_not() {
        let curve = |points: &[(f64, f64)]| vec![Curve { mark: 'A', points: points.to_vec() }];
        assert!(plot(&[], "n").is_empty());
        assert!(plot(&curve(&[]), "n").is_empty());
        assert!(plot(&curve(&[(1.0, 5.0)]), "n").is_empty());
        assert!(plot(&curve(&[(f64::NAN, f64::NAN)]), "n").is_empty());
        // Values at the ends of what numbers can say do not panic.
        let ends = [(f64::MIN, 0.0), (f64::MAX, f64::MAX), (0.0, -1.0)];
        assert!(!plot(&curve(&ends), "n").is_empty());
    }
}
