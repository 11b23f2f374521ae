//! A divergence point as text, HTML and JSON, shared by all reports that contain one.

use crate::document::Document;
use crate::escape::{self, xml};
use crate::number::{Quantity, count, plural, significant};
use laggard_core::divergence::{Callee, DiffLine, Divergence, Point, PointSource, SideSource};
use serde::Serialize;

/// Names of both sides.
const SIDES: [&str; 2] = ["A", "B"];
/// Maximum number of callees per side in text.
const MOST_CALLEES: usize = 3;
/// Callees with a smaller share of a side's time at the place are not shown in text.
const LEAST_SHARE: f64 = 0.05;
/// Maximum display width of names and of source lines in text.
const NAME_WIDTH: usize = 44;
const SOURCE_WIDTH: usize = 96;

/// The path to the place, and what A and B call there.
pub(crate) fn lines(point: &Point) -> Vec<String> {
    let mut lines: Vec<String> = path(point).into_iter().collect();
    let rows: Vec<[String; 5]> = [0, 1]
        .into_iter()
        .flat_map(|side: usize| shown(point, side).map(move |c| row(side, c)))
        .collect();
    let width =
        |column: usize| rows.iter().map(|row| escape::columns(&row[column])).max().unwrap_or(0);
    let [names, counts, times] = [1, 2, 3].map(width);
    for [side, name, calls, time, below] in &rows {
        let gap = " ".repeat(names - escape::columns(name));
        let line = format!("{side}  {name}{gap}  {calls:>counts$}  {time:>times$}  {below}");
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// `called from DataFrame.join > DataFrame._join_compat`.
fn path(point: &Point) -> Option<String> {
    const MOST: usize = 8;
    if point.is_own_path || point.path.is_empty() {
        return None;
    }
    let mut names: Vec<&str> = point.path.iter().map(|step| step.name.as_str()).collect();
    names.retain(|name| !name.is_empty());
    if names.len() > MOST {
        names.splice(MOST / 2..names.len() - MOST / 2, ["…"]);
    }
    Some(format!("called from {}", names.join(" > ")))
}

fn shown(point: &Point, side: usize) -> impl Iterator<Item = &Callee> {
    let least = LEAST_SHARE * point.ns[side];
    let is_shown = move |callee: &&Callee| callee.ns >= least && !callee.name.is_empty();
    point.callees[side].iter().filter(is_shown).take(MOST_CALLEES)
}

fn row(side: usize, callee: &Callee) -> [String; 5] {
    [
        SIDES[side].to_owned(),
        escape::fit(&callee.name, NAME_WIDTH),
        known_calls(callee).map_or_else(String::new, calls),
        Quantity::Time.show(callee.ns),
        below(&callee.below),
    ]
}

/// Calls of a function. A function with time but without counted calls is called by native code, whose
/// calls are not counted.
fn known_calls(callee: &Callee) -> Option<f64> {
    callee.calls.filter(|&calls| calls > 0.0 || callee.ns <= 0.0)
}

/// As many names as fit.
fn below(names: &[String]) -> String {
    let mut text = String::new();
    for name in names {
        let next = if text.is_empty() { name.clone() } else { format!("{text}, {name}") };
        if escape::columns(&next) > NAME_WIDTH {
            return if text.is_empty() { escape::fit(name, NAME_WIDTH) } else { text + ", …" };
        }
        text = next;
    }
    text
}

/// `1 call`, `5,000 calls`, `0.5 calls`.
fn calls(calls: f64) -> String {
    if calls.fract() == 0.0 {
        plural(calls as u64, "call")
    } else {
        format!("{} calls", significant(calls))
    }
}

/// The lines where the paths part, and the changed lines of the function; at most `most` of these.
pub(crate) fn source_lines(
    source: &PointSource,
    most: Option<usize>,
) -> impl Iterator<Item = String> {
    let numbers = source.sides.iter().flatten().map(|side| side.line);
    let of_diff = source.diff.iter().flat_map(|line| line.lines).flatten();
    let digits = numbers.chain(of_diff).max().unwrap_or(0).to_string().len();
    // The page scrolls.
    let width = if most.is_some() { SOURCE_WIDTH } else { usize::MAX };
    let mut lines = vec![];
    for (name, side) in SIDES.iter().zip(&source.sides) {
        let Some(SideSource { line, text, .. }) = side else { continue };
        let text = match text {
            Ok(text) => escape::fit(text.trim(), width),
            Err(loss) => format!("({})", loss.label()),
        };
        lines.push(format!("{name}  {line:>digits$} │ {text}"));
    }
    let most = most.unwrap_or(usize::MAX);
    if !source.diff.is_empty() {
        let changed = source.diff.iter().filter(|line| sign(line) != ' ').count();
        lines.push(format!("changed source, A to B ({}):", plural(changed as u64, "line")));
    }
    for line in source.diff.iter().skip(first_shown(source, most)).take(most) {
        let number = line.lines[1].or(line.lines[0]).unwrap_or(0);
        let text = escape::fit(line.text.trim_end(), width);
        lines.push(format!("{}  {number:>digits$} │ {text}", sign(line)));
    }
    let left = source.diff.len().saturating_sub(most);
    if left > 0 {
        lines.push(format!("({} more on the HTML page)", count(left as u64)));
    }
    lines.into_iter()
}

/// The first of `most` lines of a comparison that are shown: they surround the line where the paths
/// part.
fn first_shown(source: &PointSource, most: usize) -> usize {
    let distance = |line: &DiffLine| {
        let of_side = |side: usize| {
            let part = source.sides[side].as_ref()?.line;
            Some(line.lines[side]?.abs_diff(part))
        };
        of_side(1).or(of_side(0)).unwrap_or(u32::MAX)
    };
    let changed = source.diff.iter().enumerate().filter(|(_, line)| sign(line) != ' ');
    let nearest = changed.min_by_key(|(at, line)| (distance(line), *at)).map_or(0, |found| found.0);
    let last_start = source.diff.len().saturating_sub(most);
    nearest.saturating_sub(most / 2).min(last_start)
}

fn sign(line: &DiffLine) -> char {
    match line.lines {
        [Some(_), None] => '-',
        [None, _] => '+',
        _ => ' ',
    }
}

/// The path and the callees as HTML.
pub(crate) fn html(point: &Point) -> String {
    let lines: Vec<String> = lines(point).iter().map(|line| xml(line)).collect();
    let mut html = String::new();
    if !lines.is_empty() {
        html += &format!("<pre class=\"verbatim\">{}</pre>", lines.join("\n"));
    }
    if let Some(jump) = jump(point, "mark it in the flame graph") {
        html += &format!("<p class=\"minor\">{jump}</p>");
    }
    html
}

/// Links from a comparison to its places in the flame graph of the same page.
pub(crate) fn links(divergence: &Divergence) -> String {
    let places = divergence.points.iter().filter_map(|point| jump(point, &point.label()));
    let places: Vec<String> = places.collect();
    if places.is_empty() {
        return String::new();
    }
    format!("<p class=\"minor\">Divergence in the flame graph: {}</p>\n", places.join(", "))
}

/// A link that marks the function of a place in the flame graph of both sides.
fn jump(point: &Point, text: &str) -> Option<String> {
    let function = point.place.function.as_ref().or(point.place.python.as_ref());
    let function = function.filter(|function| !function.name.is_empty())?;
    let (name, text) = (encoded(&function.name), xml(text));
    Some(format!("<a class=\"jump\" href=\"#v=flame&amp;s=ab&amp;q={name}\">{text}</a>"))
}

/// A name in the fragment of a URL.
fn encoded(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' => (byte as char).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(byte).collect()
}

/// The section of a comparison: each point with its share of the time that B loses there.
pub(crate) fn section(divergence: &Divergence, document: &mut Document) {
    document.heading("Divergence");
    for (point, share) in shares(divergence).filter(|(point, _)| !point.is_faster()) {
        let word = point.cause.word();
        let mut all = vec![format!("{:>3.0} %  {word}  {}", share * 100.0, point.label())];
        all.extend(lines(point).into_iter().map(|line| format!("{:7}{line}", "")));
        document.verbatim(all);
    }
    document.minor("share of the time that B loses at these places; calls were not counted");
    let faster = faster(divergence.points.iter().filter(|point| point.is_faster()));
    if !faster.is_empty() {
        document.verbatim(faster);
    }
}

/// `B is faster here:` and a line for each of these places.
pub(crate) fn faster<'a>(points: impl IntoIterator<Item = &'a Point>) -> Vec<String> {
    let mut lines: Vec<String> = points
        .into_iter()
        .map(|point| {
            let [a, b] = point.ns.map(|ns| Quantity::Time.show(ns));
            format!("  {}: A {a}, B {b}", point.label())
        })
        .collect();
    if !lines.is_empty() {
        lines.insert(0, "B is faster here:".to_owned());
    }
    lines
}

/// A place where B is faster, in JSON.
#[derive(Serialize)]
pub(crate) struct FasterShape {
    at: String,
    a_ns: f64,
    b_ns: f64,
}

impl From<&Point> for FasterShape {
    fn from(point: &Point) -> FasterShape {
        let [a_ns, b_ns] = point.ns;
        FasterShape { at: point.label(), a_ns, b_ns }
    }
}

/// The points with their shares of the time that B loses; negative where B is faster.
fn shares(divergence: &Divergence) -> impl Iterator<Item = (&Point, f64)> {
    let gap = |point: &Point| point.ns[1] - point.ns[0];
    let whole: f64 = divergence.points.iter().map(|point| gap(point).max(0.0)).sum();
    divergence.points.iter().map(move |point| (point, gap(point) / whole.max(f64::MIN_POSITIVE)))
}

/// A point of a comparison in JSON.
#[derive(Serialize)]
pub(crate) struct DivergenceShape<'a> {
    share: f64,
    kind: &'static str,
    at: String,
    a_ns: f64,
    b_ns: f64,
    #[serde(flatten)]
    point: PointShape<'a>,
}

