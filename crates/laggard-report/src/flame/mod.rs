//! Flame graphs: a whole tree of calls as one picture that needs nothing but a browser.
//!
//! The outermost function is at the top; a frame is as wide as its share. Hovering names a frame,
//! a click fills the picture with it, a search marks all frames of a name. Of two sides a frame is
//! as wide as the side that takes more, and its colour and signed number are the change of the
//! frame with all it called, so that a parent shows its own change. Names are text by strangers:
//! they are escaped, and the script puts them back only as text.

mod draw;
mod graph;
#[cfg(test)]
mod tests;

pub use graph::{Function, Graph, Hidden, Node, Side};

use crate::profile::{quantity, samples_of};
use laggard_core::model::profile::Unit;

const SCRIPT: &str = include_str!("flame.js");
const STYLE: &str = include_str!("flame.css");

/// A picture that stands by itself.
pub fn svg(graph: &Graph, title: &str) -> String {
    let style = format!("<style>{STYLE}</style>");
    let script =
        format!("<script><![CDATA[\n{SCRIPT}\nflame(document.documentElement);\n]]></script>");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- flame graph by laggard -->\n{}",
        draw::draw(graph, title, &style, &script)
    )
}

/// All of a side, with its unit.
fn whole(graph: &Graph, side: usize) -> String {
    graph.sides.get(side).map_or_else(String::new, |of| amount(graph, side, of.whole))
}

/// A part of a side: its samples, by its share of all, and its weight with the unit.
fn amount(graph: &Graph, side: usize, weight: f64) -> String {
    let Some(side) = graph.sides.get(side) else { return String::new() };
    let share = if side.whole > 0.0 { weight / side.whole } else { 0.0 };
    let samples = (share * side.samples as f64).round() as u64;
    let samples = samples_of(samples, &graph.event);
    match graph.unit {
        // Where every sample counts once, both are the same.
        Unit::Count if side.whole == side.samples as f64 => samples,
        unit => format!("{samples}, {}", quantity(unit).show(weight)),
    }
}
