//! Culprits of a lag as text, HTML and JSON, shared by all reports that name them.

use crate::divergence;
use crate::document::Document;
use crate::escape::xml;
use crate::number::{Quantity, bytes, count, duration, percent, significant};
use laggard_core::culprit::{Culprit, Fact, Judgement, Missing, Unit};
use serde::Serialize;

/// Smaller shares round to 0 % and are not shown.
const SMALLEST_SHARE: f64 = 0.005;

/// Maximum number of lines of a source comparison in text.
const MOST_DIFF_LINES: usize = 12;

/// Adds the section to a document. Savings are per `unit`: `call` or `step`.
pub(crate) fn section(judgement: &Judgement, unit: &str, document: &mut Document) {
    document.heading("Why");
    for culprit in &judgement.culprits {
        let finding = &culprit.finding;
        let at = if finding.at.is_empty() { String::new() } else { format!("  {}", finding.at) };
        let share = whole_percent(culprit.explains);
        let mut below: Vec<String> = vec![];
        if let Some(point) = &culprit.point {
            below.extend(divergence::lines(point));
        }
        below.extend(work(culprit));
        if let Some(source) = &culprit.source {
            below.extend(divergence::source_lines(source, Some(MOST_DIFF_LINES)));
        }
        below.extend(finding.facts.iter().map(fact));
        below.push(format!("→ {}", finding.advice));
        let mut lines = vec![format!("{share:>3} %  {}{at}", finding.kind.word())];
        lines.extend(below.into_iter().map(|line| format!("{:7}{line}", "")));
        document.verbatim(lines);
    }
    if let Some(open) = not_explained(judgement) {
        document.verbatim(vec![format!("{open:>3} %  not explained")]);
    }
    if let Some(saved) = saved(judgement, unit) {
        document.minor(saved);
    }
    let faster = divergence::faster(&judgement.faster);
    if !faster.is_empty() {
        document.verbatim(faster);
    }
}

/// The same section as HTML.
pub(crate) fn html(judgement: &Judgement, unit: &str) -> String {
    let mut section = "<h2>Why</h2>\n".to_owned();
    section.extend(judgement.culprits.iter().map(culprit));
    let open = not_explained(judgement).map(|open| format!("{open} % not explained"));
    for minor in open.into_iter().chain(saved(judgement, unit)) {
        section += &format!("<p class=\"minor\">{}</p>\n", xml(&minor));
    }
    let faster = divergence::faster(&judgement.faster);
    if !faster.is_empty() {
        section += &format!("<pre class=\"verbatim\">{}</pre>\n", xml(&faster.join("\n")));
    }
    section
}

/// `B's time: 43 % sorting, 31 % Python interpreter`.
fn work(culprit: &Culprit) -> Option<String> {
    const MOST_KINDS: usize = 4;
    let kinds = culprit.work.iter().take(MOST_KINDS);
    let kinds: Vec<String> =
        kinds.map(|(kind, share)| format!("{} % {kind}", whole_percent(*share))).collect();
    (!kinds.is_empty()).then(|| format!("B's time: {}", kinds.join(", ")))
}

fn culprit(culprit: &Culprit) -> String {
    let finding = &culprit.finding;
    let share = (culprit.explains * 100.0).clamp(0.0, 100.0);
    let facts: String =
        finding.facts.iter().map(|one| format!("<li>{}</li>", xml(&fact(one)))).collect();
    let mut paths = String::new();
    if let Some(point) = &culprit.point {
        paths += &divergence::html(point);
    }
    paths.extend(work(culprit).map(|work| format!("<p class=\"minor\">{}</p>", xml(&work))));
    if let Some(source) = &culprit.source {
        let lines = divergence::source_lines(source, None).map(|line| xml(&line));
        let lines: Vec<String> = lines.collect();
        paths += &format!("<pre class=\"verbatim\">{}</pre>", lines.join("\n"));
    }
    format!(
        "<section class=\"culprit\"><header>{share:.0} % {}</header>\
         <div class=\"share\"><i style=\"width:{share:.1}%\"></i></div>\
         <div class=\"at\">{}</div>{paths}<ul>{facts}</ul><div class=\"advice\">→ {}</div></section>\n",
        xml(finding.kind.word()),
        xml(&finding.at),
        xml(&finding.advice)
    )
}

