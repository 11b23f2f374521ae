//! What a bench says in words: names of cases, verdicts, intervals.

use crate::number::{Quantity, percent, plural, significant};
use laggard_core::compare::notice::Notice;
use laggard_core::compare::timings::{CaseComparison, Verdict};
use laggard_core::model::timings::{Case, Timings};
use laggard_core::stats::ratio::Interval;

/// Ratios nearer to 1 than this are said in percent.
const SMALL: f64 = 1.1;
/// Smaller changes round to nothing.
const SMALLEST: f64 = 0.0005;

/// What a case is called: its name and its parameters; empty when it has neither.
pub fn label(case: &Case) -> String {
    labelled(&case.name, &case.parameters)
}

/// What cases are called beside each other: what all of them share is said once.
pub(crate) struct Labels {
    /// Parameters that all cases have alike.
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

    /// What is left out of labels; empty when nothing is.
    pub(crate) fn shared(&self) -> String {
        labelled("", &self.common)
    }
}

pub(crate) fn labelled(name: &str, parameters: &[(String, String)]) -> String {
    let parameters = parameters.iter().map(|(name, value)| format!("{name}={value}"));
    let parts = std::iter::once(name.to_owned()).filter(|name| !name.is_empty());
    parts.chain(parameters).collect::<Vec<_>>().join(" ")
}

/// `B is 1.58x slower than A per call (95 % 1.55 to 1.61, n = 400 rounds)`.
pub(crate) fn sentence(timings: &Timings, found: &CaseComparison) -> String {
    let name = |side: usize| timings.sides.get(side).map_or("?", |side| side.name.as_str());
    sentence_of([name(0), name(found.side)], found.verdict, found.wall, found.n)
}

/// A difference of this share of A that cannot be ruled out is no sign of equality.
const TOO_NOISY: f64 = 0.1;

/// The same for these names.
pub(crate) fn sentence_of(
    [a, b]: [&str; 2],
    verdict: Verdict,
    ratio: Option<Interval>,
    rounds: usize,
) -> String {
    let n = plural(rounds as u64, "round");
    let too_few = || format!("{b} cannot be compared with {a}: too few rounds ({rounds})");
    let Some(ratio) = ratio else { return too_few() };
    match verdict {
        Verdict::Slower | Verdict::Faster => {
            let (size, word, range) = difference(ratio);
            format!("{b} is {size} {word} than {a} per call (95 % {range}, n = {n})")
        }
        Verdict::NoDetectableDifference { within } if within > TOO_NOISY => {
            format!(
                "too noisy to tell {a} and {b} apart ({}, n = {n}): more --time or a quieter machine may",
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

/// The verdict in a few words, for a table.
pub(super) fn short(found: &CaseComparison) -> String {
    match (found.verdict, found.wall) {
        (Verdict::Slower | Verdict::Faster, Some(ratio)) => {
            let (size, word, _) = difference(ratio);
            format!("{size} {word}")
        }
        (Verdict::NoDetectableDifference { within }, _) if within > TOO_NOISY => {
            format!("too noisy to tell ({})", plus_minus(within))
        }
        (Verdict::NoDetectableDifference { within }, _) => {
            format!("no difference ({})", plus_minus(within))
        }
        _ => "too few rounds".to_owned(),
    }
}

/// What was noticed in a series, as a statement about `side`.
pub(crate) fn notice(side: &str, notice: Notice) -> String {
    let time = |ns: f64| Quantity::Time.show(ns);
    match notice {
        Notice::Outliers { count, share } => format!(
            "{side}: {} far from the others ({} %); medians are not moved by them",
            plural(count as u64, "batch").replace("batchs", "batches"),
            percent(share)
        ),
        Notice::Drift { share } => {
            let word = if share > 0.0 { "slower" } else { "faster" };
            format!(
                "{side}: calls got {} % {word} from the first round to the last; the machine was \
                 not steady, or the side was not warm",
                percent(share.abs())
            )
        }
        Notice::TwoHeaps { low_ns, high_ns, share_high } => format!(
            "{side}: batches are of two kinds, around {} and around {} ({} % of them); one median \
             describes neither",
            time(low_ns),
            time(high_ns),
            percent(share_high)
        ),
        Notice::Noisy { spread } => format!(
            "{side}: batches differ by {} % as a rule, outliers aside; a quieter machine would tell \
             smaller differences",
            percent(spread)
        ),
        Notice::Preempted { per_second } => format!(
            "{side}: other programs took its processor away {} times a second",
            significant(per_second)
        ),
        Notice::OffCpu { share } => format!(
            "{side}: no thread was on a processor for {} % of the time; it waited, or others had them",
            percent(share)
        ),
    }
}

/// The word for a kind of notice.
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

/// The size of a difference, its word, and the range that holds it: `1.58x`, `slower`,
/// `1.55 to 1.61`.
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

/// A ratio as a change in percent, with its sign: `+2.1`.
pub(crate) fn change(ratio: f64) -> String {
    let sign = match ratio - 1.0 {
        change if change.abs() < SMALLEST => return "0.0".to_owned(),
        change if change < 0.0 => "-",
        _ => "+",
    };
    format!("{sign}{}", percent((ratio - 1.0).abs()))
}

/// How far from 1 a ratio may be, a tenth of a percent at least: `±0.8 %`.
pub(crate) fn plus_minus(within: f64) -> String {
    if !within.is_finite() {
        return "how large it may be is not known".to_owned();
    }
    format!("±{} %", percent(within.max(2.0 * SMALLEST)))
}

/// A ratio for a table, where a thousandth may matter.
pub(crate) fn ratio(value: f64) -> String {
    if value.abs() < 10.0 { format!("{value:.3}") } else { significant(value) }
}

/// The range of a ratio for a table.
pub(crate) fn range(of: Interval) -> String {
    format!("{} to {}", ratio(of.low), ratio(of.high))
}
