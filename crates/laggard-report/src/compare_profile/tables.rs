//! Tables of a comparison of profiles.

use super::words::Words;
use super::{CompareProfile, Shown};
use crate::calls::tables::short;
use crate::document::Document;
use crate::number::{count, percent, plural, significant};
use crate::rows::{kept, more};
use crate::table::{Column, Table};
use laggard_core::compare::align::{Aligned, AlignedBy};
use laggard_core::compare::profile::{Finding, Gap, GapVerdict, ProfileComparison, Spread};
use laggard_core::model::profile::FrameKind;
use std::collections::BTreeMap;

pub(super) fn libraries(report: &CompareProfile, document: &mut Document) {
    document.heading(format!("Self {} by library", Words::of(report).cost()));
    let all = with_self(&report.comparison.libraries);
    gaps(
        report,
        &all,
        document,
        "library",
        |finding| &finding.own,
        |finding| (String::new(), library(report.comparison.library(finding))),
    );
}

/// Findings with self samples.
fn with_self(findings: &[Finding]) -> Vec<&Finding> {
    findings.iter().filter(|finding| finding.own.samples != [0, 0]).collect()
}

/// Functions by difference in self cost.
pub(super) fn own(report: &CompareProfile, document: &mut Document) {
    document.heading(format!("Self {} by function", Words::of(report).cost()));
    let all = with_self(&report.comparison.functions);
    gaps(
        report,
        &all,
        document,
        "function",
        |finding| &finding.own,
        |finding| function(report.comparison.function(finding)),
    );
}

/// Functions by difference in total cost. Functions with identical samples, such as a chain of calls,
/// are merged unless all rows are requested.
pub(super) fn total(report: &CompareProfile, document: &mut Document) {
    let cost = Words::of(report).cost();
    document.heading(format!("Total {cost} by function (with callees)"));
    let mut all: Vec<&Finding> = vec![];
    let mut alike: BTreeMap<u32, u64> = BTreeMap::new();
    let is_python =
        |finding: &Finding| report.comparison.function(finding).kind == FrameKind::Python;
    // Functions without callees are in the self table.
    let callers = report.comparison.by_total().into_iter();
    for finding in callers.filter(|finding| finding.total.samples != finding.own.samples) {
        match all.last_mut() {
            Some(last) if report.top.is_some() && last.total.samples == finding.total.samples => {
                let others = alike.remove(&last.number).unwrap_or(0) + 1;
                // Prefer the Python function, which users know.
                if is_python(finding) && !is_python(last) {
                    *last = finding;
                }
                alike.insert(last.number, others);
            }
            _ => all.push(finding),
        }
    }
    gaps(
        report,
        &all,
        document,
        "function",
        |finding| &finding.total,
        |finding| {
            let (library, name) = function(report.comparison.function(finding));
            match alike.get(&finding.number) {
                Some(others) => (library, format!("{name} (+{others} same)")),
                None => (library, name),
            }
        },
    );
    if !alike.is_empty() {
        document.minor(
            "same: functions with identical samples, such as a chain of calls; --all lists them",
        );
    }
}

fn gaps<'a>(
    report: &CompareProfile<'a>,
    all: &[&'a Finding],
    document: &mut Document,
    noun: &str,
    gap: impl Fn(&'a Finding) -> &'a Gap,
    name: impl Fn(&'a Finding) -> (String, String),
) {
    let rows = kept(all, report.top);
    if rows.is_empty() {
        document.line("no samples");
        return;
    }
    let words = Words::of(report);
    let amounts = rows.iter().flat_map(|finding| {
        let gap = gap(finding);
        [gap.amounts[0], gap.amounts[1]]
    });
    let unit = words.unit(amounts);
    let mut table = Table::new([
        Column::number("diff.", unit.name()),
        Column::number("±", unit.name()),
        Column::number("ratio", ""),
        Column::number("A", unit.name()),
        Column::number("B", unit.name()),
        Column::range("samples", "n, n"),
        Column::text("verdict"),
        Column::text("library"),
        Column::names(noun),
    ]);
    for finding in rows {
        let gap = gap(finding);
        let amount = |side: usize| match gap.samples[side] {
            0 => String::new(),
            _ => unit.number(gap.amounts[side]),
        };
        let half = gap.interval.map(|range| (range.high - range.low) / 2.0);
        let (library, name) = name(finding);
        table.push([
            unit.signed(gap.gap()),
            half.map_or_else(String::new, |half| unit.number(half)),
            gap.ratio().map_or_else(String::new, significant),
            amount(0),
            amount(1),
            format!("{}, {}", count(gap.samples[0]), count(gap.samples[1])),
            verdict(report, finding, gap).to_owned(),
            library,
            name,
        ]);
    }
    document.table(table);
    let rest = all[rows.len()..].iter().fold(0.0, |sum, finding| sum + gap(finding).gap());
    if all.len() > rows.len() {
        let rows = plural((all.len() - rows.len()) as u64, "more row");
        document.minor(match noun {
            "function" if std::ptr::eq(gap(all[0]), &all[0].total) => format!("({rows})"),
            _ => format!("({rows}: {})", words.signed(rest)),
        });
    }
}

fn verdict(report: &CompareProfile, finding: &Finding, gap: &Gap) -> &'static str {
    match (report.comparison.spread, gap.verdict) {
        (Spread::Sampling, _) | (_, GapVerdict::SingleSample) => "",
        _ if finding.only_in.is_some() && !finding.could_be_chance() => match finding.only_in {
            Some(0) => "only A",
            _ => "only B",
        },
        (_, GapVerdict::TooFewSamples) => "",
        (_, GapVerdict::NoDetectableDifference) => "no difference",
        _ => Words::of(report).more(gap.gap()),
    }
}

/// A function of A and its variant for another CPU in B.
#[derive(Clone, Copy)]
pub(super) struct KernelPair<'a> {
    pub(super) a: &'a Finding,
    pub(super) b: &'a Finding,
}

