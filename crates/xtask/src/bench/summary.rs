//! Summarizes runs as rows of a table.

use super::peers::{Found, Measurement, Peer};
use laggard_core::stats::summary::Summary;

/// All runs of one peer on one input, by round. `None` for rounds without a run.
pub(super) struct Series {
    pub(super) peer: Peer,
    pub(super) rounds: Vec<Option<Measurement>>,
}

/// One row of the table.
pub(super) struct Row {
    pub(super) peer: Peer,
    pub(super) n: usize,
    pub(super) cpu_s: Spread,
    pub(super) wall_s: Spread,
    /// CPU time divided by that of the lower bound in the same round.
    pub(super) ratio: Option<Spread>,
    pub(super) peak_bytes: u64,
    pub(super) anon_bytes: Option<u64>,
    pub(super) found: Option<Found>,
}

/// Minimum, median and maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) min: f64,
    pub(super) median: f64,
    pub(super) max: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            (values[middle - 1] + values[middle]) / 2.0
        };
        Some(Spread { min, median, max })
    }
}

/// One row per series with runs. Ratios are to the lower bound, if it was measured.
pub(super) fn rows(series: &[Series]) -> Vec<Row> {
    let base = series.iter().find(|one| one.peer.is_limit());
    series.iter().filter_map(|one| row(one, base)).collect()
}

fn row(series: &Series, base: Option<&Series>) -> Option<Row> {
    let runs: Vec<&Measurement> = series.rounds.iter().flatten().collect();
    let ratios = base.map(|base| {
        let pairs = series.rounds.iter().zip(&base.rounds);
        pairs
            .filter_map(|(run, base)| Some(run.as_ref()?.cpu_s / base.as_ref()?.cpu_s))
            .filter(|ratio| ratio.is_finite())
            .collect()
    });
    Some(Row {
        peer: series.peer,
        n: runs.len(),
        cpu_s: Spread::of(runs.iter().map(|run| run.cpu_s).collect())?,
        wall_s: Spread::of(runs.iter().map(|run| run.wall_s).collect())?,
        ratio: ratios.and_then(Spread::of),
        peak_bytes: runs.iter().map(|run| run.peak_bytes).max()?,
        anon_bytes: runs.iter().filter_map(|run| run.anon_bytes).max(),
        found: runs.iter().find_map(|run| run.found),
    })
}

/// The rows as a Markdown table. Rates are uncompressed bytes per median wall time.
pub(super) fn table(rows: &[Row], text_bytes: u64, events: u64) -> String {
    let mut text = String::from(
        "| | n | CPU s, best / median | wall s, best / median | CPU, × lower bound (min..max) | GB/s | M events/s | peak MB | anon MB |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let ratio = row.ratio.map_or("-".into(), |ratio| {
            format!("{} ({}..{})", short(ratio.median), short(ratio.min), short(ratio.max))
        });
        text += &format!(
            "| {} | {} | {:.3} / {:.3} | {:.3} / {:.3} | {ratio} | {} | {} | {} | {} |\n",
            row.peer.label(),
            row.n,
            row.cpu_s.min,
            row.cpu_s.median,
            row.wall_s.min,
            row.wall_s.median,
            short(text_bytes as f64 / 1e9 / row.wall_s.median),
            short(events as f64 / 1e6 / row.wall_s.median),
            row.peak_bytes / 1_000_000,
            row.anon_bytes.map_or("-".into(), |bytes| (bytes / 1_000_000).to_string()),
        );
    }
    text
}

/// `1.02 (0.99..1.04)`: median, minimum and maximum.
pub(super) fn range(values: &[f64], places: usize) -> String {
    let Summary { min, median, max, .. } = Summary::of(values);
    format!("{median:.places$} ({min:.places$}..{max:.places$})")
}

/// Rounds to two or more significant digits.
fn short(value: f64) -> String {
    let places = if value < 1.0 {
        3
    } else if value < 100.0 {
        2
    } else {
        0
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_has_median_and_extremes() {
        assert_eq!(range(&[2.0, 1.0, 4.0], 1), "2.0 (1.0..4.0)");
    }

    #[test]
    fn ratios_use_runs_of_the_same_round() {
        let run = |cpu_s| {
            Some(Measurement { cpu_s, wall_s: cpu_s, peak_bytes: 1, anon_bytes: None, found: None })
        };
        let series = [
            Series { peer: Peer::Sum, rounds: vec![run(1.0), run(10.0), run(2.0)] },
            Series { peer: Peer::Load, rounds: vec![run(3.0), None, run(4.0)] },
        ];
        let rows = rows(&series);
        assert_eq!(rows[1].n, 2);
        assert_eq!(rows[1].ratio, Some(Spread { min: 2.0, median: 2.5, max: 3.0 }));
    }
}
