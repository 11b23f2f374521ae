//! Wording of benchmark reports: case labels, verdicts, intervals and notices.

use crate::number::{Quantity, percent, plural, significant};
use laggard_core::compare::notice::Notice;
use laggard_core::compare::timings::{CaseComparison, Verdict};
use laggard_core::model::timings::{Case, Timings};
use laggard_core::stats::growth::Growth;
use laggard_core::stats::ratio::Interval;

/// Smaller ratios are shown in percent.
const SMALL: f64 = 1.1;
/// Smaller changes round to 0.0 %.
const SMALLEST: f64 = 0.0005;

/// Label of a case: its name and parameters; empty if it has neither.
pub fn label(case: &Case) -> String {
    labelled(&case.name, &case.parameters)
}

/// Labels of several cases, without the parameters that all cases share.
pub(crate) struct Labels {
    /// Parameters with the same value in all cases.
    common: Vec<(String, String)>,
}

impl Labels {
    pub(crate) fn of(cases: &[Case]) -> Labels {
        let [first, rest @ ..] = cases else { return Labels { common: vec![] } };
        let is_common =
            |pair: &&(String, String)| rest.iter().all(|case| case.parameters.contains(pair));
        let common = first.parameters.iter().filter(is_common).cloned();
        Labels { common: if rest.is_empty() { vec![] } else { common.collect() } }
    }

    pub(crate) fn of_case(&self, case: &Case) -> String {
        let own: Vec<(String, String)> =
            case.parameters.iter().filter(|pair| !self.common.contains(pair)).cloned().collect();
        labelled(&case.name, &own)
    }

    /// The shared parameters; empty if there are none.
    pub(crate) fn shared(&self) -> String {
        labelled("", &self.common)
    }
}

pub(crate) fn labelled(name: &str, parameters: &[(String, String)]) -> String {
    let parameters = parameters.iter().map(|(name, value)| format!("{name}={value}"));
    let parts = std::iter::once(name.to_owned()).filter(|name| !name.is_empty());
    parts.chain(parameters).collect::<Vec<_>>().join(" ")
}

/// `B is 1.58x slower than A per call (95 % CI 1.55 to 1.61, n = 400 rounds)`.
pub(crate) fn sentence(timings: &Timings, found: &CaseComparison) -> String {
    let name = |side: usize| timings.sides.get(side).map_or("?", |side| side.name.as_str());
    sentence_of([name(0), name(found.side)], found.verdict, found.wall, found.n)
}

/// If a difference larger than this share of A cannot be ruled out, the measurement is too noisy.
const TOO_NOISY: f64 = 0.1;

/// Whether a comparison has no result: too few rounds, or too much noise.
pub(crate) fn is_inconclusive(verdict: Verdict) -> bool {
    match verdict {
        Verdict::TooFew => true,
        Verdict::NoDetectableDifference { within } => within > TOO_NOISY,
        Verdict::Slower | Verdict::Faster => false,
    }
}

/// The same for the given side names.
pub(crate) fn sentence_of(
    [a, b]: [&str; 2],
    verdict: Verdict,
    ratio: Option<Interval>,
    rounds: usize,
) -> String {
    let n = plural(rounds as u64, "round");
    let too_few = || format!("too few rounds to compare {b} with {a} (n = {n})");
    let Some(ratio) = ratio else { return too_few() };
    match verdict {
        Verdict::Slower | Verdict::Faster => {
            let (size, word, range) = difference(ratio);
            format!("{b} is {size} {word} than {a} per call (95 % CI {range}, n = {n})")
        }
        Verdict::NoDetectableDifference { within } if within > TOO_NOISY => {
            format!(
                "measurement too noisy to compare {a} and {b} ({}, n = {n}): increase --time or \
                 use a quieter machine",
                plus_minus(within)
            )
        }
        Verdict::NoDetectableDifference { within } => {
            format!(
                "no detectable difference between {a} and {b} ({}, n = {n})",
                plus_minus(within)
            )
        }
        Verdict::TooFew => too_few(),
    }
}

/// Short form of the verdict for tables.
pub(super) fn short(found: &CaseComparison) -> String {
    match (found.verdict, found.wall) {
        (Verdict::Slower | Verdict::Faster, Some(ratio)) => {
            let (size, word, _) = difference(ratio);
            format!("{size} {word}")
        }
        (Verdict::NoDetectableDifference { within }, _) if within > TOO_NOISY => {
            format!("too noisy ({})", plus_minus(within))
        }
        (Verdict::NoDetectableDifference { within }, _) => {
            format!("no difference ({})", plus_minus(within))
        }
        _ => "too few rounds".to_owned(),
    }
}

