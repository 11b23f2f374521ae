//! Mann-Whitney U test and Cliff's delta.
//!
//! Rank statistics are robust against outliers, but assume independent samples. Bursts of load make
//! p-values too small if they hit one side, and too large if they hit both. Verdicts therefore use the
//! confidence interval of the ratio.

use super::summary::sorted;
use super::tail::normal_two_sided;

/// Maximum number of sample pairs for the exact p-value.
const COUNTED_PAIRS: usize = 400;

/// Result of the Mann-Whitney U test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// U: number of pairs in which B's sample is larger than A's; ties count half.
    pub u: f64,
    /// Two-sided p-value.
    pub p: f64,
    /// Effect size.
    pub delta: CliffsDelta,
}

/// Cliff's delta: share of pairs in which B's sample is larger minus share in which A's is larger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CliffsDelta(pub f64);

/// Magnitude of an effect by Romano's thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectSize {
    /// Below 0.147.
    Negligible,
    /// Below 0.33.
    Small,
    /// Below 0.474.
    Medium,
    /// 0.474 and above.
    Large,
}

impl CliffsDelta {
    /// The magnitude, regardless of sign.
    pub fn size(self) -> EffectSize {
        match self.0.abs() {
            x if x < 0.147 => EffectSize::Negligible,
            x if x < 0.33 => EffectSize::Small,
            x if x < 0.474 => EffectSize::Medium,
            _ => EffectSize::Large,
        }
    }
}

/// Tests whether samples of `b` tend to be larger or smaller than those of `a`. Exact for few samples
/// without ties, otherwise a normal approximation with tie and continuity corrections. `None` if a side
/// has no samples.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<MannWhitney> {
    let (a, b) = (sorted(a), sorted(b));
    let pairs = a.len() * b.len();
    if pairs == 0 {
        return None;
    }
    let (u, tied) = count_larger(&a, &b);
    let p = match tied == 0.0 && pairs <= COUNTED_PAIRS {
        true => counted_p(u.max(pairs as f64 - u), a.len(), b.len()),
        false => approximate_p(u, tied, a.len() as f64, b.len() as f64),
    };
    Some(MannWhitney { u, p, delta: CliffsDelta(2.0 * u / pairs as f64 - 1.0) })
}

/// U, and the sum of `t³ - t` over all groups of `t` tied samples. Both inputs are sorted.
fn count_larger(a: &[f64], b: &[f64]) -> (f64, f64) {
    let (mut u, mut tied) = (0.0, 0.0);
    let (mut in_a, mut in_b) = (0, 0);
    while in_b < b.len() {
        let value = b[in_b];
        while in_a < a.len() && a[in_a] < value {
            let equal = run(&a[in_a..]);
            tied += cube_less_itself(equal);
            in_a += equal;
        }
        let of_b = run(&b[in_b..]);
        let of_a = if a.get(in_a) == Some(&value) { run(&a[in_a..]) } else { 0 };
        u += of_b as f64 * (in_a as f64 + of_a as f64 / 2.0);
        tied += cube_less_itself(of_a + of_b);
        (in_a, in_b) = (in_a + of_a, in_b + of_b);
    }
    while in_a < a.len() {
        let equal = run(&a[in_a..]);
        tied += cube_less_itself(equal);
        in_a += equal;
    }
    (u, tied)
}

/// Number of leading samples that are equal.
fn run(sorted: &[f64]) -> usize {
    sorted.iter().take_while(|x| **x == sorted[0]).count()
}

fn cube_less_itself(t: usize) -> f64 {
    (t as f64).powi(3) - t as f64
}

fn approximate_p(u: f64, tied: f64, n: f64, m: f64) -> f64 {
    let all = n + m;
    let variance = n * m / 12.0 * (all + 1.0 - tied / (all * (all - 1.0)));
    let distance = (u - n * m / 2.0).abs() - 0.5;
    if variance <= 0.0 || distance <= 0.0 {
        return 1.0;
    }
    normal_two_sided(distance / variance.sqrt())
}

