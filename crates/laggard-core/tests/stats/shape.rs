//! What is noticed in a series: what is planted is found, and ordinary noise raises no alarm.

use crate::noise::{Noise, Random};
use laggard_core::stats::shape::{drift, outliers, two_heaps};
use laggard_core::stats::steady::is_steady;

/// Noise that drifts nowhere and has one heap.
const ORDINARY: [Noise; 6] = [
    Noise::Normal,
    Noise::Lognormal,
    Noise::Pareto,
    Noise::Coarse,
    Noise::Follows(0.5),
    Noise::FollowsEach(0.5),
];

/// In how many percent of 1,000 series something is noticed.
fn noticed(noise: Noise, n: usize, is_noticed: impl Fn(&[f64]) -> bool) -> f64 {
    let noticed = |seed: &u64| is_noticed(&noise.pair(n, &mut Random::new(*seed)).1);
    (0..1000u64).filter(noticed).count() as f64 / 10.0
}

#[test]
#[ignore = "prints a table"]
fn table() {
    for noise in Noise::ALL {
        print!("{:20}", format!("{noise:?}"));
        for n in [30, 50, 100, 400] {
            let heaps = noticed(noise, n, |series| two_heaps(series).is_some());
            let drift = noticed(noise, n, |series| drift(series).is_some());
            let outliers = noticed(noise, n, |series| outliers(series).share > 0.01);
            let steady = noticed(noise, n, is_steady);
            print!("   n {n}: {heaps:5.1}{drift:6.1}{outliers:6.1}{steady:6.1}");
        }
        println!();
    }
}

#[test]
fn ordinary_noise_raises_no_alarm() {
    let long_runs = [(Noise::Follows(0.9), 400), (Noise::FollowsEach(0.9), 400)];
    let runs = ORDINARY.into_iter().flat_map(|noise| [30, 100, 300].map(|n| (noise, n)));
    for (noise, n) in runs.chain(long_runs) {
        let heaps = noticed(noise, n, |series| two_heaps(series).is_some());
        assert!(heaps < 1.0, "{noise:?} of {n}: two heaps in {heaps} %");
        let drifting = noticed(noise, n, |series| drift(series).is_some());
        assert!(drifting < 1.0, "{noise:?} of {n}: drift in {drifting} %");
    }
}

#[test]
fn what_is_planted_is_noticed() {
    for n in [50, 200] {
        for noise in [Noise::TwoHeaps, Noise::EvenHeaps] {
            assert!(noticed(noise, n, |series| two_heaps(series).is_some()) > 99.0);
        }
        assert!(noticed(Noise::Drift, n, |series| drift(series).is_some()) > 98.0);
        assert!(noticed(Noise::Pareto, n, |series| outliers(series).count > 0) > 95.0);
    }
}

/// A driver that waits for a noisy side to get steady must not wait for ever.
#[test]
fn noise_is_soon_steady() {
    for noise in Noise::ALL {
        let soon = noticed(noise, 40, |series| (8..=40).any(|n| is_steady(&series[..n])));
        assert!(soon > 99.0, "{noise:?}: {soon} %");
    }
}
