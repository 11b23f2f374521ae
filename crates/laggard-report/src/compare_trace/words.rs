//! Sentences of a trace comparison: the verdict, the sides and the legend.

use super::CompareTrace;
use crate::bench::difference;
use crate::bench::words::{plus_minus, ratio};
use crate::escape;
use crate::number::{Quantity, count, duration, plural, significant, with_sign};
use crate::trace::about::gpus;
use laggard_core::compare::trace::found::{
    Architecture, Finding, Marker, Side, Spread, TraceComparison, TraceFacts, Verdict,
};
use laggard_core::stats::ratio::Interval;
use laggard_core::trace::summary::Summary;

/// Maximum width of a side's name inside the verdict, in columns.
const LONGEST_LABEL: usize = 24;
/// Maximum number of ranks listed one by one.
const MOST_RANKS: usize = 8;

/// Singular and plural of the unit of work: `step`, `steps`.
#[derive(Clone, Copy)]
pub(super) struct Lap {
    pub(super) one: &'static str,
    many: &'static str,
}

impl Lap {
    pub(super) fn of(marker: Marker) -> Lap {
        let (one, many) = match marker {
            Marker::Step => ("step", "steps"),
            Marker::Iteration => ("iteration", "iterations"),
            Marker::Forward => ("forward pass", "forward passes"),
            Marker::Replay => ("graph replay", "graph replays"),
            Marker::Cycle => ("kernel cycle", "kernel cycles"),
            Marker::Whole => ("trace", "traces"),
        };
        Lap { one, many }
    }

    /// The unit of both sides; `step` if they differ.
    pub(super) fn common(comparison: &TraceComparison) -> Lap {
        let [a, b] = &comparison.sides;
        if a.marker == b.marker { Lap::of(a.marker) } else { Lap { one: "step", many: "steps" } }
    }

    /// `10 steps`.
    fn counted(self, n: u64) -> String {
        format!("{} {}", count(n), if n == 1 { self.one } else { self.many })
    }
}

/// A time with its unit.
pub(super) fn time(ns: f64) -> String {
    Quantity::Time.show(ns)
}

/// A time with its sign and unit.
pub(super) fn signed(ns: f64) -> String {
    with_sign(ns, time(ns))
}

/// The verdict in one sentence.
pub(super) fn verdict(report: &CompareTrace) -> String {
    let comparison = report.comparison;
    let whole = &comparison.whole;
    let [a, b] = names(comparison);
    let n = sample(comparison, whole);
    let phase = match report.phase {
        "" => String::new(),
        phase => format!(" in phase {phase}"),
    };
    let per = format!("per {}{phase}", Lap::common(comparison).one);
    match whole.verdict {
        _ if whole.ratio.is_none() => nothing(whole, [a, b], &phase),
        Verdict::Slower => {
            let (size, range) = size(whole);
            format!("{b} lags {a}: {size} slower {per} ({range}{n})")
        }
        Verdict::Faster => {
            let (size, range) = size(whole);
            format!("{b} is {size} faster than {a} {per} ({range}{n})")
        }
        Verdict::NoDetectableDifference(within) => {
            let ratio = whole.ratio.map_or_else(String::new, ratio);
            let is_known = if within.is_finite() { "within " } else { "" };
            format!(
                "no detectable difference: {b} takes {ratio}x as long as {a} {per} ({is_known}{}, {n})",
                plus_minus(within)
            )
        }
        Verdict::SingleSample | Verdict::OnlyInA | Verdict::OnlyInB => {
            let ratio = whole.ratio.map_or_else(String::new, significant);
            let [of_a, of_b] = [0, 1].map(|side| time(whole.sides[side].lap_ns));
            let gap = whole.gap_ns.middle;
            let more = match gap {
                _ if gap > 0.0 => format!(", {} slower", time(gap)),
                _ if gap < 0.0 => format!(", {} faster", time(-gap)),
                _ => String::new(),
            };
            format!(
                "{b} takes {ratio}x as long as {a} {per}: {of_b} vs. {of_a}{more} (single sample)"
            )
        }
    }
}

