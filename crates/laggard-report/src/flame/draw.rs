//! Draws the frames of a graph as SVG.

use super::graph::{Function, Graph, Node};
use super::{amount, whole};
use crate::escape::xml;
use crate::names;
use crate::number::{percent, plural, significant};
use laggard_core::model::NONE;
use laggard_core::model::profile::FrameKind;
use std::fmt::Write;

/// Width of the image.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
/// Height of a row of frames.
const ROW: usize = 18;
const HEAD: usize = 48;
const FOOT: usize = 24;
/// Minimum share of the total for a frame to be drawn.
const LEAST: f64 = 0.0005;
/// Maximum number of rows.
const DEEPEST: usize = 500;
/// Width of a letter.
const LETTER: f64 = 7.25;
/// Colours for an increase, a decrease and no change. They can be distinguished with colour
/// blindness.
const MORE: [f64; 3] = [240.0, 168.0, 104.0];
const LESS: [f64; 3] = [127.0, 184.0, 220.0];
const SAME: [f64; 3] = [242.0, 242.0, 242.0];

/// Draws a graph as an `<svg>` element.
pub(super) fn draw(graph: &Graph, title: &str, style: &str, script: &str) -> String {
    let layout = Layout::new(graph);
    let mut frames = String::new();
    let (mut deepest, mut deep) = (0, 0u64);
    // Node, row and left edge from 0 to 1.
    let mut open = vec![(0u32, 0usize, 0.0f64)];
    while let Some((number, row, left)) = open.pop() {
        if row >= DEEPEST {
            deep += 1;
            continue;
        }
        deepest = deepest.max(row);
        layout.frame(&mut frames, number as usize, row, left);
        let mut at = left;
        for &child in layout.children(number) {
            open.push((child, row + 1, at));
            at += layout.share(child as usize);
        }
    }
    let mut remarks = vec![];
    if layout.narrow > 0 {
        remarks.push(format!(
            "{} below {} % not drawn",
            plural(layout.narrow, "frame"),
            LEAST * 100.0
        ));
    }
    if deep > 0 {
        remarks.push(format!("frames deeper than {DEEPEST} levels not drawn"));
    }
    if graph.sides.len() == 2 {
        remarks.insert(
            0,
            "width: larger side; orange: more in B, blue: less in B, including callees".into(),
        );
    }
    let height = HEAD + (deepest + 1) * ROW + FOOT;
    let subtitle = match &graph.sides[..] {
        [a, b] => format!("A {}: {}; B {}: {}", a.name, whole(graph, 0), b.name, whole(graph, 1)),
        _ => whole(graph, 0),
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" preserveAspectRatio=\"xMidYMin meet\" width=\"{WIDTH}\" height=\"{height}\" class=\"flame\" data-width=\"{}\" data-margin=\"{MARGIN}\">
{style}
<rect class=\"ground\" width=\"100%\" height=\"100%\"/>
<text class=\"title\" x=\"{MARGIN}\" y=\"20\">{}</text>
<text class=\"minor\" x=\"{MARGIN}\" y=\"38\">{}</text>
<text class=\"button\" data-do=\"reset\" x=\"1060\" y=\"20\" text-anchor=\"end\">reset zoom</text>
<text class=\"button\" data-do=\"search\" x=\"1190\" y=\"20\" text-anchor=\"end\">search (/)</text>
<text class=\"minor\" data-out=\"found\" x=\"1190\" y=\"38\" text-anchor=\"end\"></text>
<g class=\"frames\">
{frames}</g>
<text class=\"minor\" x=\"{MARGIN}\" y=\"{}\">{}</text>
{script}
</svg>
",
        WIDTH - 2.0 * MARGIN,
        xml(&cut(title, 104)),
        xml(&cut(&subtitle, 134)),
        height - 8,
        xml(&remarks.join("; ")),
    )
}

