//! The verdict as one page that needs nothing else: no script, no network.

use super::{WhyReport, fact, largest, named, remarks, verdict};
use crate::escape::xml as html;
use crate::number::{duration, significant};
use laggard_core::culprit::{Culprit, Pair, calls_that_differ};

/// Rows of the table of calls.
const MOST_CALLS: usize = 50;

const STYLE: &str = "
:root { color-scheme: light dark; --bar: #c2542d; --soft: #8884; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.culprit { border-left: .4rem solid var(--bar); padding: .2rem 1rem; margin: 1rem 0; }
.culprit header { font-weight: 600; } .at, code, td.name { font-family: ui-monospace, monospace; font-size: .9rem; overflow-wrap: anywhere; }
.share { height: .5rem; background: var(--soft); border-radius: .25rem; overflow: hidden; }
.share i { display: block; height: 100%; background: var(--bar); }
.culprit ul { margin: .3rem 0; } .open { opacity: .7; }
table { border-collapse: collapse; width: 100%; } th, td { padding: .25rem .6rem; text-align: left; border-bottom: 1px solid var(--soft); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
ol { font-family: ui-monospace, monospace; font-size: .9rem; }
";

/// The page.
pub fn page(report: &WhyReport) -> String {
    let head = html(&verdict(report));
    let mut body = format!("<h1>{head}</h1>\n");
    for side in &report.timings.sides {
        body += &format!("<p><b>{}</b> <code>{}</code></p>\n", html(&side.name), html(&side.runs));
    }
    if let Some(judgement) = report.judgement {
        body += "<h2>Why</h2>\n";
        body.extend(judgement.culprits.iter().map(culprit));
        if judgement.not_explained >= 0.005 || judgement.culprits.is_empty() {
            let open = judgement.not_explained * 100.0;
            body += &format!("<p class=\"open\">{open:.0} % not explained</p>\n");
        }
    }
    if let Some(pair) = &report.pair {
        body += &times(pair);
        body += &calls(pair);
        body += &paths(report, pair);
    }
    for remark in remarks(report) {
        body += &format!("<p class=\"open\">{}</p>\n", html(remark));
    }
    let facts =
        report.timings.facts.iter().map(|(name, value)| {
            format!("<tr><td>{}</td><td>{}</td></tr>\n", html(name), html(value))
        });
    body += &format!("<h2>Machine</h2>\n<table>\n{}</table>\n", facts.collect::<String>());
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <meta name=\"generator\" content=\"laggard\"><title>{head}</title>\
         <style>{STYLE}</style></head>\n<body>\n{body}</body></html>\n"
    )
}

fn culprit(culprit: &Culprit) -> String {
    let finding = &culprit.finding;
    let share = (culprit.explains * 100.0).clamp(0.0, 100.0);
    let facts: String =
        finding.facts.iter().map(|one| format!("<li>{}</li>", html(&fact(one)))).collect();
    format!(
        "<section class=\"culprit\"><header>{share:.0} % {}</header>\
         <div class=\"share\"><i style=\"width:{share:.1}%\"></i></div>\
         <div class=\"at\">{}</div><ul>{facts}</ul><div>→ {}</div></section>\n",
        html(finding.kind.word()),
        html(&finding.at),
        html(&finding.advice)
    )
}

fn times(pair: &Pair) -> String {
    let slices = largest(pair, 0.001);
    let rows = slices.iter().map(|slice| {
        let (what, of) = named(slice);
        let [a, b, gap] = [slice.a_ns, slice.b_ns, slice.gap_ns()].map(|ns| duration(ns as i64));
        format!(
            "<tr><td class=\"name\">{}</td><td class=\"name\">{}</td><td class=\"n\">{a}</td>\
             <td class=\"n\">{b}</td><td class=\"n\">{gap}</td></tr>\n",
            html(&what),
            html(&of)
        )
    });
    format!(
        "<h2>Time of a call</h2>\n<table><tr><th>what</th><th>of</th><th class=\"n\">A</th>\
         <th class=\"n\">B</th><th class=\"n\">gap</th></tr>\n{}</table>\n",
        rows.collect::<String>()
    )
}

fn calls(pair: &Pair) -> String {
    let calls = calls_that_differ(pair).unwrap_or_default();
    if calls.is_empty() {
        return String::new();
    }
    let rows = calls.iter().take(MOST_CALLS).map(|call| {
        let count = call.count.map(|n| format!("<td class=\"n\">{}</td>", significant(n)));
        let time = call.ns.map(|ns| format!("<td class=\"n\">{}</td>", duration(ns as i64)));
        format!(
            "<tr><td class=\"name\">{}</td><td class=\"name\">{}</td>{}{}</tr>\n",
            html(call.name),
            html(call.library),
            count.concat(),
            time.concat()
        )
    });
    format!(
        "<h2>Calls into libraries that differ</h2>\n<table><tr><th>function</th><th>of</th>\
         <th class=\"n\">calls, A</th><th class=\"n\">calls, B</th><th class=\"n\">time, A</th>\
         <th class=\"n\">time, B</th></tr>\n{}</table>\n",
        rows.collect::<String>()
    )
}

fn paths(report: &WhyReport, pair: &Pair) -> String {
    let sides = report.timings.sides.iter().zip([pair.a, pair.b]);
    let lists = sides.filter(|(_, seen)| !seen.path.is_empty()).map(|(side, seen)| {
        let frames = seen.path.iter().map(|frame| format!("<li>{}</li>", html(frame)));
        format!("<p><b>{}</b></p><ol>{}</ol>\n", html(&side.name), frames.collect::<String>())
    });
    format!("<h2>The way to most of the time</h2>\n{}", lists.collect::<String>())
}
