//! Correction of p-values for multiple comparisons: one in twenty cases is below 0.05 by chance.
//!
//! Both functions return adjusted p-values in the order of the input, for the same level of 0.05.

/// Holm's correction. Keeps the probability of *any* false positive below 5 %. Used for verdicts, so
/// that a suite without changes reports none.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, case) in ascending(p).into_iter().enumerate() {
        largest = largest.max(p[case] * (p.len() - rank) as f64).min(1.0);
        adjusted[case] = largest;
    }
    adjusted
}

/// The Benjamini-Hochberg correction. Keeps the share of false positives *among the positives* below
/// 5 %. Used for long lists, such as differences by function, where a missed row is worse than one
/// false row in twenty.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut smallest: f64 = 1.0;
    for (rank, case) in ascending(p).into_iter().enumerate().rev() {
        smallest = smallest.min(p[case] * p.len() as f64 / (rank + 1) as f64);
        adjusted[case] = smallest;
    }
    adjusted
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|x, y| p[*x].total_cmp(&p[*y]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const P: [f64; 6] = [0.01, 0.04, 0.03, 0.005, 0.5, 0.04];

    fn check(found: &[f64], expected: &[f64]) {
        let close = |(x, y): (&f64, &f64)| (x - y).abs() < 1e-12;
        assert!(found.iter().zip(expected).all(close), "{found:?} is not {expected:?}");
    }

    #[test]
    fn corrections_match_scipy() {
        check(&holm(&P), &[0.05, 0.12, 0.12, 0.03, 0.5, 0.12]);
        // scipy: `false_discovery_control(p)`.
        check(&benjamini_hochberg(&P), &[0.03, 0.048, 0.048, 0.03, 0.5, 0.048]);
        assert!(holm(&[]).is_empty() && benjamini_hochberg(&[]).is_empty());
        assert_eq!((holm(&[0.04]), benjamini_hochberg(&[0.04])), (vec![0.04], vec![0.04]));
    }

    proptest! {
        #[test]
        fn corrections_never_lower_p_values(p in prop::collection::vec(0.0f64..=1.0, 0..40)) {
            for ((p, found), strict) in p.iter().zip(benjamini_hochberg(&p)).zip(holm(&p)) {
                prop_assert!(*p <= found + 1e-12 && found <= strict + 1e-12 && strict <= 1.0);
            }
        }
    }
}
