//! Coverage of intervals of functions, from few recordings with known true values.
//!
//! A function has a mean number of samples. Runs vary around it, and samples are Poisson-distributed.
//! Coverage in percent over 4000 experiments each, from
//! `cargo test --release -p laggard-core --test stats means -- --ignored --nocapture`:
//!
//! ```text
//!                     single      2     3     5    10   bootstrap:  2     3     5    10
//! 1000, 1000 ± 5 %          69.5 100.0  98.7  96.7  95.7     66.7  82.1  88.5  91.7
//! 1000, 1400 ± 5 %          65.7 100.0  98.3  96.4  95.3     66.2  81.3  88.3  91.3
//! 1000, 1000 ± 40 %         12.0  99.3  97.9  97.2  96.3     66.5  80.8  88.7  91.8
//! 1000, 1000 ± 0 %          95.4 100.0  99.8  98.8  97.5     67.0  79.9  88.0  92.0
//! 100, 130 ± 10 %           81.0 100.0  99.3  97.3  95.5     67.9  81.5  87.7  91.6
//! 10, 10 ± 10 %             94.5 100.0  99.8  98.7  97.5     72.2  81.0  88.4  91.7
//! 2, 2 ± 10 %               98.0 100.0 100.0  99.7  98.6     79.1  83.3  90.4  92.7
//! 0.3, 3 ± 10 %             94.2 100.0  99.8  99.2  98.6     57.7  74.0  85.8  91.0
//! ```
//!
//! Rows: samples of A and B, and variation between runs. Columns: recordings per side. The coverage of
//! a plain bootstrap is too low for so few recordings, so it is not used. `single` is the sampling error
//! of one recording per side: correct if runs do not vary, and reported as sampling error only.

use crate::noise::Random;
use laggard_core::stats::means::{difference_of_means, difference_with_error};

/// Cost of a function in A and B, and variation between runs.
#[derive(Clone, Copy, Debug)]
struct Case {
    samples: [f64; 2],
    /// Standard deviation of the logarithm of a run's cost.
    between_runs: f64,
}

const CASES: [Case; 8] = [
    Case { samples: [1000.0, 1000.0], between_runs: 0.05 },
    Case { samples: [1000.0, 1400.0], between_runs: 0.05 },
    Case { samples: [1000.0, 1000.0], between_runs: 0.4 },
    Case { samples: [1000.0, 1000.0], between_runs: 0.0 },
    Case { samples: [100.0, 130.0], between_runs: 0.1 },
    Case { samples: [10.0, 10.0], between_runs: 0.1 },
    Case { samples: [2.0, 2.0], between_runs: 0.1 },
    Case { samples: [0.3, 3.0], between_runs: 0.1 },
];

fn poisson(mean: f64, random: &mut Random) -> f64 {
    if mean > 60.0 {
        return (mean + mean.sqrt() * random.normal()).round().max(0.0);
    }
    let (limit, mut product, mut count) = ((-mean).exp(), random.uniform(), 0.0);
    while product > limit {
        product *= random.uniform();
        count += 1.0;
    }
    count
}

impl Case {
    fn side(self, side: usize, recordings: usize, random: &mut Random) -> Vec<f64> {
        let spread = self.between_runs;
        let run = |_| {
            // Correct the mean of the log-normal distribution.
            let luck = (spread * random.normal() - spread * spread / 2.0).exp();
            poisson(self.samples[side] * luck, random)
        };
        (0..recordings).map(run).collect()
    }

    fn truth(self) -> f64 {
        self.samples[1] - self.samples[0]
    }

    /// Coverage of intervals of the difference, in percent.
    fn coverage(self, recordings: usize, experiments: u64) -> f64 {
        let held = (0..experiments).filter(|seed| {
            let random = &mut Random::new(seed ^ (recordings as u64) << 32);
            let sides = [0, 1].map(|side| self.side(side, recordings, random));
            let least = [0, 1].map(|side| counted(&sides[side]));
            let gap = match difference_of_means(&sides[0], &sides[1], least) {
                Some(found) => {
                    assert_eq!(found.p < 0.05, !found.gap.holds(0.0), "{found:?}");
                    found.gap
                }
                None => difference_with_error(sides[1][0] - sides[0][0], least.iter().sum()),
            };
            gap.holds(self.truth())
        });
        100.0 * held.count() as f64 / experiments as f64
    }

    /// Coverage of a plain bootstrap over recordings, in percent.
    fn bootstrap_coverage(self, recordings: usize, experiments: u64) -> f64 {
        const DRAWS: usize = 300;
        let held = (0..experiments).filter(|seed| {
            let random = &mut Random::new(seed ^ (recordings as u64) << 32);
            let sides = [0, 1].map(|side| self.side(side, recordings, random));
            let mut mean = |side: usize| {
                let mut draw =
                    |_| sides[side][(random.uniform() * recordings as f64) as usize % recordings];
                (0..recordings).map(&mut draw).sum::<f64>() / recordings as f64
            };
            let mut gaps: Vec<f64> = (0..DRAWS).map(|_| mean(1) - mean(0)).collect();
            gaps.sort_by(f64::total_cmp);
            let (low, high) = (gaps[DRAWS / 40], gaps[DRAWS - 1 - DRAWS / 40]);
            (low..=high).contains(&self.truth())
        });
        100.0 * held.count() as f64 / experiments as f64
    }
}

/// Variance of the mean of counts, as in comparisons of profiles.
fn counted(counts: &[f64]) -> f64 {
    counts.iter().map(|n| n + 0.5).sum::<f64>() / (counts.len() as f64).powi(2)
}

#[test]
#[ignore = "prints a table"]
fn table() {
    for case in CASES {
        let label = format!("{:?}, {} %", case.samples, 100.0 * case.between_runs);
        let ours = [1, 2, 3, 5, 10].map(|k| format!("{:6.1}", case.coverage(k, 4000)));
        let plain = [2, 3, 5, 10].map(|k| format!("{:6.1}", case.bootstrap_coverage(k, 4000)));
        println!("//! {label:24}{}   {}", ours.concat(), plain.concat());
    }
}

/// Coverage below 95 % would report noise as a difference.
#[test]
fn intervals_of_few_recordings_have_the_stated_coverage() {
    for case in CASES {
        for recordings in [2, 3, 5, 10] {
            let held = case.coverage(recordings, 1000);
            assert!(held >= 92.5, "{case:?} of {recordings}: {held} %");
        }
    }
}
