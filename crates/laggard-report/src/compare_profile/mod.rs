//! Report of a comparison of profiles. A is the reference; differences are B minus A, ratios B / A.

mod json;
mod tables;
#[cfg(test)]
mod tests;
mod words;

use crate::divergence;
use crate::document::Document;
use crate::escape;
use crate::names;
use crate::number::{percent, plural, significant};
use crate::profile::about::{LONGEST_COMMAND, command};
use crate::table::Style;
use laggard_core::compare::profile::{Finding, GapVerdict, ProfileComparison, Scale, Spread};
use laggard_core::divergence::Divergence;
use laggard_core::model::profile::{About, Unit};
use words::Words;

/// Maximum width of a name in a sentence.
const LONGEST_NAME: usize = 60;

/// Input of the report.
#[derive(Clone, Copy, Debug)]
pub struct CompareProfile<'a> {
    /// The reference side.
    pub a: Given<'a>,
    /// The compared side.
    pub b: Given<'a>,
    /// The comparison.
    pub comparison: &'a ProfileComparison,
    /// Where B's call paths diverge from A's; `None` if B does not take longer.
    pub divergence: Option<&'a Divergence>,
    /// Description of the filter; empty without a filter.
    pub narrowed: &'a str,
    /// Content of the report.
    pub shown: Shown,
    /// Maximum number of rows in a table; `None` for all.
    pub top: Option<usize>,
}

/// One side.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Its recordings.
    pub recordings: &'a [Recording<'a>],
    /// Sampled event.
    pub event: &'a str,
    /// Unit of sample weights.
    pub unit: Unit,
}

/// One recording.
#[derive(Clone, Copy, Debug)]
pub struct Recording<'a> {
    /// Path as given by the user.
    pub path: &'a str,
    /// The recorded program.
    pub about: &'a About,
    /// Parts of the file that could not be read, one sentence each.
    pub losses: &'a [String],
    /// Share of complete stacks.
    pub whole_stacks: f64,
}

/// Content of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Everything.
    Whole,
    /// Libraries.
    Libraries,
    /// Functions of both sides and of one.
    Functions,
    /// Functions that only A (0) or only B (1) has.
    OnlyIn(usize),
}

/// The comparison as terminal text.
pub fn text(report: &CompareProfile, style: &Style) -> String {
    document(report).text(style)
}

/// The comparison as Markdown.
pub fn markdown(report: &CompareProfile) -> String {
    document(report).markdown()
}

/// The comparison as HTML sections.
pub fn html(report: &CompareProfile) -> String {
    document(report).html()
}

/// The comparison as sections of a page with the flame graphs of both sides.
pub fn page_section(report: &CompareProfile) -> String {
    html(report) + &report.divergence.map_or_else(String::new, divergence::links)
}

/// JSON of schema `laggard.compare-profile/1`.
pub fn json(report: &CompareProfile) -> String {
    json::json(report)
}

/// Functions as CSV, or libraries if the report is about libraries.
pub fn csv(report: &CompareProfile) -> String {
    tables::csv(report)
}

fn document(report: &CompareProfile) -> Document {
    let mut document = Document::default();
    document.lead(verdict(report));
    if let Some(most) = most(report) {
        document.line(most);
    }
    document.blank();
    document.facts([
        ("A", side(report, 0)),
        ("B", side(report, 1)),
        ("filter", report.narrowed.to_owned()),
    ]);
    match report.shown {
        Shown::Whole => {
            if let Some(divergence) = report.divergence {
                divergence::section(divergence, &mut document);
            }
            tables::libraries(report, &mut document);
            tables::own(report, &mut document);
            tables::kernels(report, &mut document);
            tables::total(report, &mut document);
            tables::only_in(report, 0, &mut document);
            tables::only_in(report, 1, &mut document);
        }
        Shown::Libraries => tables::libraries(report, &mut document),
        Shown::Functions => {
            tables::own(report, &mut document);
            tables::kernels(report, &mut document);
            tables::total(report, &mut document);
        }
        Shown::OnlyIn(side) => tables::only_in(report, side, &mut document),
    }
    document.blank();
    document.minor(legend(report));
    for (name, given) in [("A", &report.a), ("B", &report.b)] {
        for recording in given.recordings {
            for loss in recording.losses {
                document.notice(format!("warning: {name}, {}: {loss}", recording.path));
            }
        }
    }
    if let Some(warning) = cut_stacks(report) {
        document.notice(format!("warning: {warning}"));
    }
    document
}

/// Warning about different shares of truncated stacks, which make total times incomparable.
fn cut_stacks(report: &CompareProfile) -> Option<String> {
    /// Tolerated difference between the shares of complete stacks.
    const ALIKE: f64 = 0.1;
    let share = |given: &Given| {
        let all = given.recordings.iter().map(|recording| recording.whole_stacks);
        all.sum::<f64>() / given.recordings.len().max(1) as f64
    };
    let (a, b) = (share(&report.a), share(&report.b));
    ((a - b).abs() > ALIKE).then(|| {
        format!(
            "{} % of A's stacks and {} % of B's are complete: total times are too low where stacks \
             are truncated; self times are not affected",
            percent(a),
            percent(b)
        )
    })
}