/// The sentence if a side has no device operations and no ratio exists.
fn nothing(whole: &Finding, [a, b]: [&str; 2], phase: &str) -> String {
    let has = |side: usize| whole.sides[side].lap_ns > 0.0;
    match (has(0), has(1)) {
        (true, false) => format!("nothing to compare: only {a} has device operations{phase}"),
        (false, true) => format!("nothing to compare: only {b} has device operations{phase}"),
        _ => format!("nothing to compare: neither side has device operations{phase}"),
    }
}

/// The size of a difference and its confidence interval.
fn size(finding: &Finding) -> (String, String) {
    match interval(finding) {
        Some(interval) => {
            let (size, _, range) = difference(interval);
            (size, format!("95 % CI {range}, "))
        }
        None => (time(finding.gap_ns.middle.abs()), String::new()),
    }
}

fn interval(finding: &Finding) -> Option<Interval> {
    Some(Interval { middle: finding.ratio?, ..finding.ratio_range? })
}

/// The sample sizes: `n = 10 and 12 steps`.
fn sample(comparison: &TraceComparison, finding: &Finding) -> String {
    let [a, b] = [0, 1].map(|side| finding.sides[side].n);
    let markers = [0, 1].map(|side| comparison.sides[side].marker);
    let lap = Lap::common(comparison);
    match finding.spread {
        Spread::WithinOneLap => format!(
            "n = {} and {} within one {}: run-to-run variation may be larger",
            count(a),
            plural(b, "operation"),
            lap.one
        ),
        Spread::None => "single sample".to_owned(),
        Spread::Laps if markers[0] == markers[1] => {
            format!("n = {} and {}", count(a), lap.counted(b))
        }
        Spread::Laps => {
            let [a, b] = [(a, markers[0]), (b, markers[1])].map(|(n, of)| Lap::of(of).counted(n));
            format!("n = {a} and {b}")
        }
    }
}

/// Names of the sides inside a sentence: their labels if these are short, else `A` and `B`.
pub(super) fn names(comparison: &TraceComparison) -> [&str; 2] {
    let [a, b] = [0, 1].map(|side| comparison.sides[side].label.as_str());
    let is_short = |label: &str| {
        let width = escape::columns(&escape::visible(label));
        (1..=LONGEST_LABEL).contains(&width)
    };
    if is_short(a) && is_short(b) && a != b { [a, b] } else { ["A", "B"] }
}

/// `one step: A 100 ms, B 121 ms, difference +21.0 ms (95 % CI +20.1 ms to +21.9 ms)`.
pub(super) fn amounts(comparison: &TraceComparison) -> Option<String> {
    let whole = &comparison.whole;
    if whole.ratio.is_none() || whole.verdict == Verdict::SingleSample {
        return None;
    }
    let [a, b] = [0, 1].map(|side| time(whole.sides[side].lap_ns));
    let range = whole.gap_ns.range.map_or_else(String::new, |(low, high)| {
        format!(" (95 % CI {} to {})", signed(low), signed(high))
    });
    let lap = Lap::common(comparison).one;
    Some(format!("one {lap}: A {a}, B {b}, difference {}{range}", signed(whole.gap_ns.middle)))
}

/// Describes a side: files, devices, ranks, steps and excluded steps.
pub(super) fn side(side: &Side) -> String {
    let lap = Lap::of(side.marker);
    let files = match &side.traces[..] {
        [] => "nothing".to_owned(),
        [one] => one.path.clone(),
        [first, .., last] => {
            let n = plural(side.traces.len() as u64, "trace");
            format!("{n}, {} … {}", first.path, last.path)
        }
    };
    let is_told = !side.label.is_empty() && side.label != files;
    let label = if is_told { format!("{}: ", side.label) } else { String::new() };
    let parts = [
        format!("{label}{files}"),
        gpus(&all_gpus(&side.traces)),
        ranks(&side.traces),
        laps(side, lap),
        set_aside(side, lap),
        outside(side, lap),
        match side.span_ns {
            0 => String::new(),
            span => format!("device span {}", duration(span)),
        },
        match side.architecture {
            Architecture::Unknown => String::new(),
            architecture => architecture.word().to_owned(),
        },
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Devices with operations in all traces, by name. A trace also lists the other devices of its host,
/// which other ranks use.
fn all_gpus(traces: &[TraceFacts]) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = vec![];
    for (name, n) in traces.iter().flat_map(|trace| recorded_gpus(&trace.summary)) {
        match all.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known += n,
            None => all.push((name.clone(), n)),
        }
    }
    all
}

