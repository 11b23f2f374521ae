//! Runs tools in interleaved rounds and renders the results as a table.

use super::figures::range;
use anyhow::Result;
use laggard_samples::Rng;

/// Times of one run, measured by the program itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    pub(super) cpu_s: f64,
    pub(super) wall_s: f64,
    /// CPU time represented by samples, divided by user CPU time; `None` without samples.
    pub(super) sampled: Option<f64>,
}

impl Used {
    /// Parses the two numbers that a program writes.
    pub(super) fn parse(text: &str) -> Result<Used> {
        let mut numbers = text.split_whitespace().map(str::parse::<f64>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(cpu_s)), Some(Ok(wall_s))) => Ok(Used { cpu_s, wall_s, sampled: None }),
            _ => anyhow::bail!("the measured program wrote no times"),
        }
    }
}

/// All runs of one tool. `None` for rounds without a run.
pub(super) struct Series {
    pub(super) label: String,
    pub(super) rounds: Vec<Option<Used>>,
    /// Why it was skipped.
    pub(super) failed: Option<String>,
}

/// Runs every tool in every round, in random order. A tool that fails is skipped from then on.
pub(super) fn take(
    what: &str,
    labels: &[String],
    rounds: u32,
    mut measure: impl FnMut(usize) -> Result<Used>,
) -> Vec<Series> {
    let mut series: Vec<Series> = labels
        .iter()
        .map(|label| Series { label: label.clone(), rounds: Vec::new(), failed: None })
        .collect();
    let mut order: Vec<usize> = (0..labels.len()).collect();
    let mut rng = Rng::new(u64::from(rounds));
    for round in 0..rounds {
        eprintln!("bench: {what}: round {} of {rounds}", round + 1);
        rng.shuffle(&mut order);
        for &peer in &order {
            let one = &mut series[peer];
            let used = match one.failed {
                Some(_) => None,
                None => measure(peer).map_err(|error| one.failed = Some(format!("{error:#}"))).ok(),
            };
            one.rounds.push(used);
        }
    }
    for one in &series {
        if let Some(why) = &one.failed {
            eprintln!("warning: {} cannot be measured: {why}", one.label);
        }
    }
    series
}

/// The series as a Markdown table. Ratios are to the first series, per round.
pub(super) fn table(series: &[Series]) -> String {
    let mut text = String::from(
        "| | n | CPU s, best / median | wall s, best / median | CPU, × no profiler (min..max) | wall, × no profiler (min..max) | sampled / user CPU |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    for one in series {
        if let Some(why) = &one.failed {
            text += &format!("| {} | 0 | not measured: {why} | | | | |\n", one.label);
            continue;
        }
        let of = |value: fn(&Used) -> f64| -> Vec<f64> {
            let mut all: Vec<f64> = one.rounds.iter().flatten().map(value).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let best_and_median = |value: fn(&Used) -> f64| {
            let all = of(value);
            let median = laggard_core::stats::summary::quantile(&all, 0.5);
            format!("{:.3} / {median:.3}", all.first().copied().unwrap_or_default())
        };
        let ratios = |value: fn(&Used) -> f64| -> Vec<f64> {
            let pairs = one.rounds.iter().zip(&series[0].rounds);
            pairs
                .filter_map(|(run, bare)| Some(value(run.as_ref()?) / value(bare.as_ref()?)))
                .filter(|ratio| ratio.is_finite())
                .collect()
        };
        let sampled: Vec<f64> = one.rounds.iter().flatten().filter_map(|run| run.sampled).collect();
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            one.label,
            one.rounds.iter().flatten().count(),
            best_and_median(|run| run.cpu_s),
            best_and_median(|run| run.wall_s),
            range(&ratios(|run| run.cpu_s), 3),
            range(&ratios(|run| run.wall_s), 3),
            range(&sampled, 2),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_use_the_same_round_and_failures_are_reported() {
        let labels = ["bare", "slow", "broken"].map(String::from);
        let mut bare = 0.0;
        let series = take("test", &labels, 3, |peer| match peer {
            0 => {
                bare += 1.0;
                Ok(Used { cpu_s: 1.0, wall_s: 1.0, sampled: None })
            }
            1 => Ok(Used { cpu_s: 1.5, wall_s: 3.0, sampled: Some(0.9) }),
            _ => anyhow::bail!("no such program"),
        });
        let table = table(&series);
        assert_eq!(bare, 3.0);
        assert!(table.contains("| 1.500 (1.500..1.500) | 3.000 (3.000..3.000) | 0.90"), "{table}");
        assert!(table.contains("| broken | 0 | not measured: no such program |"), "{table}");
    }
}