/// Widths and order of frames.
struct Layout<'a> {
    graph: &'a Graph,
    /// Total weight of each node by side.
    totals: Vec<[f64; 2]>,
    /// Width of each node, in the unit of weights.
    widths: Vec<f64>,
    /// Nodes that are drawn, grouped by parent, widest first.
    drawn: Vec<u32>,
    /// Index of a parent's first child in `drawn`.
    first: Vec<u32>,
    /// Number of nodes that are too narrow to draw.
    narrow: u64,
}

impl<'a> Layout<'a> {
    fn new(graph: &'a Graph) -> Layout<'a> {
        let totals = graph.totals();
        // The width of a frame is its larger side, and at least the sum of its children. So frames
        // of only one side are visible.
        let mut below = vec![0.0; totals.len()];
        let mut widths = vec![0.0; totals.len()];
        for at in (0..totals.len()).rev() {
            widths[at] = totals[at][0].max(totals[at][1]).max(below[at]);
            let parent = graph.nodes[at].parent as usize;
            if parent < at {
                below[parent] += widths[at];
            }
        }
        let all = widths.first().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
        let mut drawn: Vec<u32> =
            (1..widths.len() as u32).filter(|&at| widths[at as usize] / all >= LEAST).collect();
        drawn.sort_by(|&a, &b| {
            let parent = |at: u32| graph.nodes[at as usize].parent;
            let width = |at: u32| widths[at as usize];
            // Sorted by name: node numbers depend on the scheduling of reader threads.
            let name = |at: u32| graph.function(&graph.nodes[at as usize]).map(|f| &f.name);
            parent(a)
                .cmp(&parent(b))
                .then(width(b).total_cmp(&width(a)))
                .then_with(|| name(a).cmp(&name(b)))
                .then(a.cmp(&b))
        });
        let mut first = vec![NONE; widths.len()];
        for (place, &at) in drawn.iter().enumerate().rev() {
            if let Some(first) = first.get_mut(graph.nodes[at as usize].parent as usize) {
                *first = place as u32;
            }
        }
        let narrow = widths.len().saturating_sub(1 + drawn.len()) as u64;
        Layout { graph, totals, widths, drawn, first, narrow }
    }

    /// Children of a node that are drawn, widest first.
    fn children(&self, parent: u32) -> &[u32] {
        let first = self.first.get(parent as usize).copied().unwrap_or(NONE) as usize;
        let rest = self.drawn.get(first..).unwrap_or_default();
        let is_other = |&at: &u32| self.graph.nodes[at as usize].parent != parent;
        &rest[..rest.iter().position(is_other).unwrap_or(rest.len())]
    }

    /// Width of a node as a share of the image.
    fn share(&self, at: usize) -> f64 {
        match self.widths.first() {
            Some(&all) if all > 0.0 => self.widths[at] / all,
            _ => 0.0,
        }
    }

    fn frame(&self, out: &mut String, at: usize, row: usize, left: f64) {
        let share = if row == 0 { 1.0 } else { self.share(at) };
        let inner = WIDTH - 2.0 * MARGIN;
        let (x, width) = (MARGIN + left * inner, share * inner);
        let y = HEAD + row * ROW;
        let node = self.graph.nodes.get(at).copied().unwrap_or(ROOT);
        let function = self.graph.function(&node);
        let name = function.map_or("all", |function| &function.name);
        let total = self.totals.get(at).copied().unwrap_or_default();
        let is_pair = self.graph.sides.len() == 2;
        let gap = total[1] - total[0];
        let label = match is_pair {
            true => format!("{name} {}", signed(self.graph, gap)),
            false => name.to_owned(),
        };
        let library = function.map_or("", |function| &function.library);
        let library = if library.is_empty() { String::new() } else { format!(" in {library}") };
        let hint = match is_pair {
            true => self.two(total, node.own),
            false => self.one(total[0], node.own[0]),
        };
        let fill = match is_pair {
            true => change(total),
            false => colour(function),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<g data-x=\"{left:.6}\" data-w=\"{share:.6}\" data-n=\"{}\"><title>{}{}\n{}</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\" fill=\"{fill}\"/><text x=\"{:.2}\" y=\"{}\">{}</text></g>",
            xml(&label),
            xml(name),
            xml(&library),
            xml(&hint),
            ROW - 1,
            x + 3.0,
            y + 13,
            xml(&fit_name(&label, ((width - 6.0) / LETTER).max(0.0) as usize))
        );
    }

    fn one(&self, total: f64, own: f64) -> String {
        let share = |part: f64| self.of_whole(0, part);
        format!("{} %, {}; self {} %", share(total), amount(self.graph, 0, total), share(own))
    }

    fn two(&self, [a, b]: [f64; 2], [own_a, own_b]: [f64; 2]) -> String {
        let only = match (a > 0.0, b > 0.0) {
            (true, false) => "; only in A",
            (false, true) => "; only in B",
            _ => "",
        };
        let ratio =
            if a > 0.0 && b > 0.0 { format!(", {}x", significant(b / a)) } else { String::new() };
        let side = |side: usize, weight: f64| match self.graph.is_of_shares() {
            true => plain(self.graph, weight),
            false => format!("{} ({} %)", plain(self.graph, weight), self.of_whole(side, weight)),
        };
        format!(
            "A {}, B {}: {}{ratio}{only}; self {}",
            side(0, a),
            side(1, b),
            signed(self.graph, b - a),
            signed(self.graph, own_b - own_a),
        )
    }

    fn of_whole(&self, side: usize, part: f64) -> String {
        let whole = self.graph.sides.get(side).map_or(0.0, |side| side.whole);
        percent(if whole > 0.0 { part / whole } else { 0.0 })
    }
}

const ROOT: Node = Node { parent: NONE, function: NONE, own: [0.0; 2] };

/// A weight with its unit, or a share in percent.
fn plain(graph: &Graph, weight: f64) -> String {
    if graph.is_of_shares() {
        return format!("{} %", percent(weight / 1e6));
    }
    crate::profile::quantity(graph.unit).show(weight)
}

/// A weight with its sign and unit.
fn signed(graph: &Graph, gap: f64) -> String {
    // Removes rounding errors of shares.
    let gap = if graph.is_of_shares() && gap.abs() < 1e-3 { 0.0 } else { gap };
    let sign = if gap < 0.0 { "-" } else { "+" };
    format!("{sign}{}", plain(graph, gap.abs()))
}

/// Shortens a function's name by meaning; empty if too few letters fit.
fn fit_name(name: &str, letters: usize) -> String {
    if letters < 3 { String::new() } else { names::short(name, letters) }
}

/// Truncates a text to a number of letters; empty if too few letters fit.
fn cut(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    if letters < 3 {
        return String::new();
    }
    name.chars().take(letters - 1).chain(['…']).collect()
}

/// Colour of a change; a larger relative change is more saturated.
fn change([a, b]: [f64; 2]) -> String {
    let strength = if a.max(b) > 0.0 { ((b - a).abs() / a.max(b)).min(1.0) } else { 0.0 };
    let towards = if b > a { MORE } else { LESS };
    let [red, green, blue] =
        [0, 1, 2].map(|i| (SAME[i] + (towards[i] - SAME[i]) * strength).round() as u8);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Colour of a function: blue for Python, grey for the kernel, and a hue per library otherwise.
fn colour(function: Option<&Function>) -> String {
    let Some(function) = function else { return "hsl(0 0% 88%)".to_owned() };
    let hash = |text: &str| {
        text.bytes().fold(0x811c_9dc5u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
    };
    let shade = hash(&function.name) % 7;
    match function.kind {
        FrameKind::Python => format!("hsl(210 70% {}%)", 72 + shade),
        FrameKind::Kernel => format!("hsl(0 0% {}%)", 74 + shade),
        FrameKind::Mark => "hsl(0 0% 88%)".to_owned(),
        FrameKind::Native | FrameKind::Inlined => {
            format!("hsl({} 75% {}%)", hash(&function.library) % 130, 68 + shade)
        }
    }
}