/// The main result in one sentence.
fn verdict(report: &CompareProfile) -> String {
    let (whole, words) = (&report.comparison.whole, Words::of(report));
    let [a, b] = whole.amounts;
    if report.comparison.scale == Scale::Share {
        return format!(
            "A and B compared by share of samples{}: this does not show which side is slower",
            match report.a.event == report.b.event {
                true if report.a.unit == Unit::Count => ", because samples do not measure time",
                true => "",
                false => ", because they sampled different events",
            }
        );
    }
    let values = format!("{} vs {}", words.show(b), words.show(a));
    let what = words.what();
    let sure = match (whole.verdict, whole.interval) {
        (GapVerdict::SingleSample, _) | (_, None) => "; single recording, no verdict".to_owned(),
        (GapVerdict::NoDetectableDifference, Some(range)) => {
            let share = |value: f64| format!("{:+.1}", 100.0 * value / a);
            return format!(
                "no detectable difference in {what}: {values} (95 % CI {} to {} %)",
                share(range.low),
                share(range.high)
            );
        }
        (_, Some(range)) => {
            format!(" (95 % CI {} to {})", words.signed(range.low), words.signed(range.high))
        }
    };
    match whole.ratio() {
        _ if a == b => format!("B takes the same {what} as A: {}{sure}", words.show(b)),
        Some(ratio) => format!(
            "B takes {}x the {what} of A: {values}, {} {}{sure}",
            significant(ratio),
            words.show((b - a).abs()),
            words.more(b - a)
        ),
        None => format!("{what} of B and A: {values}{sure}"),
    }
}

/// The function with the largest difference.
fn most(report: &CompareProfile) -> Option<String> {
    let comparison = report.comparison;
    let words = Words::of(report);
    let grows = comparison.whole.gap() >= 0.0;
    let pairs = tables::kernel_pairs(comparison);
    // A CPU-specific variant is compared with its counterpart.
    let gap_of = |finding: &Finding| match pairs.iter().find(|pair| pair.has(finding)) {
        Some(pair) => pair.gap(),
        None => finding.own.gap(),
    };
    let is_such = |finding: &&Finding| gap_of(finding) != 0.0 && (gap_of(finding) > 0.0) == grows;
    let found = comparison
        .functions
        .iter()
        .filter(is_such)
        .max_by(|x, y| gap_of(x).abs().total_cmp(&gap_of(y).abs()))?;
    let (gap, cost) = (words.signed(gap_of(found)), words.cost());
    let name = |finding: &Finding| names::short(&comparison.function(finding).name, LONGEST_NAME);
    if let Some(pair) = pairs.iter().find(|pair| pair.has(found)) {
        return Some(format!(
            "largest difference in self {cost}: {gap}, {} in B ({}) instead of {} in A ({})",
            name(pair.b),
            words.show(pair.b.own.amounts[1]),
            name(pair.a),
            words.show(pair.a.own.amounts[0]),
        ));
    }
    let library = &comparison.function(found).library;
    let place = match library.is_empty() || library.starts_with('[') {
        true => String::new(),
        false => format!(" ({library})"),
    };
    let only = match found.only_in {
        Some(0) => ", only in A",
        Some(_) => ", only in B",
        None => "",
    };
    Some(format!("largest difference in self {cost}: {gap} in {}{place}{only}", name(found)))
}

fn side(report: &CompareProfile, side: usize) -> String {
    let given = if side == 0 { &report.a } else { &report.b };
    let recorded = &report.comparison.sides[side];
    let samples: u64 = recorded.wholes.iter().map(|whole| whole.samples).sum();
    let first = given.recordings.first();
    let files = match given.recordings {
        [] => "no recordings".to_owned(),
        [one] => one.path.to_owned(),
        [first, .., last] => {
            let n = given.recordings.len() as u64;
            format!("{}, {} … {}", plural(n, "recording"), first.path, last.path)
        }
    };
    let program = first.filter(|first| !first.about.command.is_empty());
    let program = program.map_or_else(String::new, |first| {
        format!(": {}", escape::fit(&command(&first.about.command), LONGEST_COMMAND))
    });
    format!(
        "{files}{program}; {} of {}, {}",
        plural(samples, "sample"),
        given.event,
        plural(recorded.functions as u64, "function")
    )
}

fn legend(report: &CompareProfile) -> String {
    let spread = match report.comparison.spread {
        Spread::Recordings => {
            "±: half width of the 95 % CI over recordings; verdict: for rows with at least 0.5 % \
             of all samples, with a false discovery rate of 5 %"
        }
        Spread::Sampling => {
            "±: half width of the 95 % CI, from the sampling error only; for verdicts, record each \
             side several times, alternating, and use --a … --b …"
        }
    };
    let of = match report.comparison.scale {
        Scale::Share => "; %: share of each side's samples",
        Scale::PerCall(_) => "; per call",
        _ => "",
    };
    format!("diff.: B minus A; ratio: B / A{of}; {spread}")
}