impl KernelPair<'_> {
    pub(super) fn gap(&self) -> f64 {
        self.b.own.amounts[1] - self.a.own.amounts[0]
    }

    pub(super) fn has(&self, finding: &Finding) -> bool {
        self.a.number == finding.number || self.b.number == finding.number
    }
}

/// Functions of one side with a variant for another CPU on the other side, by decreasing difference.
pub(super) fn kernel_pairs(comparison: &ProfileComparison) -> Vec<KernelPair<'_>> {
    let only = |side: usize| comparison.functions.iter().filter(move |f| f.only_in == Some(side));
    let of_b: BTreeMap<u32, &Finding> = only(1).map(|finding| (finding.number, finding)).collect();
    let mut pairs: Vec<KernelPair> = only(0)
        .filter_map(|a| {
            let b = *of_b.get(&comparison.function(a).variant_of?)?;
            (a.own.samples[0] + b.own.samples[1] > 0).then_some(KernelPair { a, b })
        })
        .collect();
    pairs.sort_by(|x, y| y.gap().abs().total_cmp(&x.gap().abs()));
    pairs
}

/// Table of [`kernel_pairs`].
pub(super) fn kernels(report: &CompareProfile, document: &mut Document) {
    let comparison = report.comparison;
    let pairs = kernel_pairs(comparison);
    if pairs.is_empty() {
        return;
    }
    document.heading("Variants for different CPUs");
    let rows = kept(&pairs, report.top);
    let unit = Words::of(report)
        .unit(rows.iter().flat_map(|pair| [pair.a.own.amounts[0], pair.b.own.amounts[1]]));
    let mut table = Table::new([
        Column::number("diff.", unit.name()),
        Column::number("ratio", ""),
        Column::number("A", unit.name()),
        Column::number("B", unit.name()),
        Column::range("samples", "n, n"),
        Column::names("function in A"),
        Column::names("function in B"),
    ]);
    for pair in rows {
        let KernelPair { a, b } = pair;
        let (of_a, of_b) = (a.own.amounts[0], b.own.amounts[1]);
        let ratio = (of_a > 0.0 && of_b > 0.0).then(|| significant(of_b / of_a));
        table.push([
            unit.signed(pair.gap()),
            ratio.unwrap_or_default(),
            unit.number(of_a),
            unit.number(of_b),
            format!("{}, {}", count(a.own.samples[0]), count(b.own.samples[1])),
            comparison.function(a).name.clone(),
            comparison.function(b).name.clone(),
        ]);
    }
    document.table(table);
    more(&pairs, report.top, document);
}

/// Functions that only one side has. Functions that the other side may have without a sample are only
/// counted unless all rows are requested.
pub(super) fn only_in(report: &CompareProfile, side: usize, document: &mut Document) {
    let name = ["A", "B"][side];
    let found = report.comparison.only_in(side);
    let is_asked = report.shown == Shown::OnlyIn(side);
    if found.is_empty() {
        if is_asked {
            document.heading(format!("Only in {name}"));
            document.line(format!("no function was sampled only in {name}"));
        }
        return;
    }
    document.heading(format!("Only in {name}"));
    let is_sure = |finding: &&&Finding| !finding.could_be_chance();
    let sure: Vec<&Finding> = match report.top {
        Some(_) => found.iter().filter(is_sure).copied().collect(),
        None => found.clone(),
    };
    let rows = kept(&sure, report.top);
    if !rows.is_empty() {
        let words = Words::of(report);
        let unit = words.unit(rows.iter().map(|finding| finding.total.amounts[side]));
        let mut table = Table::new([
            Column::number("total", unit.name()),
            Column::number("self", unit.name()),
            Column::number("samples", "n"),
            Column::number("by chance", "%"),
            Column::text("library"),
            Column::names("function"),
        ]);
        for finding in rows {
            let (library, name) = function(report.comparison.function(finding));
            let chance = finding.missed.filter(|_| finding.could_be_chance()).map(percent);
            table.push([
                unit.number(finding.total.amounts[side]),
                unit.number(finding.own.amounts[side]),
                count(finding.total.samples[side]),
                chance.unwrap_or_default(),
                library,
                name,
            ]);
        }
        document.table(table);
        more(&sure, report.top, document);
    }
    let unsure = found.len() - sure.len();
    if unsure > 0 {
        document.minor(format!(
            "({} with too few samples to exclude chance; --all lists {})",
            plural(unsure as u64, "function"),
            if unsure == 1 { "it" } else { "them" }
        ));
    }
}

