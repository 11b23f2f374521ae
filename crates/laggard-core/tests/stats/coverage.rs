//! Coverage of confidence intervals on noise with known true values.
//!
//! `cargo test --release -p laggard-core --test stats -- --ignored --nocapture` prints the whole table.

use crate::noise::{Noise, Random};
use laggard_core::stats::ratio::{estimate_paired, ratio_of_medians};

/// Coverage of both intervals in percent, and half the median width of the second in percent.
fn coverage(noise: Noise, rounds: usize, experiments: u64) -> (f64, f64, f64) {
    let (mut medians, mut chosen, mut widths) = (0.0, 0.0, vec![]);
    for seed in 0..experiments {
        let (a, b) = noise.pair(rounds, &mut Random::new(seed ^ (rounds as u64) << 32));
        let by_medians = ratio_of_medians(&a, &b, 400, seed).expect("enough rounds");
        let estimate = estimate_paired(&a, &b, 400, seed).expect("enough rounds");
        medians += f64::from(by_medians.holds(1.0));
        chosen += f64::from(estimate.ratio.holds(1.0));
        widths.push(estimate.ratio.precision());
        assert_eq!(estimate.p < 0.05, !estimate.ratio.holds(1.0), "{estimate:?}");
    }
    widths.sort_by(f64::total_cmp);
    let percent = 100.0 / experiments as f64;
    (medians * percent, chosen * percent, 100.0 * widths[widths.len() / 2])
}

#[test]
#[ignore = "prints a table; takes two minutes"]
fn table() {
    for rounds in [5, 10, 20, 50, 100, 200, 400] {
        println!("{rounds} rounds: coverage by medians, as chosen, half width");
        for noise in Noise::ALL {
            let (medians, chosen, width) = coverage(noise, rounds, 1000);
            let name = format!("{noise:?}");
            println!("{name:20}{medians:>7.1} %{chosen:>7.1} %{width:>7.2} %");
        }
    }
}

/// Coverage below 95 % would report noise as a difference. 300 experiments cannot distinguish 95 % from
/// 92 %.
#[test]
fn intervals_have_the_stated_coverage() {
    for noise in Noise::ALL {
        let rounds = if noise == Noise::FollowsEach(0.9) { 200 } else { 75 };
        let (medians, chosen, _) = coverage(noise, rounds, 300);
        assert!(medians >= 92.0 && chosen >= 92.0, "{noise:?}: {medians} %, {chosen} %");
    }
}

/// A plain bootstrap is least accurate with few rounds.
#[test]
fn intervals_of_few_rounds_have_the_stated_coverage() {
    for noise in [Noise::Normal, Noise::Lognormal, Noise::Pareto, Noise::TwoHeaps, Noise::Bursts] {
        for rounds in [5, 8, 12, 20] {
            let (medians, chosen, _) = coverage(noise, rounds, 300);
            let label = format!("{noise:?} of {rounds}");
            assert!(medians >= 92.0 && chosen >= 92.0, "{label}: {medians} %, {chosen} %");
        }
    }
}
