//! Whether intervals hold the truth as often as they say, on noise whose truth is known.
//!
//! `cargo test --release -p laggard-core --test stats -- --ignored --nocapture` prints the whole
//! table.

use crate::noise::{Noise, Random};
use laggard_core::stats::ratio::{estimate_paired, ratio_of_medians};

/// How often each of the intervals of `experiments` held 1, in percent, and half the median width of
/// the second, in percent.
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
#[ignore = "prints a table, in a minute"]
fn table() {
    println!("{:28}{:>24}{:>24}{:>24}{:>24}", "", 5, 10, 20, 50);
    for few in [true, false] {
        for noise in Noise::ALL {
            print!("{:28}", format!("{noise:?}"));
            for rounds in if few { [5, 10, 20, 50] } else { [75, 100, 200, 400] } {
                let (medians, chosen, width) = coverage(noise, rounds, 1000);
                print!("{medians:>9.1}{chosen:>7.1}{width:>7.2}%");
            }
            println!();
        }
    }
}

/// An interval that misses the truth more often than 1 in 20 has people chase noise. 400 experiments
/// cannot tell 95 % from 92.5 %.
#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    for noise in Noise::ALL {
        let rounds = if noise == Noise::FollowsEach(0.9) { 200 } else { 75 };
        let (medians, chosen, _) = coverage(noise, rounds, 400);
        assert!(medians >= 92.5 && chosen >= 92.5, "{noise:?}: {medians} %, {chosen} %");
    }
}

/// Few rounds are where a plain bootstrap is most wrong.
#[test]
fn intervals_of_few_rounds_hold_the_truth() {
    for noise in [Noise::Normal, Noise::Lognormal, Noise::Pareto, Noise::TwoHeaps, Noise::Bursts] {
        for rounds in [5, 8, 12, 20] {
            let (medians, chosen, _) = coverage(noise, rounds, 400);
            let label = format!("{noise:?} of {rounds}");
            assert!(medians >= 92.5 && chosen >= 92.5, "{label}: {medians} %, {chosen} %");
        }
    }
}
