//! Profiles of two sides. A is the reference; gaps are B minus A, ratios B over A.

mod json;
mod tables;
#[cfg(test)]
mod tests;
mod words;

use crate::document::Document;
use crate::escape;
use crate::number::{percent, plural, significant};
use crate::profile::about::{LONGEST_COMMAND, command};
use crate::table::Style;
use laggard_core::compare::profile::{Finding, GapVerdict, ProfileComparison, Scale, Spread};
use laggard_core::model::profile::{About, Unit};
use words::Words;

/// Most of a name that stands in a sentence.
const LONGEST_NAME: usize = 60;

/// What a comparison of profiles is shown from.
#[derive(Clone, Copy, Debug)]
pub struct CompareProfile<'a> {
    /// The reference.
    pub a: Given<'a>,
    /// The one asked about.
    pub b: Given<'a>,
    /// What they differ in.
    pub comparison: &'a ProfileComparison,
    /// What samples were narrowed to, in words; empty when they were not.
    pub narrowed: &'a str,
    /// What to show of it.
    pub shown: Shown,
    /// Rows a table shows; None is all.
    pub top: Option<usize>,
}

/// One side.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Its recordings.
    pub recordings: &'a [Recording<'a>],
    /// What their samples count.
    pub event: &'a str,
    /// What the weights of samples are.
    pub unit: Unit,
}

/// One recording.
#[derive(Clone, Copy, Debug)]
pub struct Recording<'a> {
    /// The file, as the user named it.
    pub path: &'a str,
    /// What was run.
    pub about: &'a About,
    /// What of the file could not be read, a statement each.
    pub losses: &'a [String],
    /// The share of its stacks that reach the program's first frame.
    pub whole_stacks: f64,
}

/// What to show of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Everything.
    Whole,
    /// Libraries.
    Libraries,
    /// Functions of both sides and of one.
    Functions,
    /// Functions that only A (0) or B (1) reaches.
    OnlyIn(usize),
}

/// The comparison for a terminal.
pub fn text(report: &CompareProfile, style: &Style) -> String {
    document(report).text(style)
}

/// The same sections in Markdown.
pub fn markdown(report: &CompareProfile) -> String {
    document(report).markdown()
}

/// The same as sections of a page.
pub fn html(report: &CompareProfile) -> String {
    document(report).html()
}

/// JSON of the schema `laggard.compare-profile/1`.
pub fn json(report: &CompareProfile) -> String {
    json::json(report)
}

/// Functions as CSV, or libraries when those are asked for.
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
        ("narrowed", report.narrowed.to_owned()),
    ]);
    match report.shown {
        Shown::Whole => {
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
                document.notice(format!("warning: of {name}, {}: {loss}", recording.path));
            }
        }
    }
    if let Some(warning) = cut_stacks(report) {
        document.notice(format!("warning: {warning}"));
    }
    document
}

/// That callers are missing on one side more than on the other, so that totals mean little.
fn cut_stacks(report: &CompareProfile) -> Option<String> {
    /// Shares of whole stacks that are as good as equal.
    const ALIKE: f64 = 0.1;
    let share = |given: &Given| {
        let all = given.recordings.iter().map(|recording| recording.whole_stacks);
        all.sum::<f64>() / given.recordings.len().max(1) as f64
    };
    let (a, b) = (share(&report.a), share(&report.b));
    ((a - b).abs() > ALIKE).then(|| {
        format!(
            "{} % of A's stacks reach the program's first frame, {} % of B's: time with callees is \
             compared only where both do; self time is not touched by it",
            percent(a),
            percent(b)
        )
    })
}

/// What a reader must know who reads no further.
fn verdict(report: &CompareProfile) -> String {
    let (whole, words) = (&report.comparison.whole, Words::of(report));
    let [a, b] = whole.amounts;
    if report.comparison.scale == Scale::Share {
        return format!(
            "A and B by share of their own samples, since {}",
            match report.a.event == report.b.event {
                true if report.a.unit == Unit::Count => {
                    "samples by themselves are no time: this does not say which is slower"
                }
                true => "that was asked for: this does not say which is slower",
                false => "they count different things: this does not say which is slower",
            }
        );
    }
    let against = format!("{} against {}", words.show(b), words.show(a));
    let what = words.what();
    let sure = match (whole.verdict, whole.interval) {
        (GapVerdict::SingleSample, _) | (_, None) => {
            "; single sample: one recording a side".to_owned()
        }
        (GapVerdict::NoDetectableDifference, Some(range)) => {
            let share = |value: f64| format!("{:+.1}", 100.0 * value / a);
            return format!(
                "no detectable difference in {what}: {against} ({} to {} %, 95 %)",
                share(range.low),
                share(range.high)
            );
        }
        (_, Some(range)) => {
            format!(" (95 %: {} to {})", words.signed(range.low), words.signed(range.high))
        }
    };
    match whole.ratio() {
        _ if a == b => format!("B takes the same {what} as A: {}{sure}", words.show(b)),
        Some(ratio) => format!(
            "B takes {}x the {what} of A: {against}, {} {}{sure}",
            significant(ratio),
            words.show((b - a).abs()),
            words.more(b - a)
        ),
        None => format!("B and A take {what}: {against}{sure}"),
    }
}

/// Where most of the gap is.
fn most(report: &CompareProfile) -> Option<String> {
    let comparison = report.comparison;
    let words = Words::of(report);
    let grows = comparison.whole.gap() >= 0.0;
    let pairs = tables::kernel_pairs(comparison);
    // A kernel is seen against the one that it stands for.
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
    let gap = words.signed(gap_of(found));
    let name = |finding: &Finding| escape::fit(&comparison.function(finding).name, LONGEST_NAME);
    if let Some(pair) = pairs.iter().find(|pair| pair.has(found)) {
        return Some(format!(
            "largest gap of self: {gap}, {} of B ({}) in place of {} of A ({})",
            name(pair.b),
            words.show(pair.b.own.amounts[1]),
            name(pair.a),
            words.show(pair.a.own.amounts[0]),
        ));
    }
    let library = &comparison.function(found).library;
    let place = match library.is_empty() || library.starts_with('[') {
        true => String::new(),
        false => format!(" of {library}"),
    };
    let only = match found.only_in {
        Some(0) => ", which only A reaches",
        Some(_) => ", which only B reaches",
        None => "",
    };
    Some(format!("largest gap of self: {gap} in {}{place}{only}", name(found)))
}

fn side(report: &CompareProfile, side: usize) -> String {
    let given = if side == 0 { &report.a } else { &report.b };
    let recorded = &report.comparison.sides[side];
    let samples: u64 = recorded.wholes.iter().map(|whole| whole.samples).sum();
    let first = given.recordings.first();
    let files = match given.recordings {
        [] => "nothing".to_owned(),
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
            "±: 95 % over recordings; verdict: of rows with 0.5 % of all samples or more, corrected over \
             them so that about 1 in 20 of those called different is not"
        }
        Spread::Sampling => {
            "±: 95 %, of sampling only: another run may differ by more; for verdicts record each side \
             several times, in turns, and give --a … --b …"
        }
    };
    let of = match report.comparison.scale {
        Scale::Share => "; % of each side's own samples",
        Scale::PerCall(_) => "; of one call",
        _ => "",
    };
    format!("gap: B minus A; ratio: B over A{of}; {spread}")
}
