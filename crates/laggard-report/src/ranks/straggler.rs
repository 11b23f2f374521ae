//! Detects ranks that arrive last in collectives more often than by chance.

use super::name;
use crate::number::{count, percent, share};
use laggard_core::trace::ranks::RankRow;

/// Significance level for all ranks together (Bonferroni-corrected).
const UNLIKELY: f64 = 0.01;
/// Minimum ratio of a straggler's share to the even share, for any number of collectives.
const CLEARLY_MORE: f64 = 1.25;

/// Describes which ranks arrive last.
pub(super) fn in_words(rows: &[RankRow]) -> Vec<String> {
    let Some(even) = even_share(rows) else {
        return vec!["no collectives matched across ranks".to_owned()];
    };
    let mut found: Vec<&RankRow> = stragglers(rows).into_iter().map(|i| &rows[i]).collect();
    found.sort_by(|a, b| last_share(b).total_cmp(&last_share(a)));
    let evidence = |row: &RankRow| {
        format!(
            "{} of {} collectives ({} %; expected without a straggler: {} %)",
            count(row.last_in),
            count(row.matched),
            percent(last_share(row)),
            percent(even)
        )
    };
    if found.is_empty() {
        let most = rows.iter().max_by(|a, b| last_share(a).total_cmp(&last_share(b)));
        let most = most
            .map(|row| format!("; {} arrived last most often, in {}", name(row), evidence(row)));
        return vec![format!("no straggler{}", most.unwrap_or_default())];
    }
    found
        .into_iter()
        .map(|row| format!("{} arrived last in {}", name(row), evidence(row)))
        .collect()
}

/// Indexes of the rows that arrive last significantly more often than the even share.
pub(super) fn stragglers(rows: &[RankRow]) -> Vec<usize> {
    let Some(even) = even_share(rows) else { return vec![] };
    let stands_out = |row: &RankRow| {
        let chance = at_least(row.last_in, row.matched, even) * rows.len() as f64;
        last_share(row) >= CLEARLY_MORE * even && chance < UNLIKELY
    };
    (0..rows.len()).filter(|&i| stands_out(&rows[i])).collect()
}

/// The share of its collectives in which each rank would arrive last if all ranks were equal;
/// `None` without matched collectives. Groups may differ in size, so this is the average over all
/// participations in collectives.
pub(super) fn even_share(rows: &[RankRow]) -> Option<f64> {
    let parts: u64 = rows.iter().map(|row| row.matched).sum();
    let collectives: u64 = rows.iter().map(|row| row.last_in).sum();
    (parts > 0).then(|| share(collectives as f64, parts as f64))
}

fn last_share(row: &RankRow) -> f64 {
    share(row.last_in as f64, row.matched as f64)
}

/// The probability of at least `k` successes in `n` trials with probability `p` each.
fn at_least(k: u64, n: u64, p: f64) -> f64 {
    if k == 0 || p >= 1.0 {
        return 1.0;
    }
    if k > n || p <= 0.0 {
        return 0.0;
    }
    // The first term is computed in logarithms, each other term from the previous one.
    let ways: f64 = (1..=k).map(|i| (((n - k + i) as f64) / i as f64).ln()).sum();
    let mut term = (ways + k as f64 * p.ln() + (n - k) as f64 * (1.0 - p).ln()).exp();
    let mut sum = 0.0;
    for i in k..=n {
        sum += term;
        term *= (n - i) as f64 / (i + 1) as f64 * p / (1.0 - p);
        // Terms decrease beyond the mean.
        if term < sum * 1e-12 && i as f64 > n as f64 * p {
            break;
        }
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(last_in: &[u64]) -> Vec<RankRow> {
        let matched = last_in.iter().sum();
        let row = |(i, &last_in): (usize, &u64)| RankRow {
            rank: Some(i as i64),
            last_in,
            matched,
            ..RankRow::default()
        };
        last_in.iter().enumerate().map(row).collect()
    }

    #[test]
    fn binomial_tail_probabilities() {
        for (k, n, p, expected) in [
            (0, 10, 0.5, 1.0),
            (10, 10, 0.5, 0.5f64.powi(10)),
            (6, 10, 0.5, 386.0 / 1024.0),
            (1, 3, 0.25, 1.0 - 0.75f64.powi(3)),
            (11, 10, 0.5, 0.0),
        ] {
            assert!((at_least(k, n, p) - expected).abs() < 1e-12, "{k} of {n} at {p}");
        }
        assert!((at_least(500_000, 1_000_000, 0.5) - 0.5).abs() < 1e-3);
        assert!(at_least(600_000, 1_000_000, 0.5) < 1e-300);
    }

    #[test]
    fn only_significant_stragglers_are_reported() {
        for (last_in, expected) in [
            (&[5, 6, 8, 41][..], &[3][..]),
            (&[12, 17, 15, 16], &[]),
            // Three of three: too few to be significant.
            (&[3, 0, 0, 0], &[]),
            // Significant, but barely above the even share.
            (&[27_000, 25_000, 24_000, 24_000], &[]),
            (&[40, 38, 1, 1], &[0, 1]),
            (&[0, 0], &[]),
        ] {
            assert_eq!(stragglers(&ranks(last_in)), expected, "{last_in:?}");
        }
    }
}
