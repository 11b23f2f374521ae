//! One page that needs nothing else: the report's sections, a flame graph, a timeline, timings.
//!
//! You give sections as HTML that the reports of this crate made, and data to draw; you get a whole
//! document, with the scripts and styles of `web/` in it. The page opens from a file, a policy in it
//! forbids the network, and names by strangers stay text: in HTML they are escaped, and the data is
//! JSON in which nothing can end the element it stands in. What the data looks like is written in
//! `web/types.d.ts`.

mod data;
mod samples;
mod streams;
#[cfg(test)]
mod tests;

pub use samples::of_samples;
pub use streams::of_trace;

use crate::escape::xml;
use crate::flame::Graph;
use serde::Serialize;
use std::collections::BTreeMap;

/// The scripts, in the order in which they need each other.
const SCRIPTS: [&str; 14] = [
    include_str!("../../web/05-text.js"),
    include_str!("../../web/10-data.js"),
    include_str!("../../web/12-tree.js"),
    include_str!("../../web/15-number.js"),
    include_str!("../../web/20-colour.js"),
    include_str!("../../web/30-layout.js"),
    include_str!("../../web/35-stage.js"),
    include_str!("../../web/37-describe.js"),
    include_str!("../../web/38-flame.js"),
    include_str!("../../web/40-table.js"),
    include_str!("../../web/50-timeline.js"),
    include_str!("../../web/60-distribution.js"),
    include_str!("../../web/80-state.js"),
    include_str!("../../web/90-main.js"),
];
/// Chooses light or dark before anything is shown.
const THEME: &str = include_str!("../../web/00-theme.js");
const STYLE: &str = include_str!("../../web/page.css");
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";
/// Frames of a flame graph that a page has: more would take longer to load than anyone looks at them.
pub const MOST_FRAMES: usize = 300_000;
/// Data beyond this size is compressed, which every browser can undo.
const LARGE: usize = 1 << 20;

/// What a page shows.
#[derive(Default)]
pub struct Page<'a> {
    /// Its title.
    pub title: &'a str,
    /// What a reader must know who reads no further; may be empty.
    pub lead: &'a str,
    /// The report, as HTML that this crate made; empty when there is none.
    pub report: String,
    /// Whether the report comes first: a verdict is read, a profile is looked at.
    pub is_read_first: bool,
    /// The tree of calls. It is pruned already where that is needed.
    pub graph: Option<&'a Graph>,
    /// Intervals of the gap of a function with all it called, by number of the function.
    pub intervals: BTreeMap<u32, [f64; 2]>,
    /// When what happened.
    pub timeline: Option<Timeline>,
    /// How long things took.
    pub distributions: Vec<Distribution>,
}

/// Items on tracks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// Nanoseconds from the first moment to the last.
    pub end: u64,
    unit: &'static str,
    strings: Vec<String>,
    classes: Vec<u32>,
    phases: Vec<u32>,
    tracks: Vec<Track>,
    note: String,
}

/// Items one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Track {
    name: String,
    group: String,
    start: Vec<u64>,
    duration: Vec<u64>,
    label: Vec<u32>,
    class: Vec<u32>,
    phase: Vec<i32>,
    node: Vec<u32>,
    weight: Vec<u64>,
}

/// Times of one thing that was measured on several sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// What was measured.
    pub title: String,
    /// Always `ns`.
    pub unit: &'static str,
    /// The sides.
    pub sides: Vec<Times>,
}

/// Times of a side.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// What it is called.
    pub name: String,
    /// Nanoseconds of a call, in the order of measuring.
    pub values: Vec<f64>,
    /// Low end, median and high end of the 95 % interval of the median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 3]>,
}

/// A script or a style without what only its readers need: indents, comments that have a line of
/// their own, and types. `web/test/load.mjs` does the same for the tests of the scripts.
fn shipped(source: &str) -> String {
    const TYPE: &str = "/** @type ";
    let is_comment = |line: &str| {
        line.is_empty()
            || line.starts_with("//")
            || line.starts_with('*')
            || line.starts_with("/*") && (line.ends_with("*/") || !line.contains("*/"))
    };
    let mut text = String::with_capacity(source.len());
    for line in source.lines().map(str::trim).filter(|line| !is_comment(line)) {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once(TYPE) {
            text.push_str(before);
            rest = after.split_once("*/").map_or("", |(_, code)| code.trim_start());
        }
        text.push_str(rest);
        text.push('\n');
    }
    text
}

/// The whole document.
pub fn html(page: &Page) -> String {
    let title = xml(page.title);
    let lead = match page.lead {
        "" => String::new(),
        lead => format!("<p class=\"lead\">{}</p>", xml(lead)),
    };
    let panel = |name: &str, title: &str, is_there: bool| match is_there {
        true => format!("<section data-panel=\"{name}\" data-title=\"{title}\"></section>\n"),
        false => String::new(),
    };
    let report = match page.report.as_str() {
        "" => String::new(),
        report => format!("<section id=\"report\" data-title=\"Report\">\n{report}</section>\n"),
    };
    let timings = panel("distribution", "Timings", !page.distributions.is_empty());
    let flame = panel("flame", "Flame graph", page.graph.is_some());
    let timeline = panel("timeline", "Timeline", page.timeline.is_some());
    let sections = match page.is_read_first {
        true => [report, timings, timeline, flame].concat(),
        false => [timings, timeline, flame, report].concat(),
    };
    let scripts: String = SCRIPTS.iter().map(|script| shipped(script)).collect();
    format!(
        "<!doctype html>
<!-- page by laggard -->
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">
<meta name=\"viewport\" content=\"width=device-width\">
<meta name=\"generator\" content=\"laggard {}\">
<title>{title}</title>
<style>{}</style>
<script>{THEME}</script>
</head>
<body>
<header><h1>{title}</h1>{lead}</header>
<nav id=\"panels\"></nav>
<main>
{sections}</main>
{}
<script>
(() => {{
\"use strict\";
{scripts}}})();
</script>
</body>
</html>
",
        env!("CARGO_PKG_VERSION"),
        shipped(STYLE),
        data::element(page),
    )
}
