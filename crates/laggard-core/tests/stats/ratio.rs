//! Properties of ratios of two sides that hold for any samples.

use crate::noise::{Noise, Random};
use laggard_core::stats::ratio::{
    Interval, TakenFrom, estimate_change, estimate_few, estimate_paired, estimate_unpaired,
    ratio_of_medians,
};
use proptest::prelude::*;

#[test]
fn equal_sides_have_no_difference() {
    let same = Interval { middle: 1.0, low: 1.0, high: 1.0 };
    assert_eq!(ratio_of_medians(&[5.0; 30], &[5.0; 30], 100, 1), Some(same));
    let estimate = estimate_paired(&[5.0; 30], &[5.0; 30], 100, 1).unwrap();
    assert_eq!((estimate.gap.low, estimate.gap.high, estimate.p), (0.0, 0.0, 1.0));
}

#[test]
fn a_ratio_needs_enough_rounds_and_positive_times() {
    assert_eq!(ratio_of_medians(&[1.0; 4], &[1.0; 40], 100, 1), None);
    assert_eq!(ratio_of_medians(&[0.0; 9], &[1.0; 9], 100, 1), None);
    assert_eq!(estimate_paired(&[1.0; 9], &[0.0; 9], 100, 1), None);
    assert_eq!(estimate_unpaired(&[1.0; 9], &[f64::NAN; 9], 100, 1), None);
    let lost = [1.0, 1.0, f64::NAN, 1.0, 1.0, 1.0];
    assert_eq!(ratio_of_medians(&lost, &[2.0; 6], 100, 1).unwrap().middle, 2.0);
}

/// Under intermittent load the median lies between two modes, and only ratios by round are precise.
#[test]
fn ratios_by_round_are_used_if_medians_are_imprecise() {
    let (a, b) = Noise::EvenHeaps.pair(200, &mut Random::new(3));
    let by_medians = ratio_of_medians(&a, &b, 1000, 1).unwrap();
    let estimate = estimate_paired(&a, &b, 1000, 1).unwrap();
    assert_eq!(estimate.from, TakenFrom::Rounds);
    assert!(by_medians.precision() > 0.05 && estimate.ratio.precision() < 0.01);
    let (a, b) = Noise::Normal.pair(200, &mut Random::new(3));
    assert_eq!(estimate_paired(&a, &b, 1000, 1).unwrap().from, TakenFrom::Medians);
}

fn rounds() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((1.0f64..1e6, 1.0f64..1e6), 5..60)
}

fn is_close(x: f64, y: f64) -> bool {
    (x - y).abs() <= 1e-9 * x.abs().max(y.abs())
}

fn are_close(x: Interval, y: Interval) -> bool {
    is_close(x.middle, y.middle) && is_close(x.low, y.low) && is_close(x.high, y.high)
}

/// Of identical sides, few rounds call at most 5 % different.
#[test]
fn intervals_of_three_rounds_contain_the_ratio() {
    let runs = 2000;
    let mut random = Random::new(7);
    let wrong = (0..runs).filter(|_| {
        let (a, b) = Noise::Normal.pair(3, &mut random);
        !estimate_few(&a, &b).unwrap().ratio.holds(1.0)
    });
    let wrong = wrong.count();
    assert!(wrong * 20 <= runs, "{wrong} of {runs}");
    assert_eq!(estimate_few(&[1.0; 2], &[2.0; 2]), None);
    assert_eq!(estimate_few(&[1.0; 3], &[0.0; 3]), None);
}

