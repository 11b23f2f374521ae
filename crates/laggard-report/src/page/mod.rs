//! Self-contained HTML pages with report sections, a flame graph, a timeline and timings.
//!
//! The input is HTML from the reports of this crate and the data to draw. The result is a complete
//! document that includes the scripts and styles of `web/`. It can be opened as a local file, and
//! its content security policy forbids network access. Untrusted names never become markup: they
//! are escaped in HTML, and the JSON data cannot end its element. `web/types.d.ts` describes the
//! data.

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

/// The scripts, in dependency order.
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
/// Selects the light or dark theme before the first paint.
const THEME: &str = include_str!("../../web/00-theme.js");
const STYLE: &str = include_str!("../../web/page.css");
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";
/// Maximum number of flame graph frames in a page. More would make the page slow to load.
pub const MOST_FRAMES: usize = 300_000;
/// Larger data is compressed; browsers can decompress it natively.
const LARGE: usize = 1 << 20;

/// Content of a page.
#[derive(Default)]
pub struct Page<'a> {
    /// Title.
    pub title: &'a str,
    /// The main result in one sentence; may be empty.
    pub lead: &'a str,
    /// The report as HTML from this crate; empty if there is none.
    pub report: String,
    /// Whether the report comes before the graphs.
    pub is_read_first: bool,
    /// The call tree, pruned to [`MOST_FRAMES`].
    pub graph: Option<&'a Graph>,
    /// 95 % confidence intervals of the difference in total time, by function.
    pub intervals: BTreeMap<u32, [f64; 2]>,
    /// The timeline.
    pub timeline: Option<Timeline>,
    /// Distributions of timings.
    pub distributions: Vec<Distribution>,
}

/// A timeline of items on tracks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// Total duration in nanoseconds.
    pub end: u64,
    unit: &'static str,
    strings: Vec<String>,
    /// Short forms of long names, by index in `strings`.
    short: BTreeMap<usize, String>,
    classes: Vec<u32>,
    phases: Vec<u32>,
    tracks: Vec<Track>,
    note: String,
}

/// A track of a timeline.
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

/// Timings of one case on several sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Name of the case.
    pub title: String,
    /// Always `ns`.
    pub unit: &'static str,
    /// Title of the time axis: `time per call`.
    pub axis: String,
    /// The sides.
    pub sides: Vec<Times>,
}

/// Timings of one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// Name of the side.
    pub name: String,
    /// Nanoseconds per call, in measurement order.
    pub values: Vec<f64>,
    /// Lower bound, median and upper bound of the median's 95 % confidence interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 3]>,
}

/// Strips indentation, comments on lines of their own and type annotations from a script or style.
/// `web/test/load.mjs` does the same for the tests of the scripts.
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

/// Builds the complete document.
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
