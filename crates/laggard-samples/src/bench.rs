//! Synthetic benchmark results with known medians.

use crate::rng::Rng;
use laggard_core::model::timings::{Batch, Case, Counter, Series, Side, Timings};

/// Rounds of a series: an odd number, so that the median is one of the values.
pub const ROUNDS: usize = 41;

/// Parameters of a series.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Median time per call, in nanoseconds; a multiple of 10.
    pub median_ns: u64,
    /// Calls per batch, at least 100.
    pub calls: u64,
    /// Maximum deviation from the median, in thousandths.
    pub spread: u64,
    /// Page faults per call.
    pub faults: u64,
}

/// Batches with exactly the median of the recipe.
pub fn series(recipe: Recipe, seed: u64) -> Series {
    let Recipe { median_ns, calls, spread, faults } = recipe;
    let mut random = Rng::new(seed);
    let mut offsets: Vec<i64> = (0..ROUNDS as i64).map(|i| i - ROUNDS as i64 / 2).collect();
    random.shuffle(&mut offsets);
    let mut start_ns = 0;
    let batch = |(round, offset): (usize, &i64)| {
        let whole = median_ns * calls;
        let off = (whole * spread / 1000) as i64 * offset / (ROUNDS as i64 / 2);
        let wall_ns = whole.saturating_add_signed(off);
        let batch = Batch {
            round: round as u32,
            place: random.below(2) as u32,
            start_ns,
            calls,
            wall_ns,
            user_ns: wall_ns / 100 * 95,
            system_ns: wall_ns / 100 * 4,
            minor_faults: faults * calls,
            waits: 1,
            ..Batch::default()
        };
        start_ns += 2 * wall_ns;
        batch
    };
    let batches: Vec<Batch> = offsets.iter().enumerate().map(batch).collect();
    let warm_up = vec![Batch { wall_ns: 3 * median_ns * calls, start_ns: 0, ..batches[0] }];
    Series { batches, warm_up, peak_memory: 50_000_000, threads: 1, ..Series::default() }
}

/// Two sides in one case: 100 µs and 158 µs per call, both with 2 % spread.
pub fn two_sides() -> Timings {
    let mut timings = of_cases(&[("", &[], [100_000, 158_000])]);
    let b = &mut timings.cases[0].series[1];
    b.peak_memory = 62_500_000;
    b.threads = 2;
    b.counters.push(Counter {
        name: "instructions".into(),
        per_call: 524_288.0,
        source: "callgrind".into(),
    });
    timings
}

/// Three cases: B is slower, the same, and faster.
pub fn three_cases() -> Timings {
    of_cases(&[
        ("broadcast_add", &[("shape", "512x512"), ("dtype", "float32")], [100_000, 158_000]),
        ("scale", &[("shape", "512x512"), ("dtype", "float32")], [80_000, 80_000]),
        ("sum", &[("shape", "512x512"), ("dtype", "float32")], [60_000, 30_000]),
    ])
}

/// A later run of [`three_cases`] on a machine that is half as fast: the lag of `broadcast_add` is 10 %
/// larger, `scale` is unchanged, `sum` is missing and `mean` is new.
pub fn three_cases_later() -> Timings {
    let mut timings = of_cases(&[
        ("broadcast_add", &[("shape", "512x512"), ("dtype", "float32")], [200_000, 347_600]),
        ("scale", &[("shape", "512x512"), ("dtype", "float32")], [160_000, 160_000]),
        ("mean", &[("shape", "512x512"), ("dtype", "float32")], [60_000, 30_000]),
    ]);
    timings.started_unix += 86_400.0;
    timings
}

/// One statement with sizes from 10 to 100,000: B has 1 µs more overhead per call, and takes half the
/// time per element.
pub fn scan() -> Timings {
    let sizes = [10u64, 100, 1000, 10_000, 100_000];
    let values = sizes.map(|n| n.to_string());
    let parameters: Vec<[(&str, &str); 1]> = values.iter().map(|n| [("n", n.as_str())]).collect();
    let cases: Vec<Wanted> = sizes
        .iter()
        .zip(&parameters)
        .map(|(n, parameters)| ("", &parameters[..], [500 + 10 * n, 1500 + 5 * n]))
        .map(|(name, parameters, [a, b])| (name, parameters, [a, b / 10 * 10]))
        .collect();
    of_cases(&cases)
}

/// One side in one case: 100 µs per call.
pub fn one_side() -> Timings {
    let mut timings = two_sides();
    timings.sides.truncate(1);
    timings.cases[0].series.truncate(1);
    timings
}

/// Names that must be escaped in tables, HTML pages and terminals.
pub fn hostile() -> Timings {
    let mut timings = three_cases();
    timings.sides[1].runs = "x\n| a | b | \u{1b}[31m<script>".into();
    timings.sides[1].name = "B|\u{202e}`".into();
    timings.cases[0].name = "add,\"quoted\"\r\n# no heading".into();
    timings.cases[0].parameters = vec![("n\u{7}".into(), "<b>1</b>".into())];
    timings.warnings.push("\u{1b}]0;title\u{7}".into());
    timings
}

/// Name, parameters, and median times per call of A and B.
type Wanted<'a> = (&'a str, &'a [(&'a str, &'a str)], [u64; 2]);

fn of_cases(wanted: &[Wanted]) -> Timings {
    let pairs = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let side = |name: &str, runs: &str, package: &str| Side {
        name: name.into(),
        runs: runs.into(),
        facts: pairs(&[("python", "CPython 3.12.4"), ("package", package)]),
    };
    let case = |(at, (name, parameters, medians)): (usize, &Wanted)| Case {
        name: (*name).to_owned(),
        parameters: pairs(parameters),
        series: medians
            .iter()
            .enumerate()
            .map(|(side, &median_ns)| {
                let recipe = Recipe { median_ns, calls: 100, spread: 20, faults: side as u64 * 3 };
                series(recipe, (at * 2 + side) as u64)
            })
            .collect(),
    };
    Timings {
        command: ["laggard", "bench", "np.add(a, row)", "rp.add(a, row)"]
            .map(str::to_owned)
            .to_vec(),
        tool: "laggard 0.1.0".into(),
        started_unix: 1_794_834_552.0,
        facts: pairs(&[("CPU", "a processor of 2 cores"), ("kernel", "Linux 6.1")]),
        sides: vec![
            side("A", "np.add(a, row)", "numpy 2.1.0"),
            side("B", "rp.add(a, row)", "raptors 0.1.0"),
        ],
        cases: wanted.iter().enumerate().map(case).collect(),
        warnings: vec!["the machine's clock rate is not fixed".into()],
        ..Timings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_core::stats::summary::Summary;

    #[test]
    fn medians_match_the_recipe() {
        let timings = three_cases();
        let medians: Vec<Vec<f64>> = timings
            .cases
            .iter()
            .map(|case| case.series.iter().map(|s| Summary::of(&s.wall()).median).collect())
            .collect();
        assert_eq!(medians, [[1e5, 1.58e5], [8e4, 8e4], [6e4, 3e4]]);
    }
}