fn not_explained(judgement: &Judgement) -> Option<String> {
    let is_shown = judgement.not_explained >= SMALLEST_SHARE || judgement.culprits.is_empty();
    is_shown.then(|| whole_percent(judgement.not_explained))
}

fn saved(judgement: &Judgement, unit: &str) -> Option<String> {
    (judgement.saved_ns > 0.0).then(|| {
        let saved = Quantity::Time.show(judgement.saved_ns);
        format!(
            "shares are relative to the time that B adds; other parts of B are {saved} per {unit} \
             faster"
        )
    })
}

fn whole_percent(share: f64) -> String {
    format!("{:.0}", share * 100.0)
}

/// `packed instructions: A 94 %, B 0 % (n = 812)`.
fn fact(fact: &Fact) -> String {
    let show = |value: f64| match fact.unit {
        Unit::Nanos => duration(value as i64),
        Unit::Bytes => bytes(value as i64),
        Unit::Share => format!("{} %", percent(value)),
        Unit::Bits => format!("{value:.0}"),
        Unit::Count => significant(value),
    };
    let inferred = if fact.is_inferred { ", inferred" } else { "" };
    format!(
        "{}: A {}, B {} (n = {}{inferred})",
        fact.what,
        show(fact.a),
        show(fact.b),
        count(fact.n)
    )
}

/// How to obtain missing evidence.
pub(crate) fn how_to_get(missing: Missing) -> &'static str {
    match missing {
        Missing::Disassembly => {
            "some hot functions could not be disassembled: run `laggard inspect` on their library to \
             find the reason"
        }
        Missing::Counts => {
            "no instruction, cache-miss or branch-miss counts: run `laggard why` with valgrind \
             installed and without --from"
        }
        Missing::SystemCalls => {
            "B spends more time in the operating system kernel; run `laggard calls --syscalls` to \
             list its system calls"
        }
    }
}

/// A culprit in JSON.
#[derive(Serialize)]
pub(crate) struct Shape<'a> {
    kind: &'static str,
    explains: f64,
    gap_ns: f64,
    facts: Vec<FactShape<'a>>,
    at: &'a str,
    advice: &'a str,
    /// Where the call paths diverge; absent if unknown.
    #[serde(flatten)]
    point: Option<divergence::PointShape<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    work: Vec<WorkShape<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<divergence::SourceShape<'a>>,
}

/// Part of B's time at a place.
#[derive(Serialize)]
struct WorkShape<'a> {
    role: &'a str,
    share: f64,
}

#[derive(Serialize)]
struct FactShape<'a> {
    what: &'a str,
    a: f64,
    b: f64,
    unit: &'static str,
    n: u64,
    inferred: bool,
}

impl<'a> From<&'a Culprit> for Shape<'a> {
    fn from(culprit: &'a Culprit) -> Shape<'a> {
        let finding = &culprit.finding;
        Shape {
            kind: finding.kind.word(),
            explains: culprit.explains,
            gap_ns: culprit.gap_ns,
            facts: finding.facts.iter().map(Into::into).collect(),
            at: &finding.at,
            advice: &finding.advice,
            point: culprit.point.as_deref().map(Into::into),
            work: culprit
                .work
                .iter()
                .map(|(role, share)| WorkShape { role, share: *share })
                .collect(),
            source: culprit.source.as_ref().map(Into::into),
        }
    }
}

impl<'a> From<&'a Fact> for FactShape<'a> {
    fn from(fact: &'a Fact) -> FactShape<'a> {
        FactShape {
            what: &fact.what,
            a: fact.a,
            b: fact.b,
            unit: match fact.unit {
                Unit::Nanos => "ns",
                Unit::Bytes => "bytes",
                Unit::Share => "share",
                Unit::Bits => "bits",
                Unit::Count => "count",
            },
            n: fact.n,
            inferred: fact.is_inferred,
        }
    }
}
