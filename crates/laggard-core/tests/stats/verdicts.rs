//! Verdicts on benchmarks with known true values: identical sides, and a planted slowdown.

use crate::noise::{Noise, Random};
use laggard_core::compare::timings::{Verdict, compare, is_precise};
use laggard_core::model::timings::{Batch, Case, Series, Side, Timings};
use laggard_core::stats::ratio::estimate_paired;

/// Kinds of noise on a shared machine.
const NOISES: [Noise; 10] = [
    Noise::Normal,
    Noise::Pareto,
    Noise::TwoHeaps,
    Noise::EvenHeaps,
    Noise::Follows(0.9),
    Noise::FollowsEach(0.5),
    Noise::Drift,
    Noise::Bursts,
    Noise::HalfLoaded,
    Noise::RoughBursts,
];

/// A benchmark of sides A and B with one case per pair of series.
pub(crate) fn bench(cases: impl IntoIterator<Item = (Vec<f64>, Vec<f64>)>) -> Timings {
    let side = |name: &str| Side { name: name.into(), ..Side::default() };
    let case = |(number, (a, b)): (usize, (Vec<f64>, Vec<f64>))| Case {
        name: format!("case {number}"),
        series: vec![series(&a), series(&b)],
        ..Case::default()
    };
    let cases = cases.into_iter().enumerate().map(case).collect();
    Timings { sides: vec![side("A"), side("B")], cases, ..Timings::default() }
}

/// Batches of 1,000 calls with the given microseconds per call.
pub(crate) fn series(micros: &[f64]) -> Series {
    let batch = |(round, micros): (usize, &f64)| {
        let wall_ns = (micros * 1e6) as u64;
        Batch { round: round as u32, calls: 1000, wall_ns, user_ns: wall_ns, ..Batch::default() }
    };
    Series { batches: micros.iter().enumerate().map(batch).collect(), ..Series::default() }
}

fn slowed((a, b): (Vec<f64>, Vec<f64>), by: f64) -> (Vec<f64>, Vec<f64>) {
    (a, b.into_iter().map(|x| x * by).collect())
}

fn is_called_different(timings: &Timings, seed: u64) -> bool {
    let differs = |verdict| matches!(verdict, Verdict::Slower | Verdict::Faster);
    compare(timings, seed).iter().any(|comparison| differs(comparison.verdict))
}

/// Number of runs that report identical sides as different.
fn false_alarms(noise: Noise, rounds: usize, runs: u64) -> usize {
    let run = |seed: &u64| {
        let timings = bench([noise.pair(rounds, &mut Random::new(*seed))]);
        is_called_different(&timings, *seed)
    };
    (0..runs).filter(run).count()
}

#[test]
fn false_positives_are_at_most_five_percent() {
    let alarms: usize = NOISES.into_iter().map(|noise| false_alarms(noise, 60, 100)).sum();
    assert!(alarms <= 50, "{alarms} of 1000");
}

#[test]
#[ignore = "prints a table; takes four minutes"]
fn table() {
    for noise in Noise::ALL {
        let alarms = [20, 60, 200].map(|rounds| false_alarms(noise, rounds, 1000));
        let name = format!("{noise:?}");
        println!("{name:20} {alarms:?} of 1000 with 20, 60 and 200 rounds");
    }
}

/// Without correction, a third of these runs would report a difference.
#[test]
fn many_cases_do_not_increase_false_positives() {
    let run = |seed: &u64| {
        let noise = NOISES[*seed as usize % NOISES.len()];
        let random = &mut Random::new(*seed);
        is_called_different(&bench((0..8).map(|_| noise.pair(40, random))), *seed)
    };
    let different = (0..100).filter(run).count();
    assert!(different <= 5, "{different} of 100");
}

#[test]
fn a_slowdown_of_two_percent_is_detected() {
    for noise in [Noise::Normal, Noise::Pareto, Noise::Bursts, Noise::HalfLoaded, Noise::EvenHeaps]
    {
        let found = |seed: &u64| {
            let pair = slowed(noise.pair(400, &mut Random::new(*seed)), 1.02);
            let found = &compare(&bench([pair]), *seed)[0];
            let is_near = found.wall.is_some_and(|ratio| (ratio.middle - 1.02).abs() < 0.01);
            found.verdict == Verdict::Slower && is_near
        };
        let found = (0..20).filter(found).count();
        assert!(found >= 18, "{noise:?}: {found} of 20");
    }
}

#[test]
fn comparisons_are_complete() {
    let pair = slowed(Noise::Normal.pair(100, &mut Random::new(1)), 0.5);
    let timings = bench([Noise::Normal.pair(100, &mut Random::new(2)), pair]);
    let found = compare(&timings, 1);
    assert_eq!(
        found.iter().map(|found| (found.case, found.side)).collect::<Vec<_>>(),
        [(0, 1), (1, 1)]
    );
    assert!(
        matches!(found[0].verdict, Verdict::NoDetectableDifference { within } if within < 0.015)
    );
    let faster = &found[1];
    assert_eq!((faster.verdict, faster.n), (Verdict::Faster, 100));
    assert!(faster.gap_ns.unwrap().holds(-50_000.0) && faster.cpu.unwrap().holds(0.5));
    assert!(faster.p < 1e-6 && faster.adjusted_p >= faster.p);
    let ranks = faster.ranks.unwrap();
    assert!(ranks.p < 1e-6 && ranks.delta.0 == -1.0);
}

#[test]
fn few_and_missing_rounds_have_a_verdict() {
    let few = |a: &[f64], b: &[f64]| compare(&bench([(a.to_vec(), b.to_vec())]), 1)[0].verdict;
    assert_eq!(few(&[1.0; 2], &[9.0; 2]), Verdict::TooFew);
    assert_eq!(few(&[1.0, 1.1, 1.05], &[9.0, 9.3, 9.1]), Verdict::Slower);
    assert_eq!(few(&[9.0, 9.3, 9.1], &[1.0, 1.1, 1.05]), Verdict::Faster);
    let noisy = few(&[1.0, 1.5, 0.9], &[1.2, 1.0, 1.6]);
    assert!(matches!(noisy, Verdict::NoDetectableDifference { .. }), "{noisy:?}");
    let (a, b) = slowed(Noise::Bursts.pair(60, &mut Random::new(1)), 1.1);
    let mut lost = bench([(a, b)]);
    lost.cases[0].series[0].batches.remove(17);
    assert_eq!((compare(&lost, 1)[0].n, compare(&lost, 1)[0].verdict), (59, Verdict::Slower));
    for batch in &mut lost.cases[0].series[1].batches {
        batch.round += 1000;
    }
    assert_eq!(compare(&lost, 1)[0].n, 59, "no common rounds");
    assert!(compare(&Timings::default(), 1).is_empty());
}

/// A driver checks after every round and stops when the interval is narrow.
#[test]
fn early_stopping_does_not_cause_false_positives() {
    let mut different = 0;
    for seed in 0..300u64 {
        let noise = [Noise::Normal, Noise::Bursts, Noise::FollowsEach(0.5)][seed as usize % 3];
        let (a, b) = noise.pair(400, &mut Random::new(seed));
        let is_enough = |n: &usize| is_precise(&a[..*n], &b[..*n], 0.007, seed);
        let n = (20..400).step_by(5).find(is_enough).unwrap_or(400);
        let estimate = estimate_paired(&a[..n], &b[..n], 1000, seed).unwrap();
        different += usize::from(!estimate.ratio.holds(1.0));
    }
    println!("{different} of 300 called different");
    assert!(different <= 15, "{different} of 300");
}