/// Devices with operations in a trace. If the host has devices of one kind only, the operations ran
/// on those.
fn recorded_gpus(summary: &Summary) -> Vec<(&String, u64)> {
    match &summary.about.gpus[..] {
        [(name, n)] if !summary.devices.is_empty() => {
            vec![(name, (summary.devices.len() as u64).min(*n))]
        }
        _ if summary.devices.iter().any(|device| !device.name.is_empty()) => {
            summary.devices.iter().map(|device| (&device.name, 1)).collect()
        }
        all => all.iter().map(|(name, n)| (name, *n)).collect(),
    }
}

/// `rank 3 of 8`, `ranks 0 to 7`.
fn ranks(traces: &[TraceFacts]) -> String {
    let about = || traces.iter().map(|trace| &trace.summary.about);
    let mut ranks: Vec<i64> = about().filter_map(|about| about.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let of = about().find_map(|about| about.world_size);
    let of = of.map_or_else(String::new, |size| format!(" of {size}"));
    let (Some(&first), Some(&last)) = (ranks.first(), ranks.last()) else { return String::new() };
    let is_run = last.checked_sub(first) == i64::try_from(ranks.len() - 1).ok();
    match ranks.len() {
        1 => format!("rank {first}{of}"),
        _ if is_run => format!("ranks {first} to {last}{of}"),
        n => {
            let shown: Vec<String> = ranks.iter().take(MOST_RANKS).map(i64::to_string).collect();
            let more = if n > MOST_RANKS { ", …" } else { "" };
            format!("ranks {}{more}{of}", shown.join(", "))
        }
    }
}

fn laps(side: &Side, lap: Lap) -> String {
    if side.marker == Marker::Whole {
        return match side.laps {
            0 => String::new(),
            _ => "no steps found, compared as a whole".to_owned(),
        };
    }
    let kind = |(name, n): &(String, u64)| format!("{} {name}", count(*n));
    let kinds: Vec<String> =
        side.kinds.iter().filter(|(name, _)| !name.is_empty()).map(kind).collect();
    match &kinds[..] {
        [] => lap.counted(side.laps),
        _ => format!("{} ({})", lap.counted(side.laps), kinds.join(", ")),
    }
}

fn set_aside(side: &Side, lap: Lap) -> String {
    let parts = [(side.warm_up, "warm-up"), (side.partial, "partial")];
    let parts: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let laps = if side.warm_up + side.partial == 1 { lap.one } else { lap.many };
    match &parts[..] {
        [] => String::new(),
        _ => format!("{} {laps} excluded", parts.join(" and ")),
    }
}

fn outside(side: &Side, lap: Lap) -> String {
    let (pieces, ns) = side.outside;
    match pieces {
        0 => String::new(),
        _ => format!(
            "{} ({}) outside {}",
            plural(pieces, "device operation"),
            duration(ns),
            lap.many
        ),
    }
}

/// The legend for the columns of all tables.
pub(super) fn legend(comparison: &TraceComparison) -> String {
    let lap = Lap::common(comparison);
    let spread = match comparison.whole.spread {
        Spread::Laps => format!(
            "±: half-width of the 95 % CI of diff. over {}, plus 1 % of the slower side for \
             run-to-run variation; verdicts are corrected for multiple comparisons",
            lap.many
        ),
        Spread::WithinOneLap => format!(
            "±: half-width of the 95 % CI of diff. over operations repeated within one {}, plus 1 % \
             of the slower side; run-to-run variation may be larger",
            lap.one
        ),
        Spread::None => {
            let many = if lap.one == "trace" { "steps" } else { lap.many };
            format!(
                "single sample: confidence intervals and verdicts need at least five {many} per side"
            )
        }
    };
    format!(
        "diff.: B minus A; ratio: B over A; share: of the whole difference; times and counts are per \
         {} (n = {} and {}); {spread}",
        lap.one,
        count(comparison.sides[0].laps),
        count(comparison.sides[1].laps),
    )
}
