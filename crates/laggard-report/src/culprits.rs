//! Culprits of a lag as text, HTML and JSON, shared by all reports that name them.

use crate::document::Document;
use crate::escape::xml;
use crate::number::{Quantity, bytes, count, duration, percent, significant};
use laggard_core::culprit::{Culprit, Fact, Judgement, Missing, Unit};
use serde::Serialize;

/// Smaller shares round to 0 % and are not shown.
const SMALLEST_SHARE: f64 = 0.005;

/// Adds the section to a document. Savings are per `unit`: `call` or `step`.
pub(crate) fn section(judgement: &Judgement, unit: &str, document: &mut Document) {
    document.heading("Why");
    for culprit in &judgement.culprits {
        let finding = &culprit.finding;
        let at = if finding.at.is_empty() { String::new() } else { format!("  {}", finding.at) };
        let share = whole_percent(culprit.explains);
        let mut lines = vec![format!("{share:>3} %  {}{at}", finding.kind.word())];
        lines.extend(finding.facts.iter().map(|one| format!("{:7}{}", "", fact(one))));
        lines.push(format!("{:7}→ {}", "", finding.advice));
        document.verbatim(lines);
    }
    if let Some(open) = not_explained(judgement) {
        document.verbatim(vec![format!("{open:>3} %  not explained")]);
    }
    if let Some(saved) = saved(judgement, unit) {
        document.minor(saved);
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
    section
}

fn culprit(culprit: &Culprit) -> String {
    let finding = &culprit.finding;
    let share = (culprit.explains * 100.0).clamp(0.0, 100.0);
    let facts: String =
        finding.facts.iter().map(|one| format!("<li>{}</li>", xml(&fact(one)))).collect();
    format!(
        "<section class=\"culprit\"><header>{share:.0} % {}</header>\
         <div class=\"share\"><i style=\"width:{share:.1}%\"></i></div>\
         <div class=\"at\">{}</div><ul>{facts}</ul><div class=\"advice\">→ {}</div></section>\n",
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
