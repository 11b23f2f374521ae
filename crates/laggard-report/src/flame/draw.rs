//! The frames of a tree as rectangles.

use super::whole;
use crate::escape::xml;
use crate::number::{count, percent};
use laggard_core::model::profile::FrameKind;
use laggard_core::profile::{Tree, TreeNode, View};
use std::fmt::Write;

/// Width of the picture.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
/// Height of a row of frames, and of the heading.
const ROW: usize = 18;
const HEAD: usize = 48;
const FOOT: usize = 24;
/// Frames of a smaller share of all are not drawn.
const LEAST: f64 = 0.0005;
/// Rows drawn.
const DEEPEST: usize = 500;
/// Width of a letter.
const LETTER: f64 = 7.25;

/// A picture without its script.
pub(super) struct Drawing {
    height: usize,
    title: String,
    subtitle: String,
    frames: String,
    remark: String,
}

impl Drawing {
    /// The element with its heading, its style before all else and its script behind.
    pub(super) fn with_heading(&self, style: &str, script: &str) -> String {
        self.element(style, script, 0)
    }

    /// The element without its heading.
    pub(super) fn without_heading(&self) -> String {
        self.element("", "", HEAD - 4)
    }

    fn element(&self, style: &str, script: &str, top: usize) -> String {
        let Drawing { height, title, subtitle, frames, remark } = self;
        // By itself the picture has its own size, so that a deep one is scrolled and not shrunk.
        let size = match top {
            0 => format!("width=\"{WIDTH}\" height=\"{height}\""),
            _ => "width=\"100%\"".to_owned(),
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 {top} {WIDTH} {}\" preserveAspectRatio=\"xMidYMin meet\" {size} class=\"flame\" data-width=\"{}\" data-margin=\"{MARGIN}\">
{style}
<rect class=\"ground\" y=\"{top}\" width=\"100%\" height=\"100%\"/>
<text class=\"title\" x=\"{MARGIN}\" y=\"20\">{title}</text>
<text class=\"minor\" x=\"{MARGIN}\" y=\"38\">{subtitle}</text>
<text class=\"button\" data-do=\"reset\" x=\"1060\" y=\"20\" text-anchor=\"end\">whole picture</text>
<text class=\"button\" data-do=\"search\" x=\"1190\" y=\"20\" text-anchor=\"end\">search (press /)</text>
<text class=\"minor\" data-out=\"found\" x=\"1190\" y=\"38\" text-anchor=\"end\"></text>
<g class=\"frames\">
{frames}</g>
<text class=\"minor\" x=\"{MARGIN}\" y=\"{}\">{remark}</text>
{script}
</svg>
",
            height - top,
            WIDTH - 2.0 * MARGIN,
            height - 8,
        )
    }
}

/// Lays the tree out.
pub(super) fn draw(view: &View, tree: &Tree, title: &str) -> Drawing {
    let mut frames = String::new();
    let (mut deepest, mut narrow, mut deep) = (0, 0u64, 0u64);
    // Node, row, and where its left edge is, from 0 to 1.
    let mut open = vec![(0u32, 0usize, 0.0f64)];
    while let Some((number, row, left)) = open.pop() {
        if row >= DEEPEST {
            deep += 1;
            continue;
        }
        let node = &tree.nodes[number as usize];
        deepest = deepest.max(row);
        frame(&mut frames, view, tree, node, row, left);
        let (children, hidden) = tree.children(number, LEAST);
        narrow += hidden.nodes;
        let mut at = left;
        for child in children {
            open.push((child, row + 1, at));
            at += tree.nodes[child as usize].total.share_of(tree.whole);
        }
    }
    let mut remarks = vec![];
    if narrow > 0 {
        remarks.push(format!(
            "{} frames of less than {} % each, with all below them, are not drawn",
            count(narrow),
            LEAST * 100.0
        ));
    }
    if deep > 0 {
        remarks.push(format!("calls deeper than {DEEPEST} are not drawn"));
    }
    Drawing {
        height: HEAD + (deepest + 1) * ROW + FOOT,
        title: xml(&cut(title, 120)),
        subtitle: xml(&whole(view, tree.whole)),
        frames,
        remark: xml(&remarks.join("; ")),
    }
}

fn frame(out: &mut String, view: &View, tree: &Tree, node: &TreeNode, row: usize, left: f64) {
    let share = if row == 0 { 1.0 } else { node.total.share_of(tree.whole) };
    let inner = WIDTH - 2.0 * MARGIN;
    let (x, width) = (MARGIN + left * inner, share * inner);
    let y = HEAD + row * ROW;
    let label = cut(&node.name, ((width - 6.0) / LETTER).max(0.0) as usize);
    let library =
        if node.library.is_empty() { String::new() } else { format!(" in {}", node.library) };
    let hint = format!(
        "{} %, {}; self {} %",
        percent(share),
        whole(view, node.total),
        percent(node.own.share_of(tree.whole))
    );
    // A string takes no formatting errors.
    let _ = writeln!(
        out,
        "<g data-x=\"{left:.6}\" data-w=\"{share:.6}\" data-n=\"{}\"><title>{}{}\n{}</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\" fill=\"{}\"/><text x=\"{:.2}\" y=\"{}\">{}</text></g>",
        xml(&node.name),
        xml(&node.name),
        xml(&library),
        xml(&hint),
        ROW - 1,
        colour(node),
        x + 3.0,
        y + 13,
        xml(&label)
    );
}

/// As much of a name as fits, or nothing.
fn cut(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    if letters < 3 {
        return String::new();
    }
    name.chars().take(letters - 1).chain(['…']).collect()
}

/// Python is blue, the kernel grey; a library has a colour of its own between red and green.
fn colour(node: &TreeNode) -> String {
    let hash = |text: &str| {
        text.bytes().fold(0x811c_9dc5u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
    };
    let shade = hash(&node.name) % 7;
    match node.kind {
        FrameKind::Python => format!("hsl(210 70% {}%)", 72 + shade),
        FrameKind::Kernel => format!("hsl(0 0% {}%)", 74 + shade),
        FrameKind::Mark => "hsl(0 0% 88%)".to_owned(),
        FrameKind::Native | FrameKind::Inlined => {
            format!("hsl({} 75% {}%)", hash(&node.library) % 130, 68 + shade)
        }
    }
}