/// Name of a library, with B's name if it is another build.
fn library(library: &Aligned) -> String {
    let [of_a, of_b] = &library.names;
    match (library.by, of_a.first(), of_b.first()) {
        (AlignedBy::Library, Some(a), Some(b)) => match (short(&a.name), short(&b.name)) {
            (a, b) if a == b => format!("{a} (different build)"),
            (a, b) => format!("{a} (B: {b})"),
        },
        _ => library.name.clone(),
    }
}

/// Library and name of a function.
fn function(function: &Aligned) -> (String, String) {
    let library = match function.kind {
        FrameKind::Python => String::new(),
        _ => short(&function.library),
    };
    (library, named(function))
}

/// Name of a function, with B's name if it differs.
fn named(aligned: &Aligned) -> String {
    let [of_a, of_b] = &aligned.names;
    let (Some(_), Some(b)) = (of_a.first(), of_b.first()) else { return aligned.name.clone() };
    let other = match aligned.by {
        AlignedBy::Moved => format!("in {}", b.library),
        // The table of libraries shows different builds.
        AlignedBy::Name | AlignedBy::Library => return aligned.name.clone(),
        AlignedBy::File | AlignedBy::Clone => match of_b.iter().any(|b| b.name == aligned.name) {
            true => return aligned.name.clone(),
            false => b.name.clone(),
        },
    };
    format!("{} (B: {other})", aligned.name)
}

/// Functions or libraries as CSV.
pub(super) fn csv(report: &CompareProfile) -> String {
    let field = Words::of(report).field();
    let part = |part: &str| {
        [
            format!("{part}_a_{field}"),
            format!("{part}_b_{field}"),
            format!("{part}_gap_{field}"),
            format!("{part}_gap_low_{field}"),
            format!("{part}_gap_high_{field}"),
            format!("{part}_ratio"),
            format!("{part}_samples_a"),
            format!("{part}_samples_b"),
            format!("{part}_verdict"),
        ]
    };
    let names = ["name", "library", "name_b", "library_b", "only_in", "aligned_by"];
    let columns: Vec<String> =
        names.map(str::to_owned).into_iter().chain(part("self")).chain(part("total")).collect();
    let mut table = Table::new(columns.iter().map(|name| Column::text(name)).collect::<Vec<_>>());
    let is_library = report.shown == Shown::Libraries;
    let all: Vec<&Finding> = match report.shown {
        Shown::Libraries => report.comparison.libraries.iter().collect(),
        Shown::OnlyIn(side) => report.comparison.only_in(side),
        Shown::Whole | Shown::Functions => report.comparison.functions.iter().collect(),
    };
    for finding in kept(&all, report.top) {
        let aligned = match is_library {
            true => report.comparison.library(finding),
            false => report.comparison.function(finding),
        };
        let of_b = aligned.names[1].first();
        let mut line = vec![
            aligned.name.clone(),
            aligned.library.clone(),
            of_b.map_or_else(String::new, |b| b.name.clone()),
            of_b.map_or_else(String::new, |b| b.library.clone()),
            only_word(finding).unwrap_or_default().to_owned(),
            aligned_word(aligned).unwrap_or_default().to_owned(),
        ];
        for gap in [&finding.own, &finding.total] {
            let number = |n: f64| n.to_string();
            let end = |end: Option<f64>| end.map_or_else(String::new, number);
            line.extend([
                number(gap.amounts[0]),
                number(gap.amounts[1]),
                number(gap.gap()),
                end(gap.interval.map(|range| range.low)),
                end(gap.interval.map(|range| range.high)),
                gap.ratio().map_or_else(String::new, |ratio| format!("{ratio:.6}")),
                gap.samples[0].to_string(),
                gap.samples[1].to_string(),
                gap.verdict.word().to_owned(),
            ]);
        }
        table.push(line);
    }
    table.csv()
}

/// The only side that has it.
pub(super) fn only_word(finding: &Finding) -> Option<&'static str> {
    finding.only_in.map(|side| ["A", "B"][side])
}

/// Rule that matched the sides; `None` if only one side has it.
pub(super) fn aligned_word(aligned: &Aligned) -> Option<&'static str> {
    aligned.names.iter().all(|names| !names.is_empty()).then(|| aligned.by.word())
}