/// Exact two-sided p-value: twice the share of orderings of `n` and `m` samples with U of at least `u`.
/// The number of orderings for each U is a coefficient of a Gaussian binomial.
fn counted_p(u: f64, n: usize, m: usize) -> f64 {
    let mut orders = vec![0.0; n * m + 1];
    orders[0] = 1.0;
    for i in 1..=n {
        for at in (m + i..orders.len()).rev() {
            orders[at] -= orders[at - m - i];
        }
        for at in i..orders.len() {
            orders[at] += orders[at - i];
        }
    }
    let all: f64 = orders.iter().sum();
    let beyond: f64 = orders[u.ceil() as usize..].iter().sum();
    (2.0 * beyond / all).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Expected values from scipy: `mannwhitneyu(b, a, method=...)`.
    fn check(a: &[f64], b: &[f64], u: f64, p: f64) {
        let found = mann_whitney(a, b).unwrap();
        assert_eq!(found.u, u);
        assert!((found.p - p).abs() < 1e-12, "{} is not {p}", found.p);
    }

    #[test]
    fn few_samples_have_an_exact_p_value() {
        check(&[1.1, 2.3, 3.7, 4.2, 5.9], &[2.9, 4.8, 6.1, 7.3], 16.0, 0.19047619047619047);
        let (a, b) = (scrambled(0..20, 7919, 1009, 0.0), scrambled(1..21, 7907, 1009, 150.5));
        check(&a, &b, 263.0, 0.09108614932477192);
    }

    #[test]
    fn many_samples_and_ties_use_the_normal_approximation() {
        let (a, b) = (scrambled(0..30, 7919, 13, 0.0), scrambled(1..41, 7907, 17, 0.0));
        check(&a, &b, 763.5, 0.052540106162188654);
        let (a, b) = (scrambled(0..100, 7919, 1009, 0.0), scrambled(0..100, 7907, 1013, 100.5));
        check(&a, &b, 5964.0, 0.018562361278314933);
    }

    fn scrambled(range: std::ops::Range<u32>, by: u32, modulo: u32, plus: f64) -> Vec<f64> {
        range.map(|i| f64::from(i * by % modulo) + plus).collect()
    }

    #[test]
    fn effect_sizes_have_names() {
        let size = |delta| CliffsDelta(delta).size();
        assert_eq!((size(0.1), size(-0.2)), (EffectSize::Negligible, EffectSize::Small));
        assert_eq!((size(0.4), size(-1.0)), (EffectSize::Medium, EffectSize::Large));
    }

    #[test]
    fn a_side_without_samples_is_not_tested() {
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_eq!(mann_whitney(&[1.0], &[f64::NAN]), None);
        assert_eq!(mann_whitney(&[3.0; 9], &[3.0; 9]).unwrap().p, 1.0);
    }

    proptest! {
        #[test]
        fn swapping_sides_negates_the_effect(
            a in prop::collection::vec(0u8..20, 1..30),
            b in prop::collection::vec(0u8..20, 1..30),
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) =
                (a.into_iter().map(f64::from).collect(), b.into_iter().map(f64::from).collect());
            let (there, back) = (mann_whitney(&a, &b).unwrap(), mann_whitney(&b, &a).unwrap());
            prop_assert!((there.p - back.p).abs() < 1e-12 && (0.0..=1.0).contains(&there.p));
            prop_assert!((there.delta.0 + back.delta.0).abs() < 1e-12);
            let larger = |x: &f64| a.iter().map(|y| super::super::dependence::sign(x - y)).sum::<f64>();
            let slow = b.iter().map(larger).sum::<f64>() / (a.len() * b.len()) as f64;
            prop_assert!((there.delta.0 - slow).abs() < 1e-12);
        }
    }
}