/// So few and so different rounds give an interval over hundreds of orders of magnitude.
#[test]
fn swapping_sides_inverts_wide_intervals() {
    let a = [1.0, 1.0, 1.0, 601_054.778_261_897_8, 1.0];
    let b = [1.0, 1.0, 412_066.187_335_411_9, 749_727.903_522_493_1, 754_499.347_661_291_2];
    let seed = 5_437_512_015_932_496_957;
    for estimate in [estimate_paired, estimate_unpaired] {
        let (there, back) =
            (estimate(&a, &b, 60, seed).unwrap(), estimate(&b, &a, 60, seed).unwrap());
        assert!(are_close(there.ratio, back.mirrored().ratio), "{there:?} {back:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_interval_contains_the_value(rounds in rounds(), seed in any::<u64>()) {
        let (a, b): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
        let found = estimate_paired(&a, &b, 60, seed).unwrap();
        prop_assert!(found.ratio.holds(found.ratio.middle) && found.gap.holds(found.gap.middle));
        prop_assert!((0.0..=1.0).contains(&found.p));
        prop_assert_eq!(Some(found), estimate_paired(&a, &b, 60, seed));
    }

    #[test]
    fn units_do_not_matter(rounds in rounds(), seed in any::<u64>()) {
        let (a, b): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
        let scaled = |side: &[f64]| side.iter().map(|x| x * 1024.0).collect::<Vec<_>>();
        let (found, again) = (
            estimate_paired(&a, &b, 60, seed).unwrap(),
            estimate_paired(&scaled(&a), &scaled(&b), 60, seed).unwrap(),
        );
        prop_assert!(are_close(found.ratio, again.ratio));
        prop_assert!(is_close(found.gap.middle * 1024.0, again.gap.middle));
    }

    #[test]
    fn swapping_sides_inverts_the_ratio(rounds in rounds(), seed in any::<u64>()) {
        let (a, b): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
        for estimate in [estimate_paired, estimate_unpaired] {
            let there = estimate(&a, &b, 60, seed).unwrap();
            let back = estimate(&b, &a, 60, seed).unwrap();
            prop_assert!(is_close(there.ratio.middle, 1.0 / back.ratio.middle));
            let back = back.mirrored();
            prop_assert!(are_close(there.ratio, back.ratio), "{there:?} {back:?}");
            prop_assert!(are_close(there.gap, back.gap), "{there:?} {back:?}");
        }
        let change = |before: &[f64], after: &[f64]| {
            estimate_change((&a, before), (&a, after), 60, seed).unwrap()
        };
        let same: Vec<f64> = b.iter().rev().copied().collect();
        let (there, back) = (change(&b, &same), change(&same, &b).mirrored());
        prop_assert!(are_close(there.ratio, back.ratio), "{there:?} {back:?}");
        let there = ratio_of_medians(&a, &b, 60, seed).unwrap();
        let back = ratio_of_medians(&b, &a, 60, seed).unwrap();
        let inverted = Interval { middle: 1.0 / back.middle, low: 1.0 / back.high, high: 1.0 / back.low };
        prop_assert!(are_close(there, inverted), "{there:?} {inverted:?}");
    }

    #[test]
    fn the_order_of_rounds_does_not_change_the_value(rounds in rounds(), seed in any::<u64>()) {
        let (a, b): (Vec<f64>, Vec<f64>) = rounds.iter().copied().unzip();
        let (last_a, last_b): (Vec<f64>, Vec<f64>) = rounds.iter().rev().copied().unzip();
        let (there, back) = (ratio_of_medians(&a, &b, 60, seed), ratio_of_medians(&last_a, &last_b, 60, seed));
        prop_assert!(is_close(there.unwrap().middle, back.unwrap().middle));
    }

    #[test]
    fn the_same_ratio_is_not_a_change(rounds in rounds(), seed in any::<u64>()) {
        let (a, b): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
        let found = estimate_change((&a, &b), (&a, &b), 60, seed).unwrap();
        prop_assert!(found.ratio.holds(1.0) && is_close(found.ratio.middle, 1.0));
    }

    #[test]
    fn any_samples_are_accepted(
        a in prop::collection::vec(any::<f64>(), 0..20),
        b in prop::collection::vec(any::<f64>(), 0..20),
    ) {
        estimate_paired(&a, &b, 20, 1);
        estimate_unpaired(&a, &b, 20, 1);
        estimate_change((&a, &b), (&b, &a), 20, 1);
    }
}
