//! Flame graphs as self-contained SVG files.
//!
//! The outermost function is at the top, and the width of a frame is its share. Hovering shows
//! details, a click zooms, and a search highlights matching frames. With two sides, the width of a
//! frame is the larger side. Its colour and signed number are the change of its total, so that a
//! parent shows its own change. Untrusted names are escaped, and the script inserts them only as
//! text.

mod draw;
mod graph;
#[cfg(test)]
mod tests;

pub use graph::{Function, Graph, Hidden, Node, Side};

use crate::profile::{quantity, samples_of};
use laggard_core::model::profile::Unit;

const SCRIPT: &str = include_str!("flame.js");
const STYLE: &str = include_str!("flame.css");

/// Formats a flame graph as SVG.
pub fn svg(graph: &Graph, title: &str) -> String {
    let style = format!("<style>{STYLE}</style>");
    let script =
        format!("<script><![CDATA[\n{SCRIPT}\nflame(document.documentElement);\n]]></script>");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- flame graph by laggard -->\n{}",
        draw::draw(graph, title, &style, &script)
    )
}

/// The total of a side with its unit.
fn whole(graph: &Graph, side: usize) -> String {
    graph.sides.get(side).map_or_else(String::new, |of| amount(graph, side, of.whole))
}

/// A part of a side: its number of samples, estimated from its share, and its weight with the unit.
fn amount(graph: &Graph, side: usize, weight: f64) -> String {
    let Some(side) = graph.sides.get(side) else { return String::new() };
    let share = if side.whole > 0.0 { weight / side.whole } else { 0.0 };
    let samples = (share * side.samples as f64).round() as u64;
    let samples = samples_of(samples, &graph.event);
    match graph.unit {
        // If every sample has weight 1, both are the same.
        Unit::Count if side.whole == side.samples as f64 => samples,
        unit => format!("{samples}, {}", quantity(unit).show(weight)),
    }
}
