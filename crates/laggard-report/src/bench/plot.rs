//! Text plot of time per call over a parameter.

use crate::number::{Quantity, count, significant};

const ROWS: usize = 12;
const COLUMNS: usize = 60;
/// An axis is logarithmic if its values span at least this factor.
const SPAN_FOR_LOG: f64 = 10.0;
/// Mark for overlapping points of several sides.
const TOGETHER: char = '*';

/// One side: its mark and its points (parameter, nanoseconds).
pub(super) struct Curve {
    pub(super) mark: char,
    pub(super) points: Vec<(f64, f64)>,
}

/// Lines of the plot; empty if the parameter has fewer than two values.
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
        (true, true) => "both axes logarithmic",
        (true, false) => "x axis logarithmic",
        (false, true) => "y axis logarithmic",
        (false, false) => "",
    };
    let marks: Vec<String> = curves.iter().map(|curve| curve.mark.to_string()).collect();
    let mut legend = vec!["time per call".to_owned()];
    if curves.len() > 1 {
        legend.push(format!("{TOGETHER}: {} overlap", marks.join(" and ")));
    }
    if !scales.is_empty() {
        legend.push(scales.to_owned());
    }
    lines.push(format!("{:widest$}  {}", "", legend.join("; ")));
    lines
}

/// Label of a parameter value; whole numbers are printed exactly.
fn tick(value: f64) -> String {
    match value {
        _ if value.fract() == 0.0 && (0.0..1e15).contains(&value) => count(value as u64),
        _ => significant(value),
    }
}

/// Limits and scale of an axis.
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

    /// Index of the cell for a value.
    fn place(&self, value: f64, cells: usize) -> usize {
        let (low, high) = (self.scale(self.low), self.scale(self.high));
        let share = if high > low { (self.scale(value) - low) / (high - low) } else { 0.5 };
        // NaN maps to cell 0.
        ((share * (cells - 1) as f64).round() as usize).min(cells - 1)
    }

    /// Value at the centre of a cell.
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
    fn too_few_points_are_not_plotted() {
        let curve = |points: &[(f64, f64)]| vec![Curve { mark: 'A', points: points.to_vec() }];
        assert!(plot(&[], "n").is_empty());
        assert!(plot(&curve(&[]), "n").is_empty());
        assert!(plot(&curve(&[(1.0, 5.0)]), "n").is_empty());
        assert!(plot(&curve(&[(f64::NAN, f64::NAN)]), "n").is_empty());
        // Extreme values do not panic.
        let ends = [(f64::MIN, 0.0), (f64::MAX, f64::MAX), (0.0, -1.0)];
        assert!(!plot(&curve(&ends), "n").is_empty());
    }
}