/// The points of a comparison in JSON.
pub(crate) fn shapes(divergence: &Divergence) -> Vec<DivergenceShape<'_>> {
    let mut all = vec![];
    for (point, share) in shares(divergence) {
        let kind = if point.is_faster() { "faster" } else { point.cause.word() };
        let (at, [a_ns, b_ns]) = (point.label(), point.ns);
        all.push(DivergenceShape { share, kind, at, a_ns, b_ns, point: point.into() });
    }
    all
}

/// A divergence point in JSON.
#[derive(Serialize)]
pub(crate) struct PointShape<'a> {
    path: Vec<String>,
    callees: CalleesShape<'a>,
}

#[derive(Serialize)]
struct CalleesShape<'a> {
    a: Vec<CalleeShape<'a>>,
    b: Vec<CalleeShape<'a>>,
}

#[derive(Serialize)]
struct CalleeShape<'a> {
    name: &'a str,
    file: &'a str,
    calls: Option<f64>,
    ns: f64,
    below: &'a [String],
}

impl<'a> From<&'a Point> for PointShape<'a> {
    fn from(point: &'a Point) -> PointShape<'a> {
        let callees = |side: usize| {
            let shape = |callee: &'a Callee| CalleeShape {
                name: &callee.name,
                file: &callee.file,
                calls: callee.calls,
                ns: callee.ns,
                below: &callee.below,
            };
            point.callees[side].iter().map(shape).collect()
        };
        PointShape {
            path: point.path.iter().map(|step| step.label()).collect(),
            callees: CalleesShape { a: callees(0), b: callees(1) },
        }
    }
}

/// Source in JSON.
#[derive(Serialize)]
pub(crate) struct SourceShape<'a> {
    a: Option<LineShape<'a>>,
    b: Option<LineShape<'a>>,
    diff: Vec<DiffShape<'a>>,
}

#[derive(Serialize)]
struct LineShape<'a> {
    file: &'a str,
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    /// Why there is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<&'static str>,
}

#[derive(Serialize)]
struct DiffShape<'a> {
    a: Option<u32>,
    b: Option<u32>,
    text: &'a str,
}

impl<'a> From<&'a PointSource> for SourceShape<'a> {
    fn from(source: &'a PointSource) -> SourceShape<'a> {
        let line = |side: usize| {
            source.sides[side].as_ref().map(|side| LineShape {
                file: &side.file,
                line: side.line,
                text: side.text.as_deref().ok(),
                missing: side.text.as_ref().err().map(|loss| loss.label()),
            })
        };
        let diff =
            |line: &'a DiffLine| DiffShape { a: line.lines[0], b: line.lines[1], text: &line.text };
        SourceShape { a: line(0), b: line(1), diff: source.diff.iter().map(diff).collect() }
    }
}
