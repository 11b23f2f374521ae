//! Anomaly detection: planted anomalies are found, and ordinary noise causes no false alarms.

use crate::noise::{Noise, Random};
use laggard_core::stats::shape::{drift, outliers, two_heaps};
use laggard_core::stats::steady::is_steady;

/// Noise without drift and with one mode.
const ORDINARY: [Noise; 6] = [
    Noise::Normal,
    Noise::Lognormal,
    Noise::Pareto,
    Noise::Coarse,
    Noise::Follows(0.5),
    Noise::FollowsEach(0.5),
];

/// Percentage of 1,000 series with a detected anomaly.
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
fn ordinary_noise_is_not_reported() {
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
fn planted_anomalies_are_detected() {
    for n in [50, 200] {
        for noise in [Noise::TwoHeaps, Noise::EvenHeaps] {
            assert!(noticed(noise, n, |series| two_heaps(series).is_some()) > 99.0);
        }
        assert!(noticed(Noise::Drift, n, |series| drift(series).is_some()) > 98.0);
        assert!(noticed(Noise::Pareto, n, |series| outliers(series).count > 0) > 95.0);
    }
}

/// A driver must not wait forever for a noisy side to become steady.
#[test]
fn noise_is_steady_early() {
    for noise in Noise::ALL {
        let soon = noticed(noise, 40, |series| (8..=40).any(|n| is_steady(&series[..n])));
        assert!(soon > 99.0, "{noise:?}: {soon} %");
    }
}