/// A notice about the series of `side`.
pub(crate) fn notice(side: &str, notice: Notice) -> String {
    let time = |ns: f64| Quantity::Time.show(ns);
    match notice {
        Notice::Outliers { count, share } => format!(
            "{side}: {} ({} %); medians are not affected",
            plural(count as u64, "outlier batch").replace("batchs", "batches"),
            percent(share)
        ),
        Notice::Drift { share } => {
            let word = if share > 0.0 { "slower" } else { "faster" };
            format!(
                "{side}: calls became {} % {word} from the first to the last round; the machine \
                 was unstable or the warm-up was too short",
                percent(share.abs())
            )
        }
        Notice::TwoHeaps { low_ns, high_ns, share_high } => format!(
            "{side}: bimodal distribution with modes at {} and {} ({} % of batches); the median \
             represents neither",
            time(low_ns),
            time(high_ns),
            percent(share_high)
        ),
        Notice::Noisy { spread } => format!(
            "{side}: batches vary by {} % (robust standard deviation); use a quieter machine to \
             detect smaller differences",
            percent(spread)
        ),
        Notice::Preempted { per_second } => format!(
            "{side}: preempted by other programs {} times per second",
            significant(per_second)
        ),
        Notice::OffCpu { share } => format!(
            "{side}: no thread was running for {} % of the time: the side waited, or other programs \
             used the CPUs",
            percent(share)
        ),
    }
}

/// The id of a notice, as in JSON.
pub(crate) fn kind(notice: Notice) -> &'static str {
    match notice {
        Notice::Outliers { .. } => "outliers",
        Notice::Drift { .. } => "drift",
        Notice::TwoHeaps { .. } => "two-heaps",
        Notice::Noisy { .. } => "noisy",
        Notice::Preempted { .. } => "preempted",
        Notice::OffCpu { .. } => "off-cpu",
    }
}

/// `B grows as n^1.98 (95 % CI 1.93 to 2.02)`.
pub fn grows_as(name: &str, growth: &Growth) -> String {
    let Interval { middle, low, high } = growth.exponent();
    let parameter = &growth.parameter;
    format!("{name} grows as {parameter}^{middle:.2} (95 % CI {low:.2} to {high:.2})")
}

/// Size, direction and confidence interval of a difference: `1.58x`, `slower`, `1.55 to 1.61`.
pub(crate) fn difference(ratio: Interval) -> (String, &'static str, String) {
    let is_slower = ratio.middle >= 1.0;
    let word = if is_slower { "slower" } else { "faster" };
    let over = |value: f64| if is_slower { value } else { 1.0 / value };
    let (mut low, mut high) = (over(ratio.low), over(ratio.high));
    if !is_slower {
        (low, high) = (high, low);
    }
    let middle = over(ratio.middle);
    if middle < SMALL {
        let size = format!("{} %", percent(middle - 1.0));
        return (size, word, format!("{} to {} %", change(low), change(high)));
    }
    let range = format!("{} to {}", significant(low), significant(high));
    (format!("{}x", significant(middle)), word, range)
}

/// A ratio as a signed change in percent: `+2.1`.
pub(crate) fn change(ratio: f64) -> String {
    let sign = match ratio - 1.0 {
        change if change.abs() < SMALLEST => return "0.0".to_owned(),
        change if change < 0.0 => "-",
        _ => "+",
    };
    format!("{sign}{}", percent((ratio - 1.0).abs()))
}

/// Maximum distance of a ratio from 1, at least 0.1 %: `±0.8 %`.
pub(crate) fn plus_minus(within: f64) -> String {
    if !within.is_finite() {
        return "precision unknown".to_owned();
    }
    format!("±{} %", percent(within.max(2.0 * SMALLEST)))
}

/// A ratio for a table, with three decimals below 10.
pub(crate) fn ratio(value: f64) -> String {
    if value.abs() < 10.0 { format!("{value:.3}") } else { significant(value) }
}

/// The confidence interval of a ratio for a table.
pub(crate) fn range(of: Interval) -> String {
    format!("{} to {}", ratio(of.low), ratio(of.high))
}
